"""An account's lines from the store: hand-worked hours of fleets, models and GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.accounting.line import AccountLine
from app.accounting.periods import Period
from app.answers.account import account_lines
from app.store.database import Store
from tests.answers.accounting import CONFIG, EU27_G_PER_KWH, HOME_CARD, NOW, idle, minutes_of, served, take
from tests.batches import MINUTE, MODEL, SECOND, T0, at, batch, engine, gpu, uuid_of
from tests.store.test_rollup import AFTER


def hours(first: int = 0, count: int = 1) -> list[Period]:
    start = datetime.fromtimestamp(T0 / SECOND, UTC)
    return [
        Period(start + timedelta(hours=number), start + timedelta(hours=number + 1), f"hour {number}")
        for number in range(first, first + count)
    ]


def lines(store: Store, periods: Sequence[Period] | None = None, **asked: Any) -> list[AccountLine]:
    return account_lines(store, CONFIG, periods or hours(), now=NOW, **asked)


def of(line: AccountLine, name: str) -> float | None:
    return line.figures[name].value


def joules(line: AccountLine) -> float:
    energy = of(line, "energy_kwh")
    assert energy is not None
    return energy * 3.6e6


def test_an_hour_of_one_rented_gpu(store: Store) -> None:
    ttft = {"ttft_buckets": [0, 1, 0, 0]}
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(**ttft, cached_tokens=40)))
    (line,) = lines(store)
    assert (line.fleet, line.model, line.method, line.coverage) == ("h100", MODEL, "measured", 1.0)
    assert of(line, "gpu_hours") == pytest.approx(1.0)
    counts = ("prompt_tokens", "cached_tokens", "generated_tokens", "requests")
    assert [of(line, name) for name in counts] == [6000, 2400, 3000, 60]
    # 300 W for an hour: 1.08 MJ; $2.00 / 9000 tokens x 1e6 = $222.22; 9000 / 1.08e6 = 0.00833 tokens/J
    assert joules(line) == pytest.approx(1.08e6)
    assert of(line, "cost") == pytest.approx(2.0)
    assert of(line, "usd_per_mtok") == pytest.approx(2.0 / 9000 * 1e6)
    assert of(line, "tokens_per_joule") == pytest.approx(9000 / 1.08e6)
    # 0.3 kWh x PUE 1.2 x 213.02 g/kWh = 76.6872 g
    assert of(line, "carbon_g") == pytest.approx(0.3 * 1.2 * EU27_G_PER_KWH)
    assert line.figures["carbon_g"].method == "default"
    # 60 of 60 in (10, 50] ms: p50 is the 30th, 10 + 0.5 x 40 = 30 ms
    assert line.ttft[50].value_s == pytest.approx(0.030)
    assert (line.ttft[99].lower_s, line.ttft[99].upper_s, line.ttft[99].n) == (0.01, 0.05, 60)
    assert line.price_source == "wattmix.toml, fleet h100"


@pytest.mark.parametrize(("basis", "tokens"), [("total", 9000), ("computed", 6600), ("output", 3000)])
def test_each_basis_divides_by_its_own_tokens(store: Store, basis: Any, tokens: int) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(cached_tokens=40)))
    (line,) = lines(store, basis=basis)
    assert of(line, "usd_per_mtok") == pytest.approx(2.0 / tokens * 1e6)
    assert of(line, "tokens_per_joule") == pytest.approx(tokens / 1.08e6)


def test_the_site_boundary_takes_the_cooling_in(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    (site,) = lines(store, boundary="site")
    (it,) = lines(store, boundary="it")
    assert joules(site) == pytest.approx(1.2 * 1.08e6)
    assert of(site, "carbon_g") == of(it, "carbon_g")


def test_an_owned_gpu_pays_its_electricity(store: Store) -> None:
    card = [gpu("desk-1", name=HOME_CARD)]
    serving = [engine(gpus=[uuid_of("desk-1")])]
    take(store, batch(1, node="desk-1", gpus=card, rows=minutes_of(400), engines=serving, engine_rows=served()))
    (line,) = lines(store)
    # $1752 / (2 x 8760 h) = $0.10/h, and 0.4 kWh at $0.20
    assert of(line, "cost") == pytest.approx(0.1 + 0.08)


def test_a_gpu_without_an_engine_is_a_line_of_its_own(store: Store) -> None:
    cards = [gpu(), gpu(index=1)]
    rows = [*minutes_of(300), *minutes_of(50, gpu=1)]
    take(store, batch(1, gpus=cards, rows=rows, engine_rows=served()))
    working, idle = lines(store)
    assert (working.model, idle.model) == (MODEL, None)
    assert (of(working, "cost"), of(idle, "cost")) == (pytest.approx(2.0), pytest.approx(2.0))
    assert joules(idle) == pytest.approx(50 * 3600)
    assert (of(idle, "usd_per_mtok"), idle.figures["usd_per_mtok"].reason) == (None, "no engine on these GPUs")
    assert of(idle, "generated_tokens") is None


def test_an_engine_over_two_gpus_has_the_cost_of_both(store: Store) -> None:
    cards = [gpu(), gpu(index=1)]
    both = [engine(gpus=[uuid_of("node-7"), uuid_of("node-7", 1)])]
    rows = [*minutes_of(300), *minutes_of(200, gpu=1)]
    take(store, batch(1, gpus=cards, rows=rows, engines=both, engine_rows=served()))
    (line,) = lines(store)
    assert of(line, "gpu_hours") == pytest.approx(2.0)
    assert of(line, "cost") == pytest.approx(4.0)
    assert joules(line) == pytest.approx(500 * 3600)


def test_two_models_on_one_gpu_share_it_by_their_tokens_and_say_so(store: Store) -> None:
    pair = [engine(), engine(model="org/other", url="http://127.0.0.1:8001/metrics")]
    rows = [*served(), *served(engine=1, generated_tokens=150)]
    take(store, batch(1, rows=minutes_of(300), engines=pair, engine_rows=rows))
    one, other = lines(store)
    assert (one.model, other.model) == (MODEL, "org/other")
    # 150 and 250 tokens a minute, and never idle: 3/8 and 5/8 of the hour
    for line, part in ((one, 0.375), (other, 0.625)):
        assert of(line, "gpu_hours") == pytest.approx(part)
        assert of(line, "cost") == pytest.approx(2.0 * part)
        assert joules(line) == pytest.approx(1.08e6 * part)
        assert (line.figures["gpu_hours"].method, line.method) == ("estimated", "estimated")
    assert of(other, "usd_per_mtok") == pytest.approx(1.25 / (60 * 250) * 1e6)


def test_tokens_of_an_engine_on_unknown_gpus_are_not_divided_by_those_of_others(store: Store) -> None:
    two = [engine(), engine(url="http://127.0.0.1:8001/metrics", gpus=None, gpus_source=None)]
    take(store, batch(1, rows=minutes_of(300), engines=two, engine_rows=[*served(), *served(engine=1)]))
    (line,) = lines(store)
    assert of(line, "generated_tokens") == 6000
    assert of(line, "usd_per_mtok") is None
    assert line.figures["usd_per_mtok"].reason == "the GPUs of 1 of its engines are not known"
    assert of(line, "cost") == pytest.approx(2.0)


def test_an_engine_that_moves_takes_its_cost_with_it(store: Store) -> None:
    cards, other = [gpu(), gpu(index=1)], [engine(gpus=[uuid_of("node-7", 1)])]
    rows = [*minutes_of(300), *minutes_of(100, gpu=1)]
    take(
        store,
        batch(1, gpus=cards, rows=rows, engine_rows=served(20)),
        batch(2, gpus=cards, rows=[], engines=other, engine_rows=served(40, first=20)),
    )
    working, idle = lines(store)
    # 20 minutes at 300 W on the first, 40 at 100 W on the second; the rest idles
    assert of(working, "gpu_hours") == pytest.approx(1.0)
    assert joules(working) == pytest.approx(20 * 60 * 300 + 40 * 60 * 100)
    assert joules(idle) == pytest.approx(40 * 60 * 300 + 20 * 60 * 100)


def test_missing_energy_is_filled_at_the_gpus_mean_power_and_said(store: Store) -> None:
    gap = {"t_us": T0 + 60 * MINUTE, "dt_us": 15 * MINUTE, "energy_method": "bridged"}
    take(store, batch(1, rows=[*minutes_of(300, 45), gap], engine_rows=served()))
    (line,) = lines(store)
    assert (line.coverage, line.method) == (pytest.approx(0.75), "estimated")
    assert joules(line) == pytest.approx(1.08e6)
    assert of(line, "gpu_hours") == pytest.approx(1.0)


def test_below_half_coverage_there_are_no_joules_and_no_grams_and_the_cost_stays(store: Store) -> None:
    gap = {"t_us": T0 + 60 * MINUTE, "dt_us": 36 * MINUTE, "energy_method": "bridged"}
    take(store, batch(1, rows=[*minutes_of(300, 24), gap], engine_rows=served()))
    (line,) = lines(store)
    assert line.coverage == pytest.approx(0.4)
    reason = "energy was measured 40% of the time, below 50%"
    for name in ("energy_kwh", "tokens_per_joule", "carbon_g", "g_per_mtok"):
        assert (of(line, name), line.figures[name].reason) == (None, reason)
    assert of(line, "usd_per_mtok") == pytest.approx(2.0 / 9000 * 1e6)


def test_no_tokens_is_no_ratio_and_the_cost_still_shows(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(80), engine_rows=idle()))
    (line,) = lines(store)
    assert (of(line, "usd_per_mtok"), line.figures["usd_per_mtok"].reason) == (None, "no tokens")
    assert of(line, "cost") == pytest.approx(2.0)
    assert of(line, "requests") == 0


def test_simulated_numbers_are_labelled_in_every_figure(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(), simulated=True))
    (line,) = lines(store)
    names = ("gpu_hours", "energy_kwh", "cost", "usd_per_mtok", "carbon_g", "generated_tokens")
    assert {line.figures[name].method for name in names} == {line.method} == {"simulated"}


def test_an_unknown_fleet_takes_the_list_price_of_the_day(store: Store) -> None:
    take(store, batch(1, node="stray", rows=minutes_of(300), engines=[engine(gpus=[uuid_of("stray")])],
                      gpus=[gpu("stray")], engine_rows=served()))  # fmt: skip
    (line,) = lines(store)
    assert line.fleet is None
    assert line.figures["cost"].method == "default"
    assert line.price_source.startswith("list price")


def test_quantiles_of_two_engines_are_read_off_their_sum(store: Store) -> None:
    pair = [engine(label="0"), engine(label="1")]
    rows = [*served(ttft_buckets=[10, 0, 0, 0]), *served(engine=1, ttft_buckets=[0, 0, 1, 0])]
    take(store, batch(1, rows=minutes_of(300), engines=pair, engine_rows=rows))
    (line,) = lines(store)
    # 600 up to 10 ms and 60 in (50, 100]: the 654th of 660 is the 54th of 60 there, 50 + 0.9 x 50 = 95 ms
    assert line.ttft[99].value_s == pytest.approx(0.095)
    assert line.ttft[90].upper_s == 0.01  # rank 594 of 660


def test_hours_and_minutes_give_the_same_and_periods_add_up(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300, 120), engine_rows=served(120, cached_tokens=7)))
    by_hour = lines(store, hours(0, 2))
    start = datetime.fromtimestamp(T0 / SECOND, UTC)
    (both,) = lines(store, [Period(start, start + timedelta(hours=2), "both")])
    far = account_lines(store, CONFIG, hours(0, 2), now=NOW + timedelta(days=400))  # the minutes count as gone
    assert [of(line, "generated_tokens") for line in by_hour] == [3000, 3000]
    for name in ("gpu_hours", "energy_kwh", "cost", "carbon_g", "generated_tokens", "cached_tokens"):
        values = [of(line, name) for line in by_hour]
        assert of(both, name) == pytest.approx(sum(values), rel=1e-12)
        assert [of(line, name) for line in far] == pytest.approx(values, rel=1e-12)
    assert far[0].ttft == by_hour[0].ttft


def test_later_knowledge_of_a_fleet_is_left_out_on_demand(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    (now,) = lines(store)
    (before,) = account_lines(store, CONFIG, hours(), now=NOW, known_at=at(AFTER))
    assert (now.fleet, before.fleet) == ("h100", None)  # it was assigned an hour later


def test_no_periods_no_lines(store: Store) -> None:
    assert account_lines(store, CONFIG, [], now=NOW) == []
    assert account_lines(store, CONFIG, hours(), now=NOW) == []
