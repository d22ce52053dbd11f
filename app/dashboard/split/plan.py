"""Section of the *Split* page: which replicas run in which of the next hours, and what that saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import streamlit as st

from app.accounting.periods import time_zone
from app.answers.plan_rows import loads, plan_as_csv, plan_pools
from app.answers.plan_words import PEAK_SPLIT, saved, solved, sources
from app.answers.split_plan import HOURS
from app.backend.served import served
from app.dashboard.filters import choose_zone
from app.dashboard.split import plan_figures
from app.dashboard.split.mix import CHART, against
from app.dashboard.split.on_demand import on_demand
from app.formatting import MISSING, grams, markdown, percent, usd
from app.split.demand import Demand
from app.split.timeline import MOST_HOURS

_CHOICES = (HOURS, 48, 72, MOST_HOURS)


@dataclass(frozen=True)
class _Planned:
    """cards: fleet -> its GPU. address: of the same answer of the API."""

    answer: dict[str, Any]
    cards: Mapping[str, str]
    address: str


@st.fragment
def draw_plan(demand: Demand, api_query: str) -> None:
    length, where, _ = st.columns([2, 2, 3])
    hours = length.segmented_control(
        "Hours ahead", _CHOICES, default=HOURS, required=True, key="hours", bind="query-params",
        help="From the next full hour on. Up to 10 s of computing.",
    ) or HOURS  # fmt: skip
    zone = time_zone(choose_zone(where))
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    planned = on_demand("plan", (hours, now), demand, lambda: _plan(demand, hours, api_query))
    answer = planned.answer
    if answer["status"] == "infeasible":
        st.error(f"**No plan carries this demand.** {markdown(answer['reason'])}", icon=":material/block:")
    else:
        _figures(answer)
        _charts(planned, zone)
        _table(answer, zone)
    lines = "\n".join(f"* {markdown(told)}" for told in sources(answer))
    st.markdown(f"**What the plan stands on**\n\n{lines}\n* The same plan as JSON: `{planned.address}`")


def _plan(demand: Demand, hours: int, api_query: str) -> _Planned:
    address = "&".join(filter(None, (f"/api/v1/split/plan?hours={hours}", api_query)))
    cards = {fleet.name: fleet.gpu for fleet in demand.fleets}
    return _Planned(served().split_plan(demand, hours=hours), cards, address)


def _figures(answer: dict[str, Any]) -> None:
    totals, saving, count = answer["totals"], answer["saving"], len(answer["hours"])
    peak: dict[str, Any] = answer["static"]["totals"] or {"usd": None, "g": None}
    cost, less, carbon, gap = st.columns(4)
    cost.metric(
        f"Cost of {count} h", usd(totals["usd"]), **against(totals, peak, "usd", "peak split"), border=True,
        help=f"GPUs: rent, or depreciation and electricity, without switching. Peak split: {PEAK_SPLIT}.",
    )  # fmt: skip
    less.metric(
        f"Saved in {count} h", _signed_usd(saving["usd"]) if saving else MISSING, _fewer_grams(saving),
        delta_color="off", delta_arrow="off", border=True, help=f"Against {PEAK_SPLIT}.",
    )  # fmt: skip
    carbon.metric(
        f"CO2e of {count} h", grams(totals["g"]).removesuffix("CO2e"), **against(totals, peak, "g", "peak split"),
        border=True, help="Operational, location-based, x PUE, by each hour's average intensity.",
    )  # fmt: skip
    gap.metric(
        "Gap", percent(answer["gap"], 2), f"bound {usd(answer['bound_usd'])}", delta_color="off", delta_arrow="off",
        border=True, help="How far the plan may be from the optimum: no plan is below the bound.",
    )  # fmt: skip
    switching = f" Starting and stopping costs {usd(totals['switch_usd'])}." if totals["switch_usd"] else ""
    per_mtok = f"{usd(totals['usd_per_mtok'], 3)} per million tokens (total). "
    st.caption(markdown(f"{per_mtok}{saved(answer)} {solved(answer)}{switching}"))


def _signed_usd(value: float) -> str:
    return f"-{usd(-value)}" if value < 0 else usd(value)


def _fewer_grams(saving: dict[str, Any] | None) -> str | None:
    if saving is None or saving["g"] is None:
        return None
    return f"{grams(abs(saving['g']))} {'fewer' if saving['g'] >= 0 else 'more'}"


def _charts(planned: _Planned, zone: ZoneInfo) -> None:
    answer = planned.answer
    st.plotly_chart(
        plan_figures.replicas(answer, zone), key="chart_plan", config=CHART,
        alt="Replicas of each pool and load by hour",
    )  # fmt: skip
    small = []
    if any(tokens for hour in answer["hours"] for tokens in hour["deferred_tokens"].values()):
        small.append(("chart_waiting", plan_figures.waiting(answer, zone), "Tokens that wait by hour"))
    if plan_figures.varies(answer):
        figure = plan_figures.intensity(answer, planned.cards, zone)
        small.append(("chart_intensity", figure, "Grams of CO2e per kWh by hour"))
    if small:
        for column, (key, figure, alt) in zip(st.columns(len(small)), small, strict=True):
            column.plotly_chart(figure, key=key, config=CHART, alt=alt)


def _table(answer: dict[str, Any], zone: ZoneInfo) -> None:
    head, button = st.columns([5, 1], vertical_alignment="bottom")
    head.subheader("Hour by hour")
    button.download_button(
        "CSV", lambda: plan_as_csv(answer), file_name=f"wattmix-plan-{len(answer['hours'])}h.csv", mime="text/csv",
        icon=":material/download:", on_click="ignore", width="stretch",
        help="Unrounded, in UTC, and with what each hour was planned with.",
    )  # fmt: skip
    whole, waits = st.column_config.NumberColumn(format="localized"), answer["assumptions"]["deferrable"]
    st.dataframe(
        pl.DataFrame(table_rows(answer, zone), infer_schema_length=None), hide_index=True, placeholder=MISSING,
        key="plan_hours", height=320,
        column_config={
            "load": st.column_config.TextColumn(help="Part of the load of the busiest hour of the week."),
            "$": st.column_config.NumberColumn(format="$%.2f", help="In the hour, without switching."),
            "gCO2e": st.column_config.NumberColumn(format="localized", help="In the hour; operational."),
            **{f"waits: {name}": whole for name in waits},
        },
    )  # fmt: skip


def table_rows(answer: dict[str, Any], zone: ZoneInfo) -> list[dict[str, Any]]:
    """A row per hour: replicas of each pool, what was started and stopped for it, cost, grams, tokens that wait."""
    pools = plan_pools(answer)
    return [
        {
            f"from ({zone.key})": plan_figures.local_hour(hour["start"], zone),
            "load": ", ".join(percent(part) for part in loads(hour)),
            **{pool.name: pool.count(hour) for pool in pools},
            "started": hour["started"],
            "stopped": hour["stopped"],
            "$": hour["split"]["usd_per_hour"],
            "gCO2e": None if (grams_of := hour["split"]["g_per_hour"]) is None else round(grams_of),
            **{f"waits: {name}": round(tokens) for name, tokens in hour["deferred_tokens"].items()},
        }
        for hour in answer["hours"]
    ]
