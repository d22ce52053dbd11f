"""*Energy*: joules of GPUs, hosts and site, worked, idle or unallocated; per token; over time and against load."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from app.accounting.tokens import BASES
from app.answers.query import BOUNDARIES, AccountQuery
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard import accounts_charts, energy_charts
from app.dashboard.account_page import answered, question, table_with_csv
from app.dashboard.figure_cards import row_of_cards, standing_on
from app.dashboard.figure_words import WORDS
from app.dashboard.filters import account_filters, address_of, with_chart_step
from app.formatting import MISSING, markdown, percent

CARDS = (
    ("energy_kwh", "energy_active_kwh", "energy_idle_kwh", "energy_unallocated_kwh", "mean_power_w"),
    ("joules_per_token", "tokens_per_joule", "utilisation", "throttled_share"),
)  # fmt: skip
_WITHIN = tuple(f"energy_{boundary}_kwh" for boundary in BOUNDARIES)
_PER_TOKEN = tuple(f"{name}_{basis}" for name in ("joules_per_token", "tokens_per_joule") for basis in BASES)
_COLUMNS = (
    "energy_kwh", *accounts_charts.ENERGY_PARTS, "mean_power_w", "joules_per_token", "tokens_per_joule", "utilisation",
    "throttled_share", "gpu_hours",
)  # fmt: skip
_CHART = {"displayModeBar": False}
_TREND_POINTS, _POINTS = 60, 300
# More fleets than these are not told apart in a chart; the table has all.
_MOST_LINES = 6

Answer = dict[str, Any]


def page() -> None:
    st.title("Energy")
    query = account_filters()
    backend = served()
    asked = question(query, (*CARDS[0], *CARDS[1]), (*_COLUMNS, *_WITHIN, *_PER_TOKEN))
    answer = answered(asked)
    if answer is None:
        return
    row_of_cards(CARDS[0], query, answer)
    trend = backend.series(with_chart_step(replace(query, figures=CARDS[1]), "minute", _TREND_POINTS))
    row_of_cards(CARDS[1], query, answer, trend)
    st.caption(markdown(_stands_on(query, answer)))
    _over_time(backend, query, answer)
    _against_load(backend.power_load(query), answer, query)
    table_with_csv("Energy by fleet", asked, answer, _COLUMNS, "energy")
    st.caption(f"The same as JSON: `{address_of(replace(asked, figures=None), 'summary')}`")


def _stands_on(query: AccountQuery, answer: Answer) -> str:
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in answer["notes"])
    return f"{standing_on(query)} Grid and PUE: {'; '.join(answer['quality']['grids'])}.{notes}"


def _over_time(backend: LocalBackend, query: AccountQuery, answer: Answer) -> None:
    series = backend.series(with_chart_step(replace(query, by="fleet", figures=("mean_power_w",)), "minute", _POINTS))
    lines = sorted(answer["lines"], key=lambda line: -(line["figures"]["energy_kwh"]["value"] or 0.0))[:_MOST_LINES]
    drawn = [line["key"] for line in lines]
    series = {**series, "lines": [line for line in series["lines"] if line["key"] in drawn]}
    left, right = st.columns([3, 2])
    of = f", the {_MOST_LINES} that take most" if len(answer["lines"]) > _MOST_LINES else ""
    title = f"Power by fleet{of}, boundary {query.boundary}, cost view {query.view} (dotted: estimated)"
    figure = accounts_charts.over_time(series, "mean_power_w", title, query)
    left.plotly_chart(figure, key="chart_power", config=_CHART, alt=title)
    title = f"Energy by fleet{of}, boundary {query.boundary}"
    figure = accounts_charts.parts_by_group(lines, title, accounts_charts.ENERGY_PARTS)
    right.plotly_chart(figure, key="chart_energy", config=_CHART, alt=title)


def _against_load(loads: Answer, answer: Answer, query: AccountQuery) -> None:
    left, right = st.columns([3, 2])
    with left:
        title = "Power against load, by replica type (GPUs alone)"
        if loads["types"]:
            figure = energy_charts.power_against_load(loads, title)
            st.plotly_chart(figure, key="chart_load", config=_CHART, alt=title)
            st.caption(f"{markdown(loads['notes'][0])}. The same as JSON: `{address_of(query, 'power-load')}`")
        else:
            st.info("No replica had its GPUs for itself with both its tokens and its power measured in this range: "
                    "power against load is not known.", icon=":material/search_off:")  # fmt: skip
    with right:
        title = "How well it is known"
        figure = energy_charts.quality(answer["quality"], title)
        st.plotly_chart(figure, key="chart_quality", config=_CHART, alt=title)
        st.caption(markdown(_coverage(answer["quality"])))
    _alternatives(answer["total"]["figures"])


def _coverage(quality: Answer) -> str:
    covered = quality["coverage"]
    if covered is None:
        return "No GPU was seen."
    return (
        f"Meters were read for {percent(covered, 1)} of the GPUs' time. Energy and prices: shares of the GPUs' time; "
        "grid factors: of their joules. Estimated: at the same GPU's mean power, worked or idle, of that hour or day."
    )


def _alternatives(figures: Answer) -> None:
    """The same energy within each boundary, and per token of each basis."""
    within = [
        {"boundary": WORDS[name].label, "kWh": figures[name]["value"], "method": figures[name]["method"]}
        for name in _WITHIN
    ]
    per_token = [
        {
            "tokens": basis,
            "J/token": figures[f"joules_per_token_{basis}"]["value"],
            "tokens/J": figures[f"tokens_per_joule_{basis}"]["value"],
            "missing": figures[f"joules_per_token_{basis}"]["reason"],
        }
        for basis in BASES
    ]
    tables = ((within, {"kWh": "%.3f"}), (per_token, {"J/token": "%.3f", "tokens/J": "%.3f"}))
    for column, (rows, columns) in zip(st.columns(2), tables, strict=True):
        frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(columns, pl.Float64()))
        shown = {name: st.column_config.NumberColumn(format=form) for name, form in columns.items()}
        column.dataframe(_without_empty(frame), hide_index=True, placeholder=MISSING, column_config=shown)


def _without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Without a column of reasons that has none."""
    return frame.drop([name for name in ("missing",) if name in frame.columns and frame[name].is_null().all()])
