"""Sums are the same to the bit, whichever rows are added up first, as in parts or as a whole."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store import exact

MEMORY = duckdb.connect(config={"threads": 1})
values = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 5e4)), min_size=1, max_size=40)


def summed(rows: list[tuple[int, float]], name: str) -> tuple[float, float]:
    """(sum of all rows at once, sum of the sums of their groups)."""
    found = pl.DataFrame(rows, schema={"part": pl.Int64, name: pl.Float64}, orient="row")
    MEMORY.register("found", found)
    ((whole,),) = MEMORY.execute(f"SELECT {exact.sums([name])} FROM found").fetchall()
    parts = MEMORY.execute(f"SELECT {exact.sums([name])} FROM found GROUP BY part").fetchall()
    return whole, sum(part for (part,) in parts)


@pytest.mark.parametrize("name", ["used_s", "known_j"])
@given(rows=values, chance=st.randoms())
def test_order_and_grouping_change_no_bit(name: str, rows: list[tuple[int, float]], chance: object) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    whole, by_parts = summed(rows, name)
    assert summed(shuffled, name) == (whole, by_parts)
    assert whole == by_parts


@pytest.mark.parametrize(("name", "step"), [("used_s", 2**-26), ("known_j", 2**-22)])
@given(rows=values)
def test_a_row_is_off_by_half_a_step_at_most(name: str, step: float, rows: list[tuple[int, float]]) -> None:
    whole, _ = summed(rows, name)
    assert whole == pytest.approx(sum(value for _, value in rows), rel=1e-15, abs=len(rows) * step / 2)


def test_plain_sums_would_depend_on_the_order() -> None:
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 from the left and 0.6 from the right
    rows = [(0, 0.1), (1, 0.2), (1, 0.3)]
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)
    assert summed(rows, "used_s")[0] == summed(rows, "used_s")[1]


def test_what_is_not_known_is_in_no_sum_and_alone_is_none() -> None:
    known = MEMORY.execute(f"SELECT {exact.sums(['gap_s'])} FROM (VALUES (1.5), (NULL)) AS t(gap_s)").fetchall()
    unknown = MEMORY.execute(f"SELECT {exact.sums(['gap_s'])} FROM (VALUES (NULL::DOUBLE)) AS t(gap_s)").fetchall()
    assert (known, unknown) == ([(1.5,)], [(None,)])
