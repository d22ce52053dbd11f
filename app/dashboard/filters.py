"""The filters that the pages of accounts share. All are in the address, so that one link shows the same view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, cast
from urllib.parse import urlencode

import streamlit as st

from app.accounting.bill import VIEWS, View
from app.accounting.energy import Boundary
from app.accounting.periods import ONE_DAY, time_zone, zone_names
from app.accounting.tokens import BASES, Basis
from app.answers.query import BOUNDARIES, NAMES, STEPS, AccountQuery, Step
from app.backend.served import served
from app.dashboard.ranges import PRESETS, Preset, bounds
from app.errors import BadParameter

ALL_FLEETS, ALL_MODELS = "all fleets", "all models"
_UTC = "UTC"
_WIDTHS = (1.3, 1.5, 1.2, 1.6, 1.05, 1.15, 1.2)
_HELP = {
    "range": "Days and months are those of the time zone beside. A range that is not over ends now.",
    "tz": "The zone of local days and of the times that are shown. Starts as your browser's.",
    "fleet": "A named pool of like replicas; it shares a price, a grid zone and a PUE.",
    "llm": "The model that the engines serve. GPUs without an engine have none: they are left out when one is chosen.",
    "basis": "The tokens that divide. total: prompt and generated, as the AIBC 2025 study counts. computed: without "
    "prompt tokens that came from a cache. output: generated only.",
    "boundary": "The energy that counts. gpu: the cards alone. it: with their hosts' share. site: that times PUE. "
    "Carbon is always of the site.",
    "view": "The part of dollars, joules and grams that counts. bill: all that is paid. used: while an engine worked. "
    "idle: engines that had nothing to do. unallocated: GPUs without an engine.",
}


def account_filters() -> AccountQuery:
    """Draw the filters in a row; the query that they make. Raises BadParameter for days in the wrong order."""
    names = served().account_names()
    columns = iter(st.columns(_WIDTHS))
    preset = cast(Preset, _choice(next(columns), "Range", "range", PRESETS))
    tz = choose_zone(next(columns))
    fleet = _choice(next(columns), "Fleet", "fleet", (ALL_FLEETS, *_with_asked("fleet", names["fleets"], ALL_FLEETS)))
    model = _choice(next(columns), "Model", "llm", (ALL_MODELS, *_with_asked("llm", names["models"], ALL_MODELS)))
    basis = _choice(next(columns), "Tokens", "basis", BASES)
    boundary = _choice(next(columns), "Boundary", "boundary", BOUNDARIES, default="it")
    view = _choice(next(columns), "Cost view", "view", VIEWS)
    now = datetime.now(UTC)
    zone = time_zone(tz)
    today = now.astimezone(zone).date()
    first, after = _days(today) if preset == "custom" else (today, today)
    start, end = bounds(preset, now, zone, first, after)
    if start >= end:
        raise BadParameter(f"From {first} up to {after} no minute has passed: `to` is exclusive, and not in the future")
    return AccountQuery(
        start=start,
        end=end,
        tz=tz,
        fleet=None if fleet == ALL_FLEETS else fleet,
        model=None if model == ALL_MODELS else model,
        basis=cast(Basis, basis),
        view=cast(View, view),
        boundary=cast(Boundary, boundary),
    )


def choose_zone(column: Any) -> str:
    """Draw the zone's filter; the zone. The browser's until one is chosen or asked for by the address."""
    found = st.context.timezone
    if "tz" not in st.session_state and "tz" not in st.query_params and found in zone_names():
        st.session_state["tz"] = found
    return _choice(column, "Time zone", "tz", (_UTC, *sorted(zone_names() - {_UTC})))


def with_chart_step(query: AccountQuery, finest: Step = "minute", most: int = 300) -> AccountQuery:
    """With the finest step from `finest` on that leaves no more than `most` points; days are never too many."""
    allowed = STEPS[STEPS.index(finest) :]
    return replace(query, step=next((step for step in allowed if query.points(step) <= most), "day"))


def address_of(query: AccountQuery, route: str, names: Sequence[str] = NAMES) -> str:
    """The path of the API's answer to the same question, e.g. of route `summary`; names: what the route takes."""
    return f"/api/v1/{route}?{urlencode(query.as_words(names), safe=':,')}"


def _choice(column: Any, label: str, key: str, options: Sequence[str], *, default: str | None = None) -> str:
    chosen: str = column.selectbox(
        label, options, index=options.index(default) if default else 0, key=key, bind="query-params", help=_HELP[key]
    )
    return chosen


def _days(today: date) -> tuple[date, date]:
    """The days of a range of one's own: from the first up to, and without, the other."""
    first, after, _ = st.columns([1, 1, 5])
    begin = first.date_input("From", today - 7 * ONE_DAY, key="from", bind="query-params", help="The first local day.")
    end = after.date_input(
        "To, exclusive", today + ONE_DAY, key="to", bind="query-params", help="The day after the last one."
    )
    return begin, end


def _with_asked(key: str, known: Sequence[str], everything: str) -> list[str]:
    """`known`, and what the address asks for: a link to what is gone shows that nothing is there, not everything."""
    asked = st.query_params.get(key)
    return [*known] if asked in (None, "", everything, *known) else [*known, str(asked)]
