from __future__ import annotations

import pytest

from app.accounting.carbon import GridFactor, operational_g
from app.accounting.figure import Figure, missing

EU27 = GridFactor("EU27-2023", 242.0, "lifecycle", 2023, "default", "a table")
UNKNOWN = GridFactor("nowhere", None, "lifecycle", None, "default", "a table", reason="no factor for nowhere")


def test_operational_carbon_is_site_energy_times_intensity() -> None:
    # 1.8 MJ = 0.5 kWh; 0.5 * 242 = 121 g
    assert operational_g(Figure(1.8e6, "J", "tdp_estimate"), EU27) == Figure(121.0, "g", "tdp_estimate")


def test_a_carbon_free_grid_emits_zero_not_nothing() -> None:
    hydro = GridFactor("hydro", 0.0, "direct", 2024, "user", "contract")
    assert operational_g(Figure(1.8e6, "J", "measured"), hydro).value == 0.0


def test_missing_energy_has_no_grams_and_says_why() -> None:
    energy = missing("J", "tdp_estimate", "no TDP for X")
    assert operational_g(energy, EU27) == missing("g", "tdp_estimate", "no TDP for X")


def test_an_unknown_factor_has_no_grams_and_says_why() -> None:
    found = operational_g(Figure(1.8e6, "J", "tdp_estimate"), UNKNOWN)
    assert found == missing("g", "default", "no factor for nowhere")


def test_an_unknown_factor_without_reason_names_its_zone() -> None:
    found = operational_g(Figure(1.8e6, "J", "measured"), GridFactor("XX", None, "direct", None, "default", "t"))
    assert found.reason == "no grid factor for XX"


def test_coverage_travels_from_energy_to_grams() -> None:
    # design law 4: every number carries its coverage
    assert operational_g(Figure(1.8e6, "J", "measured", coverage=0.7), EU27).coverage == 0.7


def test_grams_from_a_default_factor_are_not_labelled_measured() -> None:
    # design law 10: default data can never be mistaken for measured data
    assert operational_g(Figure(1.8e6, "J", "measured"), EU27).method != "measured"


@pytest.mark.parametrize(
    ("factor", "label"),
    [
        (EU27, "EU27-2023 2023 average, 242 g/kWh lifecycle (default)"),
        (GridFactor("own", 12.5, "direct", None, "user", "contract"), "own, 12.5 g/kWh direct (user)"),
        (UNKNOWN, "nowhere: no factor for nowhere"),
    ],
)
def test_a_factor_shows_zone_year_value_basis_and_method(factor: GridFactor, label: str) -> None:
    assert factor.label == label
