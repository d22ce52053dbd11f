from __future__ import annotations

import pytest

from app.accounting.energy import (
    joules_per_token,
    site_energy_j,
    tdp_energy_j,
    tokens_per_joule,
    tokens_per_kwh,
)
from app.accounting.figure import Figure, missing

TOKENS = Figure(1500, "tokens", "measured")
NO_TOKENS = Figure(0, "tokens", "measured")
NO_TDP = missing("J", "tdp_estimate", "no TDP for X")


def test_tdp_energy_is_every_card_at_its_limit_for_the_whole_window() -> None:
    # 2 x 450 W x 10 s = 9,000 J
    assert tdp_energy_j(450.0, 2, 10.0, "X") == Figure(9000.0, "J", "tdp_estimate")


def test_an_unknown_card_has_no_energy_and_says_which_card() -> None:
    assert tdp_energy_j(None, 2, 10.0, "X") == NO_TDP


def test_site_energy_is_it_energy_times_pue_with_its_method_and_coverage() -> None:
    assert site_energy_j(Figure(9000.0, "J", "measured", coverage=0.7), 1.25) == Figure(
        11_250.0, "J", "measured", coverage=0.7
    )


def test_missing_it_energy_leaves_site_energy_missing_for_the_same_reason() -> None:
    assert site_energy_j(NO_TDP, 1.25) == NO_TDP


def test_joules_per_token_divides_by_the_tokens() -> None:
    assert joules_per_token(Figure(9000.0, "J", "tdp_estimate"), TOKENS) == Figure(6.0, "J/token", "tdp_estimate")


def test_tokens_per_kwh_of_the_study_h100() -> None:
    # 3,011.13 tokens/s at 700 W: 3011.13 * 3600 / 0.7 = 15,485,811 tokens/kWh
    found = tokens_per_kwh(Figure(700.0, "J", "tdp_estimate"), Figure(3011.13, "tokens", "measured"))
    assert found.value == pytest.approx(15_485_811, abs=1)
    assert (found.unit, found.method) == ("tokens/kWh", "tdp_estimate")


def test_tokens_per_kwh_and_joules_per_token_are_one_number() -> None:
    energy = Figure(9000.0, "J", "tdp_estimate")
    per_kwh, per_token = tokens_per_kwh(energy, TOKENS).value, joules_per_token(energy, TOKENS).value
    assert per_kwh is not None and per_token is not None
    assert per_kwh * per_token == pytest.approx(3.6e6, rel=1e-12)


@pytest.mark.parametrize(
    ("energy", "tokens", "reason"),
    [
        (NO_TDP, TOKENS, "no TDP for X"),
        (NO_TDP, NO_TOKENS, "no TDP for X"),
        (Figure(9000.0, "J", "tdp_estimate"), NO_TOKENS, "no tokens"),
        (Figure(9000.0, "J", "tdp_estimate"), missing("tokens", "measured", "not recorded"), "not recorded"),
    ],
)
def test_joules_per_token_is_missing_with_the_reason(energy: Figure, tokens: Figure, reason: str) -> None:
    assert joules_per_token(energy, tokens) == missing("J/token", "tdp_estimate", reason)


@pytest.mark.parametrize(
    ("energy", "tokens", "reason"),
    [
        (NO_TDP, TOKENS, "no TDP for X"),
        (Figure(9000.0, "J", "tdp_estimate"), missing("tokens", "measured", "not recorded"), "not recorded"),
    ],
)
def test_tokens_per_kwh_is_missing_with_the_reason(energy: Figure, tokens: Figure, reason: str) -> None:
    assert tokens_per_kwh(energy, tokens) == missing("tokens/kWh", "tdp_estimate", reason)


def test_no_energy_gives_no_tokens_per_kwh_rather_than_a_crash() -> None:
    assert tokens_per_kwh(Figure(0.0, "J", "measured"), TOKENS).value is None


def test_coverage_travels_with_every_energy_ratio() -> None:
    # design law 4: every number carries its coverage
    energy = Figure(9000.0, "J", "measured", coverage=0.7)
    assert [joules_per_token(energy, TOKENS).coverage, tokens_per_kwh(energy, TOKENS).coverage] == [0.7, 0.7]


def test_tokens_per_joule_is_the_reverse_of_joules_per_token() -> None:
    energy, tokens = Figure(500.0, "J", "measured"), Figure(1000.0, "tokens", "measured")
    assert tokens_per_joule(energy, tokens).value == 2.0
    assert tokens_per_joule(Figure(0.0, "J", "measured"), tokens).reason == "no energy"
    assert tokens_per_joule(energy, missing("tokens", "measured", "no engine")).reason == "no engine"
