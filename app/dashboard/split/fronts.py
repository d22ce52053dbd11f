"""Sections of the *Split* page: cost against carbon, and cost against a latency limit."""

from __future__ import annotations

import math
from typing import Any

import streamlit as st

from app.backend.served import served
from app.dashboard import charts
from app.dashboard.split import figures
from app.dashboard.split.mix import CHART, draw_replicas
from app.dashboard.split.on_demand import on_demand
from app.formatting import markdown, number, usd
from app.split.demand import Demand

_POINT, _SLO = "front_point", "front_slo"


@st.fragment
def draw_front(demand: Demand, recommended: dict[str, Any]) -> None:
    """The splits that none beats in both dollars and grams; the chosen one in full."""
    front = on_demand("front", None, demand, lambda: served().split_front(demand))
    points: list[dict[str, Any]] = front["points"]
    if not points:
        st.info(markdown(front["reason"] or "There is no front."), icon=":material/eco:")
        return
    if st.session_state.get(_POINT, 0) >= len(points):
        st.session_state[_POINT] = 0
    if len(points) == 1:
        st.info("The cheapest split is the greenest as well: there is nothing to trade.", icon=":material/eco:")
    where, words = st.columns([3, 2])
    with words:
        chosen = st.selectbox(
            "Point", range(len(points)), key=_POINT, format_func=lambda place: _label(points, place),
            help="A click on a point of the chart chooses it as well.",
        )  # fmt: skip
        _told(points, chosen, front["knee"])
        _beside(points[0], recommended)
    where.plotly_chart(
        figures.front(points, chosen), key="chart_front", config=CHART, on_select=_take_point,
        selection_mode="points", alt="USD per hour against grams of CO2e per hour",
    )  # fmt: skip
    answer = points[chosen]["split"]
    st.subheader(f"The split of point {chosen + 1}")
    st.plotly_chart(charts.shares(answer), key="chart_front_shares", config=CHART, alt="Share of each class by pool")
    draw_replicas(answer)


def _take_point() -> None:
    """A click on a point chooses it."""
    chosen = st.session_state["chart_front"].selection.points
    if chosen:
        st.session_state[_POINT] = int(chosen[0]["point_index"])


def _label(points: list[dict[str, Any]], place: int) -> str:
    point = points[place]
    kinds = [] if point["kind"] == "between" else [point["kind"]]
    named = ", ".join([*kinds, *(["knee"] if point["is_knee"] else [])])
    told = f"{place + 1}: {usd(point['usd_per_hour'])}/h, {number(point['g_per_hour'], 0)} g/h"
    return f"{told} ({named})" if named else told


def _told(points: list[dict[str, Any]], chosen: int, knee: int | None) -> None:
    """What the chosen point costs and saves against the cheapest one."""
    cheapest, point = points[0], points[chosen]
    more = point["usd_per_hour"] - cheapest["usd_per_hour"]
    fewer = cheapest["g_per_hour"] - point["g_per_hour"]
    if fewer > 0:
        st.markdown(markdown(
            f"{usd(more)}/h more than the cheapest, {number(fewer, 0)} gCO2e/h fewer: "
            f"{usd(1e6 * more / fewer, 0)} per tonne that is avoided."
        ))  # fmt: skip
    if knee is not None and knee != chosen:
        st.caption(markdown(f"The knee, from which on grams get dear, is point {_label(points, knee)}."))


def _beside(cheapest: dict[str, Any], recommended: dict[str, Any]) -> None:
    """Why the cheapest point has fewer grams than the recommended mix at the same cost."""
    usd_per_hour, grams = recommended["usd_per_hour"], recommended["g_per_hour"]
    fewest = cheapest["split"]["g_per_hour"]
    if usd_per_hour is None or grams is None or fewest is None:
        return
    if math.isclose(usd_per_hour, cheapest["usd_per_hour"], rel_tol=1e-6) and round(grams) > round(fewest):
        st.caption(markdown(
            f"The recommended mix has {number(grams, 0)} g/h at the same cost: of equally cheap mixes it is the one "
            "with the fewest replicas, then the first by fleet, and point 1 the one with the fewest grams. A carbon "
            "price decides between them."
        ))  # fmt: skip


@st.fragment
def draw_cost_of_slo(demand: Demand) -> None:
    """What the demand costs as one latency limit is set tighter or looser."""
    choices = {
        f"slo.{one.name}" if place == 0 else f"slo.{one.name}.{place + 1}": f"{one.name}: {slo.label}"
        for one in demand.classes for place, slo in enumerate(one.slo)
    }  # fmt: skip
    if not choices:
        st.info("No class has a latency limit.", icon=":material/timer_off:")
        return
    against = st.selectbox("Limit", list(choices), key=_SLO, format_func=lambda name: choices.get(name, name))
    answer = on_demand("slo", against, demand, lambda: served().split_front(demand, against=against))
    feasible = [point for point in answer["points"] if point["usd_per_hour"] is not None]
    if not feasible:
        st.info(markdown(answer["reason"] or "No limit makes a mix possible."), icon=":material/block:")
        return
    st.plotly_chart(figures.cost_of_slo(answer), key="chart_slo", config=CHART, alt="USD per hour against the limit")
    tightest = feasible[0]
    st.caption(markdown(
        f"Steps are where another measured operating point becomes admissible. Below {tightest['max_ms']:,.1f} ms no "
        f"mix is possible; there it costs {usd(tightest['usd_per_hour'])}/h."
    ))  # fmt: skip
