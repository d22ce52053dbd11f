from __future__ import annotations

import pytest

from app.accounting.figure import Figure, missing


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
