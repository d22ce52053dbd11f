"""The live answer: figures by hand, sums of parts, reasons for what is missing, and the replica that is off."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from app.answers.facts import take_over
from app.answers.live import live
from app.answers.replicas import engine_name
from app.config import Config
from app.facts.fact import Fact
from app.facts.kinds import Kind, RentedPrice, parse_value
from app.store.database import Store
from app.store.facts import append_facts
from app.store.rollup import roll_up
from collectors.samples import Batch, Gpu
from tests.batches import (
    DEADLINE_S,
    HOUR,
    MINUTE,
    MODEL,
    SECOND,
    T0,
    URL,
    Clock,
    Row,
    at,
    batch,
    engine,
    gpu,
    seconds,
    uuid_of,
    writing,
)

NOW = T0 + HOUR
RENTED = {"name": "rented", "gpu": "*", "price": {"plan": "rented", "usd_per_gpu_hour": 1.5}}
# (9000 - 240) / 8760 h = $1 an hour and GPU, and 0.25 $/kWh on PUE 1.2
OWNED = {
    "name": "owned", "gpu": "*", "pue": 1.2,
    "price": {"plan": "owned", "purchase_usd": 9000.0, "residual_usd": 240.0, "life_years": 1.0,
              "tariff_usd_per_kwh": 0.25},
}  # fmt: skip


def config(*fleets: Mapping[str, Any], match: Mapping[str, str] | None = None) -> Config:
    """match: node -> fleet; without it all nodes belong to the first fleet."""
    given = match or {"*": fleets[0]["name"]}
    nodes = [{"match": pattern, "fleet": name} for pattern, name in given.items()]
    return Config.model_validate({"fleet": list(fleets), "node": nodes})


def scrapes(count: int = 60, **values: Any) -> list[Row]:
    """A row every five seconds up to NOW; by default 500 + 100 tokens and 2 requests of 20 ms: 120 tokens/s."""
    row = {"prompt_tokens": 500, "generated_tokens": 100, "finished_stop": 2, "ttft_us": 40_000, "running": 3,
           "waiting": 1, "ttft_buckets": [0, 2, 0, 0]} | values  # fmt: skip
    return [{"t_us": NOW - number * 5 * SECOND, **row} for number in reversed(range(count))]


def one_node(
    node: str = "node-7", *, sequence: int = 1, power_w: int = 300, gpus: Sequence[Gpu] | None = None, **given: Any
) -> Batch:
    """A node with one engine on its GPU 0, as `scrapes`, and a minute of power on each GPU."""
    cards = list(gpus) if gpus is not None else [gpu(node)]
    rows = [
        {"gpu": position, **row}
        for position in range(len(cards))
        for row in seconds(NOW - 60 * SECOND, 60, energy_mj=power_w * 1000)
    ]
    known = {"engines": [engine(gpus=[uuid_of(node)])], "engine_rows": scrapes(), "rows": rows, "gpus": cards}
    return batch(sequence, node=node, **{**known, **given})


def take(store: Store, *batches: Batch, settings: Config | None = None, clock_us: int = NOW) -> None:
    with writing(store, Clock(clock_us)) as taking:
        for waiting in [taking.submit(one, one.readings) for one in batches]:
            waiting.result(DEADLINE_S)
    take_over(store, settings or Config(), at(clock_us))


def asked(store: Store, settings: Config | None = None, now: datetime | None = None, **given: Any) -> dict[str, Any]:
    answer = live(store, settings or Config(), now or at(NOW), **given)
    json.dumps(answer, allow_nan=False)
    return answer


def only(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


def values(one: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: one[name]["value"] for name in names}


def reason(figure: Mapping[str, Any]) -> str:
    assert figure["value"] is None
    return str(figure["reason"])


# Figures


def test_an_empty_store_has_nothing(store: Store) -> None:
    answer = asked(store)
    assert {name: answer[name] for name in ("fleets", "replicas", "unallocated", "findings", "not_judged")} == {
        "fleets": [], "replicas": [], "unallocated": [], "findings": [], "not_judged": [],
    }  # fmt: skip
    assert answer["simulated"] is False
    assert answer["history"]["fleets"] == []


def test_a_price_is_that_of_the_moment_wherever_it_was_set(store: Store) -> None:
    settings = config(RENTED)
    take(store, one_node(), settings=settings)
    dearer = Fact("price", "rented", at(NOW - MINUTE), at(NOW), "a contract", RentedPrice(per_gpu_hour=4.0))
    append_facts(store, [dearer])
    one = only(asked(store, settings)["replicas"])
    assert (one["usd_per_hour"]["value"], one["price_source"]) == (pytest.approx(4.0), "a contract, fleet rented")


def test_the_figures_of_a_replica(store: Store) -> None:
    """120 tokens/s at 300 W are 0.4 tokens/J; $1.50/h for 0.432 Mtok an hour are $3.472/Mtok."""
    settings = config(RENTED)
    take(store, one_node(), settings=settings)
    answer = asked(store, settings)
    one = only(answer["replicas"])
    assert values(one, "tokens_per_s", "generated_tokens_per_s", "requests_per_s", "running", "waiting") == {
        "tokens_per_s": 120.0, "generated_tokens_per_s": 20.0, "requests_per_s": 0.4, "running": 3, "waiting": 1,
    }  # fmt: skip
    assert values(one, "power_w", "tokens_per_joule", "usd_per_hour", "usd_per_mtok") == {
        "power_w": pytest.approx(300), "tokens_per_joule": pytest.approx(0.4), "usd_per_hour": pytest.approx(1.5),
        "usd_per_mtok": pytest.approx(1.5 / 0.432),
    }  # fmt: skip
    methods = {name: one[name]["method"] for name in ("tokens_per_s", "power_w", "usd_per_hour", "usd_per_mtok")}
    assert methods == {"tokens_per_s": "measured", "power_w": "measured", "usd_per_hour": "user", "usd_per_mtok":
                       "user"}  # fmt: skip
    assert {name: one[name] for name in ("replica", "state", "reason", "fleet", "model", "gpus", "cards")} == {
        "replica": "node-7:8000", "state": "ok", "reason": None, "fleet": "rented", "model": MODEL,
        "gpus": ["node-7-0"], "cards": ["NVIDIA H100 PCIe"],
    }  # fmt: skip
    assert (one["from"], one["to"]) == (at(NOW - MINUTE).isoformat(), at(NOW).isoformat())
    assert reason(one["failed_per_s"]) == reason(one["kv_usage"]) == "not told by the engine"
    assert {name: answer[name] for name in ("window_s", "ttft_window_s", "basis", "boundary", "host_w_per_gpu")} == {
        "window_s": 60, "ttft_window_s": 300, "basis": "total", "boundary": "it", "host_w_per_gpu": 0.0,
    }  # fmt: skip


def test_a_latency_has_its_bucket_and_n(store: Store) -> None:
    """60 scrapes of 2 in (10, 50] ms: rank 60 of 120 is in the middle of the bucket."""
    take(store, one_node())
    one = only(asked(store)["replicas"])
    assert one["ttft_p50_ms"] == {
        "value": pytest.approx(30.0), "unit": "ms", "method": "measured", "reason": None, "coverage": None,
        "lower": pytest.approx(10.0), "upper": pytest.approx(50.0), "at_least": False, "n": 120, "rests_on": 60.0,
        "small_sample": False,
    }  # fmt: skip


def test_a_latency_in_the_last_bucket_is_only_a_lower_bound(store: Store) -> None:
    take(store, one_node(engine_rows=scrapes(ttft_buckets=[0, 0, 0, 1])))
    found = only(asked(store)["fleets"])["ttft_p99_ms"]
    assert (found["value"], found["lower"], found["upper"], found["at_least"], found["n"]) == (
        pytest.approx(100.0), pytest.approx(100.0), None, True, 60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "why"),
    [({"ttft_buckets": None}, "no first token in this window"),
     ({"ttft_buckets": None, "ttft_us": None}, "not told by the engine")],
)  # fmt: skip
def test_why_there_is_no_latency(store: Store, row: Row, why: str) -> None:
    take(store, one_node(engine_rows=scrapes(**row)))
    found = only(asked(store)["replicas"])["ttft_p99_ms"]
    assert (reason(found), found["n"], found["at_least"]) == (why, 0, False)


def test_an_owned_gpu_costs_its_hour_and_the_electricity_of_the_moment(store: Store) -> None:
    # $1/h + 0.3 kW x 1.2 x 0.25 $/kWh = $1.09/h
    settings = config(OWNED)
    take(store, one_node(), settings=settings)
    found = only(asked(store, settings)["replicas"])["usd_per_hour"]
    assert (found["value"], found["method"]) == (pytest.approx(1.09), "user")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([], "no tariff of fleet home"),
        ([("tariff", "home", {"plan": "flat", "currency": "CHF", "per_kwh": 0.2})], "no exchange rate for CHF"),
    ],
)
def test_an_owned_gpu_whose_electricity_has_no_price_has_none(
    store: Store, facts: list[tuple[Kind, str, dict[str, Any]]], why: str
) -> None:
    plan: dict[str, Any] = {"plan": "owned", "purchase": 1800, "life_years": 3}
    take(store, one_node(), settings=config({"name": "home", "gpu": "H100"}))
    known: list[tuple[Kind, str, dict[str, Any]]] = [("price", "home", plan), *facts]
    append_facts(store, [Fact(kind, who, at(0), at(NOW), "test", parse_value(kind, said)) for kind, who, said in known])
    found = only(asked(store)["replicas"])
    assert why in reason(found["usd_per_hour"])


def test_a_fleet_without_a_price_has_the_list_price_of_the_day(store: Store) -> None:
    take(store, one_node())
    answer = asked(store)
    found = only(answer["replicas"])
    assert (found["usd_per_hour"]["value"], found["usd_per_hour"]["method"]) == (2.0, "default")
    assert found["price_source"].startswith("list price")
    assert only(answer["fleets"])["fleet"] is None
    assert answer["methods"] == ["default", "measured"]


def test_a_card_without_any_price_says_so(store: Store) -> None:
    take(store, one_node(gpus=[gpu(name="Prototype X1")]))
    fleet = only(asked(store)["fleets"])
    assert reason(fleet["usd_per_hour"]) == reason(fleet["usd_per_mtok"]) == "no price for Prototype X1"
    assert fleet["tokens_per_joule"]["value"] == pytest.approx(0.4)


def test_a_shorter_window_is_asked_for(store: Store) -> None:
    rows = [*scrapes(60)[:-6], *scrapes(6, generated_tokens=700)]
    take(store, one_node(engine_rows=rows))
    assert only(asked(store, window_s=30)["replicas"])["tokens_per_s"]["value"] == 240.0
    assert only(asked(store)["replicas"])["tokens_per_s"]["value"] == 180.0


# Sums


def test_a_fleet_is_the_sum_of_its_replicas_and_its_idle_gpus(store: Store) -> None:
    """Two replicas of 120 and 60 tokens/s on 300 and 100 W, and a GPU of 50 W without an engine, at $1.50 each."""
    settings = config(RENTED)
    idle_rows = [{"gpu": 1, **row} for row in seconds(NOW - MINUTE, 60, energy_mj=50_000)]
    busy_rows = seconds(NOW - MINUTE, 60)
    take(
        store,
        one_node(gpus=[gpu(), gpu(index=1)], rows=[*busy_rows, *idle_rows]),
        one_node("node-8", power_w=100, engine_rows=scrapes(prompt_tokens=200, ttft_buckets=[0, 0, 2, 0])),
        settings=settings,
    )
    answer = asked(store, settings)
    fleet, replicas = only(answer["fleets"]), answer["replicas"]
    assert (fleet["gpus"], fleet["replicas"], fleet["live"], fleet["unallocated_gpus"]) == (3, 2, 2, 1)
    assert values(fleet, "tokens_per_s", "requests_per_s", "running", "waiting", "power_w", "usd_per_hour") == {
        "tokens_per_s": pytest.approx(180), "requests_per_s": pytest.approx(0.8), "running": 6, "waiting": 2,
        "power_w": pytest.approx(450), "usd_per_hour": pytest.approx(4.5),
    }  # fmt: skip
    # 180 tokens/s / 450 W, not the mean of 0.4 and 0.6; $4.50/h / 0.648 Mtok/h
    assert fleet["tokens_per_joule"]["value"] == pytest.approx(0.4)
    assert fleet["usd_per_mtok"]["value"] == pytest.approx(4.5 / 0.648)
    # 120 first tokens in (10, 50] and 120 in (50, 100]: rank 120 is the end of the lower bucket
    assert (fleet["ttft_p50_ms"]["value"], fleet["ttft_p50_ms"]["n"]) == (pytest.approx(50.0), 240)
    idle = only(answer["unallocated"])
    assert (idle["node"], idle["gpu"], idle["why"]) == ("node-7", 1, "no engine on it")
    # Law 9: the parts are the whole.
    for name in ("power_w", "usd_per_hour"):
        parts = math.fsum([*(one[name]["value"] for one in replicas), idle[name]["value"]])
        assert parts == pytest.approx(fleet[name]["value"], rel=1e-9)
        assert fleet[f"unallocated_{name}"]["value"] == pytest.approx(idle[name]["value"])


def test_fleets_are_apart_and_what_has_none_is_last(store: Store) -> None:
    settings = config(RENTED, OWNED, match={"node-8": "owned", "node-9": "rented"})
    take(store, one_node("node-7"), one_node("node-8"), one_node("node-9"), settings=settings)
    answer = asked(store, settings)
    assert [fleet["fleet"] for fleet in answer["fleets"]] == ["owned", "rented", None]
    assert [line["fleet"] for line in answer["history"]["fleets"]] == ["owned", "rented", None]


def test_two_engines_on_one_gpu_share_it_in_equal_parts(store: Store) -> None:
    two = [engine(label="0"), engine(label="1")]
    rows = [{"engine": position, **row} for position in (0, 1) for row in scrapes()]
    take(store, one_node(engines=two, engine_rows=rows), settings=config(RENTED))
    answer = asked(store, config(RENTED))
    assert [(one["replica"], one["power_w"]["value"], one["power_w"]["method"]) for one in answer["replicas"]] == [
        ("node-7:8000/0", pytest.approx(150), "estimated"), ("node-7:8000/1", pytest.approx(150), "estimated"),
    ]  # fmt: skip
    fleet = only(answer["fleets"])
    assert values(fleet, "power_w", "usd_per_hour") == {"power_w": pytest.approx(300), "usd_per_hour": 1.5}
    assert fleet["tokens_per_joule"]["value"] == pytest.approx(240 / 300)


def test_an_engine_that_began_again_elsewhere_takes_no_part_of_its_gpu(store: Store) -> None:
    """The same card, another port: what the old one was is silent, and the card is the new one's alone."""
    clock = Clock(NOW - 2 * MINUTE)
    with writing(store, clock) as taking:
        for one in (batch(1, rows=[], engines=[engine(url=f"{URL}-old")]), one_node(sequence=2)):
            taking.submit(one, one.readings).result(DEADLINE_S)
            clock.us = NOW
    answer = asked(store)
    old, new = answer["replicas"]
    assert (old["state"], new["state"]) == ("silent", "ok")
    assert reason(old["power_w"]) == reason(old["usd_per_hour"]) == "another engine is on its GPUs now"
    assert values(new, "power_w", "usd_per_hour") == {"power_w": pytest.approx(300), "usd_per_hour": 2.0}
    assert new["power_w"]["method"] == "measured"
    assert only(answer["fleets"])["tokens_per_joule"]["value"] == pytest.approx(0.4)


