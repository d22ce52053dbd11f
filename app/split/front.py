"""Fronts: what fewer grams cost, and what a tighter SLO costs.

Cost against carbon is an augmented epsilon constraint: $/h is minimised under g/h <= each of 21 levels between the
cheapest and the greenest split, with a small price on grams so that of equally cheap splits the greenest is found.
Source: Mavrotas, Applied Mathematics and Computation 213 (2009) 455-465; design section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app import units
from app.split.answer import SplitAnswer
from app.split.case import Case
from app.split.demand import Demand, Slo
from app.split.options import Option

LEVELS = 21
# Grams' share of the objective: next to nothing where they only decide among equals, nearly all for the greenest.
_DECIDING, _RULING = 1e-5, 1e5
_SAME, _TINY = 1e-7, 1e-12


@dataclass(frozen=True)
class FrontPoint:
    """kind: cheapest, greenest, between, or only (the cheapest is the greenest)."""

    answer: SplitAnswer
    usd_per_hour: float
    g_per_hour: float
    kind: str


@dataclass(frozen=True)
class Front:
    """points: from the cheapest to the greenest; none is dominated. knee: index of the point at which grams are about
    to become dear, None with fewer than three. reason: why there are no points."""

    points: tuple[FrontPoint, ...] = ()
    knee: int | None = None
    reason: str | None = None


def carbon_front(demand: Demand, options: Sequence[Option]) -> Front:
    """$/h against the g/h that the demand's carbon signal and embodied policy count.

    Its carbon price and switching cost do not count: the front shows what every carbon price would choose in the end.
    """
    case = Case.of(demand, options).with_solve(carbon_usd_per_t=0.0, switch_usd_per_replica=0.0)
    unknown = case.without_grams()
    if unknown is not None:
        return Front(reason=f"grams are not known, {unknown}")
    cheapest = case.answer()
    grams = cheapest.priced_g_per_hour
    if cheapest.usd_per_hour is None or grams is None:
        return Front(reason=cheapest.reason)
    answers = _levels(case, cheapest.usd_per_hour, grams) if grams > 0 else [cheapest]
    points = _marked(_undominated(answers))
    return Front(points, _knee(points))


def _levels(case: Case, usd_per_hour: float, g_per_hour: float) -> list[SplitAnswer]:
    """The cheapest split of each level of grams. A split that keeps the next level as well is the cheapest there, too.

    usd_per_hour, g_per_hour: of some cheapest split; they set the scale of the prices on grams.
    """
    usd_per_g = (usd_per_hour or 1.0) / g_per_hour
    ruled, priced = _priced(case, _RULING * usd_per_g), _priced(case, _DECIDING * usd_per_g)
    budget, cap = case.demand.solve.max_usd_per_hour, case.demand.solve.max_g_per_hour
    least_usd = usd_per_hour * (1 + _SAME) + _TINY
    cheapest = ruled.with_solve(max_usd_per_hour=least_usd if budget is None else min(budget, least_usd)).answer()
    answers = [one for one in (cheapest, ruled.answer()) if one.usd_per_hour is not None]
    high, low = (one.priced_g_per_hour or 0.0 for one in (answers[0], answers[-1]))
    latest = high
    for number in range(1, LEVELS):
        level = (high + (low - high) * number / (LEVELS - 1)) * (1 + _SAME) + _TINY
        if latest <= level:
            continue
        found = priced.with_solve(max_g_per_hour=level if cap is None else min(cap, level)).answer()
        if found.usd_per_hour is not None:
            answers.append(found)
            latest = found.priced_g_per_hour or 0.0
    return answers


def _priced(case: Case, usd_per_g: float) -> Case:
    return case.with_solve(carbon_usd_per_t=usd_per_g * units.GRAMS_PER_TONNE)


def _undominated(answers: Sequence[SplitAnswer]) -> list[tuple[float, float, SplitAnswer]]:
    """By cost, each with fewer grams than the one before; what differs by less than rounding is one point."""
    known = [
        (one.usd_per_hour, grams, one)
        for one in answers
        if one.usd_per_hour is not None and (grams := one.priced_g_per_hour) is not None
    ]
    kept: list[tuple[float, float, SplitAnswer]] = []
    for usd, grams, one in sorted(known, key=lambda found: found[:2]):
        if kept and math.isclose(usd, kept[-1][0], rel_tol=_SAME, abs_tol=_TINY) and grams < kept[-1][1]:
            kept[-1] = (usd, grams, one)
        elif not kept or grams < kept[-1][1] * (1 - _SAME):
            kept.append((usd, grams, one))
    return kept


def _marked(found: list[tuple[float, float, SplitAnswer]]) -> tuple[FrontPoint, ...]:
    last = len(found) - 1
    kinds = {0: "cheapest", last: "greenest"} if last else {0: "only"}
    return tuple(
        FrontPoint(answer, usd, grams, kinds.get(number, "between"))
        for number, (usd, grams, answer) in enumerate(found)
    )


def _knee(points: Sequence[FrontPoint]) -> int | None:
    """The point furthest below the chord from the first to the last, both axes scaled to 0..1."""
    if len(points) < 3:
        return None
    first, last = points[0], points[-1]

    def below(point: FrontPoint) -> float:
        usd = (point.usd_per_hour - first.usd_per_hour) / (last.usd_per_hour - first.usd_per_hour)
        grams = (point.g_per_hour - last.g_per_hour) / (first.g_per_hour - last.g_per_hour)
        return 1.0 - usd - grams

    knee = max(range(1, len(points) - 1), key=lambda number: below(points[number]))
    return knee if below(points[knee]) > _SAME else None


@dataclass(frozen=True)
class SloStep:
    """answer: the best split from this limit up to the next step's."""

    max_ms: float
    answer: SplitAnswer


