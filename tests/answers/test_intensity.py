"""Grams by the intensity of their hour: live where it is known, else the table, and bases never added."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.answers.summary import Answer, summary
from app.config import Config
from app.facts.kinds import ZoneFact
from app.reference.grid import grid_factor
from app.store.database import Store
from app.store.grid import append_points
from collectors.grid.point import IntensityPoint
from tests.answers.accounting import CONFIG, EU27_G_PER_KWH, NOW, SETTINGS, START, asked, know, minutes_of, served, take
from tests.answers.test_summary import home
from tests.batches import CARD, batch, engine, gpu, uuid_of
from tests.grid_points import to_come, value

HOUR = timedelta(hours=1)
LIVE = Config.model_validate(
    SETTINGS | {"grid": [{"provider": "electricity_maps", "key": "k", "zones": {"EU27": "EU27", "DE": "DE"}}]}
)


@pytest.fixture
def two_hours(store: Store) -> Store:
    """An H100 at 300 W for two hours, an engine at work in the first: 0.36 kWh an hour of its site, PUE 1.2."""
    running = engine(gpus=[uuid_of("node-7")])
    take(store, batch(1, gpus=[gpu(name=CARD)], engines=[running], rows=minutes_of(300, 120), engine_rows=served()))
    return store


def told(hour: float, g_per_kwh: float, minutes: int = 60, **more: Any) -> IntensityPoint:
    said = {"zone": "EU27", "fetched_at": NOW - HOUR} | more
    return value(START + hour * HOUR, minutes, g_per_kwh, **said)


def grams(store: Store, config: Config = LIVE, **said: Any) -> Answer:
    answer = summary(store, config, asked(minutes=120, **said), NOW)
    figures: Answer = answer["total"]["figures"]
    return figures | {"grids": answer["quality"]["grids"], "shares": answer["quality"]["grid"]}


def test_each_hour_has_its_own(two_hours: Store) -> None:
    """0.36 kWh at 100 while an engine worked, 0.36 kWh at 400 without: 36 + 144 g."""
    append_points(two_hours, [told(0, 100), told(1, 400)])
    found = grams(two_hours)
    assert found["carbon_g"]["value"] == pytest.approx(180)
    parts = (found[f"carbon_{part}_g"]["value"] for part in ("active", "unallocated"))
    assert tuple(parts) == (pytest.approx(36), pytest.approx(144))
    assert found["carbon_g"]["method"] == "measured"
    known = f"{NOW - HOUR:%Y-%m-%d %H:%M}Z"
    assert found["grids"] == [
        f"EU27 by the hour, 250 g/kWh lifecycle on average, Electricity Maps, known {known}, PUE 1.2"
    ]


def test_hours_that_are_not_told_have_the_yearly_value_and_say_so(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 100)])
    found = grams(two_hours)
    assert found["carbon_g"]["value"] == pytest.approx(36 + 0.36 * EU27_G_PER_KWH)
    assert found["carbon_g"]["method"] == "default"
    assert found["shares"] == {"measured": pytest.approx(0.5), "default": pytest.approx(0.5)}
    assert len(found["grids"]) == 2


def test_a_forecast_is_told_as_one_until_the_actual_value_comes(two_hours: Store) -> None:
    begun = START + HOUR
    append_points(two_hours, [told(0, 100), to_come(begun, 60, 300, NOW - HOUR, zone="EU27")])
    found = grams(two_hours)
    assert (found["carbon_g"]["value"], found["carbon_g"]["method"]) == (pytest.approx(36 + 108), "forecast")
    append_points(two_hours, [told(1, 200)])
    found = grams(two_hours)
    assert (found["carbon_g"]["value"], found["carbon_g"]["method"]) == (pytest.approx(36 + 72), "measured")


def test_a_revision_changes_only_what_is_known_later(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 100), told(1, 100)])
    append_points(two_hours, [told(1, 200, fetched_at=NOW - HOUR / 2)])
    assert grams(two_hours)["carbon_g"]["value"] == pytest.approx(36 + 72)
    assert grams(two_hours, known_at=NOW - 0.75 * HOUR)["carbon_g"]["value"] == pytest.approx(72)


def test_direct_and_lifecycle_are_not_added(two_hours: Store) -> None:
    """Only the first hour is told, of another basis than the table's."""
    append_points(two_hours, [told(0, 100, basis="direct")])
    found = grams(two_hours)["carbon_g"]
    assert found["value"] is None
    assert "direct" in found["reason"] and "lifecycle" in found["reason"]