def test_an_engine_on_two_gpus_draws_what_both_do(store: Store) -> None:
    cards = [gpu(), gpu(index=1)]
    take(store, one_node(gpus=cards, engines=[engine(gpus=[uuid_of("node-7"), uuid_of("node-7", 1)])]))
    one = only(asked(store)["replicas"])
    assert values(one, "power_w", "usd_per_hour", "tokens_per_joule") == {
        "power_w": pytest.approx(600), "usd_per_hour": 4.0, "tokens_per_joule": pytest.approx(0.2),
    }  # fmt: skip


# What is missing


def test_a_silent_replica_is_not_0_and_says_why(store: Store) -> None:
    """Law 2. Its node went silent two minutes ago; the other goes on."""
    settings = config(RENTED)
    take(store, one_node("node-8"), settings=settings, clock_us=NOW)
    later = at(NOW + 2 * MINUTE)
    rows = [row | {"t_us": row["t_us"] + 2 * MINUTE} for row in scrapes()]
    power = seconds(NOW + MINUTE, 60)
    take(store, one_node(engine_rows=rows, rows=power), settings=settings, clock_us=NOW + 2 * MINUTE)
    answer = asked(store, settings, later)
    silent, fine = answer["replicas"]
    assert (silent["replica"], silent["state"], fine["state"]) == ("node-8:8000", "silent", "ok")
    assert silent["reason"] == "nothing from node node-8 for 2 min"
    for name in ("tokens_per_s", "requests_per_s", "running", "ttft_p99_ms"):
        assert reason(silent[name]) == silent["reason"]
    fleet = only(answer["fleets"])
    assert (fleet["live"], fleet["replicas"]) == (1, 2)
    assert (fleet["tokens_per_s"]["value"], fleet["tokens_per_s"]["coverage"]) == (120.0, 0.5)
    assert fleet["off"] == [{"replica": "node-8:8000", "state": "silent"}]
    assert fleet["tokens_per_joule"]["value"] == pytest.approx(0.4)  # of the one that is seen, and its GPU


