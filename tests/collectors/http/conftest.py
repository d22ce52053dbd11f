"""A provider that is played on 127.0.0.1, a clock, and the hand-written samples where they are beside this checkout."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from collectors.http.client import Http
from collectors.http.transport import Bounds
from tests.collectors.http.clocks import Clock
from tests.collectors.http.playing import Player, player
from tests.conftest import ROOT

SAMPLES = ROOT.parent / "shared" / "api_samples"
# Short enough for a test that waits for them, and long enough that a busy machine answers within them.
SHORT = Bounds(connect_s=1.0, read_s=1.0, total_s=2.0, max_bytes=100_000)


@pytest.fixture
def sample() -> Callable[[str], Any]:
    """The JSON of `provider/name`. The samples do not ship, so each trap has a twin test that needs none."""

    def read(name: str) -> Any:
        path = SAMPLES / f"{name}.json"
        if not path.is_file():
            pytest.skip("the API samples are not beside this checkout")
        return json.loads(path.read_text(encoding="utf-8"))

    return read


@pytest.fixture
def played() -> Iterator[Player]:
    with player() as state:
        yield state


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def http(clock: Clock) -> Http:
    return Http(bounds=SHORT, utc_now=clock.utc_now, monotonic_s=clock.monotonic_s)
