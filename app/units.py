"""The one place where units are converted: every function is one factor, from the SI or a definition, or an epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86_400.0
HOURS_PER_YEAR = 8760.0  # 365 days, the accounting year of design section 4
JOULES_PER_KWH = 3.6e6  # 1 kWh = 1000 W x 3600 s
TOKENS_PER_MTOK = 1e6
GRAMS_PER_TONNE = 1e6
MS_PER_S = 1e3
US_PER_S = 1e6
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hours(seconds: float) -> float:
    return seconds / SECONDS_PER_HOUR


def joules(power_w: float, seconds: float) -> float:
    return power_w * seconds


def kwh(energy_j: float) -> float:
    return energy_j / JOULES_PER_KWH


def kw(power_w: float) -> float:
    return power_w / 1e3


def mtok(tokens: float) -> float:
    return tokens / TOKENS_PER_MTOK


def per_hour(per_second: float) -> float:
    return per_second * SECONDS_PER_HOUR


def grams(kilograms: float) -> float:
    return kilograms * 1e3


def kilograms(grams: float) -> float:
    return grams / 1e3


def tonnes(grams: float) -> float:
    return grams / GRAMS_PER_TONNE


def seconds(milliseconds: float) -> float:
    return milliseconds / MS_PER_S


def milliseconds(seconds: float) -> float:
    return seconds * MS_PER_S


def seconds_of_us(microseconds: float) -> float:
    return microseconds / US_PER_S


def us_of_moment(moment: datetime) -> int:
    """Microseconds since 1970, exactly: those of a float are not."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def moment_of_us(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)
