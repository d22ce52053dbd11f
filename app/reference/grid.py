"""Grid carbon intensity from the shipped table: yearly averages, always labelled `default`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache

from app.accounting.carbon import GridFactor
from app.errors import UnknownName
from app.reference.tables import read_table


def grid_factor(zone: str) -> GridFactor:
    """The factor of a zone: its own row, else the default zone of the cloud region of that name.

    Raises UnknownName with the nearest zones. WORLD is a zone like any other: only who asks for it gets it.
    """
    table = _zones()
    region = _cloud_region_zones().get(zone.casefold())
    for name in (zone.casefold(), (region or "").casefold()):
        if name in table:
            return table[name]
    close = difflib.get_close_matches(zone.casefold(), table, n=5, cutoff=0.4)
    nearest = ", ".join(table[name].zone for name in close) or "DE, FR, EU27, US-CA"
    raise UnknownName(f"no grid intensity for zone {zone!r}; near it: {nearest} (all zones: data/grid_intensity.csv)")


def table_factors() -> Sequence[GridFactor]:
    """Of all zones of the table."""
    return tuple(_zones().values())


@cache
def _zones() -> dict[str, GridFactor]:
    return {
        row["zone"].casefold(): GridFactor(
            zone=row["zone"],
            g_per_kwh=float(row["g_per_kwh"]),
            basis=row["basis"],
            year=int(row["year"]) if row["year"] else None,
            method="default",
            source=row["source"],
        )
        for row in read_table("grid_intensity")
    }


@cache
def _cloud_region_zones() -> dict[str, str]:
    """Cloud region, as `provider:region` and as `region` alone -> grid zone."""
    found: dict[str, str] = {}
    for row in read_table("cloud_region_zones"):
        if row["default_zone"]:
            found[f"{row['provider']}:{row['region']}".casefold()] = row["default_zone"]
            found.setdefault(row["region"].casefold(), row["default_zone"])
    return found
