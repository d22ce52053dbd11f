"""The grid poller: what it asks when, what it keeps, and that no provider, whatever it does, holds anything up."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from app.config import Config
from app.hub.grid_feed import read_now
from app.hub.grid_poller import GridPoller
from app.hub.polling import DAY_S, FIRST_RETRY_S, LONGEST_PAUSE_S
from app.store.database import Store
from app.store.source_states import GridState, read_grid_states
from tests.batches import wait_until
from tests.hub.grid_desk import NOON, Desk
from tests.hub.grid_desk import by_hand as by_hand
from tests.hub.grid_desk import desk as desk
from tests.hub.grid_desk import grid as grid
from tests.hub.grid_server import Grid

SECRET = "planted-key-4711"


def test_it_begins_with_the_last_two_days_and_the_forecast(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    assert desk.grid.paths == ["/co2eq?country=de&start=2026-01-31&end=2026-02-04", "/co2eq?country=de"]
    # 48 hours are measured, the 12 of the rest of today and tomorrow's 24 are forecast
    assert desk.hours(-49, 37) == {
        **dict.fromkeys(range(-48, 0), (300, "measured")), **dict.fromkeys(range(36), (100, "forecast")),
    }  # fmt: skip
    assert desk.state() == GridState("energy_charts", "DE", asked_at=NOON, answered_at=NOON)
    assert poller.feeds[0].added == 48 * 4 + 36 * 4


def test_the_last_hours_are_read_every_period_and_nothing_twice(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    asked = len(desk.grid.paths)
    assert poller.pause_s() == LONGEST_PAUSE_S
    desk.passes(899)
    poller.step()
    assert len(desk.grid.paths) == asked
    desk.passes(1)
    poller.step()
    assert desk.grid.paths[asked:] == ["/co2eq?country=de&start=2026-02-02&end=2026-02-04"]
    # 12:00 to 12:15 is measured now, the other three quarters are still forecast: (300 + 3 x 100) / 4 = 150
    assert desk.hours(0, 1) == {0: (150, "forecast")}
    assert desk.hours(0, 1, NOON) == {0: (100, "forecast")}


def test_two_days_are_read_again_each_day_and_revisions_are_new_knowledge(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    desk.passes(DAY_S)
    desk.grid.grams = 310.0
    poller.step()
    assert "/co2eq?country=de&start=2026-02-01&end=2026-02-05" in desk.grid.paths
    assert desk.hours(-25, -23) == {-25: (300, "measured"), -24: (310, "measured")}
    assert desk.hours(-25, -23, NOON) == {-25: (300, "measured"), -24: (300, "measured")}


def test_a_hub_that_starts_again_reads_what_it_missed(desk: Desk) -> None:
    desk.poller().step()
    desk.passes(DAY_S)
    desk.poller().step()
    assert desk.hours(0, 24) == dict.fromkeys(range(24), (300, "measured"))
    assert desk.hours(1, 2, NOON) == {1: (100, "forecast")}


@pytest.mark.parametrize(
    ("do", "kind", "words"),
    [
        ("500", "failed", "HTTP 500: not now"),
        ("401", "no_access", "HTTP 401: not now"),
        ("404", "not_found", "HTTP 404: not now"),
        ("hang", "timed_out", "no answer within 1 s"),
        ("cut", "unreachable", "the connection was cut before the answer was complete"),
        ("html", "malformed", "HTTP 200 with an HTML page instead of JSON"),
        ("not json", "malformed", "HTTP 200 with a body that is not JSON"),
        ("wrong type", "malformed", "`unix_seconds` is a text, not a list"),
        ("empty", "empty", "the answer holds nothing of the time that was asked for"),
    ],
)
def test_a_fault_is_told_and_what_is_known_stays(desk: Desk, do: str, kind: str, words: str) -> None:
    poller = desk.poller()
    poller.step()
    before = desk.hours(-48, 36)
    desk.grid.do = do
    # past what the HTTP helper still takes for fresh
    desk.passes(1000)
    poller.step()
    state = desk.state()
    assert state.problem is not None
    assert (state.problem_kind, state.problem.split(" (not asked")[0]) == (kind, words)
    assert (state.answered_at, state.advice is not None) == (NOON, True)
    assert state.retry_at is not None and state.retry_at >= desk.time.now + timedelta(seconds=29)
    assert desk.hours(-48, 36) == before
    desk.grid.do = "ok"
    desk.passes(4000)
    poller.step()
    assert (desk.state().problem, desk.state().answered_at) == (None, desk.time.now)


def test_a_provider_that_fails_is_asked_less_and_less_often(desk: Desk) -> None:
    desk.grid.do = "500"
    poller = desk.poller()
    times = []
    for _ in range(30 * 4):
        before = len(desk.grid.paths)
        poller.step()
        if any("2026" in path for path in desk.grid.paths[before:]):
            times.append(desk.time.seconds - 1000)
        desk.passes(30)
    # the two days at 0, then after 1, 2, 4, 8 .. minutes more; the last hours every period and its retries
    assert times[:2] == [0, FIRST_RETRY_S]
    assert len(times) < 15


def test_a_retry_after_is_kept(desk: Desk) -> None:
    desk.grid.do, desk.grid.retry_after = "429", "1200"
    poller = desk.poller()
    poller.step()
    asked = len(desk.grid.paths)
    assert desk.state().retry_at == NOON + timedelta(seconds=1200)
    for _ in range(19):
        desk.passes(60)
        poller.step()
    assert len(desk.grid.paths) == asked
    desk.grid.do, desk.grid.retry_after = "ok", None
    desk.passes(120)
    poller.step()
    assert len(desk.grid.paths) > asked
    assert desk.state().problem is None


def test_values_of_a_clock_that_is_ahead_are_not_taken_for_now(desk: Desk) -> None:
    """A provider's clock is two hours ahead: what it calls measured in two hours is not asked for."""
    desk.grid.skew = timedelta(hours=2)
    desk.poller().step()
    assert desk.hours(-2, 3) == {-2: (300, "measured"), -1: (300, "measured"), 2: (100, "forecast")}


