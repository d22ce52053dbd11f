"""A node's feed: in order, again until acknowledged, and it stops at a refusal."""

from __future__ import annotations

import pytest

from app.errors import HubError
from app.simulator.batches import Span, live_rows, minute_rows
from app.simulator.push import SILENT_FAILURES, Feed
from tests.collectors.hubs import hub
from tests.simulator.wires import HUB, WORLD, HubAdapter, node_named, of_the_day, session_with

Waits = list[float]


def feed(adapter: HubAdapter, waits: Waits, name: str = "gamer-5") -> Feed:
    return Feed(WORLD, node_named(WORLD, name), HUB, session=session_with(adapter), sleep=waits.append)


def test_batches_are_numbered_in_order_within_one_epoch() -> None:
    adapter, waits = HubAdapter(), Waits()
    sending = feed(adapter, waits)
    # 60 minutes of two GPUs and one engine
    assert sending.send(Span(of_the_day(8), of_the_day(9)), minute_rows) == 180
    assert sending.send(Span(of_the_day(9), of_the_day(9, 0, 10)), live_rows) == 22
    assert [batch.sequence for batch in adapter.batches] == [1, 2]
    assert len({batch.epoch for batch in adapter.batches}) == 1
    assert waits == []


def test_of_a_node_that_is_off_nothing_is_sent() -> None:
    adapter = HubAdapter()
    sending = feed(adapter, [])
    assert sending.send(Span(of_the_day(10, 25), of_the_day(10, 26)), live_rows) == 0
    assert sending.send(Span(of_the_day(10, 40), of_the_day(10, 40, 5)), live_rows) == 11
    assert [batch.sequence for batch in adapter.batches] == [1]


def test_what_was_not_acknowledged_is_sent_again_byte_for_byte(caplog: pytest.LogCaptureFixture) -> None:
    adapter, waits = HubAdapter(503, 500, 404, 429), Waits()
    feed(adapter, waits).send(Span(of_the_day(8), of_the_day(8, 1)), minute_rows)
    assert len(adapter.bodies) == 5
    assert len(set(adapter.bodies)) == 1
    assert [batch.sequence for batch in adapter.batches] == [1]
    # back-off by chance up to 2, 4 and 16 s; a 404 is a wrong address and waits a minute
    assert waits[2] == 60.0
    assert all(0.2 <= wait_s <= limit_s for wait_s, limit_s in zip([*waits[:2], waits[3]], (2, 4, 16), strict=True))
    assert [record.message for record in caplog.records] == [
        f"the hub at {HUB} takes no batches: 429: scripted; trying on"
    ]
    assert len(waits) == SILENT_FAILURES


def test_a_refusal_ends_it_with_the_hub_s_words() -> None:
    with pytest.raises(HubError, match=rf"the hub at {HUB} refused a batch of gamer-5: 422: scripted"):
        feed(HubAdapter(422), []).send(Span(of_the_day(8), of_the_day(8, 1)), minute_rows)


def test_a_connection_that_is_cut_after_the_commit_doubles_nothing() -> None:
    with hub("commit-then-cut", "cut") as real:
        waits = Waits()
        sending = Feed(WORLD, node_named(WORLD, "h100-1"), real.address, sleep=waits.append)
        for second in (0, 5, 10):
            sending.send(Span(of_the_day(8, 0, second), of_the_day(8, 0, second + 5)), live_rows)
    assert (real.taken, real.duplicates, real.requests, len(waits)) == ([1, 2, 3], 1, 5, 2)
