"""`wattmix prices`: real requests to a real server that plays RunPod, beside the shipped list prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.commands.checks import Check
from app.commands.price_checks import price_checks
from app.config import load_config
from app.facts.market_prices import MarketPrice
from app.store.database import Store
from app.store.market_prices import append_market_prices
from collectors.http.client import Http
from tests.collectors.http.conftest import SHORT
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


def test_without_a_source_it_says_that_the_list_counts(capsys: Capture, played: Player) -> None:
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090", "securePrice": 0.74})))
    said = asked(capsys, played)
    assert "No [[prices.source]] is configured" in said.out
    assert "has the list price, at most 365 days old" in said.out
    found = json.loads(asked(capsys, played, "--json").out)
    assert (found["sources"], found["max_age_days"]) == ([], 365)
    assert found["prices"][0]["in_force"]["method"] == "default"
    assert found["prices"][0]["in_force"]["source"].startswith("list price, ")


@pytest.fixture
def settings(tmp_path: Path, played: Player) -> Path:
    path = tmp_path / "wattmix.toml"
    source = f'[[prices.source]]\nprovider = "runpod"\nmarket = "secure"\nbase_url = "{played.url}"\n'
    path.write_text(f"[prices]\nmax_age_days = 200\n{source}", encoding="utf-8")
    return path


def test_with_a_source_it_says_what_is_in_force(
    capsys: Capture, played: Player, settings: Path, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    store = Store.open(tmp_path / "s.duckdb")
    stored = MarketPrice("NVIDIA GeForce RTX 4090", "runpod", "secure", 0.71, 1, now - timedelta(days=1), now)
    append_market_prices(store, [stored], timedelta(days=7))
    store.close()
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090", "securePrice": 0.74})))
    where = ("--db", str(store.path), "--config", str(settings))
    assert "The hub asks RunPod secure (waiting, cards: 1, every 6 h)" in asked(capsys, played, *where).out
    found = json.loads(asked(capsys, played, "--json", *where).out)
    assert found["sources"][0]["market"] == "secure"
    assert {price["in_force"]["usd_per_gpu_hour"] for price in found["prices"]} == {0.71}
    assert {price["in_force"]["source"] for price in found["prices"]} == {stored.label}


# wattmix doctor


def checks(settings: Path) -> list[Check]:
    return list(price_checks(load_config(settings), Http(bounds=SHORT)))


def test_doctor_asks_each_source(settings: Path, played: Player) -> None:
    played.always(as_json(gpu_types({"id": "NVIDIA GeForce RTX 4090", "securePrice": 5.92}, {})))
    (check,) = checks(settings)
    assert (check.level, check.what) == (
        "ok", "price source RunPod, secure: prices of 1 card; not used: NVIDIA GeForce RTX 4090",
    )  # fmt: skip
    assert len(played.asked) == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(status=500), "price source RunPod, secure: HTTP 500"),
        (
            as_json(gpu_types({"securePrice": 500.0})),
            "no price that is used, such as NVIDIA H100 PCIe: 500 USD",
        ),
        (as_json(gpu_types({"securePrice": None})), "price source RunPod, secure: no price that is used"),
    ],
)
def test_doctor_says_what_is_wrong_with_a_source(settings: Path, played: Player, reply: Reply, words: str) -> None:
    played.always(reply)
    (check,) = checks(settings)
    assert check.level == "problem"
    assert words in check.what
    assert check.remedy
