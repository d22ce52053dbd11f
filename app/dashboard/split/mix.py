"""The recommended mix: figures, where each class goes and why, replicas, what is out, how it was computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from app.answers.measured_knobs import Measured
from app.backend.served import served
from app.dashboard import charts
from app.dashboard.split.on_demand import on_demand
from app.formatting import MISSING, fleet_prices, load_point, markdown, number, percent, signed, usd
from app.split.demand import Demand
from app.split.infeasible import CHEAPEST_RELAXATION

CHART = {"displayModeBar": False}
_FLAGS = {
    "small_sample": "too few requests for the SLO's percentile",
    "burst": "the load test ended before a steady state",
    "saturated": "less than 90% of the offered load was achieved, or requests waited most of the time",
    "throttled": "most of the time a GPU was slowed down or at its power limit",
    "simulated": "the replicas it was measured on are simulated",
    "extrapolated": "the class's prompt share differs from the test's by more than 2x",
}


def draw_infeasible(answer: dict[str, Any]) -> None:
    """Why there is no mix: the smallest set of limits that conflict, and the cheapest one to ease."""
    conflict, relaxation = answer.get("conflict"), answer.get("relaxation")
    reason = answer["reason"].split(f" {CHEAPEST_RELAXATION}: ")[0]  # that stands below, in a box of its own
    st.error(f"**No mix carries this demand.** {markdown(reason)}", icon=":material/block:")
    if conflict and len(conflict) > 1:
        lines = "\n".join(f"* {markdown(limit)}" for limit in conflict)
        st.markdown(f"**These limits cannot hold together; without any one of them they could:**\n\n{lines}")
    if relaxation and relaxation.get("text"):
        st.success(markdown(f"Cheapest way out: {relaxation['text']}, for {usd(relaxation.get('usd_per_hour'))}/h."),
                   icon=":material/lightbulb:")  # fmt: skip


def draw_figures(answer: dict[str, Any]) -> None:
    enterprise = answer["baselines"]["all_enterprise"]
    cost, per_mtok, power, carbon = st.columns(4)
    cost.metric(
        "Cost", f"{usd(answer['usd_per_hour'])}/h", **against(answer, enterprise, "usd_per_hour", "all enterprise"),
        border=True,
        help="GPUs: rent, or depreciation and electricity. Against the cheapest mix of enterprise cards alone.",
    )  # fmt: skip
    per_mtok.metric(
        "Per million tokens", usd(answer["usd_per_mtok"], 3), f"{number(answer['tokens_per_s'], 0)} tokens/s",
        delta_color="off", delta_arrow="off", border=True, help="Total tokens, prompt + generated, of all classes.",
    )  # fmt: skip
    power.metric(
        "Power", f"{number(answer['watts'], 0)} W", f"{number(answer['tokens_per_joule'], 2)} tokens/J",
        delta_color="off", delta_arrow="off", border=True,
        help="GPUs only, without host or PUE. How it is known stands below.",
    )  # fmt: skip
    carbon.metric(
        "Carbon (CO2e)", f"{number(answer['g_per_hour'], 0)} g/h",
        **against(answer, enterprise, "g_per_hour", "all enterprise"), border=True,
        help="Operational, location-based, x PUE. Against enterprise cards alone.",
    )  # fmt: skip


def draw_method(answer: dict[str, Any], at_start: Mapping[str, Measured]) -> None:
    """The line that says what the figures stand on. at_start: knobs that are where something measured them."""
    assumed = answer["assumptions"]
    grids = "; ".join(
        f"{fleet}: {number(found.value, 0)} g/kWh ({found.source})"
        if (found := at_start.get(f"g.{fleet}")) is not None else f"{fleet}: {label}"
        for fleet, label in assumed["carbon"].items()
    )  # fmt: skip
    st.caption(markdown(
        f"Price: {fleet_prices(assumed['prices'])}. Power: {assumed['power_method']}. "
        f"Boundary: {assumed['boundary']}. Grid: {grids}. Basis: total tokens."
    ))  # fmt: skip


def against(answer: dict[str, Any], baseline: dict[str, Any], figure: str, name: str) -> dict[str, Any]:
    """What stands below a card, e.g. "-47% vs all enterprise", coloured by its sign where it has one."""
    if answer[figure] is None or not baseline[figure]:
        return {}
    change = signed(answer[figure] / baseline[figure] - 1, "+.0%")
    look = {"delta_color": "off", "delta_arrow": "off"} if change.startswith("±") else {"delta_color": "inverse"}
    return {"delta": f"{change} vs {name}", **look}


def draw_mix(answer: dict[str, Any], demand: Demand, api_query: str) -> None:
    if answer["status"] != "infeasible":
        _charts(answer)
        _reasons(answer)
        _one_more(demand)
        st.subheader("Replicas")
        draw_replicas(answer)
    _excluded(answer)
    _computed(answer, api_query)


def _charts(answer: dict[str, Any]) -> None:
    where, cost = st.columns([3, 2])
    figure = charts.shares(answer)
    where.plotly_chart(figure, key="chart_shares", config=CHART, alt="Share of each class by pool")
    named = {"recommended": answer} | {name.replace("_", " "): it for name, it in answer["baselines"].items()}
    cost.plotly_chart(charts.alternatives(named), key="chart_cost", config=CHART, alt="USD per hour by alternative")
    for name, baseline in answer["baselines"].items():
        if baseline["status"] == "infeasible":
            st.caption(markdown(f"{name.replace('_', ' ').capitalize()} is not possible. {baseline['reason']}"))
        elif baseline.get("saving_interval") and baseline["saving_interval"]["text"]:
            st.caption(markdown(f"Against {name.replace('_', ' ')}: {baseline['saving_interval']['text']}"))


def _reasons(answer: dict[str, Any]) -> None:
    st.subheader("Why")
    for reason in answer["reasons"]:
        st.markdown(f"**{markdown(reason['class'])}**: {markdown(reason['text'])}")
    for note in [*answer["limits"], *answer["missing"]]:
        st.caption(markdown(f"Note: {note}."))


def _one_more(demand: Demand) -> None:
    """Shadow prices: what one unit more of each limit would save. A re-solve for each, so only when it is opened."""
    opened = st.expander("What one more of each limit would save", key="one_more", icon=":material/add_circle:",
                         on_change="rerun")  # fmt: skip
    if opened.open:
        with opened:
            _shadow_prices(demand)


@st.fragment
def _shadow_prices(demand: Demand) -> None:
    found = on_demand("shadow", None, demand, lambda: served().split_shadow(demand))
    if not found["prices"]:
        st.write(markdown(found["reason"] or "Nothing binds: more of any limit saves nothing."))
        return
    rows = [
        {
            "limit": _limit(price),
            "from": f"{price['from']:,.5g}",
            "to": f"{price['to']:,.5g}",
            "unit": price["unit"],
            "saves $/h": None if price["saves_usd_per_hour"] is None else signed(price["saves_usd_per_hour"], "+,.2f"),
            "g/h": None if price["g_per_hour_change"] is None else signed(price["g_per_hour_change"], "+,.0f"),
            "in words": price["text"],
        }
        for price in found["prices"]
    ]
    st.dataframe(pl.DataFrame(rows), hide_index=True, placeholder=MISSING, key="shadow_prices")
    st.caption("Each row is the difference of two answers: this one, and the one with that single number changed.")


def _limit(price: dict[str, Any]) -> str:
    if price["kind"] == "load":
        return f"{price['class']}: rate"
    return str(price["name"]) if price["class"] is None else f"{price['class']}: {price['name']}"


def draw_replicas(answer: dict[str, Any]) -> None:
    """A row per pool, with what it carries."""
    rows = []
    for pool in answer["replicas"]:
        mine = [s for s in answer["shares"] if s["run_id"] == pool["run_id"] and s["fleet"] == pool["fleet"]]
        rows.append(
            {
                "fleet": pool["fleet"],
                "replica": charts.card_set(pool["gpu"], pool["gpus_per_replica"]),
                "operating point": load_point(pool["qps_point"]),
                "replicas": pool["count"],
                "load": percent(pool["utilisation"]),
                "$/h": usd(pool["usd_per_hour"]),
                "W": number(pool["watts"], 0),
                "g/h": number(pool["g_per_hour"], 0),
                "carries": ", ".join(f"{percent(s['share'], 1)} of {s['class']}" for s in mine),
                "flags": ", ".join(sorted({flag for s in mine for flag in s["flags"]})) or "none",
            }
        )
    st.dataframe(pl.DataFrame(rows), hide_index=True, placeholder=MISSING)
    flags = sorted({flag for share in answer["shares"] for flag in share["flags"]})
    if flags:
        st.caption("Flags: " + "; ".join(f"`{flag}` {_FLAGS.get(flag, '')}" for flag in flags) + ".")


def _excluded(answer: dict[str, Any]) -> None:
    out = answer["excluded"]
    with st.expander(f"Options that are out ({len(out)})", icon=":material/filter_alt_off:"):
        if out:
            st.dataframe(pl.DataFrame(out).select("class", "option", "reason"), hide_index=True, placeholder=MISSING)
        else:
            st.write("None: every measured point of these models on these fleets is admissible.")


def _computed(answer: dict[str, Any], api_query: str) -> None:
    with st.expander("How this was computed", icon=":material/function:"):
        if answer["status"] != "infeasible":
            st.markdown(
                "Whole replicas, shares of demand as they come: least cost per hour (GPUs + carbon price x grams), "
                "such that each class is served in full, no pool plans on more than "
                f"{percent(answer['assumptions']['max_utilisation'])} of its measured tokens/s, "
                "no fleet exceeds its GPUs, and a class only uses points at which its limits were held in a benchmark. "
                f"Distance from the proven optimum: {percent(answer['solver']['gap'], 3)}."
            )
        for pool in answer["replicas"]:
            each = pool["usd_per_hour"] / pool["count"]
            st.markdown(markdown(f"- {pool['fleet']}: {pool['count']} x ${each:.2f}/h = {usd(pool['usd_per_hour'])}/h"))
        st.markdown(f"The same answer as JSON: `/api/v1/split?{api_query}`")
