"""The spool: what it has taken is there once, whatever is killed when, and it stays within its bounds."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from collectors.outbox import Outbox
from collectors.samples import decode
from collectors.spool import Spool, SpoolFigures
from collectors.spool_file import SpoolBusy, SpoolError
from tests.collectors.batches import SECOND, T0, batch

DAY = 86_400 * SECOND


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "spool.db"


def drain(spool: Spool) -> list[int]:
    """Acknowledge everything; the sequences in the order in which they came."""
    sequences = []
    while (entry := spool.oldest()) is not None:
        assert decode(entry.body, max_json_bytes=2**26).sequence == entry.sequence
        sequences.append(entry.sequence)
        spool.acknowledge(entry)
    return sequences


def test_a_batch_comes_back_as_it_went_in_under_the_next_name(path: Path):
    spool = Spool(path)
    assert spool.oldest() is None
    given = batch(epoch="f" * 32, sequence=99)
    assert [spool.append(given), spool.append(given)] == [1, 2]
    entry = spool.oldest()
    assert entry is not None
    assert (entry.sequence, entry.epoch, entry.readings) == (1, spool.epoch, given.readings)
    assert (entry.first_t_us, entry.last_t_us) == (T0, T0 + 9 * SECOND)
    expected = given.model_copy(update={"epoch": spool.epoch, "sequence": 1})
    assert decode(entry.body, max_json_bytes=2**26) == expected
    assert drain(spool) == [1, 2]


def test_a_sequence_is_never_used_again_after_all_was_acknowledged_and_the_agent_restarted(path: Path):
    spool = Spool(path)
    epoch = spool.epoch
    spool.append(batch())
    assert drain(spool) == [1]
    spool.close()
    again = Spool(path)
    assert again.epoch == epoch
    assert again.append(batch()) == 2


def test_the_meters_state_is_stored_with_the_batch_or_not_at_all(path: Path):
    spool = Spool(path)
    spool.append(batch(), {"meter": {"last_mj": 7}})
    with pytest.raises(TypeError):
        spool.append(batch(), {"meter": object()})
    assert spool.state("meter") == {"last_mj": 7}
    assert spool.figures().batches == 1
    assert spool.append(batch(), {"meter": {"last_mj": 8}}) == 2
    spool.close()
    assert Spool(path).state("meter") == {"last_mj": 8}


def test_beyond_its_size_the_oldest_are_dropped_and_counted_for_good(path: Path):
    spool = Spool(path)
    spool.append(batch())
    size = spool.figures().bytes
    drain(spool)
    spool.close()
    spool = Spool(path, max_bytes=size * 5 + 50)
    for _ in range(12):
        spool.append(batch())
    figures = spool.figures()
    assert (figures.batches, figures.dropped_batches) == (5, 7)
    assert figures.bytes <= size * 5 + 50
    spool.close()
    spool = Spool(path)
    assert spool.figures().dropped_batches == 7
    assert drain(spool) == [9, 10, 11, 12, 13]
    assert spool.figures().bytes == 0


def test_a_single_batch_above_the_bound_is_kept(path: Path):
    spool = Spool(path, max_bytes=10)
    spool.append(batch())
    spool.append(batch())
    assert drain(spool) == [2]


def test_beyond_its_age_the_oldest_are_dropped_and_counted(path: Path):
    spool = Spool(path, max_age_s=6 * 86_400)
    spool.append(batch(first_t_us=T0))
    spool.append(batch(first_t_us=T0 + 2 * DAY))
    spool.append(batch(first_t_us=T0 + 6 * DAY - SECOND))
    assert spool.figures().dropped_batches == 0
    spool.append(batch(first_t_us=T0 + 7 * DAY))
    assert spool.figures() == SpoolFigures(3, spool.figures().bytes, T0 + 2 * DAY, 1, 0, 0)


def test_a_rejected_batch_is_put_aside_with_its_reason(path: Path):
    spool = Spool(path)
    spool.append(batch())
    spool.append(batch())
    entry = spool.oldest()
    assert entry is not None
    spool.reject(entry, "400: `gpus.0.uuid`: too long")
    spool.reject(entry, "twice")
    assert spool.figures().rejected_batches == 1
    assert spool.rejected() == {1: "400: `gpus.0.uuid`: too long"}
    assert drain(spool) == [2]


def test_a_second_agent_is_refused_with_the_pid_of_the_first(path: Path):
    first = f"from pathlib import Path; from collectors.spool import Spool; s = Spool(Path({str(path)!r}));"
    code = f"import time; {first} print('open', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(SpoolBusy, match=f"pid {process.pid}") as caught:
            Spool(path)
        assert caught.value.pid == process.pid
    finally:
        process.kill()
        process.wait()
    Spool(path).close()  # the lock went with the process


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("damage", ["header", "middle", "text"])
def test_a_corrupt_file_is_set_aside_and_a_new_epoch_begins(path: Path, damage: str):
    spool = Spool(path)
    for _ in range(50):
        spool.append(batch())
    epoch = spool.epoch
    spool.close()
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[0:100] = b"\0" * 100
    elif damage == "middle":
        for page in range(1, len(content) // 4096):
            content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    else:
        content = bytearray(b"this is no database\n" * 500)
    path.write_bytes(content)
    again = Spool(path)
    assert again.epoch != epoch
    assert again.figures() == SpoolFigures(0, 0, None, 0, 0, 1)
    assert again.append(batch()) == 1
    assert (path.parent / "spool.db.corrupt-0001").stat().st_size == len(content)


def test_damage_found_while_running_begins_a_new_file_and_loses_no_new_batch(path: Path):
    spool = Spool(path)
    for _ in range(50):
        spool.append(batch())
    epoch = spool.epoch
    connection = spool._connection
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(1, size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    connection.execute("PRAGMA cache_size = 0")
    connection.execute("PRAGMA shrink_memory")
    outbox = Outbox(spool)
    assert outbox.put(batch(), {}) is False
    assert outbox.retry() is True
    assert spool.epoch != epoch
    assert spool.figures().corrupt_files == 1
    assert drain(spool) == [1]


def test_only_the_last_two_corrupt_files_are_kept_and_all_are_counted(path: Path):
    for _ in range(4):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"no database" * 100)
        spool = Spool(path)
        figures = spool.figures()
        spool.close()
    assert figures.corrupt_files == 4
    names = sorted(file.name for file in path.parent.glob("*.corrupt-*"))
    assert names == ["spool.db.corrupt-0003", "spool.db.corrupt-0004"]


def test_a_newer_spool_is_refused(path: Path):
    Spool(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(SpoolError, match=r"newer agent \(schema 99\)"):
        Spool(path)


def test_a_full_disk_says_so_and_the_newest_batches_wait_in_memory(path: Path):
    spool = Spool(path)
    spool.append(batch())
    pages = spool._connection.execute("PRAGMA page_count").fetchone()[0]
    spool._connection.execute(f"PRAGMA max_page_count = {pages}")  # what a full disk is to SQLite
    outbox = Outbox(spool, max_waiting=3)
    while outbox.put(batch(), {"meter": "before"}):
        pass
    held = spool.figures().batches
    with pytest.raises(SpoolError, match=r"spool\.db cannot be used: .*full; free some disk space"):
        spool.append(batch())
    for number in range(5):
        assert outbox.put(batch(first_t_us=T0 + number * 10 * SECOND), {"meter": number}) is False
    assert (outbox.waiting, outbox.lost) == (3, 3)
    assert spool.figures().batches == held
    assert spool.state("meter") == ("before" if held > 1 else None)
    spool._connection.execute("PRAGMA max_page_count = 1000000")
    assert outbox.retry() is True
    assert spool.state("meter") == 4
    assert spool.figures().dropped_batches == 3
    assert drain(spool) == list(range(1, held + 4))


def test_a_locked_file_is_an_error_in_words_and_then_works_again(path: Path):
    spool = Spool(path)
    spool._connection.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SpoolError, match="locked; another program holds it open"):
        spool.append(batch())
    other.execute("ROLLBACK")
    other.close()
    assert spool.append(batch()) == 1


def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be made"):
        Spool(tmp_path / "file" / "spool.db")


def test_a_closed_spool_is_an_error_not_a_crash(path: Path):
    spool = Spool(path)
    spool.close()
    spool.close()
    with pytest.raises(SpoolError):
        spool.append(batch())


def test_the_file_gets_small_again_after_an_outage(path: Path):
    spool = Spool(path)
    big = batch(rows=2000)
    for number in range(100):
        big.missing[f"field-{number}"] = "x" * 400
        spool.append(big)
    spool._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.stat().st_size
    drain(spool)
    spool._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size < before / 2 or before < 2_000_000


def test_two_threads_may_use_it_at_once(path: Path):
    spool = Spool(path)
    seen: list[int] = []

    def consume() -> None:
        while len(seen) < 100:
            entry = spool.oldest()
            if entry is not None:
                seen.append(entry.sequence)
                spool.acknowledge(entry)

    consumer = threading.Thread(target=consume)
    consumer.start()
    for _ in range(100):
        spool.append(batch(rows=1))
    consumer.join(20)
    assert seen == list(range(1, 101))


_APPENDER = """
import sys
from pathlib import Path
from collectors.spool import Spool
from tests.collectors.batches import batch
spool = Spool(Path(sys.argv[1]))
given = batch(rows=2)
while True:
    sequence = spool.append(given, {"meter": (spool.state("meter") or 0) + 1})
    print(sequence, flush=True)
    if sequence % 3 == 0:
        spool.acknowledge(spool.oldest())
"""


def kill_once(path: Path, after_s: float) -> list[int]:
    """Let a process append, kill it after that time; the sequences whose append it had reported."""
    command = [sys.executable, "-c", _APPENDER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    return [int(line) for line in (first + rest).split("\n")[:-1] if line]


def check_after_kills(path: Path, kills: int) -> None:
    chance = random.Random(kills)
    reported: list[int] = []
    for _ in range(kills):
        reported += kill_once(path, chance.uniform(0.0, 0.15))
        assert reported == sorted(set(reported))  # never reused
    spool = Spool(path)
    state = spool.state("meter")
    left = drain(spool)
    assert left == sorted(set(left))
    # Acknowledged ones went from the front; from there on, all that was reported is there, once. At most one more
    # per kill was stored and not reported.
    assert set(reported) - set(left) == {sequence for sequence in reported if sequence < left[0]}
    assert len(set(left) - set(reported)) <= kills
    assert state == left[-1]  # the state moved with each batch, never without


def test_every_reported_batch_is_there_once_after_kill_9(path: Path):
    check_after_kills(path, kills=4)


@pytest.mark.slow
def test_every_reported_batch_is_there_once_after_many_kill_9(path: Path):
    check_after_kills(path, kills=40)