def test_a_replica_that_is_down_still_draws_and_costs(store: Store) -> None:
    down = engine(status="connection refused", gpus=[uuid_of("node-7")])
    settings = config(RENTED)
    take(store, one_node(engines=[down], engine_rows=[]), settings=settings)
    answer = asked(store, settings)
    one = only(answer["replicas"])
    assert (one["state"], one["reason"], reason(one["tokens_per_s"])) == ("down", *["connection refused"] * 2)
    assert values(one, "power_w", "usd_per_hour") == {"power_w": pytest.approx(300), "usd_per_hour": 1.5}
    assert reason(one["tokens_per_joule"]) == "connection refused"
    fleet = only(answer["fleets"])
    assert reason(fleet["tokens_per_joule"]) == reason(fleet["usd_per_mtok"]) == "no replica has samples now"
    assert only(answer["findings"]) == {
        "level": "problem", "where": "node-7:8000", "what": "is down: connection refused",
        "remedy": f"is it serving at {URL}? Its log says why it ended; the node's agent asks again by itself",
    }  # fmt: skip


def test_an_engine_whose_gpus_are_not_known_has_tokens_and_no_joules(store: Store) -> None:
    take(store, one_node(engines=[engine(gpus=None, gpus_source=None)]))
    answer = asked(store)
    one, fleet = only(answer["replicas"]), only(answer["fleets"])
    assert one["tokens_per_s"]["value"] == 120.0
    for name in ("power_w", "usd_per_hour", "tokens_per_joule", "usd_per_mtok"):
        assert reason(one[name]) == "its GPUs are not known"
    assert reason(fleet["tokens_per_joule"]) == (
        "tokens and power are known of 0 of 1 replicas; the first other one: its GPUs are not known"
    )
    assert only(answer["unallocated"])["why"] == "it may be one of node-7:8000, whose GPUs are not known"
    finding = only(answer["findings"])
    assert (finding["level"], finding["what"]) == ("warning", "runs on GPUs that are not known")
    assert "[[agent.engine]]" in finding["remedy"]


