"""Sentences: why a class goes where it goes, and why it can go nowhere."""

from __future__ import annotations

from app.split.answer import SplitAnswer
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Exclusion
from app.split.program import usd_per_gram


def explain_classes(demand: Demand, admission: Admission, answer: SplitAnswer) -> dict[str, str]:
    """One explanation per class: where it goes, what that costs when full, and what speaks against the other fleets."""
    return {one.name: _explain(demand, admission, answer, one) for one in demand.classes}


def _explain(demand: Demand, admission: Admission, answer: SplitAnswer, one: WorkloadClass) -> str:
    if one.tokens_per_s == 0:
        return "No demand, so nothing is placed."
    shares = sorted((s for s in answer.shares if s.class_name == one.name), key=lambda share: -share.share)
    placed = " and ".join(f"{_percent(share.share)} to {share.option.label}" for share in shares)
    used = {share.option.fleet.name for share in shares}
    return " ".join([f"{placed}.", *_against_other_fleets(demand, answer, admission, one, used)])


def _against_other_fleets(
    demand: Demand, answer: SplitAnswer, admission: Admission, one: WorkloadClass, used: set[str]
) -> list[str]:
    best = _cheapest_by_fleet(demand, admission, one)
    sentences: list[str] = []
    if len(best) > 1:
        at, priced = f"{demand.solve.max_utilisation:.0%}", demand.solve.carbon_usd_per_t
        costs = ", ".join(f"{name} {_cost(best[name], priced > 0)}" for name in sorted(best, key=best.__getitem__))
        carbon = f", with carbon at ${priced:g}/t" if priced else ""
        sentences.append(f"Among the fleets that hold its limits, filled to {at}{carbon}: {costs}.")
    for fleet in demand.fleets:
        if fleet.name not in best and fleet.name not in used:
            sentences.append(f"{fleet.name} is out: {_nearest_miss(admission, one, fleet.name)}.")
    if len(best) == 1:
        sentences.append(f"{next(iter(best))} is the only fleet left.")
    elif len(used) > 1 and answer.limits:
        sentences.append(f"The rest goes to the next fleet, for {' and '.join(answer.limits)}.")
    elif len(used) > 1:
        sentences.append("Whole replicas leave room on the dearer fleet, which this class fills.")
    return sentences


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
    """Per fleet the least $/Mtok of its options for a class: (with the carbon price, rent alone)."""
    best: dict[str, tuple[float, float]] = {}
    for index in admission.admissible[one.name]:
        option = admission.options[index]
        full = demand.solve.max_utilisation
        rent = option.usd_per_mtok(full)
        total = rent + usd_per_gram(demand) * (option.g_per_mtok(full) or 0.0)
        best[option.fleet.name] = min(best.get(option.fleet.name, (total, rent)), (total, rent))
    return best


def _percent(share: float) -> str:
    """100% only when it is all of it."""
    return f"{share:.0%}" if share >= 0.9995 or share < 0.995 else f"{share:.1%}"
