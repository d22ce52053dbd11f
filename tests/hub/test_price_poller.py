"""The price poller: what it keeps, what it keeps out and says why, and that no source holds anything up."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.answers.findings import place
from app.answers.health import health
from app.answers.price_sources import MOST_REFUSED, prices_told
from app.config import Config
from app.facts.market_prices import MarketPrice
from app.hub.parts import HubParts
from app.hub.polling import FIRST_RETRY_S
from app.hub.price_poller import PricePoller
from app.store.database import Store
from app.store.market_prices import append_market_prices, last_market_prices, read_market_prices
from app.store.source_states import PriceState, read_price_states
from collectors.http.client import Http
from tests.batches import wait_until
from tests.collectors.http.conftest import SHORT
from tests.collectors.http.conftest import played as played
from tests.collectors.http.playing import Player, Reply, as_json
from tests.collectors.price.shapes import bundles, gpu_types

NOON = datetime(2026, 12, 2, 12, tzinfo=UTC)
CARD = "NVIDIA GeForce RTX 4090"
PERIOD_S = 21_600.0


class Desk:
    """A store, a source's server, and a poller that works when it is told to."""

    def __init__(self, store: Store, played: Player) -> None:
        self.store, self.played = store, played
        self.now, self.seconds = NOON, 1000.0

    def config(self, provider: str = "runpod", market: str = "secure", **more: Any) -> Config:
        source = {"provider": provider, "market": market, "base_url": self.played.url} | more
        return Config.model_validate({"prices": {"source": [source]}})

    def poller(self, config: Config | None = None) -> PricePoller:
        http = Http(bounds=SHORT, utc_now=lambda: self.now, monotonic_s=lambda: self.seconds)
        return PricePoller(self.store, config or self.config(), http, lambda: self.now, lambda: self.seconds)

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds

    def prices(self) -> dict[str, float | None]:
        return {price.gpu_name: price.usd_per_gpu_hour for price in last_market_prices(self.store)}

    def state(self, provider: str = "runpod", market: str = "secure") -> PriceState:
        return read_price_states(self.store)[provider, market]

    def health(self, config: Config | None = None) -> dict[str, Any]:
        (source,) = health(self.store, self.now, config or self.config())["prices"]
        return dict(source)


