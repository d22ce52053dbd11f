"""Infeasible demands: the smallest conflict and the cheapest relaxation, by hand and against trying every set."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from app.split.answer import Relaxation, SplitAnswer
from app.split.recommend import best_split, recommend

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft
from .instances import Instance, as_demand, draw

SEEDS = list(range(90))
# A limit of an instance: (where it stands, which); its words are those of the answer.
Key = tuple[Any, ...]


def limits_of(instance: Instance) -> dict[Key, str]:
    """Every limit of the instance's loaded classes, fleets and caps, and what the answer calls it."""
    found = _limits_of_classes(instance)
    for fleet, facts in instance.fleets.items():
        if facts["max_gpus"] is not None:
            found["gpus", fleet] = f"{fleet} <= {facts['max_gpus']} GPUs"
    words = {"max_watts": "<= {:,.6g} W", "max_usd_per_hour": "<= ${:,.6g}/h", "max_g_per_hour": "<= {:,.6g} g/h"}
    return found | {
        ("cap", name): form.format(instance.solve[name]) for name, form in words.items() if name in instance.solve
    }


def _limits_of_classes(instance: Instance) -> dict[Key, str]:
    found: dict[Key, str] = {}
    loaded = [(number, load) for number, load in enumerate(instance.loads) if load.tokens_per_s > 0]
    for number, load in loaded:
        name = f"class {number + 1}"
        for metric, percentile, ms in load.slo:
            found["slo", number, metric, percentile, ms] = f"{name}: p{percentile:g} {metric.upper()} <= {ms:g} ms"
        if load.fleets is not None:
            found["fleets", number] = f"{name} only on {', '.join(load.fleets)}"
        if load.zones is not None:
            found["zones", number] = f"{name} only in {', '.join(load.zones)}"
        for fleet, (least, most) in load.shares.items():
            if least > 0:
                found["least", number, fleet] = f"at least {least:.4g} of {name} on {fleet}"
            if most < 1:
                found["most", number, fleet] = f"at most {most:.4g} of {name} on {fleet}"
    return found


def without(instance: Instance, keys: set[Key]) -> Instance:
    loads = []
    for number, load in enumerate(instance.loads):
        shares = {
            fleet: (0.0 if ("least", number, fleet) in keys else low, 1.0 if ("most", number, fleet) in keys else high)
            for fleet, (low, high) in load.shares.items()
        }
        loads.append(
            replace(
                load,
                slo=tuple(one for one in load.slo if ("slo", number, *one) not in keys),
                fleets=None if ("fleets", number) in keys else load.fleets,
                zones=None if ("zones", number) in keys else load.zones,
                shares=shares,
            )
        )
    fleets = {
        name: facts | ({"max_gpus": None} if ("gpus", name) in keys else {}) for name, facts in instance.fleets.items()
    }
    solve = {name: value for name, value in instance.solve.items() if ("cap", name) not in keys}
    return Instance(tuple(loads), instance.pools, fleets, solve)


def is_feasible(instance: Instance) -> bool:
    return best_split(*as_demand(instance)).status != "infeasible"


@cache
def answered(seed: int) -> SplitAnswer:
    return recommend(*as_demand(draw(seed))).answer


@cache
def is_met(seed: int, kept: frozenset[Key]) -> bool:
    instance = draw(seed)
    return is_feasible(without(instance, set(limits_of(instance)) - kept))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_conflict_is_one_of_the_fewest_limits(seed: int) -> None:
    answer, limits = answered(seed), limits_of(draw(seed))
    if answer.status != "infeasible":
        assert (answer.conflict, answer.relaxation) == ((), None)
        return
    named = frozenset(key for key, text in limits.items() if text in answer.conflict)
    assert len(named) == len(answer.conflict) >= 1
    assert not is_met(seed, named)
    for size in range(len(named)):
        assert all(is_met(seed, frozenset(kept)) for kept in itertools.combinations(limits, size))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_relaxation_is_found_whenever_there_is_one(seed: int) -> None:
    answer = answered(seed)
    if answer.status == "infeasible":
        limits = frozenset(limits_of(draw(seed)))
        enough = [key for key in limits if is_met(seed, limits - {key})]
        assert (answer.relaxation is not None) == bool(enough)


