"""The sliced program of Mélange, written from the paper's formulation, solved by PuLP's CBC: the peer of the split.

Source: Griggs et al., "Mélange: Cost Efficient Large Language Model Serving by Exploiting GPU Heterogeneity" (arXiv
2404.14527), section 5: the requests of each size are cut into slices (slice factor 8); each slice goes to one GPU
type, and is as much load there as its rate over the type's highest throughput of that size; whole GPUs of each type
cover the loads of its slices; their cost is the least.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pulp

from app.split.buckets import BucketProblem

SLICE_FACTOR = 8


@dataclass(frozen=True)
class Sliced:
    """usd_per_hour None: infeasible. proven: the time limit did not end it first."""

    usd_per_hour: float | None
    proven: bool


def solve_sliced(
    problem: BucketProblem, *, slice_factor: int = SLICE_FACTOR, time_limit_s: float | None = None
) -> Sliced:
    program = pulp.LpProblem("sliced", pulp.LpMinimize)
    counts = [
        program.add_variable(f"n_{number}", 0, gpu.max, pulp.LpInteger) for number, gpu in enumerate(problem.gpus)
    ]
    program += pulp.lpSum(gpu.usd_per_hour * count for gpu, count in zip(problem.gpus, counts, strict=True))
    loads: list[list[pulp.LpAffineExpression]] = [[] for _ in problem.gpus]
    for size, rate in enumerate(problem.requests_per_s):
        for part in range(slice_factor if rate > 0 else 0):
            chosen = []
            for number, gpu in enumerate(problem.gpus):
                if gpu.requests_per_s[size] > 0:
                    goes = program.add_variable(f"a_{size}_{part}_{number}", cat=pulp.LpBinary)
                    load = rate / (slice_factor * problem.max_utilisation * gpu.requests_per_s[size])
                    loads[number].append(load * goes)
                    chosen.append(goes)
            program += pulp.lpSum(chosen) == 1
    for count, found in zip(counts, loads, strict=True):
        program += pulp.lpSum(found) <= count
    with warnings.catch_warnings():  # PuLP 3 warns of its move of CBC to another package
        warnings.simplefilter("ignore", DeprecationWarning)
        status = program.solve(pulp.PULP_CBC_CMD(msg=False, threads=1, timeLimit=time_limit_s))
    if status != pulp.LpStatusOptimal:
        return Sliced(None, proven=status == pulp.LpStatusInfeasible)
    return Sliced(float(pulp.value(program.objective)), proven=program.sol_status == pulp.LpSolutionOptimal)
