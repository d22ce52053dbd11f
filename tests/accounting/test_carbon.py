from __future__ import annotations

import pytest

from app.accounting.carbon import EmbodiedCarbon, GridFactor, MarketFactor, Spread, operational_g
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


@pytest.mark.parametrize(
    ("years", "grams"),
    [
        # 350.4 kg x 1000 / (4 x 8760 h) = 10 g an hour; least 175.2 kg: 5 g, most 700.8 kg: 20 g
        (4.0, Spread(5.0, 10.0, 20.0)),
        # over 8 years half of each
        (8.0, Spread(2.5, 5.0, 10.0)),
    ],
)
def test_embodied_carbon_is_spread_over_the_years_of_use(years: float, grams: Spread) -> None:
    found = EmbodiedCarbon(Spread(175.2, 350.4, 700.8), "user", "user", years).g_per_gpu_hour
    assert found is not None
    assert (found.low, found.central, found.high) == pytest.approx((grams.low, grams.central, grams.high))


def test_the_h100_of_the_study_embodies_16_g_an_hour() -> None:
    # 566.7 kg x 1000 / (4 x 8760) = 16.173 g
    found = EmbodiedCarbon(Spread(566.7, 566.7, 566.7), "boavizta", "default").g_per_gpu_hour
    assert found is not None
    assert found.central == pytest.approx(16.173, abs=5e-4)


def test_sunk_cards_count_nothing_whether_their_kilograms_are_known_or_not() -> None:
    for kg in (None, Spread(1.0, 2.0, 3.0)):
        sunk = EmbodiedCarbon(kg, "user", "user", policy="sunk")
        assert (sunk.g_per_gpu_hour, sunk.label) == (Spread(0.0, 0.0, 0.0), "sunk: made anyway, counts 0")


@pytest.mark.parametrize(
    ("embodied", "label"),
    [
        (
            EmbodiedCarbon(Spread(164.0, 575.1, 575.1), "boavizta", "default"),
            "boavizta 575.1 kg a GPU (164 to 575.1) over 4 years (default)",
        ),
        (EmbodiedCarbon(Spread(185.0, 185.0, 185.0), "user", "user", 5.0), "user 185 kg a GPU over 5 years (user)"),
        (EmbodiedCarbon(None, "pcf", "default", reason="no pcf figure of making X"), "no pcf figure of making X"),
    ],
)
def test_an_embodied_figure_shows_method_range_and_life(embodied: EmbodiedCarbon, label: str) -> None:
    assert embodied.label == label


def test_unknown_kilograms_are_no_grams() -> None:
    assert EmbodiedCarbon(None, "pcf", "default", reason="no pcf figure of making X").g_per_gpu_hour is None


def test_a_supplier_factor_shows_its_source() -> None:
    assert MarketFactor(45.0, "disclosure 2025").label == "45 g/kWh (disclosure 2025)"