BASES = (None, "lifecycle", "direct", "provider")


@pytest.mark.parametrize("first", BASES)
@pytest.mark.parametrize("second", BASES)
def test_hours_of_any_bases_sum_to_the_whole_or_it_says_why_not(
    two_hours: Store, first: str | None, second: str | None
) -> None:
    """None: by the yearly value, which is lifecycle. Who does not say is not held against those who do."""
    append_points(two_hours, [told(hour, 100, basis=one) for hour, one in enumerate((first, second)) if one])
    whole = grams(two_hours)["carbon_g"]
    hours = [summary(two_hours, LIVE, asked(begin, 60), NOW)["total"]["figures"]["carbon_g"] for begin in (0, 60)]
    assert None not in [hour["value"] for hour in hours]
    said = {one or "lifecycle" for one in (first, second)}
    if {"direct", "lifecycle"} <= said:
        assert whole["value"] is None
        assert whole["reason"] == "grams of direct and lifecycle factors are not added: look at fleets of one basis"
        # the engine worked in the first hour alone, so each part is of one basis and known
        parts = [grams(two_hours)[f"carbon_{part}_g"]["value"] for part in ("active", "unallocated")]
        assert parts == [pytest.approx(hour["value"]) for hour in hours]
    else:
        assert whole["value"] == pytest.approx(sum(hour["value"] for hour in hours), rel=1e-9)


def test_a_zone_whose_basis_changes_names_both_of_its_tellers(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 100), told(1, 300, basis="direct")])
    grids = grams(two_hours)["grids"]
    assert [grid.split(" on average")[0] for grid in grids] == [
        "EU27 by the hour, 100 g/kWh lifecycle", "EU27 by the hour, 300 g/kWh direct",
    ]  # fmt: skip


def test_grams_of_the_same_two_bases_are_held_against_each_other(store: Store) -> None:
    """An H100 whose hours are told by who does not say what is in them, and a desk in France by the table: 36 g, then
    72 g, beside 0.4 kWh of France's in both hours."""
    working = batch(1, gpus=[gpu(name=CARD)], rows=minutes_of(300, 120), engine_rows=served(120))
    take(store, working, home(rows=minutes_of(400, 120), engine_rows=served(120)))
    know(store, "zone", "home", ZoneFact(zone="FR"))
    append_points(store, [told(0, 100, basis="provider"), told(1, 200, basis="provider")])
    france_g = 0.4 * (grid_factor("FR").g_per_kwh or 0.0)
    change = summary(store, LIVE, asked(60), NOW)["change"]["carbon_g"]
    assert change["value"] == pytest.approx(36 / (36 + france_g))
    know(store, "zone", "home", ZoneFact(zone="EU27"), minute=60)
    change = summary(store, LIVE, asked(60), NOW)["change"]["carbon_g"]
    assert change["reason"] == "its factors are lifecycle and provider: not comparable"


def test_marginal_values_are_in_no_total(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 900, kind="marginal"), told(1, 900, kind="marginal")])
    assert grams(two_hours)["carbon_g"]["value"] == pytest.approx(0.72 * EU27_G_PER_KWH)


def test_a_zone_that_changes_counts_from_then_on(two_hours: Store) -> None:
    know(two_hours, "zone", "h100", ZoneFact(zone="DE"), minute=60)
    append_points(two_hours, [told(0, 100), told(1, 100), told(1, 500, zone="DE")])
    assert grams(two_hours)["carbon_g"]["value"] == pytest.approx(36 + 180)


def test_lines_and_hours_sum_to_the_whole(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 100, 30), told(0.5, 300, 15), told(1, 400)])
    whole = grams(two_hours)["carbon_g"]["value"]
    for by in ("fleet", "model", "node", "gpu", "label:team"):
        lines = summary(two_hours, LIVE, asked(minutes=120, by=by), NOW)["lines"]
        assert sum(line["figures"]["carbon_g"]["value"] for line in lines) == pytest.approx(whole, rel=1e-9)
    parts = [summary(two_hours, LIVE, asked(first, 40), NOW)["total"] for first in (0, 40, 80)]
    assert sum(part["figures"]["carbon_g"]["value"] for part in parts) == pytest.approx(whole, rel=1e-9)


def test_without_points_nothing_changes(two_hours: Store) -> None:
    assert grams(two_hours)["carbon_g"] == grams(two_hours, CONFIG)["carbon_g"]
