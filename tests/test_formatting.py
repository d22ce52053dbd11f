"""Numbers as people read them."""

from __future__ import annotations

from datetime import datetime

import pytest

from app.formatting import short, utc_clock


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$453.00", "$453.00"),
        ("$9,583.49", "$9,583.49"),
        ("$987,583.49", "$987,583"),
        ("254,120.03 kWh", "254,120 kWh"),
        ("99,999,999", "99,999,999"),
        ("4,536,838,112", "4,537 million"),
        ("–", "–"),
        ("92.8–92.9%", "92.8–92.9%"),
    ],
)
def test_a_long_number_loses_what_nobody_reads(text: str, said: str) -> None:
    assert short(text) == said


def test_a_moment_is_told_in_utc_whatever_its_offset() -> None:
    berlin = "2026-02-03T05:05:59+01:00"
    assert utc_clock(berlin) == utc_clock(datetime.fromisoformat(berlin)) == "2026-02-03 04:05Z"
