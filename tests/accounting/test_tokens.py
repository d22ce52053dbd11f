from __future__ import annotations

import pytest

from app.accounting.figure import Figure, missing
from app.accounting.tokens import BASES, Basis, TokenCounts, cached_from_lookups, per_mtok


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


@pytest.mark.parametrize(
    ("prompt", "looked_up", "found", "served"),
    [
        (4291, 4291, 3360, (3360, "measured")),  # vLLM 0.10 to 0.32 without pressure: one look-up a prompt token
        (4121, 10801, 5440, (2076, "estimated")),  # vLLM 0.12 under pressure: 5440 x 4121 / 10801 = 2075.6
        (100, 0, 0, (0, "measured")),
        (0, 50, 50, (0, "estimated")),
    ],
)
def test_cached_tokens_from_lookups(prompt: int, looked_up: int, found: int, served: tuple[int, str]) -> None:
    assert cached_from_lookups(prompt, looked_up, found) == served


def test_estimated_cached_tokens_make_an_estimated_basis() -> None:
    counts = TokenCounts(100, 50, cached=30, cached_method="estimated")
    assert (counts.of("computed").value, counts.of("computed").method) == (120, "estimated")
    assert counts.of("total").method == "measured"