def test_a_fleet_s_ratios_are_of_the_replicas_of_which_both_are_known(store: Store) -> None:
    """Law 3: the tokens of the third, and the GPU it may run on, are left out of both sides."""
    unknown = [engine(gpus=None, gpus_source=None)]
    take(store, one_node("node-7"), one_node("node-8"), one_node("node-9", engines=unknown, power_w=900))
    fleet = only(asked(store)["fleets"])
    found = fleet["tokens_per_joule"]
    assert (found["value"], found["coverage"]) == (pytest.approx(240 / 600), pytest.approx(2 / 3))
    assert fleet["power_w"]["value"] == pytest.approx(1500)


def test_below_half_of_the_replicas_a_fleet_has_no_ratios(store: Store) -> None:
    unknown = [engine(gpus=None, gpus_source=None)]
    take(store, one_node(), *(one_node(node, engines=unknown) for node in ("node-8", "node-9")))
    assert reason(only(asked(store)["fleets"])["usd_per_mtok"]) == (
        "tokens and power are known of 1 of 3 replicas; the first other one: its GPUs are not known"
    )


def test_a_gpu_that_no_agent_measures_is_said(store: Store) -> None:
    take(store, one_node(engines=[engine(gpus=[uuid_of("node-7"), "elsewhere"])]))
    assert reason(only(asked(store)["replicas"])["power_w"]) == "1 of its 2 GPUs are not measured"


