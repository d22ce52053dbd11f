"""List prices: the newest that was known on the day, so history never reprices."""

from __future__ import annotations

from datetime import date

import pytest

from app.reference.prices import list_price, list_prices


@pytest.mark.parametrize(
    ("gpu", "on", "usd", "source"),
    [
        ("NVIDIA-H100-PCIe", date(2025, 6, 10), 2.00, "list price, alternative, 2025-05-01: AIBC 2025"),
        ("RTX 4090", date(2025, 6, 10), 0.25, "list price, alternative, 2025-05-01"),
        ("RTX 4090", date(2025, 5, 1), 0.25, "2025-05-01"),
        ("RTX 4090", date(2026, 9, 19), 0.25, "2025-05-01"),
        ("RTX 4090", date(2026, 9, 20), 0.29, "list price, marketplace, 2026-09-20"),
        ("RTX 4090", date(2026, 9, 25), 0.34, "list price, neocloud_community, 2026-09-25"),
        ("RTX 4090", None, 0.34, "2026-09-25"),
        ("H100 SXM", date(2025, 12, 31), 2.50, "list price, alternative, 2025-05-01"),
        ("NVIDIA H100 80GB HBM3", None, 2.69, "list price, neocloud_community, 2026-11-09"),
        ("NVIDIA H200", date(2026, 6, 1), 5.75, "list price, hyperscaler, 2026-05-01"),
    ],
)
def test_the_newest_price_of_the_day_counts_and_of_one_day_the_lowest(
    gpu: str, on: date | None, usd: float, source: str
) -> None:
    rate = list_price(gpu, on)
    assert (rate.usd_per_gpu_hour, rate.method, rate.reason) == (usd, "default", None)
    assert source in rate.source
    assert rate.tariff_usd_per_kwh is None


@pytest.mark.parametrize(
    ("gpu", "on", "reason"),
    [
        ("RTX 4090", date(2025, 4, 30),
         "no price for RTX 4090 on or before 2025-04-30; the first is of 2025-05-01"),
        ("NVIDIA L4", None, "no price for L4"),
        ("Some Card", date(2025, 4, 30), "no price for Some Card"),
        ("NVIDIA H200 NVL", None, "no price for H200 NVL 141GB"),
    ],
)  # fmt: skip
def test_a_price_that_is_not_known_is_missing_with_its_reason(gpu: str, on: date | None, reason: str) -> None:
    rate = list_price(gpu, on)
    assert (rate.usd_per_gpu_hour, rate.reason) == (None, reason)


def test_every_list_price_is_positive_and_dated() -> None:
    assert list_prices()
    for price in list_prices():
        assert price.usd_per_gpu_hour > 0
        assert date(2020, 1, 1) < price.as_of < date(2030, 1, 1)
        assert price.source
