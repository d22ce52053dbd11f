"""*Carbon*: grams per million tokens, of running and of making; what moved them, when and where they would be fewer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import streamlit as st

from app.answers.carbon import NAMES, WINDOW_HOURS
from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard import accounts_charts, carbon_charts
from app.dashboard.account_page import if_seen, question, table_with_csv
from app.dashboard.figure_cards import period_length, row_of_cards, standing_on
from app.dashboard.filters import account_filters, address_of, with_chart_step
from app.dashboard.grid_words import grid_now_words, stands_in
from app.formatting import basis_said, markdown, number, percent
from collectors.grid.registry import provider_said

CARDS = (
    ("g_per_mtok", "g_per_mtok_market", "embodied_g_per_mtok", "sci_g_per_mtok"),
    ("carbon_g", "carbon_market_g", "embodied_g", "energy_site_kwh"),
)  # fmt: skip
_COLUMNS = (
    "g_per_mtok", "g_per_mtok_market", "embodied_g_per_mtok_low", "embodied_g_per_mtok", "embodied_g_per_mtok_high",
    "sci_g_per_mtok", "carbon_g", "carbon_active_g", "carbon_idle_g", "carbon_unallocated_g", "energy_site_kwh",
)  # fmt: skip
_CHART = {"displayModeBar": False}
_TREND_POINTS, _POINTS = 60, 300
_COMPARED = ("FR", "SE", "DE", "PL")
_MOST_ZONES = 6

Answer = dict[str, Any]


def page() -> None:
    st.title("Carbon")
    query = account_filters()
    backend = served()
    asked = question(query, (*CARDS[0], *CARDS[1]), _COLUMNS)
    found, told = backend.carbon_and_summary(asked)
    answer = if_seen(told, asked)
    if answer is None:
        return
    trend = backend.series(with_chart_step(replace(query, figures=CARDS[0]), "hour", _TREND_POINTS))
    for names in CARDS:
        row_of_cards(names, query, answer, trend)
    _grid_now(found["grid_now"])
    st.caption(markdown(f"{found['basis']}."))
    st.caption(markdown(standing_on(query)))
    _moved(backend, query, found["moved"])
    _clean_and_busy(found, query)
    _ahead(found["ahead"], query)
    _elsewhere(found["elsewhere"])
    table_with_csv("Carbon by fleet", asked, answer, _COLUMNS, "carbon")
    st.caption(
        f"The same as JSON: causes, hours, forecasts and zones `{address_of(query, 'carbon', NAMES)}`, figures "
        f"`{address_of(replace(asked, figures=None), 'summary')}`"
    )


def _grid_now(zones: list[Answer]) -> None:
    """In a line; where a provider does not answer, as a warning."""
    words = markdown(f"{grid_now_words(zones)}.")
    if stands_in(zones):
        st.warning(words, icon=":material/cloud_off:")
    else:
        st.caption(words)


def _moved(backend: LocalBackend, query: AccountQuery, moved: Answer) -> None:
    left, right = st.columns([2, 3])
    with left:
        title = f"What moved it against the {period_length(query)} before"
        if moved["effects"] is None:
            st.info(markdown(f"What moved grams per token is not known: {moved['reason']}."), icon=":material/help:")
        else:
            st.plotly_chart(carbon_charts.moved(moved, title), key="chart_moved", config=_CHART, alt=title)
    with right:
        asked = with_chart_step(replace(query, by="fleet", figures=("g_per_mtok",)), "hour", _POINTS)
        title = f"Operational carbon of a million {query.basis} tokens by fleet, cost view {query.view}"
        figure = accounts_charts.over_time(backend.series(asked), "g_per_mtok", title, query)
        st.plotly_chart(figure, key="chart_g", config=_CHART, alt=title)


def _clean_and_busy(found: Answer, query: AccountQuery) -> None:
    st.subheader("When the grid is clean, and when the site is busy")
    left, right = st.columns(2)
    title = "Power of the site"
    figure = carbon_charts.by_weekday_and_hour(found["load_kw"], title, "kW", query.tz)
    left.plotly_chart(figure, key="chart_load", config=_CHART, alt=title)
    with right:
        if not found["intensity"]:
            st.info("No hour of this range has a measured grid intensity: the tables' yearly averages stand in, marked "
                    "`default`. Providers are set as `[[grid]]` in `wattmix.toml`; Grid now, above, and the Health "
                    "page say how they do.",
                    icon=":material/cloud_off:")  # fmt: skip
            return
        told = {_told(one, found["intensity"]): one for one in found["intensity"]}
        first = next(iter(told))
        chosen = st.segmented_control("Zone", list(told), default=first, key="zone") if len(told) > 1 else first
        one = told[chosen or first]
        basis, providers = basis_said(one["basis"]), ", ".join(map(provider_said, one["providers"]))
        title = f"Grid intensity of {one['zone']}, {basis}, by {providers}"
        figure = carbon_charts.by_weekday_and_hour(one["g_per_kwh"], title, "g/kWh", query.tz)
        st.plotly_chart(figure, key="chart_grid", config=_CHART, alt=title)


def _told(one: Answer, all_of_them: list[Answer]) -> str:
    """Its zone; with its basis, where hours of the zone are of several."""
    is_alone = sum(other["zone"] == one["zone"] for other in all_of_them) == 1
    return str(one["zone"]) if is_alone else f"{one['zone']}, {basis_said(one['basis'])}"


def _ahead(zones: list[Answer], query: AccountQuery) -> None:
    st.subheader("What is ahead")
    if not zones:
        st.info("No provider forecasts the zones of these fleets now, so no better time for deferrable work is known.",
                icon=":material/event_busy:")  # fmt: skip
        return
    hours = st.segmented_control(
        "Work that can wait takes",
        WINDOW_HOURS,
        default=2,
        format_func=lambda one: f"{one} h",
        key="window_hours",
        help="The shaded time has the lowest mean intensity of its zone, in the colour of that zone.",
    )
    found = {one["zone"]: window for one in zones for window in one["windows"] if window["hours"] == (hours or 2)}
    title = "Forecast of grid intensity (dotted: not measured)"
    figure = carbon_charts.ahead(zones, found, title, query.zone)
    st.plotly_chart(figure, key="chart_ahead", config=_CHART, alt=title)
    said = [
        f"{zone}: best from {_clock(window['start'], query)} to {_clock(window['end'], query)}, "
        f"{number(window['g_per_kwh'], 0)} g/kWh, {percent(window['saved_share'])} below the mean ahead"
        for zone, window in found.items()
    ]
    issued = "; ".join(
        f"{one['zone']} by {provider_said(one['provider'])}, issued {_clock(one['issued_at'], query)}" for one in zones
    )
    best = ". ".join(said) or f"No forecast reaches over {hours or 2} h"
    st.caption(markdown(f"{best}. Forecasts: {issued}."))


def _clock(text: str, query: AccountQuery) -> str:
    return f"{datetime.fromisoformat(text).astimezone(query.zone):%a %H:%M}"


def _elsewhere(rows: list[Answer]) -> None:
    st.subheader("The same energy in other zones")
    if not rows:
        st.info("Fleets of several bases, or with energy that is not known, cannot be held against other zones.",
                icon=":material/help:")  # fmt: skip
        return
    names = [row["zone"] for row in rows]
    own = [row["zone"] for row in rows if row["is_own"]]
    start = [*own, *(zone for zone in _COMPARED if zone in names and zone not in own)][:_MOST_ZONES]
    chosen = st.multiselect("Zones", names, default=start, key="zones", help="Of the same basis: lifecycle and direct "
                            "factors are never ranked against each other.")  # fmt: skip
    title = f"Operational carbon by yearly averages, {rows[0]['basis']} (own zones in green)"
    figure = carbon_charts.elsewhere([row for row in rows if row["zone"] in chosen], title)
    st.plotly_chart(figure, key="chart_elsewhere", config=_CHART, alt=title)
