"""`POST /api/v1/ingest` through the real routes: what is acknowledged, and each mistake in words."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest
from starlette.applications import Starlette

from app.config import Config
from app.hub import ingest
from app.hub.parts import HubParts
from app.store import writer
from app.store.database import Store
from collectors.samples import Batch, encode
from tests.batches import DAY, SECOND, batch, count, held_up, seconds, wait_until
from tests.hub.asgi import Reply, ask


class Hub:
    """A hub's routes over a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.parts = HubParts(store, Config())
        self.app = Starlette(routes=self.parts.api.routes())

    def post(self, body: bytes | Sequence[bytes] | Batch, content_type: str = "application/json", **how: Any) -> Reply:
        sent = encode(body) if isinstance(body, Batch) else body
        return ask(self.app, "POST", "/api/v1/ingest", body=sent, content_type=content_type, **how)


@pytest.fixture
def hub(store: Store) -> Iterator[Hub]:
    made = Hub(store)
    yield made
    made.parts.close()


def now_us() -> int:
    return time.time_ns() // 1000


def fresh(sequence: int = 1, **values: Any) -> Batch:
    """A batch of the last ten seconds."""
    rows = seconds(now_us() - 10 * SECOND, 10)
    return batch(sequence, **{"rows": rows, "sent_at_us": now_us(), **values})


def told(reply: Reply, status: int) -> str:
    assert reply.status == status, reply.text
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"])


def as_json(sent: Batch, **changed: Any) -> bytes:
    return json.dumps(json.loads(sent.model_dump_json()) | changed).encode()


# Acknowledged


@pytest.mark.parametrize("form", ["gzip", "plain"])
def test_a_batch_is_acknowledged_once_it_is_in_the_store(hub: Hub, form: str) -> None:
    sent = fresh(1)
    body = encode(sent) if form == "gzip" else sent.model_dump_json().encode()
    before = now_us()
    reply = hub.post(body)
    assert reply.status == 200
    answer = reply.json()
    assert before <= answer.pop("hub_time_us") <= now_us()
    assert abs(answer.pop("skew_s")) < 5
    assert answer == {"acknowledged": 1, "duplicate": False, "late_rows": 0}
    assert (count(hub.store, "gpu_sample"), count(hub.store, "ledger")) == (10, 1)


def test_a_batch_sent_again_is_answered_200_as_a_duplicate(hub: Hub) -> None:
    sent = fresh(1)
    hub.post(sent)
    reply = hub.post(sent)
    assert reply.status == 200
    assert {name: reply.json()[name] for name in ("acknowledged", "duplicate", "late_rows")} == {
        "acknowledged": 1, "duplicate": True, "late_rows": 0,
    }  # fmt: skip
    assert count(hub.store, "gpu_sample") == 10


def test_a_body_in_parts_is_one_batch(hub: Hub) -> None:
    body = encode(fresh(1))
    assert hub.post([body[:7], body[7:100], body[100:]]).status == 200
    assert count(hub.store, "gpu_sample") == 10


def test_a_body_that_is_decoded_in_a_thread_is_taken_alike(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "DECODE_INLINE_BYTES", 0)
    assert hub.post(fresh(1)).json()["acknowledged"] == 1
    assert "`gpu_samples.energy_mj.3`" in told(hub.post(as_json(fresh(2), gpu_samples=broken_energy())), 422)


def test_late_rows_are_told(hub: Hub) -> None:
    rows = [*seconds(now_us() - 8 * DAY, 3), *seconds(now_us() - 10 * SECOND, 2)]
    assert hub.post(fresh(1, rows=rows)).json()["late_rows"] == 3
    assert count(hub.store, "gpu_sample") == 2


@pytest.mark.parametrize("skew_s", [-3600, 3600])
def test_skew_is_told(hub: Hub, skew_s: int) -> None:
    answer = hub.post(fresh(1, sent_at_us=now_us() + skew_s * SECOND)).json()
    assert answer["skew_s"] == pytest.approx(skew_s, abs=5)


def test_many_nodes_at_once_are_all_acknowledged(hub: Hub) -> None:
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: hub.post(fresh(1, node=f"node-{number}")), range(40)))
    assert {reply.status for reply in replies} == {200}
    assert (count(hub.store, "gpu_sample"), count(hub.store, "ledger")) == (400, 40)


# Refused


