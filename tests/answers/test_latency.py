"""Latencies of lines: merged buckets whole and step by step, what a percentile rests on, and bounds of attainment."""

from __future__ import annotations

from typing import Any

import pytest

from app.accounting.latency import wilson
from app.answers.latency import Wanted, latency, parse_wanted
from app.errors import BadParameter
from app.facts.kinds import LatencySlo
from app.store.database import Store
from tests.answers.accounting import CONFIG, NOW, asked, know, minutes_of, served, summed, take
from tests.batches import MODEL, batch, engine, gpu, uuid_of

LONG_AGO = -1_000_000


def filled(store: Store, **said: Any) -> None:
    """On two GPUs beside an idle one, of a minute 10 first tokens up to 10 ms, and one from 50 to 100 ms."""
    cards = [gpu(index=number) for number in range(3)]
    pair = [engine(), engine(url="http://127.0.0.1:8001/metrics", gpus=[uuid_of("node-7", 1)])]
    rows = [row for number in range(3) for row in minutes_of(300, gpu=number)]
    done = [*served(ttft_buckets=[10, 0, 0, 0]), *served(engine=1, ttft_buckets=[0, 0, 1, 0], **said)]
    take(store, batch(1, gpus=cards, rows=rows, engines=pair, engine_rows=done))


def asked_of(store: Store, wanted: Wanted | None = None, **said: Any) -> dict[str, Any]:
    return latency(store, CONFIG, asked(**{"by": "fleet_model", "step": "15min"} | said), NOW, wanted)


def test_buckets_are_merged_and_percentiles_never_averaged(store: Store) -> None:
    """600 up to 10 ms, 60 from 50 to 100. p50: the 330th, 10 x 330 / 600; p99: the 654th, 50 + 50 x 54 / 60 = 95."""
    filled(store)
    answer = asked_of(store)
    (line,) = answer["lines"]  # the GPU without an engine has none
    assert line["key"] == {"fleet": "h100", "model": MODEL}
    ttft = line["whole"]["ttft"]
    assert [ttft[name]["value"] for name in ("p50", "p90", "p99")] == pytest.approx([5.5, 9.9, 95.0])
    assert (ttft["p99"]["lower"], ttft["p99"]["upper"], ttft["p99"]["at_least"]) == (50.0, 100.0, False)
    assert (ttft["p99"]["n"], ttft["p99"]["rests_on"], ttft["p99"]["small_sample"]) == (660, pytest.approx(6.6), False)
    assert ttft["histogram"] == [
        {"lower": 0.0, "upper": 10.0, "n": 600, "share": 600 / 660},
        {"lower": 50.0, "upper": 100.0, "n": 60, "share": 60 / 660},
    ]
    assert answer["total"]["whole"]["ttft"] == ttft


def test_each_step_has_its_own_quantile_with_its_bucket(store: Store) -> None:
    """A quarter of an hour: 150 and 15. p99: the 164th of 165, 50 + 50 x 14 / 15; it rests on 1.65 of them."""
    filled(store)
    answer = asked_of(store, minutes=75)
    assert [one["label"][11:16] for one in answer["periods"]] == ["04:00", "04:15", "04:30", "04:45", "05:00"]
    steps = answer["lines"][0]["steps"]["ttft"]
    assert steps["n"] == [165, 165, 165, 165, 0]
    assert steps["p99"]["values"] == [*[pytest.approx(50 + 50 * 14 / 15)] * 4, None]
    assert steps["p99"]["lower"] == [50.0, 50.0, 50.0, 50.0, None]
    assert steps["p99"]["upper"] == [100.0, 100.0, 100.0, 100.0, None]
    assert steps["p99"]["small_sample"] == [True, True, True, True, False]
    assert steps["p50"]["small_sample"] == [False] * 5


def test_above_the_last_bound_only_a_lower_one_is_known(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served(ttft_buckets=[0, 0, 0, 1])))
    line = asked_of(store)["lines"][0]
    p50 = line["whole"]["ttft"]["p50"]
    assert (p50["value"], p50["lower"], p50["upper"], p50["at_least"]) == (100.0, 100.0, None, True)
    assert line["steps"]["ttft"]["p50"]["at_least"] == [True] * 4
    assert line["whole"]["ttft"]["histogram"] == [{"lower": 100.0, "upper": None, "n": 60, "share": 1.0}]


def test_replicas_side_by_side(store: Store) -> None:
    filled(store)
    lines = asked_of(store, by="replica")["lines"]
    assert [(line["key"]["url"], line["whole"]["ttft"]["p50"]["n"]) for line in lines] == [
        ("http://127.0.0.1:8000/metrics", 600), ("http://127.0.0.1:8001/metrics", 60),
    ]  # fmt: skip
    assert [line["whole"]["ttft"]["p50"]["value"] for line in lines] == pytest.approx([5.0, 75.0])


def test_the_figures_are_the_summary_s(store: Store) -> None:
    filled(store)
    for by in ("fleet_model", "replica"):
        for line, summary in zip(asked_of(store, by=by)["lines"], summed(store, by=by)["lines"], strict=False):
            assert line["key"] == summary["key"]
            for percentile in (50, 90, 99):
                assert line["whole"]["ttft"][f"p{percentile}"] == summary["figures"][f"ttft_p{percentile}_ms"]


def test_what_was_not_observed_says_why(store: Store) -> None:
    filled(store)
    line = asked_of(store, Wanted(("itl",)))["lines"][0]
    assert list(line["whole"]) == list(line["steps"]) == ["itl"]
    p99 = line["whole"]["itl"]["p99"]
    assert (p99["value"], p99["reason"], p99["n"]) == (None, "no ITL was observed in the period", 0)
    assert (p99["lower"], p99["upper"], p99["small_sample"]) == (None, None, False)
    assert line["steps"]["itl"]["p99"]["values"] == [None] * 4


