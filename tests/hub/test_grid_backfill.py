"""What an outage of hub or provider left out is read once the provider answers, and nothing waits for it."""

from __future__ import annotations

import threading
from datetime import timedelta

from app.config import Config
from app.hub.grid_poller import DAY_S, GridPoller
from app.units import us_of_moment
from collectors.http.client import Http
from tests.batches import MINUTE, T0, Clock, batch, count, put, seconds, wait_until, writing
from tests.hub.grid_desk import NOON, Desk
from tests.hub.grid_desk import by_hand as by_hand
from tests.hub.grid_desk import desk as desk
from tests.hub.grid_desk import grid as grid


def test_a_hub_that_was_off_for_days_reads_what_it_missed(desk: Desk) -> None:
    """Off from noon for six days: the last two are read at once, then the four before them."""
    desk.poller().step()
    desk.passes(6 * DAY_S)
    asked = len(desk.grid.paths)
    desk.poller().step()
    assert desk.grid.paths[asked:] == [
        "/co2eq?country=de&start=2026-02-06&end=2026-02-10",
        "/co2eq?country=de",
        "/co2eq?country=de&start=2026-02-02&end=2026-02-08",
    ]
    assert desk.hours(-48, 6 * 24) == dict.fromkeys(range(-48, 6 * 24), (300, "measured"))
    # by what was known then, of two days there is nothing, and of the others the forecast of noon
    assert desk.hours(30, 40, NOON) == dict.fromkeys(range(30, 36), (100, "forecast"))


def test_without_an_outage_nothing_more_is_asked(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    asked = len(desk.grid.paths)
    desk.passes(900)
    poller.step()
    desk.poller().step()
    assert not [path for path in desk.grid.paths[asked:] if "2026-01" in path and "2026-01-31" not in path]
    assert len(desk.grid.paths) - asked <= 3


def test_a_provider_that_was_gone_for_days_is_asked_for_them_once_it_is_back(desk: Desk) -> None:
    poller = desk.poller()
    poller.step()
    desk.grid.do = "500"
    for _ in range(5 * 24):
        desk.passes(3600)
        poller.step()
    assert max(desk.hours(0, 120)) == 35  # what the forecasts of noon were about
    desk.grid.do = "ok"
    for _ in range(2):
        desk.passes(3700)
        poller.step()
    assert desk.hours(0, 120) == dict.fromkeys(range(120), (300, "measured"))
    asked = len(desk.grid.paths)
    desk.passes(900)
    poller.step()
    assert not [path for path in desk.grid.paths[asked:] if "start=2026-02-02" in path]


def test_hours_are_read_no_further_back_than_it_is_set(desk: Desk) -> None:
    """And what the provider takes as one question is its own matter: here no more than thirty days."""
    desk.poller().step()
    desk.passes(60 * DAY_S)
    asked = len(desk.grid.paths)
    desk.poller().step()
    past, forecast, *missed = desk.grid.paths[asked:]
    assert (past, forecast) == ("/co2eq?country=de&start=2026-04-01&end=2026-04-05", "/co2eq?country=de")
    # from 4 March on, 31 days before 4 April
    assert missed == ["/co2eq?country=de&start=2026-03-03&end=2026-04-03"]
    found = desk.hours(36, 60 * 24)
    assert found == dict.fromkeys(range(29 * 24, 60 * 24), (300, "measured"))
    few = Config.model_validate({"grid": [desk.entry(backfill_days=3)]})
    with desk.store.transaction() as connection:
        connection.execute("DELETE FROM grid_point WHERE start_us >= $1", [us_of_moment(NOON + timedelta(days=20))])
    asked = len(desk.grid.paths)
    desk.poller(few).step()
    assert desk.grid.paths[asked:][2:] == ["/co2eq?country=de&start=2026-03-31&end=2026-04-03"]


def test_hours_that_the_provider_lacks_are_not_asked_for_all_the_time(desk: Desk) -> None:
    """Its past two days are answered, and of those before them it has nothing."""
    desk.poller().step()
    desk.passes(6 * DAY_S)
    desk.grid.since = desk.grid.now - timedelta(days=3)
    poller = desk.poller()
    poller.step()
    asked = [path for path in desk.grid.paths if "start=2026-02-02" in path]
    assert len(asked) == 1
    for _ in range(20):
        desk.passes(900)
        poller.step()
    assert [path for path in desk.grid.paths if "start=2026-02-02" in path] == asked
    assert desk.state().problem is None


def test_a_provider_that_hangs_while_it_is_asked_for_days_holds_up_no_sample(desk: Desk) -> None:
    desk.poller().step()
    desk.passes(3 * DAY_S)
    poller = GridPoller(desk.store, desk.config, Http(utc_now=lambda: desk.time.now), now=lambda: desk.time.now)
    (past,) = (task for task in poller._tasks if task.what.endswith(", past"))
    poller._attend(past)
    (missed,) = (task for task in poller._tasks if task.what.endswith(", missed"))
    desk.grid.do, asked = "hang", len(desk.grid.paths)
    asking = threading.Thread(target=poller._attend, args=[missed])
    asking.start()
    wait_until(lambda: len(desk.grid.paths) > asked, "the provider is asked for the days")
    with writing(desk.store, Clock(T0)) as taking:
        put(taking, batch(1, rows=seconds(T0 - MINUTE, 10)))
    assert asking.is_alive()
    assert count(desk.store, "gpu_sample") == 10
    desk.grid.closed.set()
    asking.join()
    assert desk.state().problem is None  # how the provider is doing is told by its other questions
    assert poller.feeds[0].failures == 1
