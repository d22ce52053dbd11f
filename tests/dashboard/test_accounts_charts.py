"""Charts of accounts: units, gaps, dashes, price changes, and what is drawn where work is not known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.answers.query import MOST_POINTS, AccountQuery
from app.dashboard import accounts_charts

START = datetime(2026, 2, 3, 4, tzinfo=UTC)


def query(hours: int = 4, tz: str = "UTC") -> AccountQuery:
    return AccountQuery(START, START + timedelta(hours=hours), tz=tz)


def figure(values: Sequence[float | None], methods: Sequence[str] | None = None) -> dict[str, Any]:
    return {"values": list(values), "methods": list(methods or ["measured"] * len(values))}


def series(step: str = "hour", **lines: Any) -> dict[str, Any]:
    """Lines by fleet, each of figures."""
    count = len(next(iter(next(iter(lines.values())).values()))["values"])
    length = timedelta(days=1) if step == "day" else timedelta(hours=1)
    starts = [START + number * length for number in range(count)]
    return {
        "step": step,
        "periods": [{"start": one.isoformat(), "end": (one + length).isoformat(), "label": ""} for one in starts],
        "lines": [{"key": {"fleet": name}, "figures": figures} for name, figures in lines.items()],
    }


def test_a_line_per_fleet_with_its_unit_and_its_gaps() -> None:
    given = series(h100={"usd_per_mtok": figure([1.0, None, 3.0, 4.0])}, home={"usd_per_mtok": figure([2.0] * 4)})
    chart = accounts_charts.over_time(given, "usd_per_mtok", "Cost", query())
    assert [(line.name, list(line.y), line.connectgaps, line.line.dash) for line in chart.data] == [
        ("h100", [1.0, None, 3.0, 4.0], False, "solid"), ("home", [2.0] * 4, False, "solid"),
    ]  # fmt: skip
    # a value between two gaps would not be seen without its marker
    assert [line.mode for line in chart.data] == ["lines+markers", "lines"]
    assert (chart.layout.yaxis.title.text, chart.layout.xaxis.title.text) == ("USD/Mtok", "local time, UTC")


def test_estimated_stretches_are_dotted_and_join_what_is_measured() -> None:
    methods = ["measured", "measured", "estimated", "measured"]
    given = series(h100={"usd_per_mtok": figure([1.0, 2.0, 3.0, 4.0], methods)})
    solid, dotted = accounts_charts.over_time(given, "usd_per_mtok", "Cost", query()).data
    assert (list(solid.y), solid.line.dash) == ([1.0, 2.0, None, 4.0], "solid")
    assert (list(dotted.y), dotted.line.dash, dotted.showlegend) == ([None, 2.0, 3.0, 4.0], "dot", False)


def test_times_are_those_of_the_local_clock() -> None:
    given = series(h100={"usd_per_mtok": figure([1.0])})
    chart = accounts_charts.over_time(given, "usd_per_mtok", "Cost", query(1, "Asia/Kathmandu"))
    assert list(chart.data[0].x) == ["2026-02-03T09:45:00"]  # +05:45
    assert list(chart.layout.xaxis.range) == ["2026-02-03T09:45:00", "2026-02-03T10:45:00"]


def test_a_price_change_is_marked_with_what_it_became() -> None:
    change = {"at": "2026-02-03T05:37:00+00:00", "fleet": "h100", "kind": "price", "what": "rented, 4 USD per GPU-hour"}
    given = series(h100={"usd_per_mtok": figure([1.0] * 4)})
    late = change | {"at": "2026-02-03T07:59:00+00:00"}
    chart = accounts_charts.over_time(given, "usd_per_mtok", "Cost", query(), [change, late])
    assert [shape.x0 for shape in chart.layout.shapes] == ["2026-02-03T05:37:00", "2026-02-03T07:59:00"]
    first, last = chart.layout.annotations
    assert (first.text, first.xanchor) == ("h100: rented, 4 USD per GPU-hour", "left")
    assert last.xanchor == "right"  # within the chart


def test_a_line_has_no_more_points_than_can_be_drawn() -> None:
    given = series(h100={"usd_per_mtok": figure([1.0] * (MOST_POINTS + 500))})
    chart = accounts_charts.over_time(given, "usd_per_mtok", "Cost", query(MOST_POINTS + 500))
    assert len(chart.data[0].x) == len(chart.data[0].y) == MOST_POINTS


def test_shares_are_drawn_in_percent() -> None:
    chart = accounts_charts.over_time(series(h100={"utilisation": figure([0.5])}), "utilisation", "Used", query(1))
    assert (list(chart.data[0].y), chart.layout.yaxis.title.text) == ([50.0], "%")


def bill(**given: Sequence[float | None]) -> dict[str, Any]:
    return {name: figure(given[name.removeprefix("cost_")]) for name in accounts_charts.BILL}


def test_the_bill_is_its_parts_and_used_as_one_where_work_is_not_known() -> None:
    parts = bill(working=[1.0, None], slack=[0.5, None], used=[1.5, 2.0], idle=[0.25, 0.0], unallocated=[0.0, 3.0])
    chart = accounts_charts.bill_over_time(series(h100=parts), "Bill", query(2), [])
    assert {bar.name: list(bar.y) for bar in chart.data} == {
        "Used": [None, 2.0], "Working": [1.0, None], "Slack": [0.5, None], "Idle": [0.25, 0.0],
        "Unallocated": [0.0, 3.0],
    }  # fmt: skip
    assert (chart.layout.barmode, chart.layout.yaxis.title.text) == ("relative", "USD per hour")


def test_used_is_not_drawn_twice() -> None:
    parts = bill(working=[1.0], slack=[0.5], used=[1.5], idle=[0.0], unallocated=[0.0])
    lines = [{"key": {"fleet": "h100"}, "figures": {name: {"value": one["values"][0], "method": "user"}
                                                    for name, one in parts.items()}}]  # fmt: skip
    chart = accounts_charts.parts_by_group(lines, "Bill")
    assert [bar.name for bar in chart.data] == ["Working", "Slack", "Idle", "Unallocated"]
    assert chart.layout.xaxis.title.text == "USD"


def test_bars_of_days_have_their_ticks_at_midnight() -> None:
    parts = bill(working=[1.0] * 30, slack=[0.5] * 30, used=[1.5] * 30, idle=[0.0] * 30, unallocated=[0.0] * 30)
    chart = accounts_charts.bill_over_time(series("day", h100=parts), "Bill", query(24 * 30), [])
    assert (chart.layout.xaxis.tick0, chart.layout.xaxis.dtick) == ("2026-03-04", 3 * 86_400_000)
    assert list(chart.data[0].width) == pytest.approx([0.92 * 86_400_000] * 30)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ({}, "all"),
        ({"fleet": "h100", "model": None}, "h100, no model"),
        ({"label": None}, "no label"),
        ({"gpu": "0a1b2c3d-0000-4000-8000-000000000000", "node": "n1", "gpu_name": "NVIDIA H100 PCIe"},
         "n1: H100 PCIe 80GB 0a1b2c3d…"),
    ],
)  # fmt: skip
def test_lines_are_named_for_people(key: dict[str, str | None], name: str) -> None:
    assert accounts_charts.line_name(key) == name
