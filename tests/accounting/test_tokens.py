from __future__ import annotations

import pytest

from app.accounting.figure import Figure, missing
from app.accounting.tokens import BASES, Basis, TokenCounts, per_mtok


@pytest.mark.parametrize(
    ("basis", "expected"),
    [("total", 1500), ("computed", 1100), ("output", 500)],  # 1000 + 500; less 400 cached; generated alone
)
def test_each_basis_counts_its_own_tokens(basis: Basis, expected: int) -> None:
    tokens = TokenCounts(prompt=1000, generated=500, cached=400).of(basis)
    assert (tokens.value, tokens.unit, tokens.method) == (expected, "tokens", "measured")


def test_total_is_the_default_basis() -> None:
    assert BASES == ("total", "computed", "output")


def test_computed_tokens_are_missing_when_the_cache_was_not_recorded() -> None:
    computed = TokenCounts(prompt=1000, generated=500).of("computed")
    assert computed == missing("tokens", "measured", "cached prompt tokens were not recorded")


def test_nothing_cached_is_not_the_same_as_not_recorded() -> None:
    assert TokenCounts(prompt=1000, generated=500, cached=0).of("computed").value == 1500


def test_per_mtok_divides_by_millions_and_keeps_method_and_coverage() -> None:
    # $0.009231944 for 83,123 tokens: 0.009231944 / 0.083123 = 0.111064
    cost = Figure(0.009231944, "USD", "user", coverage=0.8)
    per = per_mtok(cost, Figure(83_123, "tokens", "measured"), "USD/Mtok")
    assert per.value == pytest.approx(0.111064, rel=1e-5)
    assert (per.unit, per.method, per.coverage) == ("USD/Mtok", "user", 0.8)


@pytest.mark.parametrize(
    ("amount", "tokens", "reason"),
    [
        (Figure(1.0, "USD", "user"), Figure(0, "tokens", "measured"), "no tokens"),
        (Figure(0.0, "USD", "user"), Figure(0, "tokens", "measured"), "no tokens"),
        (missing("USD", "user", "no price for X"), Figure(5, "tokens", "measured"), "no price for X"),
        (missing("USD", "user", "no price for X"), Figure(0, "tokens", "measured"), "no price for X"),
        (Figure(1.0, "USD", "user"), missing("tokens", "measured", "not recorded"), "not recorded"),
    ],
)
def test_per_mtok_is_missing_with_the_reason_and_never_zero(amount: Figure, tokens: Figure, reason: str) -> None:
    assert per_mtok(amount, tokens, "USD/Mtok") == missing("USD/Mtok", "user", reason)


def test_a_free_million_tokens_costs_zero_not_nothing() -> None:
    assert per_mtok(Figure(0.0, "USD", "user"), Figure(5, "tokens", "measured"), "USD/Mtok").value == 0.0
