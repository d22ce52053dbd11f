"""The simulator's two acts: the past up to now at one row a minute, then the present as it passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from app.simulator.batches import live_rows, minute_rows, spans
from app.simulator.push import Feed
from app.simulator.recurring import DAY_S, MINUTE_S, SLOT_S

HOUR_S = 3600
# Large batches of the past: the hub commits them several at once, and none nears its limits of a body.
PAST_BATCH_S = 4 * DAY_S
# After a pause (a suspended laptop) the present is caught up in pieces.
LIVE_BATCH_S = 600
# The hub refuses rows older than it keeps them: the first must not grow too old on its way.
MARGIN_S = 600
SENDERS = 3


def past(now_s: float, days: float) -> tuple[int, int]:
    """Seconds (start, end] of the past to fill: from a whole hour within those days to the last whole minute."""
    end_s = int(now_s) // MINUTE_S * MINUTE_S
    start_s = -int(-(now_s - days * DAY_S + MARGIN_S) // HOUR_S) * HOUR_S
    return min(start_s, end_s), end_s


def fill_past(feeds: Sequence[Feed], start_s: int, end_s: int, sent: Callable[[int], None]) -> int:
    """Send every node's rows of (start, end]; how many those were. sent: is told the seconds of each batch."""

    def fill(feed: Feed) -> int:
        total = 0
        for span in spans(feed.node, start_s, end_s, PAST_BATCH_S):
            rows = feed.send(span, minute_rows)
            sent(span.end_s - span.start_s)
            total += rows
        return total

    # While one waits for the hub's commit the next makes its rows.
    with ThreadPoolExecutor(SENDERS) as pool:
        return sum(pool.map(fill, feeds))


def follow(
    feeds: Sequence[Feed],
    start_s: int,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    until_s: float = float("inf"),
) -> None:
    """Send every node's rows after `start_s` as time passes, every five seconds. until_s: an end, for tests."""
    sent_s = start_s
    while sent_s < until_s:
        now_s = int(min(clock(), until_s)) // SLOT_S * SLOT_S
        for feed in feeds if now_s > sent_s else ():
            for span in spans(feed.node, sent_s, now_s, LIVE_BATCH_S):
                feed.send(span, live_rows)
        sent_s = max(sent_s, now_s)
        # At most a slot, for a clock that is set back.
        sleep(min(max(0.05, sent_s + SLOT_S - clock()), SLOT_S))
