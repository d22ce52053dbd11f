"""Grid intensity in the store: hours worked by hand, revisions as new knowledge, forecasts that overwrite nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.store.database import Store
from app.store.grid import append_points, forecast, hourly_factors, latest
from collectors.grid.point import IntensityPoint

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
KNOWN = NOON + timedelta(days=1)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def us(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)


def point(at_min: float, long_min: float, g_per_kwh: float | None, **more: Any) -> IntensityPoint:
    """A value of DE that begins so many minutes after noon, measured unless said otherwise."""
    said: dict[str, Any] = {
        "zone": "DE", "start": NOON + minutes(at_min), "end": NOON + minutes(at_min + long_min),
        "g_per_kwh": g_per_kwh, "basis": "lifecycle", "kind": "average", "estimated": False,
        "estimation_method": None, "is_forecast": False, "provider": "a", "fetched_at": KNOWN,
        "reason": None if g_per_kwh is not None else "the provider has no value for this time",
    }  # fmt: skip
    return IntensityPoint(**said | more)


def ahead(at_min: float, long_min: float, g_per_kwh: float, issued_min: float | None = None, **more: Any) -> Any:
    """The same as a forecast, issued so many minutes after noon."""
    issued_at = None if issued_min is None else NOON + minutes(issued_min)
    said = {"is_forecast": True, "estimated": True, "estimation_method": "forecast", "issued_at": issued_at}
    return point(at_min, long_min, g_per_kwh, **said | more)


def hours(store: Store, *, known_at: datetime | None = None, count: int = 3, **more: Any) -> list[dict[str, Any]]:
    end = us(NOON + timedelta(hours=count))
    zones = more.pop("zones", ["DE"])
    return hourly_factors(store, zones, us(NOON), end, known_at, **more).to_dicts()


def figures(store: Store, **more: Any) -> dict[int, tuple[float, str]]:
    """Hours after noon -> g/kWh and method."""
    return {
        (row["hour_us"] - us(NOON)) // 3_600_000_000: (row["g_per_kwh"], row["method"]) for row in hours(store, **more)
    }


# Hours by hand


def test_an_hour_is_the_mean_of_its_parts(store: Store) -> None:
    # 12:00 four quarters: (100 + 200 + 300 + 400) / 4 = 250
    # 13:00 two halves: (80 + 120) / 2 = 100
    # 14:00 one hour: 77
    quarters = [point(15 * number, 15, 100 * (number + 1)) for number in range(4)]
    append_points(store, [*quarters, point(60, 30, 80), point(90, 30, 120), point(120, 60, 77)])
    assert figures(store) == {0: (250, "measured"), 1: (100, "measured"), 2: (77, "measured")}
    assert [row["covered"] for row in hours(store)] == [1, 1, 1]
    assert {(row["zone"], row["provider"], row["basis"]) for row in hours(store)} == {("DE", "a", "lifecycle")}


def test_the_finer_value_counts_where_it_is_and_the_coarser_fills_the_rest(store: Store) -> None:
    # an hour of 100, in it 5 minutes of 340 and 15 minutes of 20: (5 x 340 + 15 x 20 + 40 x 100) / 60 = 100
    append_points(store, [point(0, 60, 100), point(10, 5, 340), point(30, 15, 20)])
    assert figures(store) == {0: (pytest.approx(100), "measured")}
    # 5 minutes inside the quarter win over it: (5 x 340 + 5 x 320 + 10 x 20 + 40 x 100) / 60 = 125
    append_points(store, [point(35, 5, 320)])
    assert figures(store) == {0: (pytest.approx(125), "measured")}


def test_a_value_that_crosses_hours_counts_in_each(store: Store) -> None:
    # 12:30 to 14:30: half of 12:00 and of 14:00, all of 13:00
    append_points(store, [point(30, 120, 60)])
    assert [(row["g_per_kwh"], row["covered"]) for row in hours(store)] == [(60, 0.5), (60, 1), (60, 0.5)]


def test_of_an_hour_less_than_half_known_nothing_is_said(store: Store) -> None:
    append_points(store, [point(0, 15, 100), point(20, 14, 100), point(60, 30, 100)])
    assert figures(store) == {1: (100, "measured")}
    # 15 + 14 + 1 minutes are half of the hour
    append_points(store, [point(40, 1, 130)])
    assert figures(store)[0] == (pytest.approx((29 * 100 + 130) / 30), "measured")


def test_the_mean_of_an_hour_does_not_hang_on_what_part_of_it_is_asked_for(store: Store) -> None:
    append_points(store, [point(15 * number, 15, 100 * (number + 1)) for number in range(4)])
    for first, last in ((0, 60), (20, 25), (50, 60), (59, 61)):
        [row] = hourly_factors(store, ["DE"], us(NOON + minutes(first)), us(NOON + minutes(last)), None).to_dicts()
        assert (row["hour_us"], row["g_per_kwh"], row["covered"]) == (us(NOON), 250, 1)


def test_a_gap_is_not_a_value(store: Store) -> None:
    append_points(store, [point(0, 30, 100), point(30, 30, None)])
    (row,) = hours(store)
    assert (row["g_per_kwh"], row["covered"]) == (100, 0.5)
    append_points(store, [point(60, 60, None)])
    assert len(hours(store)) == 1


def test_zero_is_a_value(store: Store) -> None:
    append_points(store, [point(0, 30, 0), point(30, 30, 100)])
    assert figures(store) == {0: (50, "measured")}


def test_one_estimated_part_makes_the_hour_estimated(store: Store) -> None:
    append_points(store, [point(0, 45, 100), point(45, 15, 200, estimated=True, estimation_method="TIME_SLICER")])
    assert figures(store) == {0: (125, "estimated")}


def test_forecasts_fill_only_what_has_no_actual_value(store: Store) -> None:
    # 12:00 to 12:30 is measured; the forecast of 900 counts for the other half: (100 + 900) / 2 = 500
    append_points(store, [point(0, 30, 100), *(ahead(15 * number, 15, 900, -60) for number in range(8))])
    assert figures(store) == {0: (500, "forecast"), 1: (900, "forecast")}
    # a gap among the actual values is filled, too
    append_points(store, [point(30, 30, None)])
    assert figures(store)[0] == (500, "forecast")
    append_points(store, [point(30, 30, 300)])
    assert figures(store)[0] == (200, "measured")


# Knowledge


def test_a_late_forecast_overwrites_no_actual(store: Store) -> None:
    append_points(store, [point(0, 60, 100)])
    append_points(store, [ahead(0, 60, 555, 600, fetched_at=KNOWN + timedelta(days=1))])
    # not even a finer one
    append_points(store, [ahead(0, 5, 999, 660, fetched_at=KNOWN + timedelta(days=2))])
    assert figures(store) == {0: (100, "measured")}
    assert len(store.query("SELECT * FROM grid_point")) == 3


def test_a_revision_changes_only_what_is_known_later(store: Store) -> None:
    revised = KNOWN + timedelta(hours=5)
    append_points(store, [point(0, 60, 100, estimated=True, estimation_method="x"), point(60, 60, 50)])
    append_points(store, [point(0, 60, 130, fetched_at=revised, revised_at=revised), point(60, 60, 50)])
    assert figures(store) == {0: (130, "measured"), 1: (50, "measured")}
    assert figures(store, known_at=revised) == {0: (130, "measured"), 1: (50, "measured")}
    before = {0: (100, "estimated"), 1: (50, "measured")}
    assert figures(store, known_at=revised - timedelta(microseconds=1)) == before
    assert figures(store, known_at=KNOWN) == before
    assert figures(store, known_at=KNOWN - timedelta(microseconds=1)) == {}
    assert [row["known_at"].astimezone(UTC) for row in hours(store)] == [revised, KNOWN]


def test_a_value_that_is_taken_back_is_not_known_any_more(store: Store) -> None:
    append_points(store, [point(0, 60, 100)])
    append_points(store, [point(0, 60, None, fetched_at=KNOWN + timedelta(hours=1))])
    assert figures(store) == {}
    assert figures(store, known_at=KNOWN) == {0: (100, "measured")}


def test_what_is_known_already_is_not_added(store: Store) -> None:
    said = [point(0, 60, 100), point(60, 60, None), ahead(60, 60, 90, 0)]
    assert append_points(store, said) == 3
    again = [replace(one, fetched_at=KNOWN + timedelta(hours=1)) for one in said]
    assert append_points(store, again) == 0
    assert append_points(store, []) == 0
    assert len(store.query("FROM grid_point")) == 3
    # a value that comes back after another is news
    assert append_points(store, [replace(point(0, 60, 110), fetched_at=KNOWN + timedelta(hours=2))]) == 1
    assert append_points(store, [replace(point(0, 60, 100), fetched_at=KNOWN + timedelta(hours=3))]) == 1
    assert figures(store) == {0: (100, "measured"), 1: (90, "forecast")}
    assert len(store.query("FROM grid_point")) == 5


def test_of_the_same_stretch_twice_in_an_answer_the_last_counts(store: Store) -> None:
    assert append_points(store, [point(0, 60, 100), point(0, 60, 110)]) == 1
    assert figures(store) == {0: (110, "measured")}


def test_a_clock_that_was_set_back_hides_no_revision(store: Store) -> None:
    append_points(store, [point(0, 60, 100)])
    append_points(store, [point(0, 60, 130, fetched_at=KNOWN - timedelta(days=300))])
    assert figures(store) == {0: (130, "measured")}
    assert figures(store, known_at=KNOWN) == {0: (100, "measured")}


def test_of_forecasts_the_one_issued_last_counts_whenever_it_comes(store: Store) -> None:
    append_points(store, [ahead(60, 60, 100, 30, fetched_at=KNOWN)])
    append_points(store, [ahead(60, 60, 70, 0, fetched_at=KNOWN + timedelta(hours=1))])
    assert figures(store) == {1: (100, "forecast")}
    # the same value, issued anew, is kept with its own issue time
    assert append_points(store, [ahead(60, 60, 100, 45, fetched_at=KNOWN + timedelta(hours=2))]) == 1
    (row,) = forecast(store, ["DE"], us(NOON), us(NOON + timedelta(hours=3))).to_dicts()
    assert (row["g_per_kwh"], row["issued_at"].astimezone(UTC)) == (100, NOON + minutes(45))
    (row,) = forecast(store, ["DE"], us(NOON), us(NOON + timedelta(hours=3)), KNOWN).to_dicts()
    assert row["issued_at"].astimezone(UTC) == NOON + minutes(30)


def test_without_an_issue_time_the_forecast_known_last_counts(store: Store) -> None:
    append_points(store, [ahead(60, 60, 100)])
    append_points(store, [ahead(60, 60, 70, fetched_at=KNOWN + timedelta(hours=1))])
    assert append_points(store, [ahead(60, 60, 70, fetched_at=KNOWN + timedelta(hours=2))]) == 0
    assert figures(store) == {1: (70, "forecast")}


# Several zones, providers, bases and kinds


def test_zones_are_apart(store: Store) -> None:
    append_points(store, [point(0, 60, 100), point(0, 60, 20, zone="FR"), point(0, 60, 700, zone="PL")])
    found = [(row["zone"], row["g_per_kwh"]) for row in hours(store, zones=["FR", "DE"])]
    assert found == [("DE", 100), ("FR", 20)]
    assert hours(store, zones=[]) == []


def test_marginal_is_apart(store: Store) -> None:
    append_points(store, [point(0, 60, 100), point(0, 60, 800, kind="marginal", basis="provider")])
    assert figures(store) == {0: (100, "measured")}
    assert figures(store, kind="marginal") == {0: (800, "measured")}


def test_an_hour_is_of_one_provider_and_one_basis(store: Store) -> None:
    """Half an hour of each is not an hour of both: bases are never mixed."""
    append_points(store, [point(0, 30, 100), point(30, 30, 50, provider="b", basis="direct")])
    (row,) = hours(store)
    assert (row["provider"], row["basis"], row["g_per_kwh"], row["covered"]) == ("a", "lifecycle", 100, 0.5)
    (row,) = hours(store, providers={"DE": ["b", "a"], "FR": ["a", "b"]})
    assert (row["provider"], row["basis"], row["g_per_kwh"]) == ("b", "direct", 50)


def test_the_provider_that_is_preferred_counts_in_every_hour_that_it_knows(store: Store) -> None:
    append_points(store, [point(0, 60, 100), point(60, 60, 100), point(120, 60, 100)])
    append_points(store, [point(0, 60, 60, provider="b"), ahead(60, 60, 70, 0, provider="b")])
    found = [(row["provider"], row["method"]) for row in hours(store, providers={"DE": ["b", "a"], "FR": ["a", "b"]})]
    assert found == [("b", "measured"), ("b", "forecast"), ("a", "measured")]
    assert {row["provider"] for row in hours(store)} == {"a"}


def test_a_file_is_preferred_by_its_kind_whatever_source_it_names(store: Store) -> None:
    append_points(store, [point(0, 60, 100), point(0, 60, 45, provider="csv_file: our meter")])
    (row,) = hours(store, providers={"DE": ["csv_file", "a"]})
    assert (row["provider"], row["g_per_kwh"]) == ("csv_file: our meter", 45)


# What holds now


def test_the_latest_is_what_covers_now_else_what_was_last(store: Store) -> None:
    append_points(store, [point(0, 30, 100), ahead(30, 30, 300, 0), ahead(60, 30, 400, 0)])

    def now(at_min: float) -> list[tuple[float, bool]]:
        found = latest(store, ["DE"], us(NOON - timedelta(days=1)), us(NOON + minutes(at_min)))
        return [(row["g_per_kwh"], row["is_forecast"]) for row in found.to_dicts()]

    assert now(-1) == []
    assert now(0) == now(29) == [(100, False)]
    assert now(31) == [(300, True)]
    append_points(store, [point(30, 30, 120)])
    assert now(31) == [(120, False)]
    assert now(600) == [(400, True)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 35), st.sampled_from([1, 3, 6, 12, 18]), st.integers(0, 500), st.booleans(), st.booleans()
        ),
        min_size=1, max_size=12,
    )
)  # fmt: skip
def test_hours_are_what_a_clock_of_five_minutes_counts(
    store: Store, given: list[tuple[int, int, int, bool, bool]]
) -> None:
    """Against the plain reading of the rule, slot by slot of five minutes."""
    with store.transaction() as connection:
        connection.execute("DELETE FROM grid_point")
    known: dict[tuple[int, int, bool], tuple[int, int, bool]] = {}
    for number, (start, length, grams, is_forecast, estimated) in enumerate(given):
        made = ahead if is_forecast else point
        more = {} if is_forecast else {"estimated": estimated}
        append_points(store, [made(5 * start, 5 * length, grams, fetched_at=KNOWN + minutes(number), **more)])
        said = known.get((start, length, is_forecast))
        if said is None or said[1:] != (grams, estimated or is_forecast):
            known[start, length, is_forecast] = (number, grams, estimated or is_forecast)
    expected = {}
    for hour in range(3):
        parts = []
        for slot in range(12 * hour, 12 * hour + 12):
            over = [
                (is_forecast, length, -number, grams, estimated)
                for (start, length, is_forecast), (number, grams, estimated) in known.items()
                if start <= slot < start + length
            ]
            if over:
                parts.append(min(over))
        if len(parts) >= 6:
            doubt = max(2 if part[0] else 1 if part[4] else 0 for part in parts)
            mean = sum(part[3] for part in parts) / len(parts)
            expected[hour] = (pytest.approx(mean), ["measured", "estimated", "forecast"][doubt])
    assert figures(store) == expected
