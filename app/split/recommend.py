"""The recommendation: the best split, the same for one kind of fleet alone, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.split.answer import SplitAnswer, build_answer
from app.split.demand import Demand
from app.split.explain import explain_classes, explain_no_option
from app.split.infeasible import why_infeasible
from app.split.options import Admission, Option, admit
from app.split.solve import solve

TOO_TIGHT = "No mix carries the demand within its limits."


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
    """Solve `demand` over `options`, and over each baseline's part of them. An infeasible one is told with the limits
    that conflict and what would mend it.
    """
    admission = admit(demand, options)
    answer = _explained(demand, options, _solved(demand, admission))
    kinds = ("enterprise", "consumer")
    return Recommendation(
        demand=demand,
        answer=answer,
        baselines={f"all_{kind}": _baseline(demand, options, kind) for kind in kinds},
        reasons=explain_classes(demand, admission, answer) if answer.status != "infeasible" else {},
    )


def best_split(demand: Demand, options: Sequence[Option]) -> SplitAnswer:
    """The best mix alone, without baselines and sentences: what is asked again and again with one number changed.

    Of an infeasible one it does not look for the limits that conflict.
    """
    return _solved(demand, admit(demand, options))


def _solved(demand: Demand, admission: Admission) -> SplitAnswer:
    hopeless = [
        explain_no_option(demand, admission, one)
        for one in demand.classes
        if one.tokens_per_s > 0 and not admission.admissible[one.name]
    ]
    if hopeless:
        return _infeasible(demand, admission, " ".join(hopeless))
    solution = solve(demand, admission)
    if solution is None:
        return _infeasible(demand, admission, None)
    return build_answer(demand, admission, solution)


def _explained(demand: Demand, options: Sequence[Option], answer: SplitAnswer) -> SplitAnswer:
    """An infeasible answer with its conflict and relaxation, and both in its reason."""
    if answer.status != "infeasible":
        return answer
    why = why_infeasible(demand, options)
    if why is None:
        return answer
    reason = why.text if answer.reason == TOO_TIGHT else f"{answer.reason} {why.text}"
    return replace(answer, reason=reason, conflict=why.conflict, relaxation=why.relaxation)


def _infeasible(demand: Demand, admission: Admission, reason: str | None) -> SplitAnswer:
    wanted = sum(one.tokens_per_s for one in demand.classes)
    return SplitAnswer("infeasible", reason=reason or TOO_TIGHT, excluded=admission.excluded, tokens_per_s=wanted)


def _baseline(demand: Demand, options: Sequence[Option], kind: str) -> SplitAnswer:
    of_kind = [option for option in options if option.fleet.kind == kind]
    if not of_kind:
        return _infeasible(demand, admit(demand, []), f"no fleet of kind {kind} with a benchmark run is on offer")
    names = {option.fleet.name for option in of_kind}
    alone = demand.model_copy(update={"fleets": tuple(fleet for fleet in demand.fleets if fleet.name in names)})
    answer = best_split(alone, of_kind)
    return _explained(alone, of_kind, answer) if answer.reason == TOO_TIGHT else answer
