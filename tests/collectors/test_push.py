"""The pusher: in order, one in flight, forgotten only when acknowledged, and polite to a hub in trouble."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import requests

from collectors.hub_answer import judge, retry_after_s
from collectors.push import Pusher, is_loopback
from collectors.samples import decode
from collectors.spool import Spool
from tests.collectors.batches import SECOND, T0, batch
from tests.collectors.hubs import hub

NOW = datetime(2026, 9, 21, 12, 0, tzinfo=UTC)
TOKEN = "wm_node_0123456789"


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "spool.db")
    yield opened
    opened.close()


class Clock:
    """A monotonic clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fill(spool: Spool, count: int) -> None:
    for number in range(count):
        spool.append(batch(first_t_us=T0 + number * 10 * SECOND, rows=2))


def settle(pusher: Pusher, clock: Clock, within_s: float = 600.0) -> list[float]:
    """Step until the spool is empty, moving the clock by each wait; the waits."""
    waits, end = [], clock.now + within_s
    while clock.now < end:
        wait_s = pusher.step()
        if wait_s is None:
            return waits
        waits.append(wait_s)
        clock.now += wait_s
    raise AssertionError(f"not empty after {within_s} s: {waits}")


def pusher_for(spool: Spool, address: str, clock: Clock, **options: Any) -> Pusher:
    options.setdefault("jitter", lambda low, high: high)
    return Pusher(spool, address, clock=clock, utc_now=lambda: NOW, read_timeout_s=0.3, **options)


def test_batches_arrive_in_order_and_are_forgotten(spool: Spool):
    fill(spool, 5)
    with hub() as here:
        waits = settle(pusher_for(spool, here.address + "/", clock := Clock()), clock)
        assert here.taken == [1, 2, 3, 4, 5]
        assert here.headers[0]["Content-Encoding"] == "gzip"
        assert here.headers[0]["Content-Type"] == "application/json"
        assert "Authorization" not in here.headers[0]
    assert spool.figures().batches == 0
    assert waits == [0.05] * 5  # 20 a second


@pytest.mark.parametrize("word", ["500", "502", "cut", "commit-then-cut", "commit-then-sleep", "trickle", "html",
                                  "wrong-ack", "404", "307", "403", "408"])  # fmt: skip
def test_no_answer_but_an_acknowledgement_forgets_a_batch(spool: Spool, word: str):
    fill(spool, 3)
    with hub(word, word) as here:
        pusher = pusher_for(spool, here.address, clock := Clock())
        pusher.step()
        assert spool.figures().batches == 3
        settle(pusher, clock)
        assert here.taken == [1, 2, 3]
        assert here.duplicates == (2 if word in ("commit-then-cut", "commit-then-sleep", "trickle") else 0)
    assert spool.figures().rejected_batches == 0


def test_back_off_grows_to_a_minute_with_jitter_and_ends_with_success(spool: Spool):
    fill(spool, 1)
    highs: list[float] = []

    def jitter(low: float, high: float) -> float:
        assert low == 1.0
        highs.append(high)
        return high

    with hub(*["500"] * 8) as here:
        pusher = pusher_for(spool, here.address, clock := Clock(), jitter=jitter)
        settle(pusher, clock)
        assert highs == [2, 4, 8, 16, 32, 60, 60, 60]
        here.script = ["500"]
        fill(spool, 1)
        settle(pusher, clock)
        assert highs[-1] == 2


def test_the_wait_is_kept_though_news_arrive(spool: Spool):
    fill(spool, 1)
    with hub("500") as here:
        pusher = pusher_for(spool, here.address, clock := Clock())
        assert pusher.step() == 2.0
        pusher.wake()
        clock.now += 1.5
        assert pusher.step() == pytest.approx(0.5)
        assert here.requests == 1