@dataclass(frozen=True)
class SloCurve:
    class_name: str
    slo: Slo
    steps: tuple[SloStep, ...]
    reason: str | None = None


def slo_curve(demand: Demand, options: Sequence[Option], class_name: str, number: int = 0) -> SloCurve:
    """Cost against the limit of SLO `number` of a class: a step at each value that an option was measured at."""
    case = Case.of(demand, options)
    slo = case.workload(class_name).slo[number]
    values = case.slo_values_ms(class_name, number)
    if not values:
        return SloCurve(class_name, slo, (), f"no option of {class_name} has a measured {slo.metric.upper()}")
    answers: dict[int, SplitAnswer] = {}

    def at(index: int) -> SplitAnswer:
        if index not in answers:
            answers[index] = case.with_slo(class_name, number, values[index]).answer()
        return answers[index]

    _between(at, 0, len(values) - 1, answers)
    steps: list[SloStep] = []
    for index, value in enumerate(values):
        answer = answers[index]
        if steps and _cost(answer) > _cost(steps[-1].answer):  # within the gap: what kept the tighter limit still does
            answer = steps[-1].answer
        steps.append(SloStep(value, answer))
    return SloCurve(class_name, slo, tuple(steps))


def _between(at: Callable[[int], SplitAnswer], low: int, high: int, answers: dict[int, SplitAnswer]) -> None:
    """Fill `answers` from low to high: cost never rises with the limit, so between two that are alike all are."""
    first, last = at(low), at(high)
    if high - low < 2:
        return
    if math.isclose(_cost(first), _cost(last), rel_tol=_SAME):
        answers.update(dict.fromkeys(range(low + 1, high), first))
        return
    middle = (low + high) // 2
    _between(at, low, middle, answers)
    _between(at, middle, high, answers)


def _cost(answer: SplitAnswer) -> float:
    """What was minimised; infinite where nothing fits."""
    return math.inf if answer.objective_usd_per_hour is None else answer.objective_usd_per_hour
