"""Where the knobs of the split are now: rates of the busiest hour, prices in force, the grid of now."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers.measured_knobs import Measured, measured_knobs
from app.config import Config
from app.split.demand import Demand, parse_demand
from app.store.database import Store
from app.store.grid import append_points
from tests.answers.accounting import CONFIG, minutes_of, served, take
from tests.batches import HOUR, MODEL, T0, at, batch
from tests.grid_points import value

# Two hours and a minute after T0
NOW = at(T0 + 2 * HOUR + 60_000_000)


def a_demand(model: str = MODEL, **fleet: Any) -> Demand:
    """Two classes of one model, 3:1 by tokens, on one fleet."""
    classes = [
        {"name": name, "model": model, "requests_per_s": rate, "prompt_tokens": 60, "generated_tokens": 40}
        for name, rate in (("chat", 3), ("batch", 1))
    ]
    known = {"name": "h100", "gpu": "X", "usd_per_gpu_hour": 2.0}
    return parse_demand({"class": classes, "fleet": [known | fleet]}, "test")


def test_rates_are_those_of_the_busiest_hour_each_class_keeping_its_part(store: Store) -> None:
    """60 minutes of 150 tokens are 2.5 tokens/s: 0.025 requests/s of 100 tokens, a fourth of them batch."""
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    found = measured_knobs(store, CONFIG, a_demand(), NOW)
    assert {name: one.value for name, one in found.items()} == {
        "rps.chat": pytest.approx(0.025 * 3 / 4),
        "rps.batch": pytest.approx(0.025 / 4),
    }
    assert found["rps.chat"].source.startswith("measured: busiest hour of the last 24, from ")


def test_what_is_measured_is_told_to_the_digits_that_a_slider_shows(store: Store) -> None:
    """160 tokens a minute are 2.666... tokens/s, a fourth of them batch's, of 100 tokens a request."""
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(prompt_tokens=110)))
    assert measured_knobs(store, CONFIG, a_demand(), NOW)["rps.batch"].value == 0.0066667


def test_a_model_that_nothing_serves_leaves_the_demand_s_rates(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    assert measured_knobs(store, CONFIG, a_demand("org/other"), NOW) == {}


def test_a_price_in_force_is_told_and_the_demand_s_own_is_not(store: Store) -> None:
    priced = a_demand(price_source="contract, fleet h100")
    assert measured_knobs(store, CONFIG, priced, NOW) == {
        "usd.h100": Measured(2.0, "price in force: contract, fleet h100")
    }
    assert measured_knobs(store, CONFIG, a_demand(price_source="the demand; not the price of h100: x"), NOW) == {}


def test_the_grid_of_now_is_told_where_a_provider_tells_it(store: Store) -> None:
    zone = a_demand(zone="EU27")
    assert measured_knobs(store, CONFIG, zone, NOW) == {}  # the yearly table measures nothing
    grid = {"provider": "electricity_maps", "zones": {"EU27": "EU27"}, "key_env": "NO_SUCH_TOKEN"}
    config = CONFIG.model_copy(update={"grid": Config.model_validate({"grid": [grid]}).grid})
    append_points(store, [value(at(T0 + 2 * HOUR), 60, 77.0, zone="EU27", fetched_at=NOW)])
    found = measured_knobs(store, config, zone, NOW)["g.h100"]
    assert (found.value, found.source) == (77.0, "grid of EU27 now: cached, Electricity Maps")
    assert measured_knobs(store, config, a_demand(zone="EU27", g_per_kwh=12.0), NOW) == {}
