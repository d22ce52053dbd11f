from __future__ import annotations

import pytest

from app.accounting.figure import Figure, missing, scaled


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


def test_scaling_changes_value_and_unit_but_not_method_and_coverage() -> None:
    assert scaled(Figure(3.0, "kWh", "measured", coverage=0.9), 3.6e6, "J") == Figure(
        10.8e6, "J", "measured", coverage=0.9
    )


def test_scaling_a_missing_figure_leaves_it_missing_for_its_own_reason() -> None:
    assert scaled(missing("kWh", "measured", "no counter"), 3.6e6, "J") == missing("J", "measured", "no counter")
