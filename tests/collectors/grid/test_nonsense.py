"""Whatever JSON a provider sends, its reader gives sound points or says what is wrong, and raises nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collectors.grid import carbon_aware_sdk, electricity_maps_answer, energy_charts, watttime
from collectors.grid.point import IntensityPoint
from collectors.grid.provider import IntensityAnswer
from collectors.grid.uk_carbon_intensity import read_intensity as read_uk
from collectors.http.problem import UnusableAnswer
from tests.collectors.grid.shapes import co2eq, em_row, moer, uk_region, uk_slot
from tests.collectors.http.clocks import NOW

Reader = Callable[[Any], object]
SDK = carbon_aware_sdk.Of("z", "l", NOW, "provider", "average")
ROW = {
    "location": "l",
    "time": "2026-11-30T10:00Z",
    "timestamp": "2026-11-30T10:00Z",
    "rating": 4,
    "value": 4,
    "duration": 5,
}
SLOTS = [uk_slot("10:00", 3, 4), uk_slot("10:30", 5)]
SEEDS: list[tuple[str, Reader, Any]] = [
    ("uk", lambda data: read_uk(data, zone="z", fetched_at=NOW), {"data": SLOTS}),
    ("uk region", lambda data: read_uk(data, zone="z", fetched_at=NOW, place="13"), {"data": uk_region(SLOTS)}),
    ("charts", lambda data: energy_charts.read_co2eq(data, NOW, zone="z"), co2eq("10:00", [1, None], [None, 2])),
    (
        "maps",
        lambda data: electricity_maps_answer.read_intensity(
            data, zone="z", theirs="DE", basis="direct", fetched_at=NOW
        ),
        {"zone": "DE", "history": [em_row("10:00"), em_row("11:00")], "unit": "gCO2eq/kWh", "updatedAt": None},
    ),
    (
        "watttime",
        lambda data: watttime.read_moer(data, NOW, zone="z", region="CAISO_NORTH"),
        moer({"10:00": 900, "10:05": 0}, generated="10:00", warnings=[{"message": "x"}]),
    ),
    ("sdk", lambda data: carbon_aware_sdk.read_emissions(data, SDK), [ROW, ROW]),
    (
        "sdk forecast",
        lambda data: carbon_aware_sdk.read_forecasts(data, SDK),
        [{"location": "l", "generatedAt": "2026-11-30T10:00Z", "forecastData": [ROW]}],
    ),
]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}),
    st.sampled_from([10**400, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59", "yearly", 1e300, "0.00:00:00"]),
    st.lists(st.one_of(st.none(), st.integers(), st.just({})), max_size=2),
)  # fmt: skip


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, inner in items:
        yield from places(inner, (*path, name))


def points_of(read: Any) -> list[IntensityPoint]:
    """Sound ones by themselves; in order, and without overlap."""
    points = list(read.points if isinstance(read, IntensityAnswer) else read)
    assert all(sooner.end <= later.start for sooner, later in pairwise(points))
    return points


def changed(data: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    whole = copy.deepcopy(data)
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = odd
    return whole


@pytest.mark.parametrize(("reader", "seed"), [seed[1:] for seed in SEEDS], ids=[seed[0] for seed in SEEDS])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nonsense_is_told_and_never_a_crash(reader: Reader, seed: Any, data: st.DataObject) -> None:
    assert points_of(reader(seed))
    path = data.draw(st.sampled_from(list(places(seed))))
    try:
        assert points_of(reader(changed(seed, path, data.draw(ODD))))
    except UnusableAnswer as refusal:
        assert 0 < len(str(refusal)) < 300
