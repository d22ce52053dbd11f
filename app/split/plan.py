"""An hourly plan: which replicas run in which hour, and when work that may wait is done."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from app.errors import SolverError
from app.split.answer import GAP_TOLERANCE, SplitAnswer, build_answer, sum_or_none
from app.split.columns import groups_of
from app.split.demand import Demand
from app.split.explain import explain_no_option
from app.split.highs import Instance
from app.split.horizon import Horizon, build_horizon, switch_usd
from app.split.mixed import Program
from app.split.options import Option
from app.split.program import loaded_classes
from app.split.recommend import TOO_TIGHT, best_split
from app.split.rolling import rolled, rounded_up
from app.split.solve import Solution, settled, solve
from app.split.timeline import PlanHour, Timeline

LATE = "No plan serves what may wait by the end of its last hour, within the limits."
_SERVED = 1e-9
_ROLLED_HOURS, _ROLLING = 48, 0.3  # of the time; in longer plans it would take too much


@dataclass(frozen=True)
class HourPlan:
    """answer: the hour's mix; of a deferrable class what is served in it. deferred_tokens: class -> of what has
    arrived, what waits at the hour's end. switch_usd: of the replicas started and stopped at its start.
    """

    start: datetime
    answer: SplitAnswer
    deferred_tokens: dict[str, float]
    started: int
    stopped: int
    switch_usd: float


@dataclass(frozen=True)
class Course:
    """Hours with their sums. usd: without switching. g: operational, by the average intensity; None where an hour's is
    not known. objective_usd: what is minimised, with carbon price and switching.
    """

    hours: tuple[HourPlan, ...]
    objective_usd: float

    @property
    def usd(self) -> float:
        return math.fsum(hour.answer.usd_per_hour or 0.0 for hour in self.hours)

    @property
    def g(self) -> float | None:
        return sum_or_none([hour.answer.g_per_hour for hour in self.hours])

    @property
    def embodied_g(self) -> float | None:
        return sum_or_none([hour.answer.embodied_g_per_hour for hour in self.hours])

    @property
    def switch_usd(self) -> float:
        return math.fsum(hour.switch_usd for hour in self.hours)


@dataclass(frozen=True)
class Plan:
    """status: optimal (within the gap that was asked), feasible (time ran out first), infeasible for `reason`.

    static: the best split of every class's busiest hour, which runs in all hours and serves all work as it arrives;
    None for `static_reason`. bound_usd: proven lower limit of the plan's objective; gap: relative distance from it.
    """

    status: str
    reason: str | None = None
    course: Course | None = None
    bound_usd: float | None = None
    gap: float | None = None
    static: Course | None = None
    static_reason: str | None = None


def plan(
    demand: Demand,
    options: Sequence[Option],
    hours: Sequence[PlanHour],
    *,
    min_up_hours: int = 2,
    gap: float = 0.01,
    time_limit_s: float = 10.0,
) -> Plan:
    """The cheapest course through `hours`. min_up_hours: that a started replica runs at least, where the plan lasts so
    long. Raises DemandError for hours that do not follow each other, SolverError when time is up without a plan.
    """
    timeline = Timeline.of(demand, options, hours)
    hopeless = [
        explain_no_option(demand, timeline.admission, one)
        for one in loaded_classes(timeline.at_most())
        if not timeline.admission.admissible[one.name]
    ]
    if hopeless:
        return Plan("infeasible", " ".join(hopeless))
    horizon = build_horizon(timeline, min_up_hours)
    fixed = solve(timeline.at_peak(), timeline.admission)
    whole = None if fixed is None else horizon.whole_of(dict(enumerate(fixed.replicas)))
    held = None if whole is None else _cheapest_shares(horizon.program, whole)
    static = None if fixed is None or held is None else _static(timeline, fixed)
    found = _solved(horizon, gap, time_limit_s, held)
    if found is None:
        return Plan("infeasible", _why(timeline, options))
    values, dual = found
    course = _course(timeline, horizon, values)
    bound = min(dual + horizon.program.constant, course.objective_usd)
    distance = (course.objective_usd - bound) / abs(course.objective_usd) if course.objective_usd else 0.0
    return Plan(
        status="optimal" if distance <= gap + GAP_TOLERANCE else "feasible",
        course=course,
        bound_usd=bound,
        gap=distance,
        static=static,
        static_reason=None if static else "no split of the busiest hour holds the limits in every hour",
    )


def _solved(
    horizon: Horizon, gap: float, time_limit_s: float, held: np.ndarray | None
) -> tuple[np.ndarray, float] | None:
    """(column values, dual bound), no dearer than `held`. With the whole columns found, the rest is settled exactly."""
    program = horizon.program
    if not program.columns:
        return np.zeros(0), 0.0
    rolling_s = _ROLLING * time_limit_s if len(horizon.hours) <= _ROLLED_HOURS else 0.0
    firsts = [rounded_up(horizon), rolled(horizon, rolling_s) if rolling_s else None]
    starts = [held, *(None if first is None else _cheapest_shares(program, first) for first in firsts)]
    start = min((one for one in starts if one is not None), key=program.cost, default=None)
    found = Instance(program.columns, program.rows).solve(
        program.costs, gap=gap, start=start, time_limit_s=time_limit_s - rolling_s, heuristics=True
    )
    if found is None:
        return None
    whole = {n: float(round(found[0][n])) for n, column in enumerate(program.columns) if column.whole}
    least = _cheapest_shares(program, whole)
    if least is None:
        raise SolverError("HiGHS lost a feasible plan while settling its shares; please report this demand")
    return settled(program, float(np.dot(program.costs, least)), whole), found[1]


def _cheapest_shares(program: Program, whole: Mapping[int, float]) -> np.ndarray | None:
    """The other columns of least cost; None when there are none."""
    if not program.columns:
        return np.zeros(0)
    found = Instance(program.columns, program.rows, whole).solve(program.costs, gap=0.0)
    return None if found is None else found[0]


def _course(timeline: Timeline, horizon: Horizon, values: np.ndarray) -> Course:
    replicas = [horizon.counts(values, number) for number in range(len(timeline.hours))]
    served = [_served(horizon, values, number) for number in range(len(timeline.hours))]
    return _as_course(timeline, replicas, served)


def _served(horizon: Horizon, values: np.ndarray, number: int) -> dict[tuple[str, int], float]:
    """(class, option index) -> tokens/s in the hour."""
    hour, first = horizon.hours[number], horizon.first[number]
    return {
        (one.name, index): float(values[first + column]) * one.tokens_per_s
        for column, one, index in hour.columns.shares()
        if values[first + column] > _SERVED
    }


def _static(timeline: Timeline, fixed: Solution) -> Course:
    """The replicas and shares of `fixed` in every hour."""
    served = []
    for number in range(len(timeline.hours)):
        load = {one.name: one.tokens_per_s for one in timeline.arriving(number).classes}
        served.append({key: share * load[key[0]] for key, share in fixed.shares.items() if load[key[0]] > 0})
    return _as_course(timeline, [dict(enumerate(fixed.replicas))] * len(served), served)


def _as_course(
    timeline: Timeline, replicas: Sequence[Mapping[int, int]], served: Sequence[Mapping[tuple[str, int], float]]
) -> Course:
    """The figures of each hour, recomputed from its replicas and tokens/s rather than read off the solver."""
    demand, solve_options = timeline.demand, timeline.demand.solve
    options = timeline.admission.options
    groups, stranded = groups_of(demand, options, range(len(options)))
    before = [group.today for group in groups]
    waiting = {one.name: 0.0 for one in demand.classes if one.deferrable}
    hours: list[HourPlan] = []
    objective = 0.0
    for number, (counts, tokens) in enumerate(zip(replicas, served, strict=True)):
        for one in timeline.arriving(number).classes:
            if one.name in waiting:
                done = math.fsum(value for (name, _), value in tokens.items() if name == one.name)
                left = waiting[one.name] + 3600 * (one.tokens_per_s - done)
                waiting[one.name] = left if left > 1e-6 * 3600 * one.tokens_per_s else 0.0
        running = [sum(counts.get(index, 0) for index in group.members) for group in groups]
        moved = [now - then for now, then in zip(running, before, strict=True)]
        started = sum(max(0, each) for each in moved)
        stopped = sum(max(0, -each) for each in moved) + (stranded if number == 0 else 0)
        switching = switch_usd(demand, number, len(timeline.hours)) * (started + stopped)
        answer = _answer(timeline, number, counts, tokens)
        hours.append(HourPlan(timeline.hours[number].start, answer, dict(waiting), started, stopped, switching))
        objective += (answer.usd_per_hour or 0.0) + switching
        objective += solve_options.usd_per_gram * (answer.priced_g_per_hour or 0.0)
        before = running
    return Course(tuple(hours), objective)


def _answer(
    timeline: Timeline, number: int, counts: Mapping[int, int], tokens: Mapping[tuple[str, int], float]
) -> SplitAnswer:
    """Of a demand in which each class asks for what is served of it; its share limits may hold over all hours only."""
    rate: dict[str, float] = {}
    for (name, _), value in tokens.items():
        rate[name] = rate.get(name, 0.0) + value
    classes = tuple(
        one.model_copy(
            update={
                "requests_per_s": rate.get(one.name, 0.0) / (one.prompt_tokens + one.generated_tokens),
                "share": () if one.deferrable else one.share,
            }
        )
        for one in timeline.demand.classes
    )
    admission = timeline.admission_of(number)
    solution = Solution(
        replicas=tuple(counts.get(index, 0) for index in range(len(admission.options))),
        shares={(name, index): value / rate[name] for (name, index), value in tokens.items()},
        objective=0.0, bound=0.0, gap=0.0,
    )  # fmt: skip
    found = build_answer(timeline.demand.model_copy(update={"classes": classes}), admission, solution)
    return replace(
        found, objective_usd_per_hour=None, bound_usd_per_hour=None, gap=None, switch_usd_per_hour=None, excluded=()
    )


def _why(timeline: Timeline, options: Sequence[Option]) -> str:
    """The first hour that does not work even by itself and with nothing that may wait; else it is what waits."""
    for number, hour in enumerate(timeline.hours):
        arriving = timeline.arriving(number)
        needed = tuple(
            one.model_copy(update={"requests_per_s": 0.0}) if one.deferrable else one for one in arriving.classes
        )
        alone = best_split(arriving.model_copy(update={"classes": needed}), timeline.admission_of(number).options)
        if alone.status == "infeasible":
            return f"{hour.start:%Y-%m-%d %H:%M}Z: {alone.reason}"
    return LATE if any(one.deferrable for one in timeline.demand.classes) else TOO_TIGHT
