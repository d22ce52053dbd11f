"""Operating curves and today's demand, from a store of hand-worked hours, and the split that stands on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from app.answers.curves import live_curves, measure_curves
from app.answers.live_demand import live_demand
from app.answers.split import split_as_json, with_options
from app.config import Config
from app.errors import DemandError
from app.facts.kinds import LatencySlo
from app.split.demand import Demand, parse_demand
from app.split.recommend import recommend
from app.store.database import Store
from app.store.facts import fact_book
from app.store.grid import append_points
from collectors.benchmark.run import BenchmarkRun
from tests.answers.accounting import CONFIG, EU27_G_PER_KWH, know, minutes_of, served, take
from tests.batches import CARD, HOUR, MODEL, T0, Row, at, batch, engine
from tests.grid_points import value
from tests.split.builders import a_run

# Two hours after T0; NOW of the facts of these tests is what is known in the end.
AT = at(T0 + 2 * HOUR + 60_000_000)
# TTFT buckets of a minute: up to 10, 50, 100 ms and above
FAST, SLOW, LOST = [100, 0, 0, 0], [0, 0, 200, 0], [0, 0, 0, 400]


def load(first: int, count: int, tokens: int, buckets: Sequence[int], **said: Any) -> list[Row]:
    """Minutes of so many tokens, half of them generated, each request of 60."""
    return served(
        count, first, prompt_tokens=tokens // 2, generated_tokens=tokens // 2, finished_stop=tokens // 60,
        ttft_buckets=list(buckets), **said,
    )  # fmt: skip


def filled(store: Store, **said: Any) -> None:
    """From T0 on: 5 minutes of start-up, 15 idle at 100 W, 20 at 6,000 tokens a minute (100/s, 200 W), 20 at 12,000
    (200/s, 300 W); then ten minutes at 24,000 (400/s, 500 W)."""
    rows = [
        *minutes_of(100, 20), *minutes_of(200, 20, first=20), *minutes_of(300, 20, first=40),
        *minutes_of(500, 10, first=60),
    ]  # fmt: skip
    idle = served(20, prompt_tokens=0, generated_tokens=0, finished_stop=0, running=0)
    scrapes = [*idle, *load(20, 20, 6000, FAST), *load(40, 20, 12_000, SLOW), *load(60, 10, 24_000, LOST, waiting=9)]
    take(store, batch(1, rows=rows, engine_rows=scrapes, **said))


def curve_of(store: Store, runs: Sequence[BenchmarkRun] = ()) -> dict[str, Any]:
    (one,) = live_curves(store, CONFIG, runs, AT)["curves"]
    return dict(one)


def test_a_curve_has_a_point_per_load(store: Store) -> None:
    filled(store)
    curve = curve_of(store)
    kind = {"fleet": "h100", "card": CARD, "gpus": 1, "model": MODEL, "simulated": False}
    assert curve.items() >= kind.items()
    points = curve["points"]
    # 6,000 / 60 requests a minute are 100 in 60 s
    assert [(round(one["tokens_per_s"]), one["qps"], one["n"]) for one in points] == [
        (100, pytest.approx(100 / 60), 2000), (200, pytest.approx(200 / 60), 4000),
        (400, pytest.approx(400 / 60), 4000),
    ]  # fmt: skip
    # 100 W + 1 W per token/s; idle is measured at 100 W
    assert [(one["idle_w"], one["loaded_w"], one["power_method"]) for one in points] == [
        (100, pytest.approx(200), "measured"), (100, pytest.approx(300), "measured"),
        (100, pytest.approx(500), "measured"),
    ]  # fmt: skip
    assert [one["flags"] for one in points] == [[], [], ["saturated"]]
    # in (0, 10], (50, 100] and above 100 ms
    assert [one["latency_ms"]["ttft"]["p99"] for one in points] == [pytest.approx(9.9), pytest.approx(99.5), None]
    assert [one["beyond_ms"] for one in points] == [{}, {}, {"ttft": 100.0}]
    assert points[0]["provenance"].items() >= {
        "source": "live", "n": 2000, "minutes": 20, "engines": 1, "to": "2026-02-03T06:00:00+00:00",
    }.items()  # fmt: skip


def test_what_is_left_out_is_counted(store: Store) -> None:
    filled(store)
    answer = live_curves(store, CONFIG, [], AT)
    kind = {"fleet": "h100", "card": CARD, "gpus": 1, "model": MODEL, "simulated": False}
    assert answer["left_out"] == [{**kind, "reason": "start_up", "minutes": 5}]
    assert answer["curves"][0]["left_out"] == {"throttled": 0, "few_minutes": 0}
    assert (answer["from"], answer["to"]) == ("2026-01-20T00:00:00+00:00", "2026-02-03T06:00:00+00:00")


def test_the_window_is_as_long_as_minutes_are_kept(store: Store) -> None:
    two_days = Config.model_validate({"store": {"raw_days": 1, "minute_days": 2}})
    assert measure_curves(store, two_days, AT).start == at(T0 + 3 * HOUR) - timedelta(days=2)


# The split


def demanded(requests_per_s: float = 10.0, max_ms: float = 100.0, fleet: str = "h100", **solve: Any) -> Demand:
    """Requests of 30 + 30 tokens: 600 tokens/s in all."""
    return parse_demand(
        {
            "class": [{
                "name": "chat", "model": MODEL, "requests_per_s": requests_per_s, "prompt_tokens": 30,
                "generated_tokens": 30, "slo": [{"metric": "ttft", "percentile": 99, "max_ms": max_ms}],
            }],
            "fleet": [{"name": fleet, "gpu": CARD, "usd_per_gpu_hour": 2.0, "g_per_kwh": 100.0}],
            "solve": {"max_utilisation": 1.0, **solve},
        },
        "test",
    )  # fmt: skip


def split_of(store: Store, demand: Demand, runs: Sequence[BenchmarkRun] = ()) -> dict[str, Any]:
    live = measure_curves(store, CONFIG, AT)
    return split_as_json(recommend(*with_options(demand, runs, CONFIG, fact_book(store), AT, live)))


def run_of_card(**said: Any) -> BenchmarkRun:
    """1,000 requests at 800 tokens/s with a p99 TTFT that was not measured."""
    return a_run(model=MODEL, gpu_name=CARD, **said)


def test_the_highest_load_that_holds_the_slo_is_planned_with(store: Store) -> None:
    """600 tokens/s at 200 a replica, of which 300 W: three of them, $6 an hour."""
    filled(store)
    answer = split_of(store, demanded())
    (pool,) = answer["replicas"]
    assert (pool["count"], answer["usd_per_hour"], answer["watts"]) == (3, 6.0, pytest.approx(900))
    assert pool["run_id"].startswith(f"live:h100:{MODEL}:1:")
    assert (pool["power_method"], pool["provenance"]["source"]) == ("measured", "live")
    assert answer["assumptions"]["power_method"] == "measured"
    (out,) = answer["excluded"]
    assert out["reason"] == "p99 TTFT >= 100 ms (beyond its last bucket), limit 100 ms"
    # with 50 ms it is the load of 100
    assert split_of(store, demanded(max_ms=50))["replicas"][0]["count"] == 6


def test_only_the_fleet_it_was_measured_on_has_a_curve(store: Store) -> None:
    filled(store)
    answer = split_of(store, demanded(fleet="rented"))
    assert (answer["status"], answer["excluded"]) == ("infeasible", [])


def test_sources_are_what_the_demand_says(store: Store) -> None:
    filled(store)
    said = demanded(max_ms=100).classes[0].model_copy(update={"slo": ()})
    run = run_of_card()

    def sources(**solve: Any) -> set[str]:
        demand = demanded(**solve).model_copy(update={"classes": (said,)})
        return {pool["provenance"]["source"] for pool in split_of(store, demand, [run])["replicas"]}

    # the run's replica makes 800 tokens/s, so one of them is enough
    assert sources() == {"run"}
    assert sources(sources="runs") == {"run"}
    assert sources(sources="live") == {"live"}


def test_a_run_at_the_same_load_yields_to_the_larger_sample(store: Store) -> None:
    """2,000 requests of live load at 100 tokens/s against 1,000 of a run: 200,000 tokens in 2,000 s."""
    filled(store)
    run = run_of_card(duration_s=2000.0, offered_requests_per_s=0.5)
    (out,) = curve_of(store, [run])["superseded"]
    assert (out["point_id"], out["source"]) == (run.run_id, "run")
    assert out["reason"] == "a larger sample at the same load: 2,000 requests against 1,000"
    other = a_run(model=MODEL, gpu_name="another card", duration_s=2000.0)
    assert curve_of(store, [other])["superseded"] == []


def test_simulated_replicas_never_pass_for_measured_ones(store: Store) -> None:
    """Law 10: their shares say so; and where others were measured they are no option."""
    filled(store, simulated=True)
    answer = split_of(store, demanded())
    assert answer["shares"][0]["flags"] == ["simulated"]
    assert answer["assumptions"]["power_method"] == "simulated"
    real = [*load(0, 25, 6000, FAST)]
    take(store, batch(1, node="node-8", rows=minutes_of(200, 25), engine_rows=real,
                      engines=[engine(gpus=["node-8-0"])]))  # fmt: skip
    answer = split_of(store, demanded())
    assert (answer["shares"][0]["flags"], answer["replicas"][0]["count"]) == ([], 6)


# Today's demand


def test_today_is_the_busiest_hour_on_the_fleets_in_force(store: Store) -> None:
    """First hour: 20 x 6,000 + 20 x 12,000 = 360,000 tokens, 100/s; second: 240,000. 10,000 requests of 60 tokens."""
    filled(store)
    know(store, "slo", MODEL, LatencySlo(max_ms=80.0), known_at=AT)
    demand = live_demand(store, CONFIG, fact_book(store), AT)
    (chat,) = demand.classes
    assert (chat.name, chat.model) == ("model-14b", MODEL)
    assert (chat.requests_per_s, chat.tokens_per_s) == (pytest.approx(100 / 60), pytest.approx(100))
    assert (chat.prompt_tokens, chat.generated_tokens) == (pytest.approx(30), pytest.approx(30))
    assert [slo.label for slo in chat.slo] == ["p99 TTFT <= 80 ms"]
    (fleet,) = demand.fleets
    assert (fleet.name, fleet.gpu, fleet.max_gpus, fleet.pue) == ("h100", CARD, 1, 1.2)
    assert (fleet.usd_per_gpu_hour, fleet.zone, fleet.g_per_kwh) == (2.0, "EU27", None)
    # the last full hour has ten minutes of one replica: none to speak of
    assert fleet.today == ()
    assert fleet.embodied_g_per_gpu_hour is not None


def test_replicas_of_the_last_hour_are_today_s(store: Store) -> None:
    filled(store)
    demand = live_demand(store, CONFIG, fact_book(store), at(T0 + HOUR + 1))
    assert [one.model_dump() for one in demand.fleets[0].today] == [
        {"model": MODEL, "gpus_per_replica": 1, "replicas": 1}
    ]


def test_a_provider_s_grams_of_now_come_before_the_table_s(store: Store) -> None:
    """And the split says whose they are."""
    filled(store)
    grid = {"provider": "electricity_maps", "zones": {"EU27": "EU27"}, "key_env": "NO_SUCH_TOKEN"}
    config = CONFIG.model_copy(update={"grid": Config.model_validate({"grid": [grid]}).grid})
    hour = at(T0 + 2 * HOUR)
    append_points(store, [value(hour, 60, 77.0, zone="EU27", fetched_at=AT)])
    demand = live_demand(store, config, fact_book(store), AT)
    assert demand.fleets[0].g_per_kwh == 77.0
    live = measure_curves(store, config, AT)
    answer = split_as_json(recommend(*with_options(demand, [], config, fact_book(store), AT, live)))
    assert answer["assumptions"]["carbon"] == {"h100": "77 g/kWh (Electricity Maps, cached)"}
    assert EU27_G_PER_KWH != 77.0


def test_engines_that_count_no_requests_have_some_of_a_thousand_tokens(store: Store) -> None:
    """9,000 tokens in an hour, two thirds prompt: nine requests of 666.7 + 333.3 tokens."""
    untold = {"finished_stop": None, "finished_length": None, "finished_failed": None}
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(60, **untold)))
    (one,) = live_demand(store, CONFIG, fact_book(store), AT).classes
    assert (one.requests_per_s, one.prompt_tokens, one.generated_tokens) == (
        pytest.approx(9 / 3600), pytest.approx(2000 / 3), pytest.approx(1000 / 3)
    )  # fmt: skip


def test_nothing_served_is_no_demand(store: Store) -> None:
    with pytest.raises(DemandError, match="no model was served in the last week"):
        live_demand(store, CONFIG, fact_book(store), AT)
