from __future__ import annotations

import pytest

from app.accounting.figure import Figure, missing, total, weakest


def test_a_figure_without_value_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="a value or a reason"):
        Figure(None, "USD", "user")


def test_a_figure_with_value_has_no_reason() -> None:
    with pytest.raises(ValueError, match="a value or a reason"):
        Figure(0.0, "USD", "user", reason="no price")


def test_a_measured_zero_is_not_missing() -> None:
    assert Figure(0.0, "J", "measured").reason is None


def test_missing_keeps_unit_method_and_reason() -> None:
    assert missing("J", "tdp_estimate", "no TDP for X") == Figure(None, "J", "tdp_estimate", "no TDP for X")


def test_a_sum_is_as_good_as_its_weakest_part() -> None:
    parts = [Figure(1.0, "J", "measured"), Figure(2.0, "J", "estimated"), Figure(4.0, "J", "interpolated")]
    assert total(parts, "J") == Figure(7.0, "J", "estimated")
    assert total([], "J") == Figure(0, "J", "measured")
    assert weakest(("default", "simulated", "measured")) == "simulated"


def test_a_sum_with_a_missing_part_is_missing_and_says_why() -> None:
    found = total([Figure(1.0, "USD", "user"), missing("USD", "default", "no price for L4")], "USD")
    assert (found.value, found.reason, found.method) == (None, "no price for L4", "default")
