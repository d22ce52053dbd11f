"""What the pages of accounts share: the summary behind a page, and its lines as a table with a CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from app.answers.query import AccountQuery
from app.answers.summary import as_csv
from app.backend.served import served
from app.dashboard.figure_cards import simulated_badge
from app.dashboard.figure_tables import figure_table
from app.dashboard.filters import address_of
from app.dashboard.formulas import parts_of
from app.dashboard.waiting import nothing_seen

Answer = dict[str, Any]


def question(query: AccountQuery, cards: tuple[str, ...], columns: Sequence[str], by: str = "fleet") -> AccountQuery:
    """A line for each of `by`, with the figures of the cards, those of their formulas, and those of the table."""
    return replace(query, by=by, figures=tuple(dict.fromkeys((*parts_of(cards), *columns))))


def answered(asked: AccountQuery) -> Answer | None:
    """The summary; None where nothing was seen, and then the page says what to do."""
    return if_seen(served().summary(asked), asked)


def if_seen(answer: Answer, asked: AccountQuery) -> Answer | None:
    """As `answered`, of a summary that is there."""
    if not answer["lines"]:
        nothing_seen(asked)
        return None
    simulated_badge(answer)
    return answer


def table_with_csv(
    title: str, asked: AccountQuery, answer: Answer, columns: Sequence[str], name: str, *, whole: bool = False
) -> None:
    """name: of the page, for the file and the table. whole: the CSV has every figure, not only those of the page."""
    backend, of_csv = served(), replace(asked, figures=None) if whole else asked
    head, button = st.columns([5, 1], vertical_alignment="bottom")
    head.subheader(title)
    button.download_button(
        "CSV", lambda: as_csv(backend.summary(of_csv) if whole else answer),
        file_name=f"wattmix-{name}-by-{asked.by.replace(':', '-')}.csv", mime="text/csv", icon=":material/download:",
        on_click="ignore", width="stretch", help=f"Unrounded, the same as {address_of(of_csv, 'summary')}&format=csv.",
    )  # fmt: skip
    figure_table(answer["lines"], columns, key=name)