def moved(instance: Instance, key: Key, needed: Any) -> Instance:
    """The instance with one limit at `needed`."""
    kind, where, *which = key
    if needed is None:
        return without(instance, {key})
    if kind == "gpus":
        return replace(instance, fleets=instance.fleets | {where: instance.fleets[where] | {"max_gpus": int(needed)}})
    if kind == "cap":
        return replace(instance, solve=instance.solve | {where: needed})
    loads, load = list(instance.loads), instance.loads[where]
    if kind == "slo":
        metric, percentile, ms = which
        slo = tuple((metric, percentile, needed) if one == (metric, percentile, ms) else one for one in load.slo)
        loads[where] = replace(load, slo=slo)
    elif kind in ("fleets", "zones"):
        loads[where] = replace(load, **{kind: (*(getattr(load, kind)), needed)})
    else:
        low, high = load.shares[which[0]]
        border = (needed, high) if kind == "least" else (low, needed)
        loads[where] = replace(load, shares=load.shares | {which[0]: border})
    return replace(instance, loads=tuple(loads))


def tighter(relaxation: Relaxation) -> Any:
    """A little less than is said to be needed, for what is told in numbers that can be any."""
    needed = relaxation.needed
    if not isinstance(needed, float) or needed == 0:
        return None
    if relaxation.unit == "GPUs":
        return needed - 1
    return needed * (1.001 if relaxation.text.startswith("at least") else 0.999)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxation_goes_as_far_as_it_must_and_costs_what_it_says(seed: int) -> None:
    instance, relaxation = draw(seed), answered(seed).relaxation
    if relaxation is None:
        return
    (key,) = [key for key, text in limits_of(instance).items() if text == relaxation.limit]
    after = best_split(*as_demand(moved(instance, key, relaxation.needed)))
    assert after.status == "optimal"
    assert relaxation.objective_usd_per_hour == pytest.approx(after.objective_usd_per_hour, rel=1e-6, abs=1e-7)
    less = tighter(relaxation)
    if less is not None:
        assert not is_feasible(moved(instance, key, less))


def one_step_costs(instance: Instance) -> Iterator[float]:
    """What each GPU limit costs that alone is enough, by trying one GPU more at a time, up to 40."""
    for kind, where in (key for key in limits_of(instance) if key[0] == "gpus"):
        now = instance.fleets[where]["max_gpus"]
        for gpus in range(now + 1, now + 41):
            answer = best_split(*as_demand(moved(instance, (kind, where), gpus)))
            if answer.objective_usd_per_hour is not None:
                yield answer.objective_usd_per_hour
                break


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_no_gpu_limit_is_cheaper_to_relax(seed: int) -> None:
    answer = answered(seed)
    if answer.status == "infeasible":
        costs = list(one_step_costs(draw(seed)))
        if costs:
            assert answer.relaxation is not None
            assert answer.relaxation.objective_usd_per_hour <= min(costs) + 1e-7 * max(1.0, min(costs))


def test_the_seeds_cover_conflicts_and_relaxations_of_every_kind() -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS:
        answer = answered(seed)
        if answer.status == "infeasible":
            met[f"conflict of {min(3, len(answer.conflict))}"] += 1
            met[answer.relaxation.unit if answer.relaxation else "none is enough"] += 1
    assert {"conflict of 1", "conflict of 2", "GPUs", "ms", "fleet", "zone", "share", "none is enough"} <= set(met)
    assert {"W", "USD/h", "g/h"} & set(met)


def two_fleets(**solve: Any) -> tuple[Any, list[Any]]:
    """dear: 1 GPU at $2, p99 TTFT 50 ms; cheap: 2 GPUs at $0.50, 300 ms; 800 tokens/s each; chat 600, batch 2,400."""
    dear = a_fleet("dear", usd_per_gpu_hour=2.0, max_gpus=1, zone="DE")
    cheap = a_fleet("cheap", usd_per_gpu_hour=0.5, max_gpus=2, zone="FR")
    classes = [a_class("chat", requests_per_s=3.0, slo=(a_slo(60),)), a_class("batch", requests_per_s=12.0)]
    options = [an_option(dear, a_run(latency=ttft(50.0))), an_option(cheap, a_run(latency=ttft(300.0)))]
    return a_demand(classes, [dear, cheap], **solve), options


