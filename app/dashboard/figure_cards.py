"""Cards of an account's figures: value, change against the period before, sparkline, and how each was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from app import units
from app.accounting.comparison import previous_period
from app.answers.query import AccountQuery
from app.dashboard.figure_words import WORDS, Figure, with_unit, written
from app.dashboard.formulas import FORMULAS, TOKENS, Asked
from app.formatting import markdown, percent, short, signed

# Below such a coverage a figure is marked.
LOW_COVERAGE = 0.9
# From here on a change in per cent says less than how many times it is.
_MANY_TIMES = 9.0
# Where a card has room to say more than a column.
_LABELS = {"slo_attainment_low": "SLO met by at least"}
_COLOURS = {"less": "inverse", "more": "normal", None: "off"}
_METHODS = {
    "measured": "read from meters and engines",
    "interpolated": "read from meters, spread evenly over gaps",
    "estimated": "estimated in part, see the formula",
    "user": "by your own prices and settings",
    "market": "by the prices that a market asks, not by your own",
    "default": "by the tables that come with Wattmix, not by your own facts",
    "forecast": "a forecast",
    "tdp_estimate": "from the cards' power limits, not measured",
    "simulated": "no GPU stands behind it",
}

Answer = Mapping[str, Any]


def simulated_badge(answer: Answer) -> None:
    """Says that numbers on this page are made up, if any is (design law 10)."""
    if any(figure["method"] == "simulated" for figure in answer["total"]["figures"].values()):
        st.badge("Simulated: these nodes are made up, no GPU stands behind them", icon=":material/science:",
                 color="violet")  # fmt: skip


def card(column: Any, name: str, query: AccountQuery, answer: Answer, trend: Sequence[float | None] = ()) -> None:
    """A figure of the answer's total; trend: the same figure over time, without units."""
    figure, label = answer["total"]["figures"][name], _LABELS.get(name, WORDS[name].label)
    draw(column, label, name, with_unit(name, figure), figure, answer["change"][name], query, trend)
    with column.popover("How", icon=":material/function:", type="tertiary", width="content"):
        st.markdown(how(name, query, answer))


def row_of_cards(names: Sequence[str], query: AccountQuery, answer: Answer, trend: Answer | None = None) -> None:
    """trend: a series without groups, whose figures are drawn small beneath; those that it has."""
    lines = trend["lines"] if trend is not None else ()
    history = lines[0]["figures"] if lines else {}
    for column, name in zip(st.columns(len(names)), names, strict=True):
        card(column, name, query, answer, history[name]["values"] if name in history else ())


def draw(
    column: Any, label: str, name: str, text: str, figure: Figure, changed: Figure, query: AccountQuery,
    trend: Sequence[float | None] = (),
) -> None:  # fmt: skip
    """The card of a figure written as `text`. One that is missing says why; one of low coverage is marked."""
    words, missing, low = WORDS[name], figure["value"] is None, is_low(figure)
    known = [value for value in trend if value is not None]
    if missing:
        delta, colour, description = str(figure["reason"]), "off", None
    elif changed["value"] is None:
        delta, colour, description = str(changed["reason"]), "off", None
    else:
        delta, against = _said_change(changed)
        colour = "off" if delta.startswith("±") else _COLOURS[words.better]
        description = f"{against} {period_length(query)} before"
    told = description is not None and not delta.startswith("±")
    column.metric(
        label,
        short(text),
        delta,
        delta_color=colour,
        delta_arrow="auto" if told else "off",
        delta_description=description,
        border=True,
        help=about(name, figure),
        height="stretch",
        icon=":material/warning:" if low else None,
        chart_data=known if len(known) > 1 else None,
        chart_type="area",
    )


def about(name: str, figure: Figure) -> str:
    """What a figure is, how it is known and how much of it."""
    words = WORDS[name]
    known = f"{figure['method']}: {_METHODS[figure['method']]}"
    covered = "" if figure["coverage"] is None else f" Energy was measured for {percent(figure['coverage'], 1)} of it."
    return markdown(f"{words.explained} Unit: {figure['unit']}. Method: {known}.{covered}")


def how(name: str, query: AccountQuery, answer: Answer) -> str:
    """The formula of a figure, and the same with the numbers of the answer."""
    figures = answer["total"]["figures"]
    figure, lines = figures[name], [f"**{_LABELS.get(name, WORDS[name].label)}**: {markdown(WORDS[name].explained)}"]
    formula = FORMULAS.get(name)
    if formula is not None:
        asked = Asked(figures, query.basis, query.view, _hours(query))
        lines.append(markdown(f"= {formula.in_words}"))
        if figure["value"] is not None:
            result = "" if name == "slo_attainment_low" else f" = {written(name, figure)}"
            lines.append(f"= `{formula.filled(asked)}`{markdown(result)}")
    if figure["value"] is None:
        lines.append(markdown(f"Missing: {figure['reason']}."))
    lines.append(markdown(f"Method: {figure['method']}, {_METHODS[figure['method']]}."))
    if figure["coverage"] is not None:
        low = " That is little: take it with care." if is_low(figure) else ""
        lines.append(f"Energy was measured for {percent(figure['coverage'], 1)} of the GPUs' time.{low}")
    return "\n\n".join(lines)


def is_low(figure: Figure) -> bool:
    covered = figure["coverage"]
    return covered is not None and covered < LOW_COVERAGE


def period_length(query: AccountQuery) -> str:
    """E.g. "24 h", "7 days"."""
    length = query.end - query.start
    if length % timedelta(days=1) or length <= timedelta(days=1):
        return f"{_hours(query)} h"
    return f"{length.days} days"


def standing_on(query: AccountQuery) -> str:
    """What the figures of a page stand on, and the period they are held against."""
    tokens = " + ".join(WORDS[name].label.lower() for name in TOKENS[query.basis])
    return (
        f"{compared_times(query)} Tokens: {query.basis} ({tokens}). Boundary: {query.boundary}. "
        f"Cost view: {query.view}."
    )


def compared_times(query: AccountQuery) -> str:
    """The range of a page, and the period that it is held against."""
    before = previous_period(query.start, query.end, query.zone)
    return (
        f"{_local(query, query.start)} to {_local(query, query.end)}, against {_local(query, before.start)} "
        f"to {_local(query, before.end)} ({query.tz})."
    )


def _local(query: AccountQuery, moment: datetime) -> str:
    return f"{moment.astimezone(query.zone):%Y-%m-%d %H:%M}"


def _hours(query: AccountQuery) -> str:
    return f"{units.hours((query.end - query.start).total_seconds()):g}"


def _said_change(changed: Figure) -> tuple[str, str]:
    """E.g. "+12.0%" or "12 times", and the word that leads to the period before: vs or of."""
    value = changed["value"]
    if changed["unit"] == "points":
        return f"{signed(value, '+.1f')} points", "vs"
    return (f"{value + 1:,.0f} times", "of") if value >= _MANY_TIMES else (signed(value, "+.1%"), "vs")
