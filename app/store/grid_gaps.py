"""Hours of which a provider has told nothing, between values that it has told: what an outage left out."""

from __future__ import annotations

from datetime import datetime

from app import units
from app.store.gpu_rollup import HOUR_US
from app.store.reader import Reader

# one row: the hours of [$since_us, newest value) from the first to the last of which no value is known, NULL for none.
# A provider that ever told what was measured owes that; one that only forecasts, its forecasts. A gap that it told is
# known to be one. A CSV file's points name their source behind the provider.
_MISSED = f"""
    WITH told AS (
        SELECT start_us, end_us
        FROM grid_point
        WHERE zone = $zone AND split_part(provider, ': ', 1) = $provider AND start_us < $now_us
        QUALIFY NOT is_forecast OR bool_and(is_forecast) OVER ()
    ),
    hours AS (
        SELECT unnest(range(
            greatest($since_us, min(start_us)) // {HOUR_US} * {HOUR_US}, max(start_us), {HOUR_US})) AS hour_us
        FROM told
    ),
    known AS (
        SELECT DISTINCT unnest(range(
            greatest(start_us, $since_us) // {HOUR_US} * {HOUR_US}, end_us, {HOUR_US})) AS hour_us
        FROM told WHERE end_us > $since_us
    )
    SELECT min(hour_us) AS first_us, max(hour_us) + {HOUR_US} AS after_us FROM hours ANTI JOIN known USING (hour_us)
"""


def missed_hours(
    reader: Reader, provider: str, zone: str, since: datetime, now: datetime
) -> tuple[datetime, datetime] | None:
    """From where to where hours lack between the values of a provider, back to `since`; None where none does."""
    asked = {
        "provider": provider, "zone": zone, "since_us": units.us_of_moment(since), "now_us": units.us_of_moment(now),
    }  # fmt: skip
    first_us, after_us = reader.query(_MISSED, asked).row(0)
    return None if first_us is None else (units.moment_of_us(first_us), units.moment_of_us(after_us))
