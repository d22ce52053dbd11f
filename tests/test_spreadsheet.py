"""Text that a spreadsheet would run stays text, and everything else stays as it is."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.spreadsheet import csv_text, inert, uninert

RUN = "=+-@\t\r\n"


@pytest.mark.parametrize("first", list(RUN))
def test_text_that_would_be_run_is_prefixed(first: str) -> None:
    assert inert(f'{first}HYPERLINK("http://x")') == f'\'{first}HYPERLINK("http://x")'
    assert inert(first) == f"'{first}"


@pytest.mark.parametrize("value", [-1, -1.5, 0, 1e-9, None, True, "", "a=b", " =1", "rtx4090", "–"])
def test_numbers_and_other_text_stay_as_they_are(value: object) -> None:
    assert inert(value) is value


@given(st.text())
def test_no_text_comes_out_that_would_be_run(text: str) -> None:
    cell = inert(text)
    assert isinstance(cell, str)
    assert not cell or cell[0] not in RUN
    assert cell.removeprefix("'") in (text, text.removeprefix("'"))


cells = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"))


@given(st.lists(st.tuples(cells, cells), min_size=1))
def test_a_line_of_the_text_is_a_row_whatever_is_in_its_cells(rows: list[tuple[str, str]]) -> None:
    text = csv_text(("a", "b"), rows)
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert read == [["a", "b"], *([str(inert(cell)) for cell in row] for row in rows)]


def test_a_lone_carriage_return_is_quoted_and_lines_end_by_a_line_feed() -> None:
    assert csv_text(("a",), [("x\r=cmd",), ("y\n=cmd",), (None,), (1.5,)]) == 'a\n"x\r=cmd"\n"y\n=cmd"\n""\n1.5\n'


@given(st.text("=+-@\t' ab", max_size=6))
def test_what_was_made_inert_can_be_read_back(text: str) -> None:
    cell = inert(text)
    assert isinstance(cell, str)
    assert not cell.startswith(("=", "+", "-", "@", "\t"))
    assert uninert(cell) == text
