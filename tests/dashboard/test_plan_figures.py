"""The plan's figures: replicas stacked by pool, load, what waits, and the grids, at the right hours."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.dashboard.charts import colour
from app.dashboard.split import plan_figures
from tests.answers.planned import H100, RTX4090, a_plan, a_replica, an_hour

MADRID, UTC_ZONE = ZoneInfo("Europe/Madrid"), ZoneInfo("UTC")
FIRST = datetime.fromisoformat("2026-10-25T00:00:00")
CARDS = {"h100": H100[0], "rtx4090": RTX4090[0]}


def starts(count: int) -> list[datetime]:
    """In UTC, without a zone, as Plotly takes them."""
    return [FIRST + timedelta(hours=number) for number in range(count)]


def test_replicas_are_stacked_by_pool_in_the_colours_of_their_cards() -> None:
    figure = plan_figures.replicas(a_plan(), MADRID)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert figure.layout.barmode == "stack"
    assert [(bar.name, list(bar.y), bar.marker.color) for bar in bars] == [
        ("h100: 1x H100 PCIe 80GB", [1, 1, 1], colour(H100[0], 1)),
        ("rtx4090: 2x RTX 4090", [0, 2, 4], colour(RTX4090[0], 2)),
    ]


def test_load_is_drawn_below_to_the_end_of_the_last_hour() -> None:
    served, arriving = (one for one in plan_figures.replicas(a_plan(), MADRID).data if one.type == "scatter")
    assert (served.yaxis, arriving.yaxis) == ("y2", "y2")
    assert list(served.y) == [1000, 1000, 2500, 2500]
    assert list(arriving.y) == pytest.approx([2000, 500, 2000, 2000])
    assert list(arriving.x) == starts(4)


def test_without_deferrable_work_what_arrives_is_what_is_served() -> None:
    answer = a_plan(assumptions=a_plan()["assumptions"] | {"deferrable": []})
    answer["hours"] = [hour | {"deferred_tokens": {}} for hour in answer["hours"]]
    [load] = (one for one in plan_figures.replicas(answer, MADRID).data if one.type == "scatter")
    assert (load.name, list(load.y)) == ("load (tokens/s)", [1000, 1000, 2500, 2500])


def test_two_hours_of_one_local_time_stay_two_bars() -> None:
    """Madrid's clocks go back from 03:00 to 02:00 after the first hour."""
    bar = plan_figures.replicas(a_plan(), MADRID).data[0]
    assert list(bar.x) == starts(3)
    assert list(bar.customdata) == ["Sun 25 Oct 02:00", "Sun 25 Oct 02:00", "Sun 25 Oct 03:00"]


@pytest.mark.parametrize(
    ("zone", "title", "ticks"),
    [(MADRID, "local time, Europe/Madrid", {2: "03:00"}), (UTC_ZONE, "UTC", {0: "Sun 25"})],
)
def test_ticks_are_at_round_hours_of_the_zone(zone: ZoneInfo, title: str, ticks: dict[int, str]) -> None:
    axis = plan_figures.replicas(a_plan(), zone).layout.xaxis
    assert axis.title.text == title
    shown = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert shown == {starts(3)[number]: text for number, text in ticks.items()}


def test_pools_that_share_a_colour_have_patterns() -> None:
    hour = an_hour(0, [a_replica("east", H100, 1, 1), a_replica("west", H100, 1, 2)])
    bars = plan_figures.replicas(a_plan(hours=[hour]), UTC_ZONE).data[:2]
    assert len({bar.marker.color for bar in bars}) == 1
    assert [bar.marker.pattern.shape for bar in bars] == ["", "/"]


def test_what_waits_is_a_bar_per_hour_and_class() -> None:
    [bar] = plan_figures.waiting(a_plan(), MADRID).data
    assert (bar.name, list(bar.y)) == ("batch", [3.6e6, 1.8e6, 0])


def test_grids_are_in_the_colour_of_the_fleet_and_those_that_are_alike_share_a_line() -> None:
    germany, france = plan_figures.intensity(a_plan(), CARDS, MADRID).data
    assert (germany.name, list(germany.y)) == ("h100 (DE)", [350, 350, 350, 350])
    assert (france.name, list(france.y)) == ("rtx4090 (FR)", [80, 40, 80, 80])
    assert (germany.line.color, france.line.color) == (colour(H100[0], 1), colour(RTX4090[0], 2))
    alike = a_plan(grid={name: {"zone": "DE"} for name in CARDS})
    alike["hours"] = [hour | {"g_per_kwh": {"h100": 300.0, "rtx4090": 300.0}} for hour in alike["hours"]]
    [both] = plan_figures.intensity(alike, CARDS, MADRID).data
    assert both.name == "h100, rtx4090 (DE)"
    assert (plan_figures.varies(a_plan()), plan_figures.varies(alike)) == (True, False)