@pytest.mark.parametrize("status", ["429", "503"])
@pytest.mark.parametrize(
    ("header", "wait_s"),
    [("7", 7.0), ("0", 0.0), ("86400", 300.0), (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
     (format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0), ("soon", 2.0), ("-5", 2.0), (None, 2.0)],
)  # fmt: skip
def test_retry_after_is_obeyed_up_to_five_minutes(spool: Spool, status: str, header: str | None, wait_s: float):
    fill(spool, 1)
    with hub(status, retry_after=header) as here:
        pusher = pusher_for(spool, here.address, Clock())
        assert pusher.step() == pytest.approx(wait_s)


@pytest.mark.parametrize("status", ["400", "413", "422"])
def test_a_poison_batch_is_put_aside_and_the_rest_goes_on(spool: Spool, status: str, caplog: pytest.LogCaptureFixture):
    fill(spool, 3)
    with hub("ok", status) as here:
        settle(pusher_for(spool, here.address, clock := Clock()), clock)
        assert here.taken == [1, 3]
    assert spool.figures().rejected_batches == 1
    assert spool.rejected() == {2: f"{status}: scripted {status}"}
    assert any(record.__dict__.get("fields", {}).get("reason") == f"{status}: scripted {status}"
               for record in caplog.records)  # fmt: skip


@pytest.mark.parametrize("status", [400, 422])
def test_a_proxys_400_does_not_empty_the_spool(status: int):
    # nginx answers 400 in HTML to plain HTTP on its TLS port, whatever the batch.
    verdict = judge(status, {}, b"<html>400 The plain HTTP request was sent to HTTPS port", sequence=1, now=NOW)
    assert (verdict.outcome, verdict.wait_s) == ("kept", 60.0)


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [(200, b'{"acknowledged": 4}', "acknowledged"), (202, b'{"acknowledged": 4, "duplicate": true}', "acknowledged"),
     (200, b'{"acknowledged": 5}', "kept"), (200, b'{"acknowledged": true}', "kept"), (200, b"[]", "kept"),
     (200, b"", "kept"), (200, b"\xff\xfe", "kept"), (200, b"[" * 60_000, "kept"), (413, b"", "rejected"),
     (401, b'{"error": "no"}', "kept"), (404, b"", "kept"), (500, b'{"acknowledged": 4}', "kept")],
)  # fmt: skip
def test_what_an_answer_means(status: int, body: bytes, outcome: str):
    answered = 1 if body == b'{"acknowledged": true}' else 4
    assert judge(status, {}, body, sequence=answered, now=NOW).outcome == outcome


def test_retry_after_reads_a_date_without_a_zone():
    assert retry_after_s("Mon, 21 Sep 2026 12:00:30 -0000", NOW) == 30.0