def test_an_engine_on_no_gpu_has_no_watts(store: Store) -> None:
    take(store, one_node(engines=[engine(gpus=[])]))
    assert reason(only(asked(store)["replicas"])["power_w"]) == "it runs on no GPU"


@pytest.mark.parametrize(("covered_s", "known"), [(29, False), (30, True)])
def test_below_half_of_the_window_power_is_missing(store: Store, covered_s: int, known: bool) -> None:
    take(store, one_node(rows=seconds(NOW - covered_s * SECOND, covered_s)))
    one = only(asked(store)["replicas"])
    if known:
        assert one["power_w"]["value"] == pytest.approx(300)
    else:
        assert reason(one["power_w"]) == "energy was measured 48% of the time, below 50%"
        assert reason(one["tokens_per_joule"]) == reason(one["power_w"])


def test_tokens_that_an_engine_does_not_tell_are_missing(store: Store) -> None:
    take(store, one_node(engine_rows=scrapes(prompt_tokens=None)))
    one = only(asked(store)["replicas"])
    assert reason(one["tokens_per_s"]) == reason(one["usd_per_mtok"]) == "not told by the engine"
    assert one["generated_tokens_per_s"]["value"] == 20.0


def test_no_tokens_have_no_price_each(store: Store) -> None:
    take(store, one_node(engine_rows=scrapes(prompt_tokens=0, generated_tokens=0)))
    one = only(asked(store)["replicas"])
    assert (one["tokens_per_s"]["value"], reason(one["usd_per_mtok"])) == (0, "no tokens")
    assert one["usd_per_hour"]["value"] == 2.0


