"""Sentences: why a class goes where it goes, and why it can go nowhere."""

from __future__ import annotations

from app.split.answer import SplitAnswer
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Exclusion, Option


def explain_classes(demand: Demand, admission: Admission, answer: SplitAnswer) -> dict[str, str]:
    """One explanation per class: where it goes, what that costs when full, and what speaks against the other fleets."""
    return {one.name: _explain(demand, admission, answer, one) for one in demand.classes}


def _explain(demand: Demand, admission: Admission, answer: SplitAnswer, one: WorkloadClass) -> str:
    if one.tokens_per_s == 0:
        return "No demand, so nothing is placed."
    shares = sorted((s for s in answer.shares if s.class_name == one.name), key=lambda share: -share.share)
    placed = " and ".join(f"{_percent(share.share)} to {share.option.label}" for share in shares)
    used = {share.option.fleet.name for share in shares}
    best = _cheapest_by_fleet(demand, admission, one)
    return " ".join([f"{placed}.", *_against_other_fleets(demand, admission, one, used, best)])


def _against_other_fleets(
    demand: Demand, admission: Admission, one: WorkloadClass, used: set[str], best: dict[str, tuple[float, Option]]
) -> list[str]:
    sentences: list[str] = []
    costs = [f"{name} ${usd:.3f}/Mtok" for name, (usd, _) in sorted(best.items(), key=lambda item: item[1][0])]
    if len(costs) > 1:
        at = f"{demand.solve.max_utilisation:.0%}"
        sentences.append(f"Among the fleets that hold its limits, filled to {at}: {', '.join(costs)}.")
    for fleet in demand.fleets:
        if fleet.name not in best and fleet.name not in used:
            sentences.append(f"{fleet.name} is out: {_nearest_miss(admission, one, fleet.name)}.")
    if len(best) == 1:
        sentences.append(f"{next(iter(best))} is the only fleet left.")
    elif len(used) > 1:
        sentences.append("Whole replicas leave room on the dearer fleet, which this class fills.")
    return sentences


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


def _cheapest_by_fleet(demand: Demand, admission: Admission, one: WorkloadClass) -> dict[str, tuple[float, Option]]:
    best: dict[str, tuple[float, Option]] = {}
    for index in admission.admissible[one.name]:
        option = admission.options[index]
        usd = option.usd_per_mtok(demand.solve.max_utilisation)
        if option.fleet.name not in best or usd < best[option.fleet.name][0]:
            best[option.fleet.name] = (usd, option)
    return best


def _percent(share: float) -> str:
    """100% only when it is all of it."""
    return f"{share:.0%}" if share >= 0.9995 or share < 0.995 else f"{share:.1%}"
