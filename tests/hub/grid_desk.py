"""A store, a played provider and a poller that works when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.config import Config
from app.hub.grid_poller import GridPoller
from app.store.database import Store
from app.store.grid import hourly_factors
from app.store.source_states import GridState, read_grid_states
from collectors.http.client import Http
from collectors.http.transport import Bounds
from tests.hub.grid_server import Grid, grid_server

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)
HOUR_US = 3_600_000_000


class Time:
    """The hub's clock and the monotonic one."""

    def __init__(self) -> None:
        self.now = NOON
        self.seconds = 1000.0

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.seconds += seconds


class Desk:
    """A store, a provider's server, and a poller that works when it is told to."""

    def __init__(self, store: Store, grid: Grid) -> None:
        self.store, self.grid, self.time = store, grid, Time()
        self.config = Config.model_validate({"grid": [self.entry()]})

    def entry(self, **more: Any) -> dict[str, Any]:
        return {"provider": "energy_charts", "zones": {"DE": "de"}, "base_url": self.grid.address} | more

    def http(self) -> Http:
        return Http(
            bounds=Bounds(connect_s=2, read_s=1, total_s=2), utc_now=lambda: self.time.now,
            monotonic_s=lambda: self.time.seconds,
        )  # fmt: skip

    def poller(self, config: Config | None = None) -> GridPoller:
        return GridPoller(
            self.store, config or self.config, self.http(), now=lambda: self.time.now,
            monotonic=lambda: self.time.seconds,
        )  # fmt: skip

    def passes(self, seconds: float) -> None:
        """Time passes, here and for the provider."""
        self.time.passes(seconds)
        self.grid.now += timedelta(seconds=seconds)

    def state(self, provider: str = "energy_charts", zone: str = "DE") -> GridState:
        return read_grid_states(self.store)[provider, zone]

    def hours(self, first: int, last: int, known_at: datetime | None = None) -> dict[int, tuple[float, str]]:
        """Hours from noon on -> g/kWh and method."""
        noon = int(NOON.timestamp() * 1e6)
        found = hourly_factors(self.store, ["DE"], noon + first * HOUR_US, noon + last * HOUR_US, known_at)
        return {(row["hour_us"] - noon) // HOUR_US: (row["g_per_kwh"], row["method"]) for row in found.to_dicts()}


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poller works when a test calls `step`, not in its thread."""
    monkeypatch.setattr(GridPoller, "_run", lambda self: None)


@pytest.fixture
def grid() -> Iterator[Grid]:
    with grid_server(NOON) as server:
        yield server


@pytest.fixture
def desk(store: Store, grid: Grid, by_hand: None) -> Desk:
    return Desk(store, grid)
