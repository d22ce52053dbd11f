"""Section of the *Split* page: which replicas run in which of the next hours, and when work that may wait is done."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from app import units
from app.answers.plan_hours import plan_as_csv, planned_hours, planned_pools, saving_said, standing_on
from app.answers.split_plan import HOURS
from app.backend.served import served
from app.dashboard.split import plan_figures
from app.dashboard.split.mix import CHART, against
from app.dashboard.split.on_demand import on_demand
from app.formatting import MISSING, grams, markdown, number, percent, usd, utc_clock
from app.split.demand import Demand
from app.split.timeline import MOST_HOURS

_CHOICES = (HOURS, 48, 72, MOST_HOURS)
_HELD = "held replicas"
_NAMES = {HOURS: "1 day", 48: "2 days", 72: "3 days", MOST_HOURS: "1 week"}


@st.fragment
def draw_plan(demand: Demand) -> None:
    chosen = st.segmented_control("Plan", _CHOICES, default=HOURS, required=True, key="plan_hours",
                                  format_func=lambda hours: _NAMES[hours])  # fmt: skip
    hours = int(chosen or HOURS)
    plan = on_demand("plan", hours, demand, lambda: served().split_plan(demand, hours=hours))
    if plan["status"] == "infeasible":
        st.error(f"**No plan carries this demand.** {markdown(plan['reason'])}", icon=":material/block:")
    else:
        _draw_figures(plan)
        _draw_charts(plan)
        _draw_hours(plan)
    st.caption(markdown(" ".join(standing_on(plan))))


def _draw_figures(plan: dict[str, Any]) -> None:
    totals, held = plan["totals"], plan["static"]["totals"] or {}
    cost, per_mtok, carbon, proven = st.columns(4)
    cost.metric(
        f"Cost of {len(plan['hours'])} hours", usd(totals["usd"]), border=True,
        **against(totals["usd"], held.get("usd"), _HELD),
        help="GPUs: rent, or depreciation and electricity, without what switching counts for. Against the replicas of "
        "the busiest hour held in all hours.",
    )  # fmt: skip
    per_mtok.metric(
        "Per million tokens", usd(totals["usd_per_mtok"], 3),
        f"{number(units.mtok(totals['tokens']), 1)} million tokens",
        delta_color="off", delta_arrow="off", border=True, help="Total tokens, prompt + generated, of all classes.",
    )  # fmt: skip
    carbon.metric(
        "Carbon (CO2e)", grams(totals["g"]).removesuffix("CO2e"), border=True,
        **against(totals["g"], held.get("g"), _HELD),
        help="Operational, location-based, x PUE, by the intensity of each hour. Embodied: "
        f"{grams(totals['embodied_g'])} more.",
    )  # fmt: skip
    proven.metric(
        "From the proven least", percent(plan["gap"], 2),
        "within what was asked" if plan["status"] == "optimal" else "time ran out first", delta_color="off",
        delta_arrow="off", border=True,
        help=f"{percent(plan['assumptions']['gap'])} was asked, within {plan['assumptions']['time_limit_s']:g} s.",
    )  # fmt: skip
    st.markdown(markdown(f"{saving_said(plan)}."))


def _draw_charts(plan: dict[str, Any]) -> None:
    pools, hours = planned_pools(plan), planned_hours(plan)
    st.plotly_chart(plan_figures.replicas(pools, hours), key="chart_plan", config=CHART, alt="Replicas by hour")
    small = [figure for figure in (plan_figures.load(plan), plan_figures.grid(plan)) if figure is not None]
    for place, column in enumerate(st.columns(len(small)) if small else ()):
        column.plotly_chart(small[place], key=f"chart_plan_{place}", config=CHART, alt="Load and grid by hour")


def _draw_hours(plan: dict[str, Any]) -> None:
    head, button = st.columns([5, 1], vertical_alignment="bottom")
    head.subheader("Hour by hour")
    button.download_button(
        "CSV", lambda: plan_as_csv(plan), file_name="wattmix-plan.csv", mime="text/csv", key="plan_csv",
        icon=":material/download:", on_click="ignore", width="stretch", help="Unrounded, a row per hour.",
    )  # fmt: skip
    pools = planned_pools(plan)
    rows = [
        {
            "from": utc_clock(hour.start),
            **{pool.title: pool.counts[place] for pool in pools},
            "started": hour.started,
            "stopped": hour.stopped,
            "$": usd(hour.usd),
            "W": number(hour.watts, 0),
            "gCO2e": number(hour.g, 0),
            "Mtok": number(units.mtok(hour.tokens), 1),
            "Mtok that wait": number(units.mtok(hour.deferred_tokens), 1),
        }
        for place, hour in enumerate(planned_hours(plan))
    ]
    st.dataframe(pl.DataFrame(rows), hide_index=True, placeholder=MISSING, key="plan_rows")
