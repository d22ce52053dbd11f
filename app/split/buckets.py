"""GPUs for a matrix of request sizes: what each card costs, and how many requests of each size it serves a second.

The question of Griggs et al., Mélange (arXiv 2404.14527), with the shares of a size left free rather than cut into
slices of one GPU type each: so it is never dearer than their sliced program, of which every answer is one of ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from app.errors import DemandError
from app.split.counts import NotByCounts, cheapest_counts
from app.split.demand import MOST_REPLICAS, Name, NonNegative
from app.split.mixed import Column, Program, Row
from app.split.solve import COST_SLACK, Optimum, optimum, optimum_of_counts
from app.validation import Number, Strict, Usd, Whole, describe


class MatrixGpu(Strict):
    """requests_per_s: most requests a second of each size, 0 where it cannot serve any."""

    name: Name
    usd_per_hour: Usd
    max: Annotated[Whole, Field(ge=0, le=MOST_REPLICAS)] | None = None
    requests_per_s: Annotated[tuple[NonNegative, ...], Field(min_length=1)]


class BucketProblem(Strict):
    """requests_per_s: asked for of each size, in the same order as each GPU's. gap: as for a demand."""

    requests_per_s: Annotated[tuple[NonNegative, ...], Field(min_length=1)]
    gpus: Annotated[tuple[MatrixGpu, ...], Field(alias="gpu", min_length=1)]
    max_utilisation: Annotated[Number, Field(gt=0, le=1)] = 1.0
    gap: Annotated[Number, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="after")
    def _agrees(self) -> BucketProblem:
        names = [gpu.name for gpu in self.gpus]
        if len(set(names)) < len(names):
            raise ValueError("gpu names that differ")
        for gpu in self.gpus:
            if len(gpu.requests_per_s) != len(self.requests_per_s):
                sizes = f"{len(self.requests_per_s)} sizes, {gpu.name} has {len(gpu.requests_per_s)}"
                raise ValueError(f"as many rates for each gpu as there are sizes ({sizes})")
        return self

    def load(self, gpu: MatrixGpu, size: int) -> float:
        """GPUs that all requests of a size fill."""
        return self.requests_per_s[size] / (self.max_utilisation * gpu.requests_per_s[size])


@dataclass(frozen=True)
class BucketAnswer:
    """counts: per GPU; shares: per GPU, of each size. usd_per_hour None, both empty: no counts carry the load."""

    counts: dict[str, int]
    shares: dict[str, tuple[float, ...]]
    usd_per_hour: float | None
    bound_usd_per_hour: float | None
    gap: float | None


def parse_matrix(content: Mapping[str, Any], where: str) -> BucketProblem:
    """The table [matrix] of a TOML or JSON mapping. Raises DemandError with one line per finding."""
    if not isinstance(content.get("matrix"), Mapping):
        raise DemandError(f"{where}: `matrix`: the table is missing")
    try:
        return BucketProblem.model_validate(dict(content["matrix"]))
    except ValidationError as problem:
        raise DemandError(describe(problem, f"{where}, [matrix]")) from None


def solve_buckets(problem: BucketProblem) -> BucketAnswer:
    """The cheapest whole GPUs. Raises SolverError."""
    pairs = [(gpu, size) for gpu in range(len(problem.gpus)) for size in _served(problem, problem.gpus[gpu])]
    if {size for _, size in pairs} < {size for size, rate in enumerate(problem.requests_per_s) if rate > 0}:
        return BucketAnswer({}, {}, None, None, None)
    best = _best(problem, pairs)
    return BucketAnswer({}, {}, None, None, None) if best is None else _answer(problem, pairs, best)


def _best(problem: BucketProblem, pairs: list[tuple[int, int]]) -> Optimum | None:
    """By whole counts, exactly; within the gap by a tree over the shares where those are too many."""
    program = _program(problem, pairs)
    sizes = {size: place for place, size in enumerate(sorted({size for _, size in pairs}))}
    loads = np.full((len(problem.gpus), len(sizes)), math.inf)
    for gpu, size in pairs:
        loads[gpu, sizes[size]] = problem.load(problem.gpus[gpu], size)
    limits = [int(column.high) for column in program.columns[: program.replicas]]
    try:
        counts = cheapest_counts(loads, program.costs[: program.replicas], limits, program.ranks, COST_SLACK)
    except NotByCounts:
        return optimum(program, problem.gap)
    return None if counts is None else optimum_of_counts(program, counts)


def _served(problem: BucketProblem, gpu: MatrixGpu) -> Iterator[int]:
    for size, rate in enumerate(problem.requests_per_s):
        if rate > 0 and gpu.requests_per_s[size] > 0 and problem.load(gpu, size) <= MOST_REPLICAS:
            yield size


def _program(problem: BucketProblem, pairs: list[tuple[int, int]]) -> Program:
    """Columns: whole GPUs of each type, then the share of each of `pairs` (GPU type, size)."""
    first = len(problem.gpus)
    by_size: dict[int, list[tuple[int, float]]] = {}
    loads: list[list[tuple[int, float]]] = [[] for _ in problem.gpus]
    for column, (gpu, size) in enumerate(pairs, first):
        by_size.setdefault(size, []).append((column, 1.0))
        loads[gpu].append((column, problem.load(problem.gpus[gpu], size)))
    most = [sum(load for _, load in found) for found in loads]
    by_price = sorted(range(first), key=lambda gpu: (problem.gpus[gpu].name, problem.gpus[gpu].usd_per_hour))
    ranks = {gpu: rank for rank, gpu in enumerate(by_price)}
    return Program(
        columns=(
            *(Column(0, _whole(most[index], gpu.max), whole=True) for index, gpu in enumerate(problem.gpus)),
            *(Column(0, 1) for _ in pairs),
        ),
        rows=(
            *(Row("served", (str(size),), tuple(terms), low=1.0, high=1.0) for size, terms in by_size.items()),
            *(
                Row("pool", (gpu.name,), (*loads[index], (index, -1.0)), high=0.0)
                for index, gpu in enumerate(problem.gpus)
            ),
        ),
        costs=(*(gpu.usd_per_hour for gpu in problem.gpus), *(0.0 for _ in pairs)),
        replicas=first,
        ranks=tuple(ranks[gpu] for gpu in range(first)),
        tidy=(*(0.0 for _ in problem.gpus), *(float(ranks[gpu]) for gpu, _ in pairs)),
    )


def _whole(most: float, limit: int | None) -> float:
    carried = math.ceil(most)
    return carried if limit is None else min(carried, limit)


def _answer(problem: BucketProblem, pairs: list[tuple[int, int]], best: Optimum) -> BucketAnswer:
    shares = [[0.0] * len(problem.requests_per_s) for _ in problem.gpus]
    for (gpu, size), value in zip(pairs, best.values[len(problem.gpus) :], strict=True):
        shares[gpu][size] = min(1.0, max(0.0, float(value)))
    counts = [round(value) for value in best.values[: len(problem.gpus)]]
    return BucketAnswer(
        counts={gpu.name: count for gpu, count in zip(problem.gpus, counts, strict=True)},
        shares={gpu.name: tuple(found) for gpu, found in zip(problem.gpus, shares, strict=True)},
        usd_per_hour=best.objective,
        bound_usd_per_hour=best.bound,
        gap=best.gap,
    )
