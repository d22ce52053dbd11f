"""Sentences: why a class goes where it goes, and why it can go nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from app import units
from app.split.answer import SplitAnswer
from app.split.demand import Demand, ShareLimit, WorkloadClass
from app.split.options import Admission, Exclusion
from app.split.weights import hour_of_load, hour_of_replica

_NEARLY = 1e-6


def explain_classes(demand: Demand, admission: Admission, answer: SplitAnswer) -> dict[str, str]:
    """One sentence per class: where it goes, and why not elsewhere."""
    return {one.name: _explain(demand, admission, answer, one) for one in demand.classes}


def _explain(demand: Demand, admission: Admission, answer: SplitAnswer, one: WorkloadClass) -> str:
    if one.tokens_per_s == 0:
        return "No demand, so nothing is placed."
    shares = sorted((s for s in answer.shares if s.class_name == one.name), key=lambda share: -share.share)
    placed = " and ".join(f"{_percent(share.share)} to {share.option.label}" for share in shares)
    used: dict[str, float] = {}
    for share in shares:
        used[share.option.fleet.name] = used.get(share.option.fleet.name, 0.0) + share.share
    return f"{placed}, because {'; '.join(_because(demand, admission, answer, one, used))}."


def _because(
    demand: Demand, admission: Admission, answer: SplitAnswer, one: WorkloadClass, used: Mapping[str, float]
) -> list[str]:
    """The reason, what it costs on each fleet that holds the class's limits, and what is wrong with the others."""
    best = _cheapest_by_fleet(demand, admission, one)
    reasons = [_reason(answer, one, used, best)]
    if len(best) > 1:
        at, priced = f"{demand.solve.max_utilisation:.0%}", demand.solve.carbon_usd_per_t
        costs = ", ".join(f"{name} {_cost(best[name], priced > 0)}" for name in sorted(best, key=best.__getitem__))
        carbon = f", with carbon at ${priced:g}/t" if priced else ""
        reasons.append(f"filled to {at}{carbon}: {costs}")
    reasons += [
        f"{fleet.name} is out: {_nearest_miss(admission, one, fleet.name)}"
        for fleet in demand.fleets
        if fleet.name not in best and fleet.name not in used
    ]
    return reasons


def _reason(
    answer: SplitAnswer, one: WorkloadClass, used: Mapping[str, float], best: Mapping[str, tuple[float, float]]
) -> str:
    if len(best) == 1:
        return f"{next(iter(best))} is the only fleet left"
    cheapest = min(best, key=best.__getitem__)
    if list(used) == [cheapest]:
        return f"{cheapest} costs least of the fleets that hold its limits"
    held = [words for limit in one.share if (words := _share_reached(limit, used.get(limit.fleet, 0.0)))]
    if held:
        return " and ".join(held)
    if answer.limits:
        return f"the cheapest fleet has no room for all: {' and '.join(answer.limits)}"
    if len(used) > 1:
        return "whole replicas leave room on the dearer fleet, which this class fills"
    return "whole replicas, shared with the other classes, make this the cheapest in sum"


def _share_reached(limit: ShareLimit, share: float) -> str | None:
    if limit.min > 0 and share <= limit.min + _NEARLY:
        return f"at least {_percent(limit.min)} has to go to {limit.fleet}"
    if limit.max < 1 and share >= limit.max - _NEARLY:
        return f"at most {_percent(limit.max)} may go to {limit.fleet}"
    return None


def _cost(usd_per_mtok: tuple[float, float], with_carbon: bool) -> str:
    """E.g. "$0.107/Mtok", or "$0.174 + $0.694 carbon/Mtok"."""
    total, rent = usd_per_mtok
    return f"${rent:.3f} + ${total - rent:.3f} carbon/Mtok" if with_carbon else f"${rent:.3f}/Mtok"


def explain_no_option(demand: Demand, admission: Admission, one: WorkloadClass) -> str:
    """Why no option is admissible for a class: per fleet the nearest miss."""
    misses = "; ".join(f"{fleet.name}: {_nearest_miss(admission, one, fleet.name)}" for fleet in demand.fleets)
    limits = ", ".join(slo.label for slo in one.slo)
    needs = f" with {limits}" if limits else ""
    return f"Class {one.name} ({one.model}{needs}) fits nowhere: {misses}."


def _nearest_miss(admission: Admission, one: WorkloadClass, fleet_name: str) -> str:
    """The failing number that comes nearest to its limit among the fleet's options."""
    out = [e for e in admission.excluded if e.class_name == one.name and e.option.fleet.name == fleet_name]
    if not out:
        return f"no benchmark run of {one.model} on its GPU (add some with wattmix import)"
    measured = [exclusion for exclusion in out if exclusion.gap is not None]
    if not measured:
        return out[0].reason
    nearest: Exclusion = min(measured, key=lambda exclusion: exclusion.gap or 0.0)
    among = f"the best of {len(out)} points, " if len(out) > 1 else ""
    return f"{among}{nearest.option.label}, has {nearest.reason}"


def _cheapest_by_fleet(demand: Demand, admission: Admission, one: WorkloadClass) -> dict[str, tuple[float, float]]:
    """Per fleet the least $/Mtok of its filled options for a class: (with the carbon price, without), as the program
    counts them.
    """
    best: dict[str, tuple[float, float]] = {}
    for index in admission.admissible[one.name]:
        option = admission.options[index]
        filled = option.usable_replicas(demand.solve.max_utilisation)
        parts = (hour_of_replica(demand.solve, option), hour_of_load(demand.solve, option, filled))
        mtok = units.mtok(units.per_hour(filled * option.point.tokens_per_s_for(one)))
        rent, total = sum(it.usd for it in parts) / mtok, sum(it.cost(demand.solve) for it in parts) / mtok
        best[option.fleet.name] = min(best.get(option.fleet.name, (total, rent)), (total, rent))
    return best


def _percent(share: float) -> str:
    """100% only when it is all of it."""
    return f"{share:.0%}" if share >= 0.9995 or share < 0.995 else f"{share:.1%}"
