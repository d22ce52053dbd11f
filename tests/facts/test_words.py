"""Values of facts in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.facts.kinds import Kind, parse_value
from app.facts.words import in_words
from tests.facts.builders import by_clock, flat, owned, rented

SAID: list[tuple[Kind, Mapping[str, Any], str]] = [
    ("membership", {"fleet": "h100"}, "in fleet h100"),
    ("price", rented(2.0, billing_increment_s=60), "rented, 2 USD per GPU-hour, billed by 60 s"),
    ("price", rented(0.25, currency="EUR"), "rented, 0.25 EUR per GPU-hour"),
    ("price", owned(in_service="2026-01-15", retired="2029-12-31"),
     "owned, 1 USD per GPU-hour and electricity, in service from 2026-01-15, retired 2029-12-31"),
    ("tariff", flat(-0.02), "-0.02 USD/kWh"),
    ("tariff", by_clock(0.2, ("mon-fri", "22:00", "06:00", 0.1)),
     "0.2 USD/kWh, and by the clock of Europe/Madrid: mon-fri 22:00-06:00 0.1"),
    ("tariff_hour", {"per_kwh": 0.3, "currency": "EUR"}, "0.3 EUR/kWh"),
    ("pue", {"pue": 1.2}, "PUE 1.2"),
    ("zone", {"zone": "FR"}, "zone FR"),
    ("market_factor", {"g_per_kwh": 45}, "supplier's 45 g/kWh"),
    ("embodied", {"method": "pcf"}, "pcf, the tables' figure of the card, over 4 years"),
    ("embodied", {"method": "user", "kg_low": 164, "kg_per_gpu": 350, "kg_high": 575, "life_years": 5},
     "user, 350 kg per GPU (164 to 575), over 5 years"),
    ("embodied", {"policy": "sunk"}, "sunk: the cards were made anyway and count 0"),
    ("exchange_rate", {"usd_per_unit": 1.08}, "1.08 USD for one"),
    ("hosted_price", {"input_usd_per_mtok": 0.1, "output_usd_per_mtok": 0.2}, "0.1 USD/Mtok in, 0.2 USD/Mtok out"),
    ("slo", {"max_ms": 200.0}, "p99 TTFT <= 200 ms"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content", "words"), SAID)
def test_a_value_in_words(kind: Kind, content: Mapping[str, Any], words: str) -> None:
    assert in_words(parse_value(kind, content)) == words


def test_a_fact_without_a_value_ends_another() -> None:
    assert in_words(None) == "ended"
