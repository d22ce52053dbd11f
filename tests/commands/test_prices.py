"""`wattmix prices`: real requests to a real server that plays RunPod, beside the shipped list prices."""

from __future__ import annotations

import json

import pytest

from tests.collectors.http.conftest import played as played
from tests.collectors.http.playing import Player, Reply, as_json
from tests.collectors.price.shapes import gpu_types
from tests.commands.invoke import Outcome, wattmix

Capture = pytest.CaptureFixture[str]


def asked(capsys: Capture, played: Player, *arguments: str) -> Outcome:
    return wattmix(capsys, "prices", "--source", "runpod", "--base-url", played.url, *arguments)


def test_a_price_stands_beside_the_list_price_of_its_market(capsys: Capture, played: Player) -> None:
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090", "securePrice": 0.74, "communityPrice": 0.34})))
    outcome = asked(capsys, played, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = {price["market"]: price for price in json.loads(outcome.out)["prices"]}
    assert found["secure"]["usd_per_gpu_hour"] == 0.74
    assert found["community"]["usd_per_gpu_hour"] == 0.34
    assert found["secure"]["refused"] is None
    assert 0.2 < found["community"]["list_usd_per_gpu_hour"] < 0.8


def test_a_price_that_cannot_be_is_told_so(capsys: Capture, played: Player) -> None:
    """That of eight cards together."""
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090", "securePrice": 5.92, "communityPrice": None})))
    outcome = asked(capsys, played)
    assert outcome.code == 0
    assert "not to be used" in outcome.out
    assert "Nothing was set" in outcome.out


def test_only_the_card_that_is_asked_for(capsys: Capture, played: Player) -> None:
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090"}, {"id": "NVIDIA H100 PCIe"})))
    found = json.loads(asked(capsys, played, "--json", "--gpu", "rtx 4090").out)["prices"]
    assert {price["gpu"] for price in found} == {"NVIDIA GeForce RTX 4090"}


def test_a_source_that_fails_is_told_and_is_no_success(capsys: Capture, played: Player) -> None:
    played.always(Reply(status=500))
    outcome = asked(capsys, played)
    assert outcome.code == 1
    assert "runpod" in outcome.out and "500" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--source", "ebay"], "accepted: runpod, vast"), (["--base-url", "http://127.0.0.1:1"], "needs a `--source`")],
)
def test_what_is_not_accepted(capsys: Capture, arguments: list[str], said: str) -> None:
    outcome = wattmix(capsys, "prices", *arguments)
    assert outcome.code == 2
    assert said in outcome.err