def broken_energy() -> dict[str, Any]:
    table = json.loads(fresh(1).model_dump_json())["gpu_samples"]
    table["energy_mj"][3] = -1
    return dict(table)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"gpu_samples": broken_energy()}, "`gpu_samples.energy_mj.3`: "),
        ({"gpu_samples": broken_energy() | {"energy_mj": [1, 2]}}, "`gpu_samples`: "),
        ({"wire": 2}, "`wire`: "),
        ({"sequence": 0}, "`sequence`: "),
        ({"sequence": "1"}, "`sequence`: "),
        ({"epoch": "no hex"}, "`epoch`: "),
        ({"agent": ""}, "`agent`: "),
        ({"node": {"id": "n"}}, "`node.agent_version`: "),
        ({"surprise": 1}, "`surprise`: "),
        ({"gpus": []}, "`gpu` to point into gpus, which has 0"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_field_that_cannot_be_is_named(hub: Hub, changed: dict[str, Any], field: str) -> None:
    assert field in told(hub.post(as_json(fresh(1), **changed)), 422)
    assert (count(hub.store, "ledger"), count(hub.store, "node")) == (0, 0)


def test_a_number_that_the_store_cannot_hold_is_named(hub: Hub) -> None:
    rows = [dict(row) for row in seconds(now_us() - 10 * SECOND, 10)]
    rows[3]["energy_mj"] = 2**31
    words = told(hub.post(fresh(1, rows=rows)), 422)
    assert words == "`gpu_samples.energy_mj.3`: given 2147483648; accepted: at most 2147483647"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"\x1f\x8bno gzip", encode(batch(1))[:-20]],
    ids=["nothing", "half", "a list", "null", "no text", "deep", "no gzip", "cut gzip"],
)  # fmt: skip
def test_what_is_no_batch_is_told(hub: Hub, body: bytes) -> None:
    assert len(told(hub.post(body), 422)) > 10


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/gzip"])
def test_another_content_type_is_refused(hub: Hub, content_type: str) -> None:
    assert told(hub.post(fresh(1), content_type), 415) == "Content-Type: application/json is accepted"


def test_a_body_too_large_is_refused_before_it_is_read_whole(hub: Hub) -> None:
    part = b" " * 1024**2
    assert told(hub.post([part] * 9), 413) == "body: more than 8 MiB"
    assert hub.post([part] * 7 + [fresh(1).model_dump_json().encode()]).status == 200


def test_a_gzip_bomb_is_refused_without_being_expanded(hub: Hub) -> None:
    bomb = gzip.compress(b" " * (ingest.MAX_JSON_BYTES + 2))
    assert len(bomb) < 100_000
    began = time.monotonic()
    assert told(hub.post(bomb), 413) == f"the batch expands to more than {ingest.MAX_JSON_BYTES} bytes"
    assert time.monotonic() - began < 5


def test_another_method_is_not_the_route_s(hub: Hub) -> None:
    assert ask(hub.app, "GET", "/api/v1/ingest").status in (404, 405)


# Not the batch's fault


def test_a_full_queue_is_503_with_a_time_to_come_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUE", 1)
    hub = Hub(store)
    try:
        with held_up(store, hub.parts.writer):
            waiting = hub.parts.writer.submit(fresh(1, node="first"), 0)
            reply = hub.post(fresh(1))
        assert told(reply, 503) == "1 batches are waiting already"
        assert int(reply.headers["retry-after"]) > 0
        assert waiting.result(20).sequence == 1
        wait_until(lambda: hub.parts.writer.queued == 0, "the queue to empty")
        assert hub.post(fresh(1)).json()["duplicate"] is False
    finally:
        hub.parts.close()


def test_a_store_that_cannot_commit_is_503_and_the_batch_is_taken_later(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hub.store.transaction

    @contextmanager
    def full_disk() -> Iterator[duckdb.DuckDBPyConnection]:
        with whole() as connection:
            yield connection
            raise duckdb.IOException("No space left on device")

    sent = fresh(1)
    with monkeypatch.context() as patched:
        patched.setattr(hub.store, "transaction", full_disk)
        assert "No space left on device" in told(hub.post(sent), 503)
    assert hub.post(sent).json()["duplicate"] is False
    assert (count(hub.store, "gpu_sample"), count(hub.store, "ledger")) == (10, 1)
