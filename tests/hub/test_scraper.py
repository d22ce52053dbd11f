"""The hub reads engines itself: over the real wire into the store, once, whatever stops it when."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from starlette.routing import Router

from app.config import Config, ScrapedEngine
from app.errors import StoreError
from app.hub.parts import HubParts
from app.hub.scraper import HubScraper
from app.hub.server import listen, reached_from_here
from app.store.database import Store
from tests.collectors.engine.pages import Work, vllm_page
from tests.collectors.engine.servers import Server, server
from tests.hub_process import free_port, running

DEADLINE_S = 20.0
UUID = "5f2b3c1d-0a1b-4c2d-9e3f-333344446666"


@contextmanager
def hub_of(store: Store) -> Iterator[str]:
    """The address of a hub's API over this store."""
    parts = HubParts(store, Config())
    port = free_port()
    web = uvicorn.Server(uvicorn.Config(Router(parts.api.routes()), port=port, log_level="error", lifespan="off"))
    thread = threading.Thread(target=web.run, daemon=True)
    thread.start()
    wait_for(lambda: web.started)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        web.should_exit = True
        thread.join(10)
        parts.close()


def scraper_for(store: Path, *engines: ScrapedEngine) -> HubScraper:
    return HubScraper(engines, store, raw_days=7.0, scrape_every_s=0.05, push_every_s=0.15)


def wait_for(done: Callable[[], Any]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not done():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def page(tokens: int) -> str:
    return vllm_page("0.32.0", Work(prompt_tokens=tokens))


def nodes_at(address: str) -> dict[str, dict[str, Any]]:
    nodes = requests.get(f"{address}/api/v1/health", timeout=10).json()["nodes"]
    return {node["node"]: node for node in nodes}


def tokens_of(store: Store) -> dict[str, int]:
    """Node -> prompt tokens in the store."""
    rows = store.query("""
        SELECT node.name, coalesce(sum(sample.prompt_tokens), 0)::BIGINT AS tokens
        FROM engine JOIN node USING (node_id) LEFT JOIN engine_sample AS sample USING (engine_id)
        GROUP BY node.name ORDER BY node.name
    """)
    return dict(rows.iter_rows())


def seen(here: Server) -> None:
    """Wait until the page as it is now was read."""
    count = len(here.requests)
    wait_for(lambda: len(here.requests) >= count + 2)


def test_tokens_of_engines_without_an_agent_reach_the_store_under_their_nodes(store: Store, tmp_path: Path) -> None:
    with server(text=page(100)) as one, server(text=page(200)) as other, hub_of(store) as address:
        engines = [
            ScrapedEngine(url=one.address, node="rack-8", gpus=(f"GPU-{UUID}",), labels={"team": "chat"}),
            ScrapedEngine(url=other.address),
        ]
        scraper = scraper_for(tmp_path / "s.duckdb", *engines)
        scraper.start(address)
        seen(one)
        seen(other)
        one.bodies["/metrics"], other.bodies["/metrics"] = page(150), page(207)
        wait_for(lambda: tokens_of(store) == {"127.0.0.1": 7, "rack-8": 50})
        wait_for(lambda: "gpus" in nodes_at(address)["rack-8"]["missing"])
        nodes = nodes_at(address)
        scraper.close()
    assert set(nodes) == {"127.0.0.1", "rack-8"}
    assert nodes["rack-8"]["skipped_batches"] == 0
    assert nodes["rack-8"]["twin_seen"] is None
    assert "the hub reads its engines only" in nodes["rack-8"]["missing"]["gpus"]
    gpus = store.query("SELECT uuids, source FROM engine_gpus JOIN engine USING (engine_id) JOIN node USING (node_id)"
                       " WHERE node.name = 'rack-8'")  # fmt: skip
    assert list(gpus.iter_rows()) == [([UUID], "config")]
    agents = store.query("SELECT DISTINCT agent FROM ledger")["agent"].to_list()
    assert agents == ["hub-scraper"]


def test_a_restart_and_a_hub_that_was_away_lose_and_double_nothing(store: Store, tmp_path: Path) -> None:
    with server(text=page(0)) as here:
        engine = ScrapedEngine(url=here.address, node="n")
        for number in range(1, 4):
            with hub_of(store) as address:
                scraper = scraper_for(tmp_path / "s.duckdb", engine)
                scraper.start(address)
                seen(here)
                here.bodies["/metrics"] = page(number * 1_000)
                seen(here)
            # The hub is gone, the scraper goes on for a moment.
            here.bodies["/metrics"] = page(number * 1_000 + 10)
            seen(here)
            scraper.close()
        with hub_of(store) as address:
            scraper = scraper_for(tmp_path / "s.duckdb", engine)
            scraper.start(address)
            wait_for(lambda: tokens_of(store) == {"n": 3_010})
            seen(here)
            scraper.close()
        assert tokens_of(store) == {"n": 3_010}


def test_a_page_that_is_down_is_told_on_its_node(store: Store, tmp_path: Path) -> None:
    port = free_port()
    with hub_of(store) as address:
        scraper = scraper_for(tmp_path / "s.duckdb", ScrapedEngine(url=f"http://127.0.0.1:{port}", node="n"))
        scraper.start(address)
        name = f"engine 127.0.0.1:{port}"
        wait_for(lambda: name in nodes_at(address).get("n", {"missing": {}})["missing"])
        assert (
            nodes_at(address)["n"]["missing"][name] == f"down: connection refused; is an engine running on port {port}?"
        )
        scraper.close()


def test_a_spool_that_another_process_holds_is_told(tmp_path: Path) -> None:
    engine = ScrapedEngine(url="http://127.0.0.1:1")
    scraper = scraper_for(tmp_path / "s.duckdb", engine)
    with pytest.raises(StoreError, match=f"pid {os.getpid()}"):
        scraper_for(tmp_path / "s.duckdb", engine)
    scraper.close()
    scraper_for(tmp_path / "s.duckdb", engine).close()


def test_without_engines_there_is_no_scraper(tmp_path: Path) -> None:
    assert HubScraper.from_config(Config(), tmp_path / "s.duckdb") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "sockets", "near"),
    [("127.0.0.1", 1, "http://127.0.0.1:{}"), ("0.0.0.0", 1, "http://127.0.0.1:{}"), ("::1", 1, "http://[::1]:{}")],
)
def test_the_hub_reaches_itself_by_loopback(host: str, sockets: int, near: str) -> None:
    try:
        listener = listen(host, 0, insecure=True)
    except Exception as problem:
        pytest.skip(f"{host} cannot be used here: {problem}")
    with listener:
        found, address = reached_from_here(host, listener)
        assert (len(found), address) == (sockets, near.format(listener.getsockname()[1]))


