"""The plan as page and API get it: load of the week as measured, forecasts of the grid, and the static split beside."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.answers.load_curve import load_curves
from app.answers.split_plan import split_plan
from app.config import Config
from app.errors import DemandError
from app.split.demand import Demand
from app.split.options import Option
from app.store.database import Store
from app.store.grid import append_points
from app.store.moment import moment
from tests.answers.accounting import CONFIG, minutes_of, served, take
from tests.batches import HOUR, MODEL, T0, at, batch
from tests.grid_points import to_come
from tests.split.builders import a_class, a_demand, a_fleet, a_run, an_option

NOW = datetime(2026, 2, 3, 3, 30, tzinfo=UTC)
FIRST = NOW + timedelta(minutes=30)
GRID = Config.model_validate(
    {"grid": [{"provider": "electricity_maps", "zones": {"DE": "DE"}, "key_env": "NO_SUCH_TOKEN"}]}
)


def a_batch(**offer: Any) -> tuple[Demand, list[Option]]:
    """A quarter of a replica of 100 W idle and 500 W full, for nothing but the carbon. The fleet has 100 g/kWh."""
    fleet = a_fleet(usd_per_gpu_hour=0.0)
    fleet = replace(fleet, offer=fleet.offer.model_copy(update=offer))
    demand = a_demand([a_class("batch", deferrable=True)], [fleet], carbon_usd_per_t=1000.0)
    return demand, [an_option(fleet, a_run())]


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What JSON makes of it: the same."""
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    return answer


def test_work_moves_to_the_hour_that_is_forecast_to_be_clean(store: Store) -> None:
    append_points(store, [to_come(FIRST + timedelta(hours=n), 60, g, NOW) for n, g in enumerate((500, 400, 50))])
    answer = plain(split_plan(store, GRID, *a_batch(zone="DE"), NOW, hours=4))
    # the fourth hour has the fleet's own 100 g/kWh
    assert [hour["g_per_kwh"]["fleet"] for hour in answer["hours"]] == [500, 400, 50, 100]
    assert [hour["start"] for hour in answer["hours"]][:2] == ["2026-02-03T04:00:00+00:00", "2026-02-03T05:00:00+00:00"]
    assert answer["grid"]["fleet"] == {
        "zone": "DE", "hours_told": 3, "source": "Electricity Maps + the yearly value in 1 of 4 hours",
    }  # fmt: skip
    # three quarters of a replica at 50 g/kWh: 0.1 + 0.75 x 0.4 kW; the last quarter in the fourth hour: 0.2 kW x 100
    assert [round(hour["split"]["tokens_per_s"]) for hour in answer["hours"]] == [0, 0, 600, 200]
    assert answer["totals"]["g"] == pytest.approx(0.4 * 50 + 0.2 * 100)
    # at once: 0.2 kW at 500 + 400 + 50 + 100
    assert answer["static"]["totals"]["g"] == pytest.approx(210)
    assert answer["saving"]["g"] == pytest.approx(170)
    assert answer["hours"][1]["deferred_tokens"] == {"batch": pytest.approx(2 * 200 * 3600)}
    assert answer["totals"]["tokens"] == pytest.approx(4 * 200 * 3600)
    assert answer["totals"]["usd_per_mtok"] == 0.0


def test_dollars_per_million_tokens_are_those_of_all_hours(store: Store) -> None:
    """A replica at $2.50/h in each of 3 hours; 200 tokens/s are 2.16 million in them."""
    fleet = a_fleet(usd_per_gpu_hour=2.5)
    demand = a_demand([a_class("batch")], [fleet])
    answer = plain(split_plan(store, CONFIG, demand, [an_option(fleet, a_run())], NOW, hours=3))
    assert answer["totals"]["usd"] == pytest.approx(7.5)
    assert answer["totals"]["usd_per_mtok"] == pytest.approx(7.5 / 2.16)
    assert answer["static"]["totals"]["usd_per_mtok"] == pytest.approx(7.5 / 2.16)


@pytest.mark.parametrize(
    ("offer", "g_per_kwh", "source"),
    [
        ({}, 500, "Electricity Maps"),
        ({"g_per_kwh": 100.0}, 100, "100 g/kWh (user) in every hour"),
        ({"g_per_kwh": 100.0, "g_source": "our contract"}, 100, "100 g/kWh (our contract) in every hour"),
        # as today's demand has it: what a provider says of now yields to what it says of then
        ({"g_per_kwh": 100.0, "g_source": "Electricity Maps, live"}, 500, "Electricity Maps"),
    ],
)
def test_grams_that_a_user_gave_count_in_every_hour(
    store: Store, offer: dict[str, Any], g_per_kwh: float, source: str
) -> None:
    append_points(store, [to_come(FIRST, 60, 500, NOW)])
    answer = plain(split_plan(store, GRID, *a_batch(zone="DE", **offer), NOW, hours=1))
    assert (answer["hours"][0]["g_per_kwh"], answer["grid"]["fleet"]["source"]) == ({"fleet": g_per_kwh}, source)


def test_load_is_that_of_the_hour_of_the_week(store: Store) -> None:
    """From T0 on, 30 hours: 120 tokens a minute, in the second of them 60 in half of it, a quarter."""
    half = {"prompt_tokens": 60, "generated_tokens": 60}
    scrapes = [
        *served(60, 0, **half),
        *served(60, 60, prompt_tokens=15, generated_tokens=15),
        *served(1680, 120, **half),
    ]
    take(store, batch(1, rows=minutes_of(300, 1800), engine_rows=scrapes))
    now = at(T0 + 40 * HOUR)
    with moment(store) as reader:
        curve = load_curves(reader, [MODEL], now)[MODEL]
    assert curve.hours == 30 and "30 hours" in curve.as_json()["source"]
    start = at(T0)
    assert curve.at(start) == pytest.approx(1.0)
    assert curve.at(start + timedelta(hours=1)) == pytest.approx(0.25)
    assert curve.at(start + timedelta(days=7, hours=1)) == pytest.approx(0.25)
    # two days on that hour was not seen: the mean of a quarter and of the day after's whole
    assert curve.at(start + timedelta(days=2, hours=1)) == pytest.approx(0.625)


def test_without_a_day_of_tokens_the_load_is_flat(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    with moment(store) as reader:
        curve = load_curves(reader, [MODEL], at(T0 + 3 * HOUR))[MODEL]
    assert (curve.at(NOW), curve.as_json()["source"]) == (1.0, "flat")
    assert curve.as_json()["reason"] == "the model was seen in 1 h of the last 28 days, 24 h are needed"


def test_an_infeasible_plan_has_a_reason_and_no_hours(store: Store) -> None:
    answer = plain(split_plan(store, CONFIG, *a_batch(max_gpus=0), NOW, hours=2))
    assert (answer["status"], answer["hours"], answer["totals"]) == ("infeasible", [], None)
    assert "batch" in answer["reason"]


@pytest.mark.parametrize("hours", [0, 169])
def test_other_numbers_of_hours_are_refused(store: Store, hours: int) -> None:
    with pytest.raises(DemandError, match=f"`hours`: given {hours}; accepted: 1 to 168"):
        split_plan(store, CONFIG, *a_batch(), NOW, hours=hours)