def test_a_gpu_unseen_for_longer_than_the_tolerance_has_no_price(store: Store) -> None:
    settings = config(RENTED)
    take(store, one_node(), settings=settings)
    while roll_up(store, NOW + 30 * MINUTE, oldest_raw_us=0, oldest_minute_us=0):
        pass
    for after_min, why in ((9, None), (11, "not seen for 11 min: it may be gone")):
        fleet = only(asked(store, settings, at(NOW + after_min * MINUTE))["fleets"])
        assert (fleet["usd_per_hour"]["value"], fleet["usd_per_hour"]["reason"]) == (None if why else 1.5, why)
        assert reason(fleet["power_w"]) == f"no sample for {after_min} min"


# Honest labels


def test_simulated_numbers_are_labelled_everywhere(store: Store) -> None:
    """Law 10: on the replica, in every sum it is part of, and on the GPU without an engine."""
    settings = config(RENTED)
    take(store, one_node(gpus=[gpu(), gpu(index=1)], simulated=True), one_node("node-8"), settings=settings)
    answer = asked(store, settings)
    assert answer["simulated"] is True
    made_up, real = sorted(answer["replicas"], key=lambda one: str(one["replica"]))
    figures = ("tokens_per_s", "ttft_p99_ms", "power_w", "usd_per_hour", "usd_per_mtok", "tokens_per_joule")
    assert {made_up[name]["method"] for name in figures} == {"simulated"}
    assert {real[name]["method"] for name in figures} == {"measured", "user"}
    fleet = only(answer["fleets"])
    assert fleet["simulated"] is True
    assert {fleet[name]["method"] for name in figures} == {"simulated"}
    assert only(answer["unallocated"])["power_w"]["method"] == "simulated"


