"""What a hub would get of a simulated node, without a network: sent bodies are decoded as the hub does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter

from app.hub.ingest import MAX_JSON_BYTES
from app.simulator.fleet import SimulatedNode, World, demo_world
from collectors.samples import Batch, decode

SECOND_US = 1_000_000
DAY_S = 86_400
# 2026-11-18, a Wednesday, 00:00 UTC.
WEDNESDAY_S = 1_794_960_000
HUB = "http://127.0.0.1:8501"


def node_named(world: World, name: str) -> SimulatedNode:
    return next(node for node in world.nodes if node.name == name)


def of_the_day(hour: int, minute: int = 0, second: int = 0) -> int:
    """Seconds since 1970 of that time on the Wednesday, UTC."""
    return WEDNESDAY_S + hour * 3600 + minute * 60 + second


def rows_of(table: Any, key: str) -> Iterator[dict[str, Any]]:
    """The rows of a table of the wire, in order of `key` (gpu or engine) and time."""
    columns: Mapping[str, list[Any]] = table.__dict__
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    yield from sorted(rows, key=lambda row: (row[key], row["t_us"]))


class HubAdapter(BaseAdapter):
    """Takes what a session posts: mount it for http://. answers: statuses of the first requests, then 200."""

    def __init__(self, *answers: int) -> None:
        super().__init__()
        self.answers = list(answers)
        self.bodies: list[bytes] = []
        self.batches: list[Batch] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        assert request.url == f"{HUB}/api/v1/ingest"
        assert isinstance(request.body, bytes)
        self.bodies.append(request.body)
        batch = decode(request.body, max_json_bytes=MAX_JSON_BYTES)
        response = requests.Response()
        response.status_code = self.answers.pop(0) if self.answers else 200
        content = f'{{"acknowledged": {batch.sequence}}}' if response.ok else '{"error": "scripted"}'
        response._content = content.encode()
        if response.ok:
            self.batches.append(batch)
        return response

    def close(self) -> None:
        return


def session_with(adapter: HubAdapter) -> requests.Session:
    session = requests.Session()
    session.mount("http://", adapter)
    return session


WORLD = demo_world(7)
