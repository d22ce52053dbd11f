"""Vast: per machine to per GPU, storage added, the median of machines, and a thin market said."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from collectors.price.provider import PriceAnswer
from collectors.price.vast import MOST_OFFERS, Vast, read_bundles
from tests.collectors.http.clocks import NOW, Clock
from tests.collectors.http.playing import Player, Reply, as_json
from tests.collectors.price.failing import check_left_alone, told
from tests.collectors.price.shapes import bundles

Sample = Callable[[str], Any]


@pytest.fixture
def vast(http: Http, played: Player) -> Vast:
    return Vast(http, base_url=played.url)


def prices(answer: PriceAnswer, market: str = "on_demand") -> list[float]:
    return [point.usd_per_gpu_hour for point in answer.points if point.market == market]


def test_prices_of_the_sample(sample: Sample) -> None:
    answer = read_bundles(sample("vast/bundles"), NOW)
    # H100: 19.2 / 8 + 100 GB x 0.20 / 720 h = 2.4278; RTX 4090: 0.62 / 2 + 100 x 0.15 / 720 = 0.3308
    assert prices(answer) == pytest.approx([2.42778, 0.330833], abs=1e-5)
    # bids: 12 / 8 + 0.02778 and 0.31 / 2 + 0.02083
    assert prices(answer, "spot") == pytest.approx([1.52778, 0.175833], abs=1e-5)
    h100, _, rtx_4090, _ = answer.points
    assert (h100.gpu_name, h100.memory_gb, h100.region) == ("H100 SXM", 80, None)
    assert (rtx_4090.gpu_name, rtx_4090.memory_gb, rtx_4090.region) == ("RTX 4090", 24, "Sweden, SE")
    assert {(point.per, point.count, point.as_of) for point in answer.points} == {("instance", 1, NOW)}
    assert answer.notes == ("1 of 2 offers are of machines that Vast has not verified",)


def test_a_machine_of_eight_is_not_eight_times_the_price() -> None:
    # (4.96 + 800 GB x 0.144 / 720) / 8 = 0.62 + 0.02
    answer = read_bundles(bundles({"num_gpus": 8, "dph_base": 4.96, "min_bid": None, "disk_space": 2000}), NOW)
    assert prices(answer) == pytest.approx([0.64])
    assert [(refused.market, refused.reason) for refused in answer.refused] == [
        ("spot", "`min_bid` is null: not offered")
    ]


@given(st.integers(1, 16), st.floats(0.1, 10), st.floats(0, 1))
def test_the_price_of_a_gpu_does_not_hang_on_how_many_a_machine_has(gpus: int, each: float, storage: float) -> None:
    row = {"storage_cost": storage, "disk_space": None}
    one = read_bundles(bundles(row | {"num_gpus": 1, "dph_base": each}), NOW)
    many = read_bundles(bundles(row | {"num_gpus": gpus, "dph_base": each * gpus}), NOW)
    assert prices(many) == pytest.approx(prices(one))


def test_storage_is_added_as_far_as_there_is_disk() -> None:
    # 0.31 alone, where storage costs nothing; + 50 x 0.144 / 720 = 0.01 with a disk of 100 GB for two GPUs
    assert prices(read_bundles(bundles({"disk_space": 100}), NOW)) == pytest.approx([0.32])
    assert prices(read_bundles(bundles({"storage_cost": 0}), NOW)) == pytest.approx([0.31])


def test_the_median_counts_not_the_cheapest_and_a_thin_market_is_said() -> None:
    rows = [{"dph_base": price, "storage_cost": 0} for price in (0.10, 0.60, 0.64, 0.70)]
    thin = read_bundles(bundles(*rows), NOW).points[0]
    # (0.60 + 0.64) / 2 machines' median, / 2 GPUs
    assert (thin.usd_per_gpu_hour, thin.count) == (pytest.approx(0.31), 4)
    assert thin.cautions == ("thin market: the median of 4 machines",)
    enough = read_bundles(bundles(*rows, {"dph_base": 0.80, "storage_cost": 0}), NOW).points[0]
    assert (enough.usd_per_gpu_hour, enough.count, enough.cautions) == (pytest.approx(0.32), 5, ())


def test_a_machine_offered_whole_and_in_parts_counts_once() -> None:
    parts = [{"machine_id": 7, "dph_base": 0.2, "storage_cost": 0}] * 3
    answer = read_bundles(bundles(*parts, {"machine_id": 8, "dph_base": 0.6, "storage_cost": 0}), NOW)
    assert (prices(answer), answer.points[0].count) == (pytest.approx([0.2]), 2)  # of 0.1 and 0.3


def test_cards_of_one_name_with_other_memory_are_apart() -> None:
    rows = [{"gpu_name": "A100 SXM4", "gpu_ram": memory} for memory in (40_960, 40_536, 81_920, 81_251)]
    points = read_bundles(bundles(*rows, {"gpu_name": "A100 SXM4", "gpu_ram": None}), NOW).points
    on_demand = [point for point in points if point.market == "on_demand"]
    assert [(point.memory_gb, point.count) for point in on_demand] == [(None, 1), (40, 2), (80, 2)]


def test_a_region_is_told_where_all_are_of_one() -> None:
    assert read_bundles(bundles({}, {}), NOW).points[0].region == "Sweden, SE"
    assert read_bundles(bundles({}, {"geolocation": "Norway, NO"}), NOW).points[0].region is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dph_base": 0}, "`dph_base` is 0: not offered, never free"),
        ({"dph_base": None}, "`dph_base` is null"),
        ({"num_gpus": 0}, "no number of GPUs"),
        ({"num_gpus": None}, "no number of GPUs"),
        ({"storage_cost": None}, "`storage_cost` is null"),
        ({"storage_cost": -1}, "below 0"),
        ({"dph_base": 3000}, "at most 1000"),
        ({"gpu_name": 4090}, "no name"),
    ],
)
def test_an_offer_that_is_none_takes_no_other_with_it(change: dict[str, Any], words: str) -> None:
    answer = read_bundles(bundles(change, {}), NOW)
    assert prices(answer) == pytest.approx([0.33])
    assert answer.points[0].count == 1
    assert words in answer.refused[0].reason


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ({"offers": []}, "empty", "no usable price"),
        (bundles({"rented": True}, {"rentable": False}), "empty", "no usable price"),
        ({"offers": [None, 7]}, "empty", "no usable price"),
        ({"success": False}, "malformed", "`offers` is missing"),
        ({"offers": {}}, "malformed", "`offers` is an object"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(data: Any, kind: str, words: str) -> None:
    with pytest.raises(UnusableAnswer, match=words) as raised:
        read_bundles(data, NOW)
    assert raised.value.kind == kind


def test_it_posts_what_is_free(http: Http, played: Player) -> None:
    played.always(as_json(bundles({})))
    assert prices(Vast(http, base_url=played.url + "/api/v0/").prices()) == pytest.approx([0.33])
    (asked,) = played.asked
    body = json.loads(asked.body)
    assert asked.path == "/api/v0/bundles/"
    assert (body["rentable"], body["rented"]) == ({"eq": True}, {"eq": False})
    assert (body["limit"], "gpu_name" in body) == (MOST_OFFERS, False)


def test_an_answer_that_is_cut_says_so() -> None:
    answer = read_bundles({"offers": bundles({})["offers"] * MOST_OFFERS}, NOW)
    assert answer.notes == (f"the answer is cut at {MOST_OFFERS} offers: the medians are of these",)
    assert answer.points[0].count == 1  # the same machine each time


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (as_json({"success": False, "error": "invalid_args", "msg": "no"}, 400), "refused", "HTTP 400: invalid_args"),
        (as_json({"error": "key needed"}, 401), "no_access", "lets nobody in without a key"),
        (as_json({}, 429, Retry_After="600"), "rate_limited", "HTTP 429"),
        (Reply(b"", 500), "failed", "HTTP 500"),
        (Reply(b"[" * 9, 200), "malformed", "not JSON"),
        (as_json({"offers": []}), "empty", "offers nothing now"),
        (Reply(b"{", trickle=True), "timed_out", "no complete answer within"),
    ],
)  # fmt: skip
def test_error_answers_are_problems_and_the_provider_is_left_alone(
    vast: Vast, played: Player, clock: Clock, reply: Reply, kind: str, words: str
) -> None:
    problem = told(vast, played, reply, kind)
    assert words in problem
    check_left_alone(vast, played)
    clock.go_on(599 if kind == "rate_limited" else 30)
    played.always(as_json(bundles({})))
    if kind == "rate_limited":
        with pytest.raises(SourceProblem):
            vast.prices()
        clock.go_on(1)
    assert prices(vast.prices()) == pytest.approx([0.33])