def test_a_hub_at_an_outer_address_alone_gets_an_inner_door() -> None:
    with listen("127.0.0.1", 0, insecure=False) as listener:  # stands for one at 192.0.2.1
        sockets, address = reached_from_here("192.0.2.1", listener)
        assert sockets[0] is listener
        assert address == f"http://127.0.0.1:{sockets[1].getsockname()[1]}"
        sockets[1].close()


def engine_config(folder: Path, here: Server) -> None:
    (folder / "wattmix.toml").write_text(f"[[engine]]\nurl = '{here.address}'\nnode = 'n'\n", encoding="utf-8")


def test_a_real_hub_shows_the_engine_within_seconds_and_stops_cleanly(tmp_path: Path) -> None:
    with server(text=page(5)) as here:
        engine_config(tmp_path, here)
        with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
            wait_for(lambda: "n" in nodes_at(hub.address))
            assert hub.stop() == 0
    store = Store.open(tmp_path / "s.duckdb")
    assert tokens_of(store) == {"n": 0}
    store.close()


@pytest.mark.slow
def test_a_real_hub_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with server(text=page(1_000)) as here:
        engine_config(tmp_path, here)
        for number in range(1, 4):
            with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
                wait_for(lambda hub=hub: "n" in nodes_at(hub.address))  # type: ignore[misc]
                here.bodies["/metrics"] = page(1_000 + number * 100)
                time.sleep(4.0 * number)  # before, about at, and after the next push
                hub.process.send_signal(signal.SIGKILL)
                hub.process.wait(10)
        with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
            time.sleep(14.0)
            assert hub.stop() == 0
    store = Store.open(tmp_path / "s.duckdb")
    assert tokens_of(store) == {"n": 300}
    store.close()
