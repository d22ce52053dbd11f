"""Grid intensity in the store: points are added when they say otherwise than before, and never changed.

So any earlier moment's knowledge can be asked for, and a forecast stands beside the actual value, not in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import polars as pl

from app import units
from app.store.database import Store
from app.store.gpu_rollup import HOUR_US
from app.store.reader import Reader
from collectors.grid.point import IntensityPoint, Kind

# Zone -> its providers, the one that counts first first; others come after them by name.
Providers = Mapping[str, Sequence[str]]
_NO_ORDER: Providers = MappingProxyType({})
_MOMENT = pl.Datetime("us", "UTC")
_SCHEMA: dict[str, Any] = {
    "zone": pl.String, "provider": pl.String, "kind": pl.String, "basis": pl.String, "start_us": pl.Int64,
    "end_us": pl.Int64, "g_per_kwh": pl.Float64, "reason": pl.String, "estimated": pl.Boolean,
    "estimation_method": pl.String, "is_forecast": pl.Boolean, "issued_at": _MOMENT, "known_at": _MOMENT,
    "revised_at": _MOMENT,
}  # fmt: skip

# The order in which words on the same stretch of time count: of forecasts the one issued last, then the one known last.
ORDER = "(coalesce(issued_at, known_at), known_at)"
IDENTITY = "zone, provider, kind, basis, start_us, end_us, is_forecast"

# one row per incoming point that says otherwise than what counts of the same stretch so far; time only goes on, so that
# a clock that was set back hides nothing
_APPEND = f"""
    INSERT INTO grid_point BY NAME
    WITH said AS (
        SELECT {IDENTITY}, max(known_at) AS said_at, arg_max(
            {{'g_per_kwh': g_per_kwh, 'reason': reason, 'estimated': estimated, 'method': estimation_method,
              'issued_at': issued_at}}, {ORDER}) AS last
        FROM grid_point JOIN (SELECT DISTINCT zone, provider FROM incoming_points) USING (zone, provider)
        WHERE end_us > (SELECT min(start_us) FROM incoming_points)
          AND start_us < (SELECT max(end_us) FROM incoming_points)
        GROUP BY ALL
    )
    SELECT incoming.* REPLACE (greatest(incoming.known_at, said_at + INTERVAL 1 MICROSECOND) AS known_at)
    FROM incoming_points AS incoming LEFT JOIN said USING ({IDENTITY})
    WHERE last IS NULL
       OR last.g_per_kwh IS DISTINCT FROM incoming.g_per_kwh
       OR last.reason IS DISTINCT FROM incoming.reason
       OR last.estimated IS DISTINCT FROM incoming.estimated
       OR last.method IS DISTINCT FROM incoming.estimation_method
       OR last.issued_at IS DISTINCT FROM incoming.issued_at
"""

# one row per stretch of time that a provider has a word on by the knowledge of $known_at (NULL: all there is), with the
# word that counts
_KNOWN = f"""
    SELECT
        {IDENTITY},
        arg_max(
            {{'g_per_kwh': g_per_kwh, 'reason': reason, 'estimated': estimated, 'method': estimation_method,
              'issued_at': issued_at, 'known_at': known_at, 'revised_at': revised_at}}, {ORDER}) AS last
    FROM grid_point
    WHERE list_contains($zones, zone) AND end_us > $start_us AND start_us < $end_us
      AND ($known_at::TIMESTAMPTZ IS NULL OR known_at <= $known_at)
    GROUP BY ALL