def test_a_refused_token_is_read_again_and_never_logged(spool: Spool, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    token_file = tmp_path / "token"
    token_file.write_text(f"{TOKEN}\n")
    fill(spool, 2)
    with hub("401", "401", "ok", "ok") as here:
        pusher = pusher_for(spool, here.address, clock := Clock(), token_file=token_file)
        assert pusher.step() == 60.0  # the same token again: wait for a person
        token_file.write_text("second")
        clock.now += 60
        assert pusher.step() == 0.05  # 401, another token in the file, taken at once
        assert [headers["Authorization"] for headers in here.headers] == [f"Bearer {TOKEN}"] * 2 + ["Bearer second"]
    text = caplog.text + repr([record.__dict__ for record in caplog.records])
    assert "put a valid node token" in text or "scripted 401" in text
    assert TOKEN not in text
    assert TOKEN not in repr(vars(pusher))


@pytest.mark.parametrize("content", ["", "two words", "line\nline", "schlüssel"])
def test_a_useless_token_file_is_said_and_tried_again(spool: Spool, tmp_path: Path, content: str):
    token_file = tmp_path / "token"
    token_file.write_text(content, encoding="utf-8")
    fill(spool, 1)
    with hub() as here:
        pusher = pusher_for(spool, here.address, clock := Clock(), token_file=token_file)
        assert pusher.step() == 60.0
        assert here.requests == 0
        token_file.write_text(TOKEN)
        clock.now += 60
        settle(pusher, clock)
        assert here.taken == [1]


def test_netrc_and_proxies_of_the_environment_are_not_for_a_local_hub(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "netrc").write_text("default login someone password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    fill(spool, 1)
    with hub() as here:
        settle(pusher_for(spool, here.address, clock := Clock()), clock)
        assert "Authorization" not in here.headers[0]


@pytest.mark.parametrize(
    ("address", "local"),
    [("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("http://localhost", True), ("http://10.0.0.1", False),
     ("https://hub.example", False)],
)  # fmt: skip
def test_loopback(address: str, local: bool):
    assert is_loopback(address) is local


def test_an_unreachable_hub_is_a_reason_without_a_traceback(spool: Spool, caplog: pytest.LogCaptureFixture):
    fill(spool, 1)
    pusher = pusher_for(spool, "http://127.0.0.1:9", Clock())
    assert pusher.step() == 2.0
    (record,) = [record for record in caplog.records if record.name.startswith("wattmix")]
    assert record.__dict__["fields"]["reason"] == "no answer from http://127.0.0.1:9: ConnectionError"


class BrokenSession(requests.Session):
    def post(self, *_args: Any, **_options: Any) -> requests.Response:
        raise RuntimeError("a bug")


def test_the_thread_outlives_a_bug_and_a_closed_spool(spool: Spool, caplog: pytest.LogCaptureFixture):
    fill(spool, 1)
    pusher = Pusher(spool, "http://127.0.0.1:9", session=BrokenSession(), jitter=lambda low, high: 0.01)
    thread = threading.Thread(target=pusher.run)
    thread.start()
    time.sleep(0.1)
    spool.close()
    time.sleep(0.1)
    assert thread.is_alive()
    pusher.stop(0.1)
    thread.join(5)
    assert not thread.is_alive()
    assert "RuntimeError: a bug" in repr([record.__dict__.get("fields") for record in caplog.records])


def test_the_thread_sends_news_at_once_and_the_rest_when_told_to_stop(spool: Spool):
    with hub() as here:
        pusher = Pusher(spool, here.address)
        thread = threading.Thread(target=pusher.run)
        thread.start()
        fill(spool, 1)
        pusher.wake()
        deadline = time.monotonic() + 5
        while not here.taken and time.monotonic() < deadline:
            time.sleep(0.01)
        assert here.taken == [1]
        fill(spool, 3)
        pusher.stop(2.0)
        thread.join(5)
        assert here.taken == [1, 2, 3, 4]


def test_stopping_tries_once_more_in_a_back_off_and_is_bounded(spool: Spool):
    fill(spool, 2)
    with hub("500", "500", "ok", "commit-then-sleep") as here:
        pusher = Pusher(spool, here.address, jitter=lambda low, high: 60.0)
        thread = threading.Thread(target=pusher.run)
        thread.start()
        time.sleep(0.2)
        began = time.monotonic()
        pusher.stop(0.5)
        thread.join(5)
        assert time.monotonic() - began < 1.5
        assert here.requests == 2  # the one before, and one more at once; then its back-off is beyond the end
        assert spool.figures().batches == 2


class SimulatedHub(requests.Session):
    """Down for a while of the simulated clock, then takes everything."""

    def __init__(self, clock: Clock, up_at: float) -> None:
        super().__init__()
        self.clock, self.up_at = clock, up_at
        self.taken: list[tuple[float, int]] = []

    def post(self, *_args: Any, **options: Any) -> requests.Response:  # type: ignore[override]
        if self.clock.now < self.up_at:
            raise requests.ConnectionError
        sequence = decode(options["data"], max_json_bytes=2**26).sequence
        self.taken.append((self.clock.now, sequence))
        answer = requests.Response()
        answer.status_code = 200
        answer._content = b'{"acknowledged": %d}' % sequence
        answer._content_consumed = True
        return answer


def simulate(spool: Spool, *, outage_s: int, push_every_s: int, rate: float) -> SimulatedHub:
    """A live agent that appends every push_every_s through an outage and until it has caught up."""
    clock = Clock()
    start = clock.now
    session = SimulatedHub(clock, start + outage_s)
    pusher = Pusher(spool, "http://hub", clock=clock, session=session, batches_per_s=rate)
    next_append, appended = start, 0
    next_step: float | None = start
    while clock.now < start + outage_s + 3600:
        if clock.now >= next_append:
            spool.append(batch(first_t_us=T0 + appended * push_every_s * SECOND, rows=1))
            appended, next_append = appended + 1, next_append + push_every_s
            next_step = clock.now if next_step is None else next_step
        if next_step is not None and clock.now >= next_step:
            wait_s = pusher.step()
            next_step = None if wait_s is None else clock.now + wait_s
        if next_step is None and clock.now > session.up_at:
            break
        clock.now = min(next_append, clock.now + 1e9 if next_step is None else max(next_step, clock.now))
    return session


def check_outage(spool: Spool, outage_s: int, push_every_s: int) -> None:
    session = simulate(spool, outage_s=outage_s, push_every_s=push_every_s, rate=20.0)
    sequences = [sequence for _, sequence in session.taken]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) >= outage_s // push_every_s
    assert spool.figures().batches == 0
    moments = [moment for moment, _ in session.taken]
    assert moments[0] - session.up_at <= 60.0  # the longest back-off
    for first, twentieth in zip(moments, moments[20:], strict=False):
        assert twentieth - first >= 0.99  # never more than 20 a second
    caught_up_s = moments[-1] - moments[0]
    assert caught_up_s <= len(sequences) / 20 * 1.1


def test_after_an_hours_outage_all_is_caught_up_in_order_and_paced(spool: Spool):
    check_outage(spool, outage_s=3600, push_every_s=10)


@pytest.mark.slow
def test_after_a_days_outage_all_is_caught_up_in_order_and_paced(spool: Spool):
    check_outage(spool, outage_s=86_400, push_every_s=10)


def test_an_outage_beyond_the_bound_keeps_the_newest_in_order(tmp_path: Path):
    spool = Spool(tmp_path / "small.db", max_bytes=20_000)
    session = simulate(spool, outage_s=3600, push_every_s=10, rate=20.0)
    sequences = [sequence for _, sequence in session.taken]
    dropped = spool.figures().dropped_batches
    assert dropped > 100
    assert sequences == list(range(dropped + 1, dropped + 1 + len(sequences)))
    spool.close()
