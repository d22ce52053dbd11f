"""List prices: the newest that was known on the day, so history never reprices."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from app.reference.prices import list_price, list_price_moments, list_prices, moments_of

LIMIT = 365


@pytest.mark.parametrize(
    ("gpu", "on", "usd", "source"),
    [
        ("NVIDIA-H100-PCIe", date(2025, 6, 10), 2.00, "list price, alternative, 2025-05-01: AIBC 2025"),
        ("RTX 4090", date(2025, 6, 10), 0.25, "list price, alternative, 2025-05-01"),
        ("RTX 4090", date(2025, 5, 1), 0.25, "2025-05-01"),
        ("RTX 4090", date(2026, 5, 1), 0.25, "2025-05-01"),  # 365 days old
        ("RTX 4090", date(2026, 9, 20), 0.29, "list price, marketplace, 2026-09-20"),
        ("RTX 4090", date(2026, 9, 25), 0.34, "list price, neocloud_community, 2026-09-25"),
        ("RTX 4090", date(2026, 12, 1), 0.34, "2026-09-25"),
        ("H100 SXM", date(2025, 12, 31), 2.50, "list price, alternative, 2025-05-01"),
        ("NVIDIA H100 80GB HBM3", date(2026, 12, 1), 2.69, "list price, neocloud_community, 2026-11-09"),
        ("NVIDIA H200", date(2026, 6, 1), 5.75, "list price, hyperscaler, 2026-05-01"),
    ],
)
def test_the_newest_price_of_the_day_counts_and_of_one_day_the_lowest(
    gpu: str, on: date, usd: float, source: str
) -> None:
    rate = list_price(gpu, on, LIMIT)
    assert (rate.usd_per_gpu_hour, rate.method, rate.reason) == (usd, "default", None)
    assert source in rate.source
    assert rate.tariff_usd_per_kwh is None


@pytest.mark.parametrize(
    ("gpu", "on", "reason"),
    [
        ("RTX 4090", date(2025, 4, 30),
         "no price for RTX 4090 on or before 2025-04-30; the first is of 2025-05-01"),
        ("NVIDIA L4", date(2026, 12, 1), "no price for L4"),
        ("Some Card", date(2025, 4, 30), "no price for Some Card"),
        ("NVIDIA H200 NVL", date(2026, 12, 1), "no price for H200 NVL 141GB"),
        ("RTX 4090", date(2026, 5, 2),
         "list price of 2025-05-01 is 366 days old; the limit is 365 (set a price of yours, or [prices] max_age_days)"),
        ("RTX 4090", date(2026, 9, 19),
         "list price of 2025-05-01 is 506 days old; the limit is 365 (set a price of yours, or [prices] max_age_days)"),
    ],
)  # fmt: skip
def test_a_price_that_is_not_known_is_missing_with_its_reason(gpu: str, on: date, reason: str) -> None:
    rate = list_price(gpu, on, LIMIT)
    assert (rate.usd_per_gpu_hour, rate.reason) == (None, reason)


def test_every_list_price_is_positive_and_dated() -> None:
    assert list_prices()
    for price in list_prices():
        assert price.usd_per_gpu_hour > 0
        assert date(2020, 1, 1) < price.as_of < date(2030, 1, 1)
        assert price.source


def test_a_longer_limit_lets_an_older_price_count() -> None:
    assert list_price("RTX 4090", date(2026, 9, 19), 506).usd_per_gpu_hour == 0.25
    assert list_price("RTX 4090", date(2026, 9, 19), 505).usd_per_gpu_hour is None


def test_a_price_ends_where_it_is_too_old_and_no_other_came_in_time() -> None:
    first, second = datetime(2026, 1, 1, 9, tzinfo=UTC), datetime(2026, 1, 5, 9, tzinfo=UTC)
    third = datetime(2026, 2, 1, tzinfo=UTC)
    # two days old is the oldest: the first ends with 3 January, the second with 7 January, the third with 3 February
    ends = [datetime(2026, month, day, tzinfo=UTC) for month, day in ((1, 4), (1, 8), (2, 4))]
    assert list(moments_of([third, first, second, first], 2)) == [first, ends[0], second, ends[1], third, ends[2]]
    # with ten days the second comes before the first ends
    assert list(moments_of([first, second], 10)) == [first, second, datetime(2026, 1, 16, tzinfo=UTC)]
    assert list(moments_of([], 10)) == []


@pytest.mark.parametrize("limit", [1, 30, 365, 1000])
def test_between_two_moments_no_list_price_changes(limit: int) -> None:
    cards = sorted({price.gpu_name for price in list_prices()})
    moments = {moment.date() for moment in list_price_moments(limit)}
    day = date(2025, 4, 1)
    before = [list_price(card, day, limit) for card in cards]
    while day < date(2028, 1, 1):
        day += timedelta(days=1)
        after = [list_price(card, day, limit) for card in cards]
        if day not in moments:
            assert [(one.usd_per_gpu_hour, one.source) for one in before] == [
                (one.usd_per_gpu_hour, one.source) for one in after
            ]
        before = after