"""

# A provider's place in its zone's order of preference; a CSV file's points name their source behind the provider.
_PREFERENCE = "coalesce(list_position($providers, zone || chr(10) || split_part(provider, ': ', 1)), 1000000)"

# one row per zone and hour of which at least half is known: the provider that comes first among those that know it
_HOURLY = f"""
    WITH known AS ({_KNOWN}),
    -- one row per value and hour that it lies in
    in_hour AS (
        SELECT
            zone, provider, basis, is_forecast, last, end_us - start_us AS length_us, hour_us,
            greatest(start_us, hour_us) AS from_us, least(end_us, hour_us + {HOUR_US}) AS until_us
        FROM (
            SELECT *, unnest(range(
                greatest(start_us, $start_us) // {HOUR_US} * {HOUR_US}, least(end_us, $end_us), {HOUR_US})) AS hour_us
            FROM known WHERE kind = $kind AND last.g_per_kwh IS NOT NULL
        )
    ),
    -- one row per piece of an hour in which no value begins or ends
    cut AS (
        SELECT *, lead(us) OVER (PARTITION BY zone, provider, basis, hour_us ORDER BY us) AS next_us
        FROM (
            SELECT zone, provider, basis, hour_us, from_us AS us FROM in_hour
            UNION SELECT zone, provider, basis, hour_us, until_us FROM in_hour
        )
    ),
    -- one row per piece that a value covers: an actual before forecasts, then the finest, then the one known last
    piece AS (
        SELECT
            zone, provider, basis, hour_us, next_us - us AS length_us,
            arg_min(
                {{'g_per_kwh': last.g_per_kwh, 'known_at': last.known_at,
                  'doubt': CASE WHEN is_forecast THEN 2 WHEN last.estimated THEN 1 ELSE 0 END}},
                (is_forecast, in_hour.length_us, -epoch_us(last.known_at))) AS best
        FROM cut JOIN in_hour USING (zone, provider, basis, hour_us)
        WHERE next_us IS NOT NULL AND from_us <= us AND until_us >= next_us
        GROUP BY zone, provider, basis, hour_us, us, next_us
    )
    SELECT
        zone, hour_us,
        sum(best.g_per_kwh * length_us) / sum(length_us) AS g_per_kwh,
        ['measured', 'estimated', 'forecast'][max(best.doubt) + 1] AS method,
        provider, basis, max(best.known_at) AS known_at, sum(length_us) / {HOUR_US} AS covered
    FROM piece
    GROUP BY zone, provider, basis, hour_us
    HAVING sum(length_us) >= {HOUR_US // 2}
    QUALIFY row_number() OVER (
        PARTITION BY zone, hour_us ORDER BY {_PREFERENCE}, provider, max(best.known_at) DESC, basis) = 1
    ORDER BY zone, hour_us
"""

_COLUMNS = """
    zone, provider, kind, basis, start_us, end_us, last.g_per_kwh AS g_per_kwh, is_forecast,
    last.estimated AS estimated, last.method AS estimation_method, last.issued_at AS issued_at,
    last.known_at AS known_at, last.revised_at AS revised_at
"""

# one row per forecast value that is not over
_FORECAST = f"""
    SELECT {_COLUMNS} FROM ({_KNOWN})
    WHERE is_forecast AND last.g_per_kwh IS NOT NULL
    ORDER BY zone, {_PREFERENCE}, provider, kind, basis, start_us, end_us
"""

# one row per zone, provider, kind and basis: the value that begins last up to a moment, an actual before a forecast
_LATEST = f"""
    SELECT {_COLUMNS} FROM ({_KNOWN})
    WHERE last.g_per_kwh IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY zone, provider, kind, basis ORDER BY start_us DESC, is_forecast, end_us) = 1
    ORDER BY zone, {_PREFERENCE}, provider, kind, basis
"""


def append_points(store: Store, points: Iterable[IntensityPoint]) -> int:
    """Add what says otherwise than is known, all or none; how many points were added. Ingest goes on meanwhile."""
    frame = pl.DataFrame([_row(point) for point in points], schema=_SCHEMA, orient="row")
    frame = frame.unique(IDENTITY.split(", "), keep="last")
    if frame.is_empty():
        return 0
    with store.transaction(beside_ingest=True) as connection:
        connection.register("incoming_points", frame)
        connection.execute(_APPEND)
        added = connection.fetchone()
        connection.unregister("incoming_points")
    return int(added[0]) if added else 0


def grid_stamp(reader: Reader) -> tuple[int, datetime | None]:
    """How many points there are and when the last one was known: it changes with any point."""
    # one row
    row: tuple[int, datetime | None] = reader.query("SELECT count(*), max(known_at) FROM grid_point").row(0)
    return row


def whole_hours(start_us: int, end_us: int) -> tuple[int, int]:
    """From where the first hour begins that [start, end) touches to where the last one ends."""
    return start_us // HOUR_US * HOUR_US, -(-end_us // HOUR_US) * HOUR_US


def hourly_factors(
    reader: Reader,
    zones: Sequence[str],
    start_us: int,
    end_us: int,
    known_at: datetime | None,
    *,
    kind: Kind = "average",
    providers: Providers = _NO_ORDER,
) -> pl.DataFrame:
    """Means over the UTC hours that touch [start, end), one row per zone and hour that is known.

    Columns: `zone`, `hour_us`, `g_per_kwh`, `method` (measured, estimated or forecast: the weakest in it), `provider`,
    `basis`, `known_at` (the last of its values), `covered` (how much of the hour is known, 0.5 to 1).

    An hour is the mean over all of its time of one provider's values of one basis, actual ones first, forecasts where
    there is no actual. Of an hour less than half known there is no row. providers: of each zone, which comes first
    where several know an hour. known_at: by the knowledge of that moment; None: all there is.
    """
    asked = _asked(zones, *whole_hours(start_us, end_us), known_at, providers) | {"kind": kind}
    return reader.query(_HOURLY, asked)


def forecast(
    reader: Reader,
    zones: Sequence[str],
    start_us: int,
    end_us: int,
    known_at: datetime | None = None,
    *,
    providers: Providers = _NO_ORDER,
) -> pl.DataFrame:
    """The forecast values that touch [start, end), of each stretch the one that was issued last."""
    return reader.query(_FORECAST, _asked(zones, start_us, end_us, known_at, providers))


def latest(
    reader: Reader,
    zones: Sequence[str],
    since_us: int,
    now_us: int,
    known_at: datetime | None = None,
    *,
    providers: Providers = _NO_ORDER,
) -> pl.DataFrame:
    """What each provider says of now, or else of the last time before that, back to `since_us`."""
    return reader.query(_LATEST, _asked(zones, since_us, now_us + 1, known_at, providers))


def _asked(
    zones: Sequence[str], start_us: int, end_us: int, known_at: datetime | None, providers: Providers
) -> dict[str, Any]:
    order = [f"{zone}\n{provider}" for zone, names in providers.items() for provider in names]
    return {
        "zones": list(zones), "start_us": start_us, "end_us": end_us, "known_at": known_at, "providers": order or [""],
    }  # fmt: skip


def _row(point: IntensityPoint) -> tuple[Any, ...]:
    return (
        point.zone, point.provider, point.kind, point.basis, units.us_of_moment(point.start),
        units.us_of_moment(point.end), point.g_per_kwh, point.reason, point.estimated, point.estimation_method,
        point.is_forecast, point.issued_at, point.fetched_at, point.revised_at,
    )  # fmt: skip
