"""What a router has to know of a split: its pools, and by which whole weights each kind of traffic goes to them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.errors import DemandError
from app.split.answer import SplitAnswer
from app.split.demand import Demand
from app.split.options import Option

# The weights of a route sum to this.
WHOLE = 1000
# Replicas of one shape: (fleet, model, GPUs per replica)
Shape = tuple[str, str, int]


@dataclass(frozen=True)
class RouterPool:
    """Replicas that a router sends to as one. name: a DNS label, unique in the plan. urls: of its engines, if known."""

    name: str
    fleet: str
    model: str
    gpus: int
    load: str
    replicas: int
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """Traffic that goes the same way. model: as callers name it. class_name: None where the model alone tells it.

    weights: name of a pool -> whole number; they sum to WHOLE, none is 0.
    """

    model: str
    class_name: str | None
    classes: tuple[str, ...]
    weights: Mapping[str, int]


@dataclass(frozen=True)
class RouterPlan:
    """idle: classes that ask for nothing, and so have no route. digest: of all that the plan was made from."""

    pools: Mapping[str, RouterPool]
    routes: tuple[Route, ...]
    idle: tuple[str, ...]
    digest: str


def router_plan(
    demand: Demand, answer: SplitAnswer, options: Sequence[Option], engines: Mapping[Shape, Sequence[str]]
) -> RouterPlan:
    """The plan of an answer that was chosen from `options`. engines: URLs of engines by shape, where known.

    Raises DemandError where no mix carries the demand: there is nothing to route by.
    """
    if answer.status == "infeasible":
        raise DemandError(f"no mix carries this demand, so there are no weights: {answer.reason}")
    pools = _pools(answer, engines)
    weights = {name: _weights(name, answer, pools) for name in dict.fromkeys(s.class_name for s in answer.shares)}
    return RouterPlan(
        pools={pool.name: pool for pool in pools.values()},
        routes=tuple(_routes(demand, weights)),
        idle=tuple(one.name for one in demand.classes if one.name not in weights),
        digest=inputs_digest(demand, options, engines),
    )


def inputs_digest(demand: Demand, options: Sequence[Option], engines: Mapping[Shape, Sequence[str]]) -> str:
    """16 hex digits of the SHA-256 of the demand, the operating points it chose from and the engines' addresses.

    The options in full: the id of a live point is that of its load, whatever was measured there, and prices are theirs.
    """
    inputs = {
        "demand": demand.model_dump(mode="json", by_alias=True),
        "options": sorted(map(repr, options)),
        "engines": sorted([*map(str, shape), *sorted(urls)] for shape, urls in engines.items()),
    }
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def whole_parts(parts: Sequence[float], whole: int) -> list[int]:
    """`parts` as whole numbers that sum to `whole`, by largest remainder; of equal remainders the first gets more."""
    total = sum(parts)
    exact = [part / total * whole for part in parts]
    found = [math.floor(one + 1e-9) for one in exact]
    by_remainder = sorted(range(len(parts)), key=lambda number: found[number] - exact[number])
    for number in by_remainder[: whole - sum(found)]:
        found[number] += 1
    return found


def dns_label(text: str) -> str:
    """`text` as a name that Kubernetes and URLs take: lower case letters, digits and dashes, at most 50."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:50].strip("-") or "pool"


def unique_names(wanted: Iterable[str]) -> list[str]:
    """`wanted`, with -2, -3, ... behind those that are there already."""
    found: dict[str, None] = {}
    for name in wanted:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}-{number}"
        found[free] = None
    return list(found)


def _key(option: Option) -> tuple[str, str]:
    return option.fleet.name, option.point.point_id


def _shape(option: Option) -> Shape:
    return option.fleet.name, option.point.model, option.point.gpus


def _pools(answer: SplitAnswer, engines: Mapping[Shape, Sequence[str]]) -> dict[tuple[str, str], RouterPool]:
    """By option. Engines are known by shape only: where two pools share one, a person has to say which is which."""
    shapes = [_shape(pool.option) for pool in answer.pools]
    names = unique_names(dns_label(f"{fleet}-{gpus}gpu") for fleet, _, gpus in shapes)
    return {
        _key(pool.option): RouterPool(
            name=name,
            fleet=shape[0],
            model=shape[1],
            gpus=shape[2],
            load="all at once" if pool.option.point.qps is None else f"{pool.option.point.qps:.4g} req/s each",
            replicas=pool.count,
            urls=tuple(sorted(engines.get(shape, ()))) if shapes.count(shape) == 1 else (),
        )
        for pool, shape, name in zip(answer.pools, shapes, names, strict=True)
    }


def _weights(class_name: str, answer: SplitAnswer, pools: Mapping[tuple[str, str], RouterPool]) -> dict[str, int]:
    mine = [share for share in answer.shares if share.class_name == class_name]
    parts = whole_parts([share.share for share in mine], WHOLE)
    return {pools[_key(share.option)].name: part for share, part in zip(mine, parts, strict=True) if part}


def _routes(demand: Demand, weights: Mapping[str, Mapping[str, int]]) -> Iterable[Route]:
    """One per model whose classes go the same way; else one per class, as the model's name does not tell them apart."""
    for model in dict.fromkeys(one.model for one in demand.classes):
        classes = [one.name for one in demand.classes if one.model == model and one.name in weights]
        if not classes:
            continue
        if all(weights[name] == weights[classes[0]] for name in classes):
            yield Route(model, None, tuple(classes), weights[classes[0]])
        else:
            yield from (Route(model, name, (name,), weights[name]) for name in classes)
