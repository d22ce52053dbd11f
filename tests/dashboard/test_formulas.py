"""Every figure has its words, and every formula is filled in with figures that it asks for and no others."""

from __future__ import annotations

import pytest

from app.accounting.account import FIGURES
from app.accounting.bill import VIEWS
from app.accounting.tokens import BASES
from app.dashboard.figure_words import WORDS
from app.dashboard.formulas import FORMULAS, Asked, parts_of

GRAMS = {"carbon_g": 240.0, "embodied_low_g": 5.0, "embodied_g": 10.0, "embodied_high_g": 20.0}


def asked(names: tuple[str, ...], basis: str = "total", view: str = "bill") -> Asked:
    figures = {name: {"value": GRAMS.get(name, 1000.0)} for name in names}
    return Asked(figures, basis, view, "24")


def test_every_figure_has_words_and_no_label_is_that_of_another() -> None:
    assert set(WORDS) == set(FIGURES)
    labels = [words.label for words in WORDS.values()]
    assert len(set(labels)) == len(labels)
    assert set(FORMULAS) < set(FIGURES)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_asks_for_all_that_it_shows(name: str) -> None:
    for basis in BASES:
        for view in VIEWS:
            assert FORMULAS[name].filled(asked(parts_of((name,)), basis, view))


@pytest.mark.parametrize(
    ("name", "filled"),
    [
        ("sci_g_per_mtok", "(240 gCO2e + 10 gCO2e) / 1,000 tokens x 1,000,000"),
        ("sci_g_per_mtok_low", "(240 gCO2e + 5 gCO2e) / 1,000 tokens x 1,000,000"),
        ("embodied_g_per_mtok_high", "20 gCO2e / 1,000 tokens x 1,000,000"),
        ("embodied_high_g", "10 gCO2e x the most kg / the chosen kg"),
        ("carbon_market_g", "1,000.00 kWh x the suppliers' g/kWh"),
        ("embodied_g", "1,000 gCO2e + 1,000 gCO2e + 1,000 gCO2e"),
    ],
)
def test_grams_are_shown_as_they_were_computed(name: str, filled: str) -> None:
    assert FORMULAS[name].filled(asked(parts_of((name,)), "output")) == filled