@pytest.fixture
def desk(store: Store, played: Player, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Its poller works when a test calls `step`, not in its thread."""
    monkeypatch.setattr(PricePoller, "_run", lambda self: None)
    played.always(runpod(0.74))
    return Desk(store, played)


def runpod(secure: float | None, *more: dict[str, Any]) -> Reply:
    return as_json(gpu_types({"id": CARD, "memoryInGb": 24, "securePrice": secure, "communityPrice": 0.34}, *more))


def test_what_a_market_asks_is_stored_when_it_changes(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    (price,) = read_market_prices(desk.store)
    assert price == MarketPrice(CARD, "runpod", "secure", 0.74, 1, NOON, NOON)
    desk.passes(PERIOD_S - 1)
    poller.step()
    assert len(desk.played.asked) == 1
    desk.passes(1)
    poller.step()
    assert len(desk.played.asked) == 2
    assert len(read_market_prices(desk.store)) == 1
    desk.played.always(runpod(0.69))
    desk.passes(PERIOD_S)
    poller.step()
    assert [one.usd_per_gpu_hour for one in read_market_prices(desk.store)] == [0.74, 0.69]
    (feed,) = poller.feeds
    assert (feed.added, feed.answers, feed.failures) == (2, 3, 0)


def test_a_market_is_stored_as_it_is_and_no_other(desk: Desk) -> None:
    desk.poller(desk.config(market="community")).step()
    assert [(one.market, one.usd_per_gpu_hour) for one in read_market_prices(desk.store)] == [("community", 0.34)]


def test_a_price_of_an_instance_is_stored_per_gpu(desk: Desk) -> None:
    """Of three machines with two cards each: 0.31 + 100 x 0.144 / 720 = $0.33 for a card."""
    desk.played.always(as_json(bundles({}, {"dph_base": 0.5}, {"dph_base": 0.7})))
    desk.poller(desk.config("vast", "on_demand")).step()
    (price,) = read_market_prices(desk.store)
    assert (price.gpu_name, price.usd_per_gpu_hour, price.count) == (CARD, pytest.approx(0.33), 3)
    assert price.label == "market price, vast on_demand, 2026-12-02 (3 offers)"


def test_the_price_of_eight_cards_together_is_kept_out_with_its_reason(desk: Desk) -> None:
    """The list price of the secure class is $0.74: $5.92 is eight times that, above five times."""
    desk.played.always(runpod(5.92, {}))
    desk.poller().step()
    assert desk.prices() == {"NVIDIA H100 PCIe": 2.89}
    ((card, why),) = desk.state().refused
    assert card == CARD
    assert why.startswith("5.92 USD/GPU-h is above 0.148 to 3.7, which is 0.2 to 5 times the list price 0.74")
    source = desk.health()
    assert (source["state"], len(source["prices"]), source["refused"][0]["gpu"]) == ("ok", 1, CARD)
    (finding,) = source["findings"]
    assert finding["level"] == "note"
    assert finding["what"] == f"its price of RTX 4090 is not used: {why}"
    assert place(source) == "RunPod, secure prices"
    # once it is right again, nothing is refused
    desk.played.always(runpod(0.74))
    desk.passes(PERIOD_S)
    desk.poller().step()
    assert desk.health()["findings"] == []


def test_many_refused_prices_are_counted(desk: Desk) -> None:
    cards = [
        CARD,
        "NVIDIA L40S",
        "NVIDIA H200",
        "NVIDIA B200",
        "NVIDIA A100-SXM4-80GB",
        "NVIDIA H100 NVL",
        "NVIDIA A10",
    ]
    desk.played.always(as_json(gpu_types(*({"id": card, "securePrice": 500.0, "memoryInGb": None} for card in cards))))
    desk.poller().step()
    source = desk.health()
    assert len(source["refused"]) == len(cards)
    assert len(source["findings"]) == MOST_REFUSED + 1
    assert source["findings"][-1]["what"] == "2 more of its prices are not used"


def test_cards_of_one_name_are_told_apart_by_their_memory(desk: Desk) -> None:
    rows = [
        {"gpu_name": "A100 SXM4", "gpu_ram": 40 * 1024, "num_gpus": 1, "dph_base": 1.0},
        {"gpu_name": "A100 SXM4", "gpu_ram": 80 * 1024, "num_gpus": 1, "dph_base": 1.6},
    ]
    doubled = {"gpu_ram": 48 * 1024, "num_gpus": 1, "dph_base": 0.5}
    desk.played.always(as_json(bundles(*rows, {}, {}, doubled)))
    desk.poller(desk.config("vast", "on_demand")).step()
    assert desk.prices() == {
        "NVIDIA A100-SXM4-40GB": pytest.approx(1.02), "NVIDIA A100-SXM4-80GB": pytest.approx(1.62),
        CARD: pytest.approx(0.33),
    }  # fmt: skip
    assert desk.state("vast", "on_demand").refused == ((CARD, "0.52 USD/GPU-h is of another card of this name: 48 GB"),)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(status=500), "failed", "HTTP 500"),
        (Reply(b"<html>", content_type="text/html"), "malformed", "HTML"),
        (Reply(hang=True), "timed_out", "no answer within"),
        (as_json({"errors": [{"message": "no such field"}]}), "refused", "no such field"),
        (as_json(gpu_types({"securePrice": None})), "empty", "holds no price of this market"),
    ],
)
def test_a_fault_is_told_and_what_is_known_stays(desk: Desk, reply: Reply, kind: str, words: str) -> None:
    poller = desk.poller()
    poller.step()
    desk.played.always(reply)
    desk.passes(PERIOD_S)
    poller.step()
    state = desk.state()
    assert state.problem_kind == kind
    assert words in str(state.problem)
    assert (state.answered_at, state.retry_at) == (NOON, desk.now + timedelta(seconds=FIRST_RETRY_S))
    assert desk.prices() == {CARD: 0.74}
    source = desk.health()
    assert source["state"] == "failing"
    assert source["findings"][0]["what"].startswith(
        f"no answer for 6 h: {state.problem}; asked again from 2026-12-02 18:01Z on"
    )
    assert "what it said last, and list prices, count meanwhile" in source["findings"][0]["remedy"]
    desk.played.always(runpod(0.7))
    desk.passes(3600)
    poller.step()
    assert (desk.state().problem, desk.prices()) == (None, {CARD: 0.7})


def test_a_kept_answer_stands_in_with_its_own_date(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    desk.played.always(Reply(status=500))
    for _ in range(3):
        desk.passes(PERIOD_S)
        poller.step()
    (price,) = read_market_prices(desk.store)
    assert price.as_of == NOON


def test_a_fault_of_ours_is_told_without_its_text(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    poller = desk.poller()

    def broken() -> None:
        raise KeyError("what nobody has checked")

    monkeypatch.setattr(poller.feeds[0], "provider", type("Broken", (), {"prices": staticmethod(broken)}))
    poller.step()
    assert desk.state().problem == "its answer could not be read (KeyError)"


def test_a_source_that_is_not_asked_any_more_ends_what_it_said(desk: Desk) -> None:
    now = datetime.now(UTC)
    spot = MarketPrice(CARD, "runpod", "spot", 0.3, 1, now - timedelta(days=1), now)
    append_market_prices(
        desk.store, [spot, MarketPrice(CARD, "vast", "spot", 0.2, 1, spot.as_of, now)], timedelta(days=7)
    )
    poller = PricePoller.from_config(desk.config(market="spot"), desk.store)
    assert poller is not None
    poller.close()
    assert last_market_prices(desk.store) == [spot]
    assert PricePoller.from_config(Config(), desk.store) is None
    assert last_market_prices(desk.store) == []


def test_before_the_first_answer_it_waits_and_without_a_hub_that_is_told(desk: Desk) -> None:
    assert (desk.health()["state"], desk.health()["findings"]) == ("waiting", [])
    desk.poller().step()
    assert list(prices_told([desk.health()])) == read_market_prices(desk.store)
    desk.passes(4 * PERIOD_S)
    (finding,) = desk.health()["findings"]
    assert finding["what"] == "not asked for 24 h"
    assert "wattmix serve" in finding["remedy"]


def test_a_hub_asks_by_itself_and_counts(store: Store, played: Player) -> None:
    """The thread itself, in a hub; a source that hangs keeps it from nothing."""
    played.always(runpod(0.74))
    desk = Desk(store, played)
    parts = HubParts(store, desk.config())
    try:
        wait_until(lambda: bool(last_market_prices(store)), "the market is asked")
        wait_until(lambda: desk.state().answered_at is not None, "it is noted")
        found = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(parts.api._metrics.text().decode())
            for sample in family.samples
            if sample.name.startswith("wattmix_price_")
        }
    finally:
        parts.close()
    where = ("runpod", "secure")
    assert found["wattmix_price_requests_total", "answered", *where] == 1
    assert found["wattmix_price_requests_total", "failed", *where] == 0
    assert (found["wattmix_price_points_total", *where], found["wattmix_price_up", *where]) == (1, 1)


def test_closing_waits_for_no_source(store: Store, played: Player) -> None:
    played.always(Reply(hang=True))
    poller = PricePoller(store, Desk(store, played).config())
    wait_until(lambda: bool(played.asked), "the source is asked")
    began = time.monotonic()
    poller.close()
    assert time.monotonic() - began < 3
    assert read_price_states(store)["runpod", "secure"].asked_at is None
    played.over.set()
