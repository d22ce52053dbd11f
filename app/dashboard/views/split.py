"""*Split*: sliders in, the recommended mix of fleets out, with what it saves and why each option is in or out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from app.backend import served
from app.dashboard import charts
from app.formatting import MISSING, fleet_prices, markdown, number, percent, usd
from app.split.demand import Demand, FleetOffer, WorkloadClass
from app.split.scenario import what_if

_CHART = {"displayModeBar": False}
_FLAGS = {
    "small_sample": "too few requests for the SLO's percentile",
    "burst": "the load test ended before a steady state",
    "saturated": "less than 90% of the offered load was achieved, or requests waited most of the time",
    "throttled": "most of the time a GPU was slowed down or at its power limit",
    "simulated": "the replicas it was measured on are simulated",
    "extrapolated": "the class's prompt share differs from the test's by more than 2x",
}


def page() -> None:
    backend = served()
    st.title("Split")
    st.caption("Which fleets, and how many replicas, carry this demand at least cost within its latency limits.")
    base = backend.default_demand()
    changes = _sliders(base, backend.knobs())
    answer = backend.split(what_if(base, changes))
    if answer["status"] == "infeasible":
        st.error(f"**No mix carries this demand.** {markdown(answer['reason'])}", icon=":material/block:")
    else:
        _figures(answer)
        st.caption(_method(answer))
        _charts(answer)
        _reasons(answer)
        _replicas(answer)
    _excluded(answer)
    _computed(answer, changes)


@dataclass(frozen=True)
class _Knob:
    """A slider: name as in the URL, label with its unit, range and step."""

    group: str
    name: str
    label: str
    low: float
    high: float
    step: float
    help: str


def _knobs(base: Demand) -> list[_Knob]:
    demand = [
        _Knob("Demand", f"rps.{one.name}", f"{one.name} (req/s)", 0.0, 100.0, 0.5, _tokens_of(one))
        for one in base.classes
    ]
    limits = [
        _Knob("Demand", f"slo.{one.name}", f"{one.name}: {slo.metric.upper()} p{slo.percentile:g} at most (ms)", 10.0,
              1000.0, 5.0, "An option is out when its measured latency is above.")
        for one in base.classes for slo in one.slo[:1]
    ]  # fmt: skip
    prices = [
        _Knob("Price", f"usd.{fleet.name}", f"{fleet.name} ($ per GPU-hour)", 0.0, 5.0, 0.01, _price_of(fleet))
        for fleet in base.fleets
    ]
    grids = [
        _Knob("Carbon", f"g.{fleet.name}", f"{fleet.name} grid (gCO2e/kWh)", 0.0, 1000.0, 1.0,
              f"Starts at the yearly average of its zone; x PUE {fleet.pue:g}.")
        for fleet in base.fleets
    ]  # fmt: skip
    carbon = _Knob("Carbon", "carbon", "carbon price ($ per t)", 0.0, 500.0, 5.0,
                   "Weighs in the choice; not part of the $/h shown.")  # fmt: skip
    headroom = _Knob("Headroom", "util", "highest utilisation", 0.3, 1.0, 0.05,
                     "Share of a replica's measured throughput that may be planned on.")  # fmt: skip
    return [*demand, *limits, *prices, *grids, carbon, headroom]


def _tokens_of(one: WorkloadClass) -> str:
    return f"{one.model}: {one.prompt_tokens:g} prompt and {one.generated_tokens:g} generated tokens a request."


def _price_of(fleet: FleetOffer) -> str:
    electricity = f" Electricity at {usd(fleet.usd_per_kwh, 3)}/kWh comes on top." if fleet.usd_per_kwh else ""
    return markdown(f"{fleet.gpu}. Starts at the price in force: {fleet.price_source or 'the demand'}.{electricity}")


def _sliders(base: Demand, start: dict[str, float | None]) -> dict[str, float]:
    """Draw a slider per knob; the knobs that were moved and their values."""
    moved: dict[str, float] = {}
    group = ""
    with st.sidebar:
        for knob in _knobs(base):
            if knob.group != group:
                group = knob.group
                st.subheader(group)
            initial = start[knob.name] or 0.0
            value = st.slider(
                knob.label, min(knob.low, initial), max(knob.high, initial), initial, knob.step, format="%g",
                key=knob.name, bind="query-params", help=knob.help,
            )  # fmt: skip
            if value != initial:
                moved[knob.name] = value
    return moved


def _figures(answer: dict[str, Any]) -> None:
    enterprise = answer["baselines"]["all_enterprise"]
    cost, per_mtok, power, carbon = st.columns(4)
    cost.metric(
        "Cost", f"{usd(answer['usd_per_hour'])}/h", _against(answer, enterprise, "usd_per_hour"),
        delta_color="inverse", border=True,
        help="GPUs: rent, or depreciation and electricity. Against the cheapest mix of enterprise cards alone.",
    )  # fmt: skip
    per_mtok.metric(
        "Per million tokens", usd(answer["usd_per_mtok"], 3), f"{number(answer['tokens_per_s'], 0)} tokens/s",
        delta_color="off", delta_arrow="off", border=True, help="Total tokens, prompt + generated, of all classes.",
    )  # fmt: skip
    power.metric(
        "Power", f"{number(answer['watts'], 0)} W", f"{number(answer['tokens_per_joule'], 2)} tokens/J",
        delta_color="off", delta_arrow="off", border=True,
        help="GPUs only, estimated from TDP: 20% of it idle, all of it at full load, without host or PUE.",
    )  # fmt: skip
    carbon.metric(
        "Carbon (CO2e)", f"{number(answer['g_per_hour'], 0)} g/h", _against(answer, enterprise, "g_per_hour"),
        delta_color="inverse", border=True, help="Operational, location-based, x PUE. Against enterprise cards alone.",
    )  # fmt: skip


def _method(answer: dict[str, Any]) -> str:
    """The line that says what the figures stand on."""
    assumed = answer["assumptions"]
    grids = "; ".join(f"{fleet}: {label}" for fleet, label in assumed["carbon"].items())
    return markdown(
        f"Price: {fleet_prices(assumed['prices'])}. Power: {assumed['power_method']}. "
        f"Boundary: {assumed['boundary']}. Grid: {grids}. Basis: total tokens."
    )


def _against(answer: dict[str, Any], baseline: dict[str, Any], figure: str) -> str | None:
    """E.g. "-47% vs all enterprise"; Streamlit colours it by its sign."""
    if answer[figure] is None or not baseline[figure]:
        return None
    return f"{100 * (answer[figure] / baseline[figure] - 1):+.0f}% vs all enterprise"


def _charts(answer: dict[str, Any]) -> None:
    where, cost = st.columns([3, 2])
    figure = charts.shares(answer)
    where.plotly_chart(figure, key="chart_shares", config=_CHART, alt="Share of each class by pool")
    named = {"recommended": answer} | {name.replace("_", " "): it for name, it in answer["baselines"].items()}
    cost.plotly_chart(charts.alternatives(named), key="chart_cost", config=_CHART, alt="USD per hour by alternative")
    for name, baseline in answer["baselines"].items():
        if baseline["status"] == "infeasible":
            st.caption(markdown(f"{name.replace('_', ' ').capitalize()} is not possible. {baseline['reason']}"))


def _reasons(answer: dict[str, Any]) -> None:
    st.subheader("Why")
    for reason in answer["reasons"]:
        st.markdown(f"**{markdown(reason['class'])}**: {markdown(reason['text'])}")
    for note in [*answer["limits"], *answer["missing"]]:
        st.caption(f"Note: {note}.")


def _replicas(answer: dict[str, Any]) -> None:
    st.subheader("Replicas")
    rows = []
    for pool in answer["replicas"]:
        mine = [s for s in answer["shares"] if s["run_id"] == pool["run_id"] and s["fleet"] == pool["fleet"]]
        rows.append(
            {
                "fleet": pool["fleet"],
                "replica": charts.card_set(pool["gpu"], pool["gpus_per_replica"]),
                "operating point": "all at once" if pool["qps_point"] is None else f"{pool['qps_point']:g} req/s",
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
        st.caption("Flags: " + "; ".join(f"`{flag}` {_FLAGS[flag]}" for flag in flags) + ".")


def _excluded(answer: dict[str, Any]) -> None:
    out = answer["excluded"]
    with st.expander(f"Options that are out ({len(out)})", icon=":material/filter_alt_off:"):
        if out:
            st.dataframe(pl.DataFrame(out).select("class", "option", "reason"), hide_index=True, placeholder=MISSING)
        else:
            st.write("None: every measured point of these models on these fleets is admissible.")


def _computed(answer: dict[str, Any], changes: dict[str, float]) -> None:
    assumed = answer["assumptions"]
    with st.expander("How this was computed", icon=":material/function:"):
        st.markdown(
            "Whole replicas, shares of demand as they come: least cost per hour (GPUs + carbon price x grams), such "
            "that each class is served in full, no pool plans on more than "
            f"{percent(assumed['max_utilisation'])} of its measured tokens/s, "
            "no fleet exceeds its GPUs, and a class only uses points at which its limits were held in a benchmark. "
            f"Distance from the proven optimum: {percent(answer['solver']['gap'], 3)}."
        )
        for pool in answer["replicas"]:
            each = pool["usd_per_hour"] / pool["count"]
            st.markdown(markdown(f"- {pool['fleet']}: {pool['count']} x ${each:.2f}/h = {usd(pool['usd_per_hour'])}/h"))
        st.markdown(f"The same answer as JSON: `/api/v1/split?{urlencode(changes)}`")