def test_too_few_gpus_in_all_by_hand() -> None:
    # 3,000 tokens/s take 4 replicas of 800 and there are 3: either limit alone would do; one more cheap GPU: $3.50
    answer = recommend(*two_fleets()).answer
    assert answer.conflict == ("dear <= 1 GPUs", "cheap <= 2 GPUs")
    relaxation = answer.relaxation
    assert relaxation is not None
    assert (relaxation.limit, relaxation.unit, relaxation.given, relaxation.needed) == ("cheap <= 2 GPUs", "GPUs", 2, 3)
    assert relaxation.usd_per_hour == pytest.approx(3.5)
    assert answer.reason == (
        "No mix carries 3,000 tokens/s at 100% utilisation within: dear <= 1 GPUs; cheap <= 2 GPUs. "
        "Cheapest single relaxation: 3 GPUs of cheap rather than 2, for $3.50/h."
    )


def test_a_cap_by_hand() -> None:
    # batch alone, 800 tokens/s: $0.50 on cheap
    demand, options = two_fleets(max_usd_per_hour=0.25)
    demand = demand.model_copy(update={"classes": (a_class("batch", requests_per_s=4.0),)})
    answer = recommend(demand, options).answer
    assert answer.conflict == ("<= $0.25/h",)
    assert answer.relaxation is not None
    assert answer.relaxation.needed == pytest.approx(0.5)
    assert answer.relaxation.text == "<= $0.5/h rather than 0.25"


def test_an_slo_that_no_fleet_holds_by_hand() -> None:
    # the nearest is dear with 50 ms; filled with 600 of 800 tokens/s, one at $2
    demand, options = two_fleets()
    demand = demand.model_copy(update={"classes": (a_class("chat", requests_per_s=3.0, slo=(a_slo(40),)),)})
    answer = recommend(demand, options).answer
    assert answer.conflict == ("chat: p99 TTFT <= 40 ms",)
    assert answer.relaxation is not None
    assert (answer.relaxation.needed, answer.relaxation.unit) == (50.0, "ms")
    assert answer.relaxation.usd_per_hour == pytest.approx(2.0)
    assert answer.reason is not None
    assert "chat (org/model with p99 TTFT <= 40 ms) fits nowhere" in answer.reason
    assert answer.reason.endswith("Cheapest single relaxation: p99 TTFT of chat <= 50 ms rather than 40, for $2.00/h.")


def test_a_zone_by_hand() -> None:
    demand, options = two_fleets()
    demand = demand.model_copy(update={"classes": (a_class("batch", requests_per_s=6.0, zones=("DE",)),)})
    answer = recommend(demand, options).answer
    # 1,200 tokens/s, one dear GPU of 800: either two dear ones, $4, or FR as well: two cheap ones, $1
    assert answer.conflict == ("batch only in DE", "dear <= 1 GPUs")
    assert answer.relaxation is not None
    assert (answer.relaxation.text, answer.relaxation.needed) == ("batch in FR as well", "FR")
    assert answer.relaxation.usd_per_hour == pytest.approx(1.0)


def test_what_is_not_measured_is_no_limit() -> None:
    demand, options = two_fleets()
    demand = demand.model_copy(update={"classes": (a_class("voice", model="org/other", slo=(a_slo(40),)),)})
    answer = recommend(demand, options).answer
    assert (answer.status, answer.conflict, answer.relaxation) == ("infeasible", (), None)
    assert "no benchmark run of org/other" in (answer.reason or "")


def test_the_fast_answer_looks_for_no_conflict() -> None:
    answer = best_split(*two_fleets())
    assert (answer.status, answer.conflict, answer.relaxation) == ("infeasible", (), None)
    assert answer.reason == "No mix carries the demand within its limits."