# Which one is off


def replicas(store: Store, *buckets: Sequence[int], rates: Sequence[int] = (), hot: int | None = None) -> None:
    """A node each, with these latency buckets a scrape, and so many requests a scrape; one with a hot card."""
    nodes = []
    for number, counts in enumerate(buckets):
        node = f"node-{number}"
        slow_rows = seconds(NOW - MINUTE, 60, thermal_slowdown=hot == number)
        requests = rates[number] if rates else 2
        rows = scrapes(ttft_buckets=list(counts), finished_stop=requests)
        nodes.append(one_node(node, rows=slow_rows, engine_rows=rows))
    take(store, *nodes)


FAST, SLOW = (2, 0, 0, 0), (0, 0, 2, 0)


def test_the_slow_replica_is_named_first_with_what_to_do(store: Store) -> None:
    """p50 of (0, 10] is 5 ms, of (50, 100] 75 ms: 15 times as much."""
    replicas(store, FAST, SLOW, FAST, FAST)
    answer = asked(store)
    worst = answer["replicas"][0]
    assert (worst["replica"], worst["state"]) == ("node-1:8000", "slow")
    assert only(worst["deviations"]) == {
        "quantity": "ttft", "value": pytest.approx(0.075), "peers_median": pytest.approx(0.005), "peers": 3,
        "factor": pytest.approx(15.0),
    }  # fmt: skip
    finding = only(answer["findings"])
    assert (finding["level"], finding["where"]) == ("warning", "node-1:8000")
    assert finding["what"] == "is slow: TTFT p50 75 ms, 15 times the median of its 3 like replicas (5 ms)"
    assert "compare clocks, power limit and other processes" in finding["remedy"]
    assert only(answer["fleets"])["off"] == [{"replica": "node-1:8000", "state": "slow"}]
    assert answer["not_judged"] == []


def test_a_slow_replica_on_a_hot_card_is_told_so(store: Store) -> None:
    replicas(store, FAST, SLOW, FAST, hot=1)
    finding = only(asked(store)["findings"])
    assert finding["remedy"].startswith("heat or power supply slows its GPU 0 (100% of the time)")


def test_a_slow_replica_with_more_requests_than_the_others_is_told_so(store: Store) -> None:
    replicas(store, FAST, SLOW, FAST, FAST, rates=(2, 6, 2, 2))
    answer = asked(store)
    finding = only(answer["findings"])
    assert finding["what"].startswith("is slow: TTFT p50 75 ms")
    # 60 scrapes x 6 requests in 300 s = 1.2/s against 0.4/s
    assert finding["what"].endswith("1.2 requests/s, 3 times the median of its 3 like replicas (0.4)")
    assert finding["remedy"] == "it gets more than the others: lower its weight at the router"


@pytest.mark.parametrize(
    ("requests", "what", "remedy"),
    [(0, "is unbalanced: 0 requests/s, 0 times", "does the router know it"), (9, "is unbalanced: 1.8", "even out")],
)
def test_an_unbalanced_replica_is_named(store: Store, requests: int, what: str, remedy: str) -> None:
    replicas(store, FAST, FAST, FAST, rates=(2, 2, requests))
    answer = asked(store)
    assert answer["replicas"][0]["state"] == "unbalanced"
    finding = only(answer["findings"])
    assert finding["what"].startswith(what)
    assert finding["remedy"].startswith(remedy)


