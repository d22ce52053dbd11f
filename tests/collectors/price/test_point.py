"""A price is of one GPU, above 0, of one market, and says what it rests on and since when."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from collectors.price.number import NoPrice, amount, checked_per_gpu, gpu_count, name_of, usd
from collectors.price.point import PricePoint
from tests.collectors.http.clocks import NOW


def point(**change: Any) -> PricePoint:
    fields: dict[str, Any] = {
        "gpu_name": "RTX 4090", "usd_per_gpu_hour": 0.34, "market": "community", "per": "gpu", "count": 1,
        "as_of": NOW, "provider": "someone",
    }  # fmt: skip
    return PricePoint(**fields | change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"usd_per_gpu_hour": 0.0}, "above 0"),
        ({"usd_per_gpu_hour": -1.0}, "above 0"),
        ({"usd_per_gpu_hour": float("nan")}, "above 0"),
        ({"usd_per_gpu_hour": 1000.1}, "at most 1000"),
        ({"market": "bazaar"}, "no market"),
        ({"per": "rack"}, "no market and unit"),
        ({"count": 0}, "at least one offer"),
        ({"gpu_name": ""}, "names its GPU"),
        ({"as_of": datetime(2026, 11, 30)}, "in UTC"),  # noqa: DTZ001
        ({"as_of": NOW.astimezone(timezone(timedelta(hours=1)))}, "in UTC"),
    ],
)
def test_what_is_no_price_is_none(change: dict[str, Any], words: str) -> None:
    assert point().usd_per_gpu_hour == 0.34
    with pytest.raises(ValueError, match=words):
        point(**change)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null: not offered"), (0, "0: not offered, never free"), (0.0, "never free"), (-2.5, "below 0"),
        ("2.89", "no number"), (True, "no number"), (float("nan"), "no finite"), (10**400, "no finite"),
        ({}, "no number"),
    ],
)  # fmt: skip
def test_a_price_that_is_no_number_above_0_is_told(value: object, words: str) -> None:
    assert usd(2, "`p`") == 2.0
    with pytest.raises(NoPrice, match=f"`p`.*{words}"):
        usd(value, "`p`")


def test_amounts_counts_and_names() -> None:
    assert (amount(0, "x"), gpu_count(8, "x"), checked_per_gpu(1000.0)) == (0.0, 8, 1000.0)
    for wrong in (None, 0, -1, 65, True, 2.0, "2"):
        with pytest.raises(NoPrice, match="no number of GPUs from 1 to 64"):
            gpu_count(wrong, "`num_gpus`")
    for number in (float("inf"), 1000.1, 0.0):
        with pytest.raises(NoPrice, match="above 0 and at most 1000"):
            checked_per_gpu(number)
    assert name_of(" RTX 4090 ") == "RTX 4090"
    assert [name_of(wrong) for wrong in (None, "", "  ", 7, "a\nb", "x" * 121)] == [None] * 6