def test_a_provider_without_its_key_is_skipped_and_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    named = {"provider": "electricity_maps", "key_env": "NO_SUCH_TOKEN", "zones": {"DE": "DE", "FR": "FR"}}
    config = Config.model_validate({"grid": [named, desk.entry()]})
    desk.poller(config).step()
    assert desk.state("electricity_maps").problem_kind == "absent"
    assert desk.state("electricity_maps", "FR").problem == "$NO_SUCH_TOKEN is not set (key_env)"
    assert desk.state("electricity_maps").asked_at is None
    assert desk.state().problem is None
    # with a key it is not absent any more
    monkeypatch.setenv("NO_SUCH_TOKEN", SECRET)
    desk.poller(Config.model_validate({"grid": [named | {"base_url": desk.grid.address}]})).step()
    assert desk.state("electricity_maps").problem_kind == "malformed"
    assert desk.grid.headers[-1]["auth-token"] == SECRET
    assert SECRET not in str(read_grid_states(desk.store))


def test_a_file_is_read_as_a_whole_and_again_when_it_changes(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    head = "zone,start,end,g_per_kwh,basis\n"
    path.write_text(head + "DE,2024-02-03T12:00Z,2024-02-03T13:00Z,45,lifecycle\n", encoding="utf-8")
    config = Config.model_validate({"grid": [{"provider": "csv_file", "zones": {"DE": "DE"}, "path": str(path)}]})
    poller = desk.poller(config)
    poller.step()
    years = -731 * 24
    assert desk.hours(years, years + 1) == {years: (45, "measured")}
    path.write_text(head + "DE,2024-02-03T12:00Z,2024-02-03T13:00Z,55.5,lifecycle\n", encoding="utf-8")
    desk.passes(900)
    poller.step()
    assert desk.hours(years, years + 1) == {years: (55.5, "measured")}
    path.write_text(head + "DE,2024-02-03T12:00,2024-02-03T13:00Z,55.5,lifecycle\n", encoding="utf-8")
    desk.passes(900)
    poller.step()
    assert "line 2: `start` is a time with its offset" in str(desk.state("csv_file").problem)
    assert desk.hours(years, years + 1) == {years: (55.5, "measured")}


def test_a_full_store_loses_no_value(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.hub import grid_feed

    def full(*_: object) -> int:
        raise OSError("no space left")

    poller = desk.poller()
    with monkeypatch.context() as patched:
        patched.setattr(grid_feed, "append_points", full)
        poller.step()
    assert desk.hours(-48, 36) == {}
    desk.passes(FIRST_RETRY_S)
    poller.step()
    assert len(desk.hours(-48, 36)) == 84


def test_asking_now_stores_what_the_hub_would(desk: Desk) -> None:
    """`wattmix grid` where no hub runs."""
    read_now(desk.store, desk.config, "DE", desk.http())
    assert desk.hours(-7, 37) == {
        **dict.fromkeys(range(-6, 0), (300, "measured")), **dict.fromkeys(range(36), (100, "forecast")),
    }  # fmt: skip
    assert desk.state().answered_at == NOON
    read_now(desk.store, desk.config, "FR", desk.http())
    assert ("energy_charts", "FR") not in read_grid_states(desk.store)


def test_without_providers_there_is_no_poller(store: Store) -> None:
    assert GridPoller.from_config(Config(), store) is None


def test_closing_waits_for_no_provider(store: Store, grid: Grid) -> None:
    """The thread itself: it asks at once, and a provider that hangs keeps no hub from ending."""
    grid.do = "hang"
    desk = Desk(store, grid)
    poller = GridPoller(store, desk.config)
    wait_until(lambda: bool(grid.paths), "the provider is asked")
    began = time.monotonic()
    poller.close()
    assert time.monotonic() - began < 3
    assert desk.state().asked_at is None
    grid.closed.set()
