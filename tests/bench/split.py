"""The split: how fast it is, and how fast beside the sliced program with CBC on the same matrices."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from app.split.buckets import solve_buckets
from app.split.demand import Demand
from app.split.front import carbon_front
from app.split.options import Option
from app.split.plan import plan
from app.split.recommend import best_split
from app.split.timeline import PlanHour
from tests.bench.matrices import a_matrix
from tests.bench.report import Line
from tests.bench.sliced_ilp import SLICE_FACTOR, solve_sliced
from tests.split.builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft

DEMANDS = 100
FRONTS = 20
PLANS = 10
MATRICES_PER_SIZE = 3
CBC_LIMIT_S = 60.0
# card: $/GPU-hour, W, speed beside an H100
_CARDS = {"h100": (2.0, 350, 1.0), "a100": (1.2, 300, 0.6), "l40s": (0.8, 320, 0.45), "rtx4090": (0.3, 420, 0.35),
          "rtx3090": (0.18, 340, 0.2)}  # fmt: skip


def demands() -> list[Line]:
    """best splits of 10 classes over 20 options at a gap of 0.1%, ties settled"""
    drawn = [a_large_demand(seed) for seed in range(DEMANDS)]
    took_ms = sorted(1000 * _seconds(lambda found=found: best_split(*found)) for found in drawn)
    p95 = took_ms[math.ceil(0.95 * DEMANDS) - 1]
    note = f"median {took_ms[DEMANDS // 2]:.0f} ms, {DEMANDS} demands"
    return [Line("split, 10 classes x 20 options, p95", p95, "ms", "<= 200", note=note)]


def fronts() -> list[Line]:
    """cost against carbon of 10 classes over 20 options, 21 levels"""
    drawn = [a_large_demand(seed) for seed in range(FRONTS)]
    took_s = sorted(_seconds(lambda found=found: carbon_front(*found)) for found in drawn)
    p95 = took_s[math.ceil(0.95 * FRONTS) - 1]
    note = f"median {took_s[FRONTS // 2]:.2f} s, slowest {took_s[-1]:.2f} s, {FRONTS} demands"
    return [Line("front, 10 classes x 20 options, p95", p95, "s", "<= 3", note=note)]


def plans() -> list[Line]:
    """plans of 24 hours of 3 classes, one of which may wait, over 10 options, within 1% of the bound"""
    drawn = [a_day(seed) for seed in range(PLANS)]
    gaps: list[float] = []

    def planned(seed: int) -> None:
        found = plan(*drawn[seed], gap=0.01, time_limit_s=10.0)
        if found.course is None or found.gap is None or found.static is None:
            raise AssertionError(f"plan, seed {seed}: {found.reason or found.static_reason}")
        if found.course.objective_usd > found.static.objective_usd * (1 + 1e-9):
            raise AssertionError(f"plan, seed {seed}: dearer than the same split in all hours")
        gaps.append(found.gap)

    took_s = sorted(_seconds(lambda seed=seed: planned(seed)) for seed in range(PLANS))
    within = sum(gap <= 0.01 for gap in gaps)
    note = (
        f"median {took_s[PLANS // 2]:.1f} s; {within} of {PLANS} within 1%, largest gap {max(gaps):.2%}; "
        "never dearer than static"
    )
    return [Line("plan, 24 h x 3 classes x 10 options, slowest", took_s[-1], "s", "<= 10 within 1%", note=note)]


def matrices() -> list[Line]:
    """size buckets on four GPU types, beside the sliced program with CBC"""
    lines, ratios = [], []
    for sizes in range(4, 11):
        ours_s = theirs_s = 0.0
        limited = 0
        for seed in range(MATRICES_PER_SIZE):
            problem, found = a_matrix(sizes, seed), {}
            took = _seconds(lambda problem=problem, found=found: found.update(ours=solve_buckets(problem)))
            peer = _seconds(
                lambda problem=problem, found=found: found.update(
                    theirs=solve_sliced(problem, time_limit_s=CBC_LIMIT_S)
                )
            )
            if found["ours"].usd_per_hour > (found["theirs"].usd_per_hour or math.inf) + 1e-9:
                raise AssertionError(f"{sizes} x {sizes}, seed {seed}: dearer than the sliced program")
            ours_s, theirs_s = ours_s + took, theirs_s + peer
            limited += not found["theirs"].proven
            ratios.append(peer / took)
        note = f"{theirs_s / ours_s:,.0f}x; CBC stopped after {CBC_LIMIT_S:g} s in {limited} of {MATRICES_PER_SIZE}"
        name = f"{sizes} x {sizes} sizes, 4 GPU types"
        each = 1000 / MATRICES_PER_SIZE
        lines.append(Line(name, each * ours_s, "ms", "", each * theirs_s, "CBC, ms", note))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    note = f"{len(ratios)} matrices, slice factor {SLICE_FACTOR}; never dearer"
    return [*lines, Line("faster than the sliced program", mean, "x", ">= 100 (geometric mean)", note=note)]


def a_large_demand(seed: int) -> tuple[Demand, list[Option]]:
    """10 classes of one model with SLOs of all kinds, and 20 options on five fleets, some of them limited."""
    dice = random.Random(seed)
    options: list[Option] = []
    fleets = []
    for name, (usd, watts, speed) in _CARDS.items():
        grams, limit = dice.choice([50.0, 240.0, 420.0]), dice.choice([None, 64, 128])
        fleets.append(a_fleet(name, usd_per_gpu_hour=usd, g_per_kwh=grams, max_gpus=limit))
        for gpus, qps in ((1, 4.0), (1, 16.0), (2, 16.0), (2, 64.0)):
            busy = qps > 4
            tokens_per_s = speed * gpus**0.9 * dice.uniform(1500, 3000) * (1.5 if busy else 1.0)
            run: dict[str, Any] = {
                "gpu_count": gpus,
                "duration_s": 200_000 / tokens_per_s,
                "offered_requests_per_s": qps,
                "latency": ttft(dice.uniform(30, 60) / speed * (2.5 if busy else 1.0)),
            }
            options.append(an_option(fleets[-1], a_run(**run), idle_w=0.2 * watts * gpus, loaded_w=1.0 * watts * gpus))
    classes = [
        a_class(
            f"class {number}",
            requests_per_s=dice.uniform(1, 60),
            prompt_tokens=dice.uniform(50, 1500),
            generated_tokens=dice.uniform(50, 500),
            slo=() if dice.random() < 0.3 else (a_slo(dice.choice([60, 100, 200, 400])),),
        )
        for number in range(10)
    ]
    carbon = dice.choice([0.0, 0.0, 100.0])
    return a_demand(classes, fleets, gap=0.001, max_utilisation=0.8, carbon_usd_per_t=carbon), options


def a_day(seed: int) -> tuple[Demand, list[Option], list[PlanHour]]:
    """24 hours with a busy evening and a clean noon, of three classes, the last of which may wait, over two options on
    each of five fleets; switching costs in every other.
    """
    demand, options = a_large_demand(seed)
    loose, chat, batch = demand.classes[:3]
    classes = (
        loose.model_copy(update={"slo": ()}),
        chat.model_copy(update={"slo": (a_slo(200),)}),
        batch.model_copy(update={"slo": (), "deferrable": True}),
    )
    solve = {"carbon_usd_per_t": 100.0, "switch_usd_per_replica": 0.2 * (seed % 2)}
    fleets = tuple(fleet.model_copy(update={"max_gpus": None}) for fleet in demand.fleets)
    changes = {"classes": classes, "fleets": fleets, "solve": demand.solve.model_copy(update=solve)}

    def wave(hour: int, peak: int) -> float:
        return math.cos(2 * math.pi * (hour - peak) / 24)

    hours = [
        PlanHour(
            datetime(2026, 2, 3, tzinfo=UTC) + timedelta(hours=hour),
            {one.name: 1 + 0.6 * wave(hour, 18) for one in classes},
            {fleet.name: 300 - 150 * wave(hour, 12 + number) for number, fleet in enumerate(fleets)},
        )
        for hour in range(24)
    ]
    return demand.model_copy(update=changes), options[1::2], hours


def _seconds(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start
