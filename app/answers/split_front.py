"""Question: what do fewer grams cost, and what does a tighter SLO cost?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.answers.split import mix_as_json
from app.errors import DemandError
from app.split.demand import Demand
from app.split.front import carbon_front, slo_curve
from app.split.inputs import slo_names
from app.split.options import Option

CARBON = "carbon"


def split_front(demand: Demand, options: Sequence[Option], against: str = CARBON) -> dict[str, Any]:
    """Cost against `carbon`, or against an SLO by its input's name (slo.<class>, slo.<class>.2).

    against carbon: {against, reason, knee, points: [{usd_per_hour, g_per_hour, kind, is_knee, split}]}, from the
    cheapest to the greenest. knee: a place in points; kind: cheapest, between, greenest, or only. g_per_hour counts by
    the demand's carbon signal and embodied policy, what `split` has is operational by the average.

    against an SLO: {against, reason, class, slo: {metric, percentile, max_ms, label}, points: [{max_ms, usd_per_hour,
    g_per_hour, status}]}, a step at each value that was measured: the cost holds up to the next one's max_ms.

    Raises DemandError where there is no such SLO.
    """
    if against == CARBON:
        return _carbon_front(demand, options)
    slos = slo_names(demand)
    if against not in slos:
        raise DemandError(f"`against`: given {against[:60]!r}; accepted: {', '.join((CARBON, *slos))}")
    return {"against": against, **_slo_curve(demand, options, *slos[against])}


def _carbon_front(demand: Demand, options: Sequence[Option]) -> dict[str, Any]:
    front = carbon_front(demand, options)
    return {
        "against": CARBON,
        "reason": front.reason,
        "knee": front.knee,
        "points": [
            {
                "usd_per_hour": point.usd_per_hour,
                "g_per_hour": point.g_per_hour,
                "kind": point.kind,
                "is_knee": number == front.knee,
                "split": mix_as_json(point.answer),
            }
            for number, point in enumerate(front.points)
        ],
    }


def _slo_curve(demand: Demand, options: Sequence[Option], class_name: str, number: int) -> dict[str, Any]:
    curve = slo_curve(demand, options, class_name, number)
    slo = curve.slo
    return {
        "reason": curve.reason,
        "class": class_name,
        "slo": {"metric": slo.metric, "percentile": slo.percentile, "max_ms": slo.max_ms, "label": slo.label},
        "points": [
            {
                "max_ms": step.max_ms,
                "usd_per_hour": step.answer.usd_per_hour,
                "g_per_hour": step.answer.g_per_hour,
                "status": step.answer.status,
            }
            for step in curve.steps
        ],
    }