@pytest.mark.parametrize(
    ("max_ms", "hits"),
    [
        pytest.param(10.0, (600, 600), id="on a bound"),
        pytest.param(30.0, (600, 600), id="in an empty bucket"),
        pytest.param(75.0, (600, 660), id="in a bucket: its requests are open"),
        pytest.param(5.0, (0, 600), id="in the first bucket"),
    ],
)
def test_a_limit_is_kept_by_a_share_between_bounds(store: Store, max_ms: float, hits: tuple[int, int]) -> None:
    filled(store)
    answer = asked_of(store, Wanted(("ttft",), max_ms))
    low, high = wilson(hits[0], 660)[0], wilson(hits[1], 660)[1]
    for line in (answer["total"], answer["lines"][0]):
        assert line["attainment"]["low"]["value"] == pytest.approx(low)
        assert line["attainment"]["high"]["value"] == pytest.approx(high)
    steps = answer["lines"][0]["attainment_steps"]
    assert steps["low"] == [pytest.approx(wilson(hits[0] // 4, 165)[0])] * 4
    assert (answer["max_ms"], answer["slos"]) == (max_ms, [])


def test_failed_requests_are_misses_of_a_limit(store: Store) -> None:
    filled(store, finished_failed=2)
    low = asked_of(store, Wanted(("ttft",), 10.0))["lines"][0]["attainment"]["low"]["value"]
    assert low == pytest.approx(wilson(600, 660 + 120)[0])


def test_without_a_limit_there_is_no_attainment(store: Store) -> None:
    filled(store)
    line = asked_of(store, minutes=30)["lines"][0]
    assert line["attainment"]["low"]["reason"] == "no SLO is set for its models"
    assert line["attainment_steps"] == {"low": [None, None], "high": [None, None]}


@pytest.mark.parametrize(("percentile", "verdict"), [(80, "met"), (90, "open"), (95, "missed")])
def test_slos_and_how_their_models_did(store: Store, percentile: float, verdict: str) -> None:
    """600 of 660 within 10 ms: 0.909, by the sample between 0.885 and 0.929."""
    filled(store)
    know(store, "slo", MODEL, LatencySlo(percentile=percentile, max_ms=10), minute=LONG_AGO)
    answer = asked_of(store)
    (slo,) = answer["slos"]
    assert (slo["model"], slo["metric"], slo["max_ms"], slo["source"]) == (MODEL, "ttft", 10.0, "a contract")
    assert (slo["requests"], slo["verdict"], slo["changes"]) == (660, verdict, 0)
    assert slo["attainment"] == answer["lines"][0]["attainment"]
    assert answer["lines"][0]["attainment_steps"]["high"] == [pytest.approx(wilson(150, 165)[1])] * 4
    assert asked_of(store, model="another")["slos"] == []


def test_requests_are_held_against_the_slo_of_their_time(store: Store) -> None:
    """Of 04:00 to 04:30, 300 of 330 within 10 ms; from then on all 330 within 100 ms."""
    filled(store)
    know(store, "slo", MODEL, LatencySlo(max_ms=10), minute=LONG_AGO)
    know(store, "slo", MODEL, LatencySlo(max_ms=100), minute=30)
    answer = asked_of(store)
    (slo,) = answer["slos"]
    assert (slo["max_ms"], slo["changes"]) == (100.0, 1)
    assert slo["attainment"]["low"]["value"] == pytest.approx(wilson(630, 660)[0])
    assert answer["lines"][0]["attainment_steps"]["high"][1:3] == [pytest.approx(wilson(150, 165)[1]), 1.0]


def test_a_limit_of_the_address_does_not_touch_the_slos(store: Store) -> None:
    filled(store)
    know(store, "slo", MODEL, LatencySlo(percentile=80, max_ms=10), minute=LONG_AGO)
    answer = asked_of(store, Wanted(("ttft",), 100.0))
    assert answer["lines"][0]["attainment"]["high"]["value"] == 1.0
    assert answer["slos"][0]["attainment"]["high"]["value"] == pytest.approx(wilson(600, 660)[1])


def test_simulated_latencies_are_marked(store: Store) -> None:
    """Law 10."""
    sent = batch(1, rows=minutes_of(300), engine_rows=served(ttft_buckets=[1, 0, 0, 0]), simulated=True)
    take(store, sent)
    answer = asked_of(store, Wanted(("ttft",), 10.0))
    line = answer["lines"][0]
    assert line["whole"]["ttft"]["p50"]["method"] == line["attainment"]["low"]["method"] == "simulated"


@pytest.mark.parametrize("wanted", [Wanted(), Wanted(("itl",)), Wanted(("e2e",), 2500.0), Wanted(("ttft",), 0.1 + 0.2)])
def test_what_is_wanted_is_read_back_from_its_words(wanted: Wanted) -> None:
    assert parse_wanted(wanted.as_words()) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "tpot"}, "`metric`: given 'tpot'; accepted: ttft, itl, e2e"),
        ({"max-ms": "10"}, "`max-ms` needs a `metric`; accepted: ttft, itl, e2e"),
        ({"metric": "ttft", "max-ms": "fast"}, "`max-ms`: given 'fast'; accepted: milliseconds above 0, up to"),
        ({"metric": "ttft", "max-ms": "0"}, "`max-ms`: given '0'"),
        ({"metric": "ttft", "max-ms": "nan"}, "`max-ms`: given 'nan'"),
        ({"metric": "ttft", "max-ms": "1e12"}, "`max-ms`: given '1e12'"),
    ],
)
def test_what_cannot_be_wanted_is_told(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadParameter) as refused:
        parse_wanted(given)
    assert message in str(refused.value)
