"""The text of a report: what a program reads back is what the rows hold, and a spreadsheet runs none of it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.columns import NAMES, Frame, row
from app.reports.csv import as_csv
from tests.reports.lines import NOW, figure, line

FRAME = Frame("UTC", NOW)
names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20)


def read_back(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def cell(**said: Any) -> dict[str, str]:
    [cells] = read_back(as_csv([row(line(**said), FRAME)]))
    return cells


def test_a_header_of_all_columns_commas_and_line_feeds_only() -> None:
    text = as_csv([row(line(), FRAME), row(line(model=None), FRAME)])
    assert text.splitlines()[0] == ",".join(NAMES)
    assert as_csv([]) == ",".join(NAMES) + "\n"
    assert text.count("\n") == 3
    assert "\r" not in text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_neither_rounded_nor_made_text(value: float) -> None:
    shown = cell(cost=figure(value))["cost"]
    assert shown == repr(value)
    assert float(shown) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.0, "1234567.0"), (1_234_567, "1234567"), (0.1 + 0.2, "0.30000000000000004"), (-12.5, "-12.5"), (0, "0")],
)
def test_a_number_has_a_point_and_no_separators(value: float, shown: str) -> None:
    assert cell(carbon_g=figure(value))["carbon_g"] == shown


@given(names, names)
def test_names_from_other_machines_come_back_as_text_and_are_never_run(fleet: str, model: str) -> None:
    cells = cell(fleet=fleet or None, model=model or None)
    for given_name, shown in ((fleet, cells["fleet"]), (model, cells["model"])):
        assert shown in (given_name, f"'{given_name}")
        assert shown[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")


def test_every_text_column_is_made_inert() -> None:
    evil = '=cmd|"/c calc"!A1'
    cells = cell(fleet=evil, model=evil, price_source=evil, grid=evil, cost=figure(None, reason="x"))
    assert [cells[name] for name in ("fleet", "model", "price_source", "grid")] == [f"'{evil}"] * 4


def test_missing_is_an_empty_cell_with_the_reason_at_the_end() -> None:
    cells = cell(energy_kwh=figure(None, reason="energy was measured 40% of the time, below 50%"))
    assert cells["energy_kwh"] == ""
    assert cells["missing"] == "energy_kwh: energy was measured 40% of the time, below 50%"
    assert cells["cost"] == "96.0"
