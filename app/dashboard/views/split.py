"""*Split*: sliders in, the recommended mix of fleets out, with what it saves and why each option is in or out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

import streamlit as st

from app.answers.measured_knobs import Measured
from app.answers.scenarios import SCENARIO
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard.split.fronts import draw_cost_of_slo, draw_front
from app.dashboard.split.mix import draw_figures, draw_infeasible, draw_method, draw_mix
from app.dashboard.split.plan import draw_plan
from app.dashboard.split.robustness import draw_robustness
from app.dashboard.split.router import draw_router
from app.dashboard.split.scenarios import draw_scenarios
from app.dashboard.split.sliders import draw_sliders
from app.formatting import markdown
from app.split.demand import Demand
from app.split.scenario import what_if

_STARTED = "split_started"


@dataclass(frozen=True)
class _Start:
    """Where a visit's sliders begin: kept for the visit, so that they do not move under its visitor.

    base: the demand that the sliders change, and `said` its own knobs. knobs: where they begin.
    """

    scenario: str | None
    facts_revision: int
    base: Demand
    said: dict[str, float | None]
    knobs: dict[str, float | None]
    measured: dict[str, Measured]


def page() -> None:
    backend = served()
    st.title("Split")
    st.caption("Which fleets, and how many replicas, carry this demand at least cost within its latency limits.")
    start = _start(backend)
    if start.scenario is not None:
        st.info(f"The sliders begin at the scenario **{markdown(start.scenario)}**.", icon=":material/bookmark:")
    values = draw_sliders(start.base, start.knobs, start.measured)
    changes = {name: value for name, value in values.items() if value != (start.said[name] or 0.0)}
    demand = what_if(start.base, changes)
    at_start = {name: measured for name, measured in start.measured.items() if values[name] == measured.value}
    answer = backend.split(demand)
    if answer["status"] == "infeasible":
        draw_infeasible(answer)
    else:
        draw_figures(answer)
        draw_method(answer, at_start)
    named = {SCENARIO: start.scenario} if start.scenario is not None else {}
    # a grid that stands where it is now is no what-if: a plan takes what is forecast of it
    ahead = {name: value for name, value in changes.items() if not (name in at_start and name.startswith("g."))}
    sections: dict[str, Callable[[], None]] = {
        "Mix": lambda: draw_mix(answer, demand, urlencode(named | changes)),
        "Cost and carbon": lambda: draw_front(demand, answer),
        "Cost and SLO": lambda: draw_cost_of_slo(demand),
        "Robustness": lambda: draw_robustness(demand),
        "Plan": lambda: draw_plan(what_if(start.base, ahead), urlencode(named | ahead)),
        "Scenarios": lambda: draw_scenarios(demand, urlencode(named | values)),
        "Router": lambda: draw_router(demand, answer),
    }
    # only the section that is open is computed, drawn and sent
    tabs = st.tabs(list(sections), key="section", on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, sections.values(), strict=True):
        if tab.open:
            with tab:
                draw()


def _start(backend: LocalBackend) -> _Start:
    """At what is measured; of a scenario in the address, at what it says. Anew once facts have changed."""
    scenario, revision = st.query_params.get(SCENARIO), backend.store.facts_revision
    kept: _Start | None = st.session_state.get(_STARTED)
    if kept is not None and (kept.scenario, kept.facts_revision) == (scenario, revision):
        return kept
    base = backend.asked_demand({} if scenario is None else {SCENARIO: scenario})
    said = backend.knobs(base)
    measured = backend.measured_knobs(base)
    begin = said if scenario is not None else said | {name: found.value for name, found in measured.items()}
    started = _Start(scenario, revision, base, said, begin, measured)
    st.session_state[_STARTED] = started
    return started
