"""What is beside the figures of carbon: causes, hours of the week, what is ahead, other zones."""

from __future__ import annotations

import pytest

from app.answers.carbon import carbon, carbon_and_summary
from app.answers.summary import summary
from app.facts.kinds import ZoneFact
from app.store.database import Store
from app.store.grid import append_points
from tests.answers.accounting import CONFIG, EU27_G_PER_KWH, NOW, START, asked, know, minutes_of, served, take
from tests.answers.test_intensity import HOUR, LIVE, told
from tests.answers.test_intensity import two_hours as two_hours
from tests.batches import CARD, batch, engine, gpu, uuid_of
from tests.grid_points import to_come


def test_an_empty_store_says_so(store: Store) -> None:
    found = carbon(store, CONFIG, asked(), NOW)
    assert found["moved"] == {"before": None, "now": None, "effects": None, "reason": "a period has no tokens"}
    assert (found["intensity"], found["elsewhere"], found["ahead"]) == ([], [], [])
    assert {value for day in found["load_kw"] for value in day} == {None}


def test_one_reading_gives_what_the_two_answers_say(two_hours: Store) -> None:
    append_points(two_hours, [told(0, 100), told(1, 400)])
    query = asked(60, by="fleet", figures=("carbon_g", "g_per_mtok"), tz="Europe/Berlin")
    found = carbon_and_summary(two_hours, LIVE, query, NOW)
    assert found == (carbon(two_hours, LIVE, query, NOW), summary(two_hours, LIVE, query, NOW))


def test_a_period_without_tokens_has_no_causes(two_hours: Store) -> None:
    assert carbon(two_hours, CONFIG, asked(60), NOW)["moved"]["effects"] is None


def test_what_moved_is_the_grid_s(store: Store) -> None:
    """Two hours of the same work, the grid at 100, then at 400 g/kWh: 0.36 kWh for 9,000 tokens are 40 kWh/Mtok, so
    4,000 and 16,000 g/Mtok."""
    running = engine(gpus=[uuid_of("node-7")])
    rows = minutes_of(300, 120)
    take(store, batch(1, gpus=[gpu(name=CARD)], engines=[running], rows=rows, engine_rows=served(120)))
    append_points(store, [told(0, 100), told(1, 400)])
    found = carbon(store, LIVE, asked(60), NOW)["moved"]
    assert (found["before"], found["now"]) == (pytest.approx(4_000), pytest.approx(16_000))
    assert found["effects"] == pytest.approx({"mix": 0, "energy": 0, "grid": 12_000}, abs=1e-6)


def test_hours_of_the_week_are_local(two_hours: Store) -> None:
    """START is a Monday, 04:00 UTC, 05:00 in Berlin; 0.36 kWh in an hour are 0.36 kW."""
    append_points(two_hours, [told(0, 100), told(1, 400)])
    found = carbon(two_hours, LIVE, asked(minutes=120, tz="Europe/Berlin"), NOW)
    day = START.weekday()
    assert found["load_kw"][day][START.hour + 1] == pytest.approx(0.36)
    [zone] = found["intensity"]
    assert (zone["zone"], zone["basis"], zone["providers"]) == ("EU27", "lifecycle", ["electricity_maps"])
    assert zone["g_per_kwh"][day][START.hour + 1 : START.hour + 3] == [pytest.approx(100), pytest.approx(400)]


def test_hours_of_two_bases_are_in_no_mean_together(two_hours: Store) -> None:
    """The same hour of the day of two days."""
    append_points(two_hours, [told(0, 100), told(1, 400, basis="direct"), told(-167, 200, basis="lifecycle")])
    found = carbon(two_hours, LIVE, asked(-170 * 60, minutes=172 * 60), NOW)["intensity"]
    day, hour = START.weekday(), START.hour + 1
    assert [(one["basis"], one["g_per_kwh"][day][hour]) for one in found] == [
        ("lifecycle", pytest.approx(200)), ("direct", pytest.approx(400)),
    ]  # fmt: skip


def test_the_same_energy_elsewhere_is_of_the_same_basis(two_hours: Store) -> None:
    rows = {row["zone"]: row for row in carbon(two_hours, CONFIG, asked(minutes=120), NOW)["elsewhere"]}
    assert rows["EU27"]["is_own"]
    assert rows["EU27"]["carbon_g"] == pytest.approx(0.72 * EU27_G_PER_KWH)
    assert {row["basis"] for row in rows.values()} == {"lifecycle"}
    assert "US-CA" not in rows
    values = [row["g_per_kwh"] for row in rows.values()]
    assert values == sorted(values)


def test_a_zone_is_told_by_the_name_of_its_grid_and_one_that_the_tables_lack_by_its_own(two_hours: Store) -> None:
    """A cloud region's points are those of its grid; without a yearly value nothing is compared."""
    append_points(two_hours, [told(0, 100, zone="DE"), told(1, 400, zone="DE")])
    know(two_hours, "zone", "h100", ZoneFact(zone="aws:eu-central-1"))
    found = carbon(two_hours, CONFIG, asked(minutes=120), NOW)
    assert [zone["zone"] for zone in found["intensity"]] == ["DE"]
    assert {row["zone"] for row in found["elsewhere"] if row["is_own"]} == {"DE"}
    know(two_hours, "zone", "h100", ZoneFact(zone="Atlantis"), minute=1)
    found = carbon(two_hours, CONFIG, asked(minutes=120), NOW)
    assert (found["intensity"], found["elsewhere"]) == ([], [])
    [now] = found["grid_now"]
    assert (now["zone"], now["current"]["from"], now["current"]["g_per_kwh"]) == ("Atlantis", "table", None)


def test_the_best_windows_of_what_is_ahead(two_hours: Store) -> None:
    base = NOW.replace(minute=0, second=0, microsecond=0) + HOUR
    points = [
        to_come(base + number * HOUR, 60, g_per_kwh, NOW - HOUR, zone="EU27")
        for number, g_per_kwh in enumerate((300, 100, 120, 400))
    ]
    append_points(two_hours, points)
    [found] = carbon(two_hours, LIVE, asked(minutes=120), NOW)["ahead"]
    assert [value["g_per_kwh"] for value in found["values"]] == [300, 100, 120, 400]
    best = {window["hours"]: window for window in found["windows"]}
    assert set(best) == {1, 2, 4}
    assert (best[2]["start"], best[2]["g_per_kwh"]) == ((base + HOUR).isoformat(), pytest.approx(110))
    assert best[2]["saved_share"] == pytest.approx(1 - 110 / 230)