def test_two_replicas_are_not_judged_and_it_is_said(store: Store) -> None:
    replicas(store, FAST, SLOW)
    answer = asked(store)
    assert {one["state"] for one in answer["replicas"]} == {"ok"}
    assert answer["findings"] == []
    assert only(answer["not_judged"]) == {
        "fleet": None, "model": MODEL, "card": "NVIDIA H100 PCIe", "gpus": 1, "replicas": 2,
        "reason": "3 like replicas are needed to tell which one is off",
    }  # fmt: skip


def test_a_replica_that_is_down_is_not_one_of_three(store: Store) -> None:
    replicas(store, FAST, SLOW)
    take(store, one_node("node-2", engines=[engine(status="refused", gpus=["node-2-0"])], engine_rows=[]))
    answer = asked(store)
    assert [one["state"] for one in answer["replicas"]] == ["down", "ok", "ok"]
    assert [(kind["replicas"], kind["reason"][:7]) for kind in answer["not_judged"]] == [(2, "3 like ")]


def test_replicas_of_other_cards_are_not_alike(store: Store) -> None:
    replicas(store, FAST, FAST, FAST)
    other = one_node("gamer", gpus=[gpu("gamer", name="NVIDIA GeForce RTX 4090")],
                     engine_rows=scrapes(ttft_buckets=list(SLOW)))  # fmt: skip
    take(store, other)
    answer = asked(store)
    assert answer["findings"] == []
    assert [kind["card"] for kind in answer["not_judged"]] == ["NVIDIA GeForce RTX 4090"]


# Names


@pytest.mark.parametrize(
    ("url", "label", "name"),
    [
        (URL, "", "rack1:8000"),
        (URL, "1", "rack1:8000/1"),
        ("http://localhost:8001/metrics", "", "rack1:8001"),
        ("http://RACK1:8000/metrics", "", "rack1:8000"),
        ("http://10.0.0.7:8000/metrics", "", "rack1 10.0.0.7:8000"),
        ("http://vllm.internal/metrics", "0", "rack1 vllm.internal/0"),
    ],
)
def test_an_engine_s_name_is_short(url: str, label: str, name: str) -> None:
    assert engine_name("rack1", url, label) == name


def test_replicas_of_one_url_are_told_apart_by_their_model(store: Store) -> None:
    two = [engine(model="org/one"), engine(model="org/two")]
    rows = [{"engine": position, **row} for position in (0, 1) for row in scrapes()]
    take(store, one_node(engines=two, engine_rows=rows))
    names = sorted(one["replica"] for one in asked(store)["replicas"])
    assert names == ["node-7:8000 (org/one)", "node-7:8000 (org/two)"]


def test_replicas_have_names_of_their_own_whatever_they_share(store: Store) -> None:
    four = [engine(), engine(url=f"{URL}/b"), engine(label="0"), engine(url="http://10.0.0.7:8000/metrics")]
    take(store, one_node(engines=four, engine_rows=[]))
    assert sorted(one["replica"] for one in asked(store)["replicas"]) == [
        "node-7 10.0.0.7:8000", f"node-7 {URL} ({MODEL})", f"node-7 {URL}/b ({MODEL})", "node-7:8000/0",
    ]  # fmt: skip


# History


def test_history_has_a_value_or_none_for_each_bin(store: Store) -> None:
    take(store, one_node())
    found = asked(store)["history"]
    line = only(found["fleets"])["tokens_per_s"]
    assert (found["bin_s"], len(found["from"]), len(line)) == (15, 60, 60)
    # Scrapes begin 300 s before NOW, bins end 15 s before it: 19 of the 60 have a value.
    assert line == [None] * 41 + [pytest.approx(120.0)] * 19
    assert found["from"][-1] == at(NOW - 30 * SECOND).isoformat()
