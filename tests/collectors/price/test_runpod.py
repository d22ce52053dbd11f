"""RunPod: two clouds and spot apart, null and 0 not offered, and an answer with `errors` a problem in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from collectors.http.client import Http
from collectors.http.problem import SourceProblem, UnusableAnswer
from collectors.price.provider import PriceAnswer
from collectors.price.runpod import QUERY, RunPod, read_gpu_types
from tests.collectors.http.clocks import NOW, Clock
from tests.collectors.http.playing import Player, Reply, as_json
from tests.collectors.price.failing import check_left_alone, told
from tests.collectors.price.shapes import gpu_types

Sample = Callable[[str], Any]
REFUSAL = {"errors": [{"message": 'Cannot query field "foo".', "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}]}


@pytest.fixture
def runpod(http: Http, played: Player) -> RunPod:
    return RunPod(http, base_url=played.url + "/")


def by_market(answer: PriceAnswer) -> dict[tuple[str, str], float]:
    return {(point.gpu_name, point.market): point.usd_per_gpu_hour for point in answer.points}


def test_prices_of_the_sample(sample: Sample) -> None:
    answer = read_gpu_types(sample("runpod/gpu_types"), NOW)
    assert by_market(answer) == {
        ("AMD Instinct MI300X OAM", "secure"): 2.49,
        ("NVIDIA GeForce RTX 4090", "secure"): 0.74,
        ("NVIDIA GeForce RTX 4090", "community"): 0.34,
        ("NVIDIA H100 PCIe", "secure"): 2.89,
        ("NVIDIA H100 PCIe", "community"): 1.99,
        ("NVIDIA H100 PCIe", "spot"): 1.25,
    }
    assert {(refused.gpu_name, refused.market): refused.reason for refused in answer.refused} == {
        ("NVIDIA GeForce RTX 4090", "spot"): "`minimumBidPrice` is null: not offered",
        ("AMD Instinct MI300X OAM", "community"): "`communityCloud` is false: not offered there",
        ("AMD Instinct MI300X OAM", "spot"): "`minimumBidPrice` is null: not offered",
    }
    assert {(point.per, point.count, point.as_of, point.provider) for point in answer.points} == {
        ("gpu", 1, NOW, "runpod")
    }


def test_the_refusal_of_the_sample(sample: Sample, runpod: RunPod, played: Player) -> None:
    played.always(as_json(sample("runpod/graphql_error")))
    with pytest.raises(SourceProblem, match='Cannot query field "foo" on type "GpuType"'):
        runpod.prices()


def test_community_is_never_shown_for_secure() -> None:
    answer = read_gpu_types(gpu_types({}, {"id": "only secure", "communityPrice": None, "lowestPrice": None}), NOW)
    assert by_market(answer) == {
        ("NVIDIA H100 PCIe", "secure"): 2.89,
        ("NVIDIA H100 PCIe", "community"): 1.99,
        ("NVIDIA H100 PCIe", "spot"): 1.25,
        ("only secure", "secure"): 2.89,
    }


@pytest.mark.parametrize(
    ("change", "market", "words"),
    [
        ({"communityPrice": 0}, "community", "`communityPrice` is 0: not offered, never free"),
        ({"securePrice": None}, "secure", "`securePrice` is null: not offered"),
        ({"secureCloud": False}, "secure", "`secureCloud` is false"),  # a price left over from when it was
        ({"securePrice": "2.89"}, "secure", "no number"),
        ({"securePrice": 2890}, "secure", "at most 1000"),
        ({"lowestPrice": []}, "spot", "null"),
    ],
)
def test_one_price_that_is_none_takes_no_other_with_it(change: dict[str, Any], market: str, words: str) -> None:
    answer = read_gpu_types(gpu_types(change), NOW)
    assert market not in {point.market for point in answer.points}
    assert len(answer.points) == 2
    assert [refused.market for refused in answer.refused] == [market]
    assert words in answer.refused[0].reason


def test_a_price_without_stock_says_so() -> None:
    stocked, sold_out = (
        read_gpu_types(gpu_types({"lowestPrice": {"minimumBidPrice": None, "stockStatus": stock}}), NOW).points[0]
        for stock in ("High", None)
    )
    assert (stocked.cautions, sold_out.cautions) == ((), ("none in stock when asked: a list price",))
    assert (stocked.memory_gb, stocked.region) == (80, None)


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (REFUSAL, "refused", 'GraphQL refuses the question: Cannot query field "foo"'),
        (REFUSAL | gpu_types({}), "refused", "GraphQL refuses"),  # which nulls are missing cannot be told
        ({"errors": [7]}, "refused", "it does not say why"),
        ({"data": None}, "malformed", "`data` is missing"),
        ({"data": {"gpuTypes": {}}}, "malformed", "`data.gpuTypes` is an object"),
        ([1], "malformed", "the answer is a list"),
        (gpu_types(), "empty", "no usable price"),
        ({"data": {"gpuTypes": [None, 7, {"id": "\n"}]}}, "empty", "such as unknown: its `id` is no name"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(data: Any, kind: str, words: str) -> None:
    with pytest.raises(UnusableAnswer) as raised:
        read_gpu_types(data, NOW)
    assert raised.value.kind == kind
    assert words in str(raised.value)


def test_it_is_posted_without_a_key_and_asked_once_an_hour(runpod: RunPod, played: Player, clock: Clock) -> None:
    played.always(as_json(gpu_types({})))
    assert len(runpod.prices().points) == 3
    clock.go_on(3599)
    assert runpod.prices().age_s == 3599
    (asked,) = played.asked
    assert (asked.path, asked.query, json.loads(asked.body)) == ("/graphql", {}, {"query": QUERY})
    assert asked.headers["content-type"] == "application/json"
    assert "authorization" not in asked.headers
    clock.go_on(2)
    runpod.prices()
    assert len(played.asked) == 2


def test_a_kept_answer_stands_in_for_a_day_with_its_age_and_its_own_date(
    runpod: RunPod, played: Player, clock: Clock
) -> None:
    played.always(as_json(gpu_types({})))
    runpod.prices()
    played.always(as_json(REFUSAL))
    clock.go_on(7200)
    answer = runpod.prices()
    assert (answer.age_s, answer.points[0].as_of) == (7200, NOW)
    assert 'Cannot query field "foo"' in str(answer.problem)
    clock.go_on(86_400)
    with pytest.raises(SourceProblem):
        runpod.prices()


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (as_json(REFUSAL), "refused", "GraphQL refuses the question"),
        (as_json(REFUSAL, 400), "refused", 'HTTP 400: Cannot query field "foo".'),
        (as_json({"errors": [{"message": "Too many"}]}, 429, Retry_After="60"), "rate_limited", "HTTP 429: Too many"),
        (Reply(b"oops", 502, "text/plain"), "failed", "HTTP 502"),
        (Reply(b"<html>", 200, "text/html"), "malformed", "an HTML page instead of JSON"),
        (Reply(b'{"data"', 200), "malformed", "not JSON"),
        (as_json({}, 404), "not_found", "may have moved its interface"),
        (as_json(gpu_types({"securePrice": 0, "communityPrice": 0, "lowestPrice": None})), "empty", "never free"),
        (Reply(hang=True), "timed_out", "no answer within 1 s"),
        (Reply(b"{", cut=True), "unreachable", "cut before the answer was complete"),
    ],
)  # fmt: skip
def test_error_answers_are_problems_and_the_provider_is_left_alone(
    runpod: RunPod, played: Player, clock: Clock, reply: Reply, kind: str, words: str
) -> None:
    problem = told(runpod, played, reply, kind)
    assert words in problem
    assert problem.startswith(f"runpod, prices of all GPUs at {played.url}: ")
    clock.go_on(29)
    check_left_alone(runpod, played)


def test_a_redirect_on_the_host_is_asked_the_same_question(runpod: RunPod, played: Player) -> None:
    moved = Reply(status=308, headers={"Location": "/v2/graphql"})
    played.play = lambda asked: moved if asked.path == "/graphql" else as_json(gpu_types({}))
    assert len(runpod.prices().points) == 3
    assert [json.loads(asked.body) for asked in played.asked] == [{"query": QUERY}] * 2


def test_a_base_url_with_a_key_in_it_is_refused(http: Http) -> None:
    with pytest.raises(ValueError, match="without user, password, query") as raised:
        RunPod(http, base_url="https://api.example.org/?api_key=planted")
    assert "planted" not in str(raised.value)
