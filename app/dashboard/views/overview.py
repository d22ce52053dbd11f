"""*Overview*: what a million tokens costs in dollars, joules and grams now, on which fleet, and what idles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard import accounts_charts
from app.dashboard.account_page import answered, question
from app.dashboard.charts import card_set
from app.dashboard.figure_cards import period_length, row_of_cards, standing_on
from app.dashboard.figure_tables import figure_table
from app.dashboard.filters import account_filters, address_of, with_chart_step
from app.formatting import MISSING, markdown, number, usd
from app.reference.gpus import display_name

CARDS = ("usd_per_mtok", "tokens_per_joule", "g_per_mtok", "usd_per_hour", "slo_attainment_low")
_COLUMNS = (
    "usd_per_mtok", "tokens_per_joule", "g_per_mtok", "usd_per_hour", "utilisation", "ttft_p99_ms",
    "slo_attainment_low", "slo_attainment_high", "gpu_hours", "prompt_tokens", "generated_tokens",
)  # fmt: skip
_CHART = {"displayModeBar": False}
# A sparkline is some 100 pixels wide.
_TREND_POINTS = 60

Answer = dict[str, Any]


def page() -> None:
    st.title("Overview")
    query = account_filters()
    backend = served()
    asked = question(query, CARDS, _COLUMNS)
    answer = answered(asked)
    if answer is None:
        return
    trend = backend.series(with_chart_step(replace(query, figures=CARDS), "minute", _TREND_POINTS))
    row_of_cards(CARDS, query, answer, trend)
    st.caption(markdown(standing_on(query)))
    _fleets(backend, query, answer)
    _split(backend.split_today(query), query)
    _idle(backend.idle_gpus(query), query)
    st.caption(f"The same as JSON: `{address_of(replace(asked, figures=None), 'summary')}`")


def _fleets(backend: LocalBackend, query: AccountQuery, answer: Answer) -> None:
    st.subheader("Fleets side by side")
    figure_table(answer["lines"], _COLUMNS, key="fleets")
    asked = with_chart_step(replace(query, by="fleet", figures=("usd_per_mtok",)), "minute", 200)
    series = backend.series(asked)
    title = f"Cost of a million tokens by fleet, {query.basis} tokens, cost view {query.view}"
    figure = accounts_charts.over_time(series, "usd_per_mtok", title, query, backend.price_changes(query))
    st.plotly_chart(figure, key="chart_fleets", config=_CHART, alt=title)


def _idle(idle: Answer, query: AccountQuery) -> None:
    st.subheader("What idles, and what it costs")
    total = idle["total"]
    if not idle["gpus"]:
        why = total["reason"] or "an engine worked on each GPU all the time"
        st.caption(markdown(f"Nothing: {why}."))
        return
    rows = [
        {
            "node": gpu["node"] or MISSING,
            "card": display_name(gpu["gpu_name"]) if gpu["gpu_name"] else MISSING,
            "GPU": gpu["gpu"] or MISSING,
            "idle": gpu["cost_idle"]["value"],
            "unallocated": gpu["cost_unallocated"]["value"],
            "of its cost": gpu["cost"]["value"],
            "utilisation": gpu["utilisation"]["value"],
            "GPU-hours": gpu["gpu_hours"]["value"],
        }
        for gpu in idle["gpus"]
    ]
    floats = dict.fromkeys(("idle", "unallocated", "of its cost", "utilisation", "GPU-hours"), pl.Float64())
    st.dataframe(
        pl.DataFrame(rows, schema_overrides=floats), hide_index=True, placeholder=MISSING, column_config=_IDLE_COLUMNS
    )
    more = f" The {idle['others']} others are on the Cost page, by GPU." if idle["others"] else ""
    st.caption(markdown(
        f"{usd(total['value'])} of the bill of these {period_length(query)} was paid while nothing worked "
        f"({total['method']}).{more}"
    ))  # fmt: skip


_IDLE_COLUMNS = {
    "idle": st.column_config.NumberColumn(format="$%.2f", help="Paid while an engine was on it and had nothing to do."),
    "unallocated": st.column_config.NumberColumn(format="$%.2f", help="Paid while no engine was on it."),
    "of its cost": st.column_config.NumberColumn(format="$%.2f", help="All that was paid for it in the range."),
    "utilisation": st.column_config.NumberColumn(format="percent", help="Share of its time in which an engine worked."),
    "GPU-hours": st.column_config.NumberColumn(format="%.1f", help="Hours for which it was there."),
}


def _split(split: Answer, query: AccountQuery) -> None:
    st.subheader("This split beside the recommended one")
    rows = [
        {
            "fleet": fleet["fleet"] or "no fleet",
            "tokens, measured": fleet["token_share"],
            "tokens, recommended": fleet["recommended_token_share"],
            "replicas, measured": _replicas(fleet["replicas"], fleet["kinds"]),
            "replicas, recommended": _replicas(fleet["recommended_replicas"], fleet["recommended_kinds"]),
            "$/h, measured": fleet["usd_per_hour"]["value"],
            "$/h, recommended": fleet["recommended_usd_per_hour"],
        }
        for fleet in split["fleets"]
    ]
    floats = dict.fromkeys(_SPLIT_COLUMNS, pl.Float64())
    frame = pl.DataFrame(rows, schema_overrides=floats)
    st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=_SPLIT_COLUMNS)
    if split["status"] == "infeasible":
        st.warning(markdown(f"No mix carries this demand. {split['reason']}"), icon=":material/block:")
    st.caption(markdown(_demand_of(split, query)) + f" [Open it](/split?{urlencode(split['changes'])})")


_SPLIT_COLUMNS = {
    "tokens, measured": st.column_config.NumberColumn(format="percent", help="Share of prompt and generated tokens."),
    "tokens, recommended": st.column_config.NumberColumn(format="percent", help="Share of the demand's tokens."),
    "$/h, measured": st.column_config.NumberColumn(
        format="$%.2f", help="What the fleet costs for these models, idle time too."
    ),
    "$/h, recommended": st.column_config.NumberColumn(format="$%.2f", help="Price of the recommended replicas."),
}


def _replicas(count: float, kinds: list[dict[str, Any]]) -> str:
    """E.g. "3.8 of 2x RTX 4090"."""
    if not count:
        return "none"
    of = ", ".join(dict.fromkeys(card_set(kind["card"], kind["gpus"]) for kind in kinds))
    return f"{count:.3g} of {of}" if of else f"{count:.3g}"


def _demand_of(split: Answer, query: AccountQuery) -> str:
    measured = (
        f"{number(split['tokens_per_s'], 0)} tokens/s were measured over these {period_length(query)}, on average"
    )
    carried = f"for {usd(split['usd_per_hour'])}/h" if split["usd_per_hour"] is not None else "by no mix"
    rate, models = number(split["demand_tokens_per_s"], 0), ", ".join(split["models"])
    if not split["is_scaled"]:
        return (
            f"{measured}. Recommended: the configured demand as it stands ({rate} tokens/s of {models}), {carried}: "
            "engines do not serve all of its models."
        )
    others = f" and {', '.join(split['left_out'])}" if split["left_out"] else ""
    return (
        f"{measured}. Recommended: the demand's classes ({models}), scaled to the {rate} tokens/s of the busiest "
        f"{split['step']} ({split['busiest'][:16].replace('T', ' ')}), {carried}, by what load tests measured. "
        f"Left out on both sides: GPUs without an engine{others}."
    )
