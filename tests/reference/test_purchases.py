"""Estimates of what a card and a kWh cost: only of the very card, and none that is guessed."""

from __future__ import annotations

import pytest

from app.reference.purchases import electricity_estimate, purchase_estimate


@pytest.mark.parametrize(
    ("card", "usd"),
    [
        ("NVIDIA H100 PCIe", 27_000.0),
        ("NVIDIA H100 80GB HBM3", 27_000.0),
        ("NVIDIA A100-SXM4-80GB", 15_000.0),
        ("NVIDIA H200", 31_000.0),
        ("NVIDIA GB10", 3_999.0),
        ("NVIDIA H100 NVL", None),  # the table is of SXM and PCIe
        ("NVIDIA A100-SXM4-40GB", None),
        ("NVIDIA GeForce RTX 4090", None),
        ("NVIDIA GB200", None),
        ("Prototype X1", None),
    ],
)
def test_a_purchase_price_is_of_the_very_card(card: str, usd: float | None) -> None:
    found = purchase_estimate(card)
    assert (found and found.usd) == usd
    assert found is None or (found.as_of and found.source)


def test_electricity_is_what_businesses_pay() -> None:
    found = electricity_estimate("eu27")
    assert found is not None
    assert (found.per_kwh, found.currency, found.period) == (0.1902, "EUR", "2025-H1")
    california = electricity_estimate("US-CA")
    assert california is not None
    assert (california.per_kwh, california.currency) == (0.2391, "USD")
    assert electricity_estimate("DE") is None  # households only
    assert electricity_estimate("nowhere") is None
