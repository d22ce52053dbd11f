"""Points carry a value or a reason, and nothing absurd."""

from __future__ import annotations

import dataclasses
import math
from datetime import timedelta, timezone

import pytest

from collectors.grid.point import IntensityPoint, judged
from tests.collectors.http.clocks import NOW, utc

POINT = IntensityPoint(
    zone="DE", start=utc("10:00"), end=utc("11:00"), g_per_kwh=312.0, basis="lifecycle", kind="average",
    estimated=False, estimation_method=None, is_forecast=False, provider="electricity_maps", fetched_at=NOW,
)  # fmt: skip


def test_zero_is_a_value() -> None:
    assert dataclasses.replace(POINT, g_per_kwh=0.0).g_per_kwh == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"g_per_kwh": -0.1}, "not within 0 and 3000"),
        ({"g_per_kwh": 3000.1}, "not within 0 and 3000"),
        ({"g_per_kwh": math.nan}, "not within 0 and 3000"),
        ({"g_per_kwh": None}, "or the reason"),
        ({"reason": "both"}, "or the reason"),
        ({"end": utc("10:00")}, "ends after it starts"),
        ({"start": utc("10:00").replace(tzinfo=None)}, "`start` of a point is in UTC"),
        ({"fetched_at": NOW.astimezone(timezone(timedelta(hours=1)))}, "`fetched_at` of a point is in UTC"),
        ({"issued_at": NOW.replace(tzinfo=None)}, "`issued_at`"),
        ({"zone": ""}, "names its zone"),
        ({"provider": ""}, "names its zone"),
        ({"basis": "green"}, "no basis and kind"),
        ({"kind": "mean"}, "no basis and kind"),
        ({"is_forecast": True}, "a forecast is estimated"),
    ],
)
def test_a_point_that_cannot_be_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(POINT, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "grams"), [(0, 0.0), (0.0, 0.0), (312, 312.0), (3000, 3000.0)])
def test_a_number_within_bounds_is_taken(value: float, grams: float) -> None:
    assert judged(value) == (grams, None)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "no value"), (-1, "not within"), (3001, "not within"), (math.nan, "not within"),
        (math.inf, "not within"),
        (10**400, "not within"), ("312", "not a number"), (True, "not a number"), ([], "not a number"),
    ],
)  # fmt: skip
def test_anything_else_is_a_gap_with_its_reason(value: object, words: str) -> None:
    grams, reason = judged(value)
    assert grams is None
    assert reason is not None and words in reason


def test_the_bounds_are_of_grams_per_kwh_and_not_of_the_providers_unit() -> None:
    # 6000 lb/MWh x 0.45359237 = 2721.55 g/kWh is within, 7000 x 0.45359237 = 3175.15 is not
    assert judged(6000, 0.45359237)[0] == pytest.approx(2721.55422)
    assert judged(7000, 0.45359237)[0] is None


@pytest.mark.parametrize(
    ("is_forecast", "estimated", "how"),
    [(False, False, "measured"), (False, True, "estimated"), (True, True, "forecast")],
)
def test_how_a_value_is_known(is_forecast: bool, estimated: bool, how: str) -> None:
    assert dataclasses.replace(POINT, is_forecast=is_forecast, estimated=estimated).how == how
