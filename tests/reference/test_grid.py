"""Grid intensity: a zone, else the zone of a cloud region, else a refusal; never a guess, never WORLD unasked."""

from __future__ import annotations

import pytest

from app.errors import UnknownName
from app.reference.grid import grid_factor
from app.reference.tables import read_table


@pytest.mark.parametrize(
    ("zone", "found", "g_per_kwh", "year", "basis"),
    [
        ("EU27", "EU27", 213.02, 2024, "lifecycle"),
        ("EU27-2023", "EU27-2023", 242.0, 2023, "lifecycle"),
        ("eu27", "EU27", 213.02, 2024, "lifecycle"),
        ("FR", "FR", 41.44, 2025, "lifecycle"),
        ("US-CA", "US-CA", 179.1, 2023, "direct"),
        ("WORLD", "WORLD", 458.29, 2025, "lifecycle"),
        ("gcp:europe-west9", "gcp:europe-west9", 16.3, 2024, "direct"),
        ("aws:eu-west-3", "FR", 41.44, 2025, "lifecycle"),
        ("eu-west-3", "FR", 41.44, 2025, "lifecycle"),
        ("AWS:US-EAST-1", "US-VA", 244.8, 2023, "direct"),
        ("azure:westeurope", "NL", 253.56, 2025, "lifecycle"),
        ("gcp:us-east5", "US-OH", 484.6, 2023, "direct"),
    ],
)
def test_a_zone_goes_before_the_zone_of_a_cloud_region(
    zone: str, found: str, g_per_kwh: float, year: int, basis: str
) -> None:
    factor = grid_factor(zone)
    assert (factor.zone, factor.g_per_kwh, factor.year, factor.basis) == (found, g_per_kwh, year, basis)
    assert factor.method == "default"
    assert factor.source


@pytest.mark.parametrize(
    ("zone", "near"),
    [
        ("EU28", "EU27"),
        ("GER", "GR"),
        ("US-XX", "US-"),
        ("gcp:europe-west99", "gcp:europe-west9"),
        ("Atlantis!", "EU27"),
    ],
)
def test_an_unknown_zone_is_refused_with_its_neighbours(zone: str, near: str) -> None:
    with pytest.raises(UnknownName) as refused:
        grid_factor(zone)
    told = str(refused.value)
    assert told.startswith(f"no grid intensity for zone {zone!r}; near it: ")
    assert near in told
    assert "data/grid_intensity.csv" in told


@pytest.mark.parametrize("zone", ["", " ", "-", "XX", "world average", "*"])
def test_no_other_word_means_the_world(zone: str) -> None:
    with pytest.raises(UnknownName):
        grid_factor(zone)


def test_a_label_carries_year_and_basis() -> None:
    assert grid_factor("EU27").label == "EU27 2024 average, 213.02 g/kWh lifecycle (default)"


def test_every_row_is_found_under_its_own_name() -> None:
    for row in read_table("grid_intensity"):
        assert grid_factor(row["zone"]).zone == row["zone"]


def test_every_cloud_region_has_a_zone_that_is_known() -> None:
    for row in read_table("cloud_region_zones"):
        assert grid_factor(row["default_zone"]).zone == row["default_zone"], row["region"]
