"""GET /api/v1/live: what the backend answers, of now or of an earlier moment; each mistake is a 4xx with words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from starlette.applications import Starlette

from app.backend.over_http import HubBackend
from app.config import Config
from app.hub.parts import HubParts
from app.store.database import Store
from collectors.samples import Batch, encode
from tests.batches import SECOND, batch, engine, put, seconds, writing
from tests.hub.asgi import ask
from tests.hub_process import running


def sent(end_us: int) -> Batch:
    """Two minutes of an engine of 120 tokens/s on a GPU of 300 W, up to end_us."""
    row = {
        "prompt_tokens": 500,
        "generated_tokens": 100,
        "finished_stop": 1,
        "ttft_us": 9,
        "ttft_buckets": [1, 0, 0, 0],
    }
    scrapes = [{"t_us": end_us - number * 5 * SECOND, **row} for number in reversed(range(24))]
    return batch(
        1, rows=seconds(end_us - 120 * SECOND, 120), engines=[engine()], engine_rows=scrapes, sent_at_us=end_us
    )


@pytest.fixture
def hub(store: Store) -> Iterator[Starlette]:
    with writing(store, lambda: datetime.now(UTC)) as taking:
        put(taking, sent(time.time_ns() // 1000))
    parts = HubParts(store, Config())
    yield Starlette(routes=parts.api.routes())
    parts.close()


def refused(hub: Starlette, **query: str) -> str:
    reply = ask(hub, "GET", "/api/v1/live", query=query)
    assert reply.status == 400
    return str(reply.json()["error"])


def test_the_answer_is_the_backend_s_and_can_be_had_again(hub: Starlette, store: Store) -> None:
    first = ask(hub, "GET", "/api/v1/live").json()
    assert first["fleets"][0]["tokens_per_s"]["value"] == pytest.approx(120.0)
    assert first["fleets"][0]["tokens_per_joule"]["value"] == pytest.approx(0.4)
    assert ask(hub, "GET", "/api/v1/live", query={"at": first["generated_at"]}).json() == first
    # as a link may carry it, and as a browser reads a "+" that was not escaped
    utc = first["generated_at"].replace("+00:00", "Z")
    for written in (utc, first["generated_at"].replace("+", " ")):
        assert ask(hub, "GET", "/api/v1/live", query={"at": written}).json() == first


def test_an_earlier_moment_knows_no_later_rows(hub: Starlette) -> None:
    before = datetime.now(UTC) - timedelta(seconds=60)
    answer = ask(hub, "GET", "/api/v1/live", query={"at": before.isoformat(), "window_s": "30"}).json()
    assert (answer["generated_at"], answer["window_s"]) == (before.isoformat(), 30)
    assert answer["fleets"] == []  # the node was first heard of later


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ({"window_s": "9"}, "`window_s`: given '9'; accepted: a whole number from 10 to 900"),
        ({"window_s": "901"}, "901"),
        ({"window_s": "60.0"}, "60.0"),
        ({"window_s": "-60"}, "-60"),
        ({"window_s": "١٢"}, "whole number"),
        ({"window_s": ""}, "whole number"),
        ({"at": "yesterday"}, "a moment that has passed, with its time zone"),
        ({"at": ""}, "a moment that has passed"),
        ({"at": "2026-02-03T04:05:06"}, "with its time zone"),
        ({"at": "2999-02-03T04:05:06Z"}, "that has passed"),
        ({"since": "1"}, "`since`: no such parameter; accepted: at, window_s"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(hub: Starlette, query: dict[str, Any], word: str) -> None:
    assert word in refused(hub, **query)


def test_it_is_read_with_a_read_token_only(hub: Starlette) -> None:
    assert ask(hub, "GET", "/api/v1/live", client="10.0.0.9").status == 401


def test_a_hub_backend_answers_as_the_hub_does(tmp_path: Path) -> None:
    """Design law 7."""
    with running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub:
        body = encode(sent(time.time_ns() // 1000))
        posted = requests.post(f"{hub.address}/api/v1/ingest", data=body, headers={"Content-Type": "application/json"},
                               timeout=10)  # fmt: skip
        assert posted.status_code == 200, posted.text
        backend = HubBackend(hub.address)
        answer = backend.live(window_s=30)
        assert answer["replicas"][0]["tokens_per_s"]["value"] == pytest.approx(120.0)
        again = backend.live(window_s=30, at=datetime.fromisoformat(answer["generated_at"]))
        assert again == answer == requests.get(
            f"{hub.address}/api/v1/live", params={"window_s": 30, "at": answer["generated_at"]}, timeout=10
        ).json()  # fmt: skip
