from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import units


@pytest.mark.parametrize(
    ("convert", "given", "expected"),
    [
        (units.hours, 5400.0, 1.5),
        (units.kwh, 7.2e6, 2.0),  # 1 kWh = 1000 W x 3600 s = 3.6 MJ
        (units.kw, 350.0, 0.35),
        (units.mtok, 83_123.0, 0.083123),
        (units.per_hour, 3011.13, 10_840_068.0),
        (units.tonnes, 2_500_000.0, 2.5),  # 1 t = 1,000,000 g, a metric tonne
        (units.grams, 0.1641, 164.1),  # 1 kg = 1,000 g
        (units.kilograms, 1_790_008.0, 1790.008),
        (units.seconds, 54.41, 0.05441),
        (units.milliseconds, 0.05441, 54.41),
        (units.seconds_of_us, 2_500_000.0, 2.5),  # micro: one in a million
    ],
)
def test_each_conversion_is_its_one_factor(convert: Callable[[float], float], given: float, expected: float) -> None:
    assert convert(given) == pytest.approx(expected, rel=1e-12)


def test_a_watt_for_a_second_is_a_joule() -> None:
    assert units.joules(350.0, 60.0) == 21_000.0


def test_a_kilowatt_for_an_hour_is_a_kilowatt_hour() -> None:
    assert units.kwh(units.joules(1000.0, 3600.0)) == 1.0


def test_an_accounting_year_has_365_days() -> None:
    assert units.HOURS_PER_YEAR == 365 * 24


def test_a_moment_is_its_microseconds_since_1970() -> None:
    a_day_later = datetime(1970, 1, 2, 0, 0, 0, 7, UTC)
    assert units.us_of_moment(a_day_later) == 86_400_000_007
    assert units.moment_of_us(86_400_000_007) == a_day_later
    assert units.us_of_moment(a_day_later - timedelta(days=2)) == -86_399_999_993


@given(st.integers(0, 4 * 10**15))
def test_no_microsecond_is_lost(microseconds: int) -> None:
    assert units.us_of_moment(units.moment_of_us(microseconds)) == microseconds
