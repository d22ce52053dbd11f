"""What moved g/Mtok: effects that sum to the change, and each cause alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.decomposition import Part, effects, g_per_mtok

# 1 Mtok on 2 kWh at 100 g/kWh, and 3 Mtok on 12 kWh at 300 g/kWh: (200 + 3600) / 4 = 950 g/Mtok
BEFORE = {"a": Part(1, 2, 200), "b": Part(3, 12, 3600)}


def test_a_dirtier_grid_is_the_grid_s() -> None:
    """b at 400 g/kWh: 12 x 100 / 4 = 300 g/Mtok more."""
    found = effects(BEFORE, BEFORE | {"b": Part(3, 12, 4800)})
    assert found == pytest.approx({"mix": 0, "energy": 0, "grid": 300})


def test_more_energy_per_token_is_the_energy_s() -> None:
    """a needs 4 kWh: 2 x 100 / 4 = 50 g/Mtok more."""
    found = effects(BEFORE, BEFORE | {"a": Part(1, 4, 400)})
    assert found == pytest.approx({"mix": 0, "energy": 50, "grid": 0})


def test_tokens_that_move_are_the_mix_s() -> None:
    """Half each: 0.5 x 200 + 0.5 x 1200 = 700, 250 less."""
    found = effects(BEFORE, {"a": Part(2, 4, 400), "b": Part(2, 8, 2400)})
    assert found == pytest.approx({"mix": -250, "energy": 0, "grid": 0})


def test_a_fleet_that_comes_is_the_mix_s() -> None:
    """b alone has 1,200 g/Mtok; with a, 950."""
    found = effects({"b": BEFORE["b"]}, BEFORE)
    assert found == pytest.approx({"mix": -250, "energy": 0, "grid": 0})


def test_two_causes_share_what_they_did_together() -> None:
    """One fleet: 2 kWh/Mtok at 100 to 3 at 200: 200 to 600. Energy first: 100, then grid 300; grid first: 200, 200."""
    found = effects({"a": Part(1, 2, 200)}, {"a": Part(1, 3, 600)})
    assert found == pytest.approx({"mix": 0, "energy": 150, "grid": 250})


def test_without_tokens_nothing_is_said() -> None:
    assert effects({"a": Part(0, 2, 200)}, BEFORE) is None
    assert effects(BEFORE, {}) is None


amounts = st.floats(0.01, 1e4)
parts = st.dictionaries(
    st.sampled_from("abcd"), st.builds(Part, st.one_of(st.just(0.0), amounts), amounts, amounts), min_size=1
)


@given(before=parts, now=parts)
def test_effects_sum_to_the_change(before: dict[str, Part], now: dict[str, Part]) -> None:
    found = effects(before, now)
    if found is not None:
        change = g_per_mtok(now) - g_per_mtok(before)
        assert sum(found.values()) == pytest.approx(
            change, rel=1e-9, abs=1e-9 * max(g_per_mtok(now), g_per_mtok(before))
        )
