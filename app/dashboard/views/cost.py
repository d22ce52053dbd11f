"""*Cost*: what dollars pay: work, slack, idle or unallocated; by fleet, model, node, GPU or label, over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from app.answers.query import AccountQuery
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard import accounts_charts
from app.dashboard.account_page import answered, question, table_with_csv
from app.dashboard.figure_cards import row_of_cards, standing_on
from app.dashboard.filters import account_filters, address_of, with_chart_step
from app.formatting import MISSING, markdown
from app.reference.gpus import display_name

CARDS = (
    ("cost", "cost_used", "cost_slack", "cost_idle", "cost_unallocated"),
    ("usd_per_mtok", "usd_per_mtok_input", "usd_per_mtok_output", "cost_input", "cost_output"),
)  # fmt: skip
_COLUMNS = (
    "cost", "cost_working", "cost_slack", "cost_idle", "cost_unallocated", "cost_input", "cost_output", "usd_per_mtok",
    "usd_per_mtok_input", "usd_per_mtok_output", "gpu_hours", "utilisation", "prompt_tokens", "generated_tokens",
)  # fmt: skip
_GROUPS = ("fleet", "model", "fleet_model", "node", "gpu")
_CHART = {"displayModeBar": False}
_BARS, _POINTS = 120, 300
# More bars or lines than these are not told apart; the table has all.
_MOST_BARS, _MOST_LINES = 15, 6

Answer = dict[str, Any]


def page() -> None:
    backend = served()
    title, control = st.columns([5, 1.6], vertical_alignment="bottom")
    title.title("Cost")
    by = _group(control, backend)
    query = account_filters()
    asked = question(query, (*CARDS[0], *CARDS[1]), _COLUMNS, by)
    answer = answered(asked)
    if answer is None:
        return
    for names in CARDS:  # without sparklines: the charts below show the same over time
        row_of_cards(names, query, answer)
    st.caption(markdown(_stands_on(query, answer)))
    _charts(backend, query, answer, by)
    table_with_csv(f"The bill by {_said(by)}", asked, answer, _COLUMNS, "cost", whole=True)
    _hosted(backend.hosted_comparison(query))
    _owning(backend.rent_or_own(query))
    st.caption(f"The same as JSON: `{address_of(replace(asked, figures=None), 'summary')}`")


def _group(column: Any, backend: LocalBackend) -> str:
    labels = [f"label:{name}" for name in backend.account_names()["labels"]]
    chosen: str = column.selectbox(
        "Bill by", (*_GROUPS, *labels), key="by", bind="query-params",
        help="What a line of the bill is: a fleet, a model, both, a node, a GPU, or a label of engines and nodes, such "
        "as a team.",
    )  # fmt: skip
    return chosen


def _stands_on(query: AccountQuery, answer: Answer) -> str:
    notes = "".join(f" {note[:1].upper()}{note[1:]}." for note in answer["notes"])
    prices = "; ".join(answer["quality"]["price_sources"])
    return f"{standing_on(query)} Prices: {prices}.{notes}"


def _charts(backend: LocalBackend, query: AccountQuery, answer: Answer, by: str) -> None:
    changes = backend.price_changes(query)
    bars = backend.series(with_chart_step(replace(query, figures=accounts_charts.BILL), "hour", _BARS))
    by_group = by if len(answer["lines"]) <= _MOST_LINES else "none"
    lines = backend.series(with_chart_step(replace(query, by=by_group, figures=("usd_per_mtok",)), "minute", _POINTS))
    first, second = st.columns([3, 2])
    title = "Bill over time"
    figure = accounts_charts.bill_over_time(bars, title, query, changes)
    first.plotly_chart(figure, key="chart_bill", config=_CHART, alt=title)
    dearest = sorted(answer["lines"], key=lambda line: -(line["figures"]["cost"]["value"] or 0.0))[:_MOST_BARS]
    title = f"Bill by {_said(by)}" + (f", the {_MOST_BARS} dearest" if len(answer["lines"]) > _MOST_BARS else "")
    second.plotly_chart(accounts_charts.parts_by_group(dearest, title), key="chart_groups", config=_CHART, alt=title)
    of = f" by {_said(by)}" if by_group != "none" else ""
    title = f"Cost of a million {query.basis} tokens{of}, cost view {query.view}"
    figure = accounts_charts.over_time(lines, "usd_per_mtok", title, query, changes)
    st.plotly_chart(figure, key="chart_mtok", config=_CHART, alt=title)


def _said(by: str) -> str:
    return {"fleet_model": "fleet and model", "gpu": "GPU"}.get(by, by.removeprefix("label:"))


def _hosted(rows: list[Answer]) -> None:
    with st.expander(f"Break-even against hosted prices ({len(rows)})", icon=":material/balance:", expanded=bool(rows)):
        if not rows:
            st.write("No hosted price is known. Add a fact of kind hosted_price on the Facts page, such as "
                     "example-ai/llama-3.1-8b with its price of a million input and output tokens.")  # fmt: skip
            return
        shown = [
            {
                "provider": row["provider"],
                "held against": row["model"] or "all models",
                "hosted $/Mtok": row["hosted_usd_per_mtok"]["value"],
                "own $/Mtok": row["usd_per_mtok"]["value"],
                "own against hosted": row["own_against_hosted"]["value"],
                "own load": row["tokens_per_hour"]["value"],
                "break-even load": row["break_even_tokens_per_hour"]["value"],
                "in $/Mtok": row["input_usd_per_mtok"],
                "out $/Mtok": row["output_usd_per_mtok"],
                "hosted model": row["hosted_model"],
                "missing": _reasons(row, "hosted_usd_per_mtok", "usd_per_mtok", "break_even_tokens_per_hour"),
                "source": f"{row['source']}, from {row['valid_from'][:10]}",
            }
            for row in rows
        ]
        floats = dict.fromkeys(_HOSTED_COLUMNS, pl.Float64())
        frame = pl.DataFrame(shown, schema_overrides=floats, infer_schema_length=None)
        st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=_HOSTED_COLUMNS)
        st.caption(
            "Hosted: what the same prompt and generated tokens cost there. Break-even load: prompt and generated "
            "tokens an hour from which on the own GPUs, at the bill of the range per hour, cost less. A model's part "
            "of the bill has no GPUs without an engine in it."
        )


_HOSTED_COLUMNS = {
    "in $/Mtok": st.column_config.NumberColumn(format="$%.3f"),
    "out $/Mtok": st.column_config.NumberColumn(format="$%.3f"),
    "hosted $/Mtok": st.column_config.NumberColumn(format="$%.3f", help="Of the same mix, on the basis chosen."),
    "own $/Mtok": st.column_config.NumberColumn(format="$%.3f", help="Cost view bill, on the basis chosen."),
    "own against hosted": st.column_config.NumberColumn(format="percent", help="Below 0: own tokens cost less."),
    "own load": st.column_config.NumberColumn(format="compact", help="Tokens an hour over the range."),
    "break-even load": st.column_config.NumberColumn(format="compact", help="Tokens an hour."),
}


def _owning(rows: list[Answer]) -> None:
    if not rows:
        return
    with st.expander(f"Rent against buy ({len(rows)})", icon=":material/real_estate_agent:"):
        shown = [
            {
                "fleet": row["fleet"],
                "card": display_name(row["card"]),
                "now": row["plan"],
                "rent $/h": row["rent_usd_per_hour"],
                "purchase": row["purchase_usd"],
                "life": row["life_years"],
                "electricity": row["tariff_usd_per_kwh"],
                "site W": row["site_power_w"]["value"],
                "owning from": row["hours_per_month"]["value"],
                "paid back after": row["months_to_pay_back"]["value"],
                "missing": _reasons(row, "hours_per_month", "months_to_pay_back"),
                "sources": "; ".join((row["rent_source"], row["purchase_source"], row["tariff_source"])),
            }
            for row in rows
        ]
        floats = dict.fromkeys(_OWNING_COLUMNS, pl.Float64())
        frame = pl.DataFrame(shown, schema_overrides=floats, infer_schema_length=None)
        st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=_OWNING_COLUMNS)
        st.caption(
            "Of one GPU. Estimates: neither hosts, network and space of own GPUs, nor what renting in bulk saves, are "
            "in it; the fixed cost of an owned plan is."
        )


_OWNING_COLUMNS = {
    "rent $/h": st.column_config.NumberColumn(format="$%.3f"),
    "purchase": st.column_config.NumberColumn(format="$%.0f", help="New; by the owned plan, else by the table."),
    "life": st.column_config.NumberColumn(format="%.1f years"),
    "electricity": st.column_config.NumberColumn(format="$%.3f/kWh"),
    "site W": st.column_config.NumberColumn(format="%.0f", help="Mean of the range, host share and PUE in it."),
    "owning from": st.column_config.NumberColumn(format="%.0f h/month", help="Running hours; a month has 730."),
    "paid back after": st.column_config.NumberColumn(format="%.1f months", help="When it runs all the time."),
}


def _reasons(row: Answer, *names: str) -> str:
    return "; ".join(dict.fromkeys(row[name]["reason"] for name in names if row[name]["reason"]))
