"""The recommendation: the best split, the same for one kind of fleet alone, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.split.answer import SplitAnswer, build_answer
from app.split.demand import Demand
from app.split.explain import explain_classes, explain_no_option
from app.split.options import Admission, Option, admit
from app.split.solve import solve


@dataclass(frozen=True)
class Recommendation:
    """answer: the best mix. baselines: the best with one kind of fleet only, e.g. "all_enterprise".

    reasons: class name -> one sentence on why it goes where it goes.
    """

    demand: Demand
    answer: SplitAnswer
    baselines: dict[str, SplitAnswer]
    reasons: dict[str, str]


def recommend(demand: Demand, options: Sequence[Option]) -> Recommendation:
    """Solve `demand` over `options`, and over each baseline's part of them."""
    admission = admit(demand, options)
    answer = _solved(demand, admission, options)
    kinds = ("enterprise", "consumer")
    return Recommendation(
        demand=demand,
        answer=answer,
        baselines={f"all_{kind}": _baseline(demand, options, kind) for kind in kinds},
        reasons=explain_classes(demand, admission, answer) if answer.status != "infeasible" else {},
    )


def best_split(demand: Demand, options: Sequence[Option]) -> SplitAnswer:
    """The best mix alone, without baselines and sentences: what is asked again and again with one number changed."""
    return _solved(demand, admit(demand, options), options)


def _solved(demand: Demand, admission: Admission, options: Sequence[Option]) -> SplitAnswer:
    hopeless = [
        explain_no_option(demand, admission, one)
        for one in demand.classes
        if one.tokens_per_s > 0 and not admission.admissible[one.name]
    ]
    if hopeless:
        return _infeasible(demand, admission, " ".join(hopeless))
    solution = solve(demand, admission)
    if solution is None:
        return _infeasible(demand, admission, _short_of_gpus(demand, options))
    return build_answer(demand, admission, solution)


def _infeasible(demand: Demand, admission: Admission, reason: str) -> SplitAnswer:
    wanted = sum(one.tokens_per_s for one in demand.classes)
    return SplitAnswer("infeasible", reason=reason, excluded=admission.excluded, tokens_per_s=wanted)


def _baseline(demand: Demand, options: Sequence[Option], kind: str) -> SplitAnswer:
    of_kind = [option for option in options if option.fleet.kind == kind]
    if not of_kind:
        return _infeasible(demand, admit(demand, []), f"no fleet of kind {kind} with a benchmark run is on offer")
    names = {option.fleet.name for option in of_kind}
    alone = demand.model_copy(update={"fleets": tuple(fleet for fleet in demand.fleets if fleet.name in names)})
    return best_split(alone, of_kind)


def _short_of_gpus(demand: Demand, options: Sequence[Option]) -> str:
    """What the GPU limits lack: the same demand without them, and how many GPUs of each fleet that takes."""
    limited = {fleet.name: fleet.max_gpus for fleet in demand.fleets if fleet.max_gpus is not None}
    unlimited = demand.model_copy(
        update={"fleets": tuple(fleet.model_copy(update={"max_gpus": None}) for fleet in demand.fleets)}
    )
    freed = [
        replace(option, fleet=replace(option.fleet, offer=option.fleet.offer.model_copy(update={"max_gpus": None})))
        for option in options
    ]
    answer = best_split(unlimited, freed)
    needed: dict[str, int] = {}
    for pool in answer.pools:
        name = pool.option.fleet.name
        needed[name] = needed.get(name, 0) + pool.count * pool.option.point.gpus
    wanted = ", ".join(f"{count} GPUs of {name}" for name, count in needed.items())
    have = ", ".join(f"{name} <= {limit} GPUs" for name, limit in limited.items())
    return (
        f"Too few GPUs: within {have} no mix carries {answer.tokens_per_s:,.0f} tokens/s at "
        f"{demand.solve.max_utilisation:.0%} utilisation. Without the limits the cheapest mix takes {wanted}."
    )
