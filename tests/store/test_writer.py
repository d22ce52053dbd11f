"""Design law 6, exactly once: what was acknowledged is in the store once, what was not can be sent again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from app.errors import BatchRefused, Overloaded, StoreError
from app.store import ingest, nodes, writer
from app.store.database import Store
from app.store.writer import Acknowledgement, SampleWriter
from collectors.samples import Batch
from tests.batches import (
    DAY,
    DEADLINE_S,
    EPOCH,
    HOUR,
    OTHER_EPOCH,
    SECOND,
    T0,
    Clock,
    at,
    batch,
    count,
    gpu,
    held_up,
    put,
    seconds,
    wait_until,
    writing,
)

RAW = ("gpu_sample", "gpu_bridge", "host_sample", "process_sample", "dirty_minute", "ledger", "node", "gpu")


def full_batch(sequence: int = 1) -> Batch:
    """A batch with a row for every raw table."""
    start = T0 + (sequence - 1) * HOUR
    bridge = {"t_us": start + 60 * SECOND, "dt_us": 50 * SECOND, "energy_method": "bridged", "energy_mj": 9}
    return batch(
        sequence,
        rows=[*seconds(start, 10), bridge],
        host=[{"t_us": start + SECOND, "cpu_energy_mj": 120_000}],
        processes=[{"t_us": start + SECOND, "pid": 4711}],
        engine_rows=[{"t_us": start + 5 * SECOND, "generated_tokens": 70, "ttft_buckets": [0, 2, 0, 0]}],
    )


def everything(store: Store) -> dict[str, int]:
    return {table: count(store, table) for table in RAW}


def total_mj(store: Store) -> int:
    return int(store.query("SELECT coalesce(sum(energy_mj), 0) AS mj FROM gpu_sample")["mj"][0])


def too_much(sequence: int, **values: Any) -> Batch:
    """A batch that the wire allows and no 32-bit column takes: 2^31 mJ in its fourth row."""
    rows = [{**row, **({"energy_mj": 2**31} if number == 3 else {})} for number, row in enumerate(seconds(T0, 10))]
    return batch(sequence, rows=rows, **values)


# Duplicates


def test_a_batch_sent_again_is_answered_as_a_duplicate_and_stored_once(store: Store) -> None:
    with writing(store) as taking:
        assert put(taking, full_batch()) == Acknowledgement(1)
        before = everything(store)
        for _ in range(3):
            assert put(taking, full_batch()) == Acknowledgement(1, duplicate=True)
        assert everything(store) == before
        assert (taking.stats.batches, taking.stats.duplicates) == (1, 3)
    assert before == {
        "gpu_sample": 10, "gpu_bridge": 1, "host_sample": 1, "process_sample": 1, "dirty_minute": 1, "ledger": 1,
        "node": 1, "gpu": 1,
    }  # fmt: skip


def test_any_sequence_at_or_below_the_ledger_is_a_no_op(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(5))
        for sequence in (1, 4, 5):
            assert put(taking, batch(sequence)) == Acknowledgement(sequence, duplicate=True)
        assert put(taking, batch(6)) == Acknowledgement(6)
    assert count(store, "gpu_sample") == 20


def test_a_duplicate_is_known_after_the_store_was_reopened(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(1))
        put(taking, batch(2))
    store.close()
    again = Store.open(store.path)
    with writing(again) as taking:
        assert put(taking, batch(2)) == Acknowledgement(2, duplicate=True)
        assert put(taking, batch(3)) == Acknowledgement(3)
    assert (count(again, "gpu_sample"), count(again, "ledger"), count(again, "gpu")) == (30, 1, 1)
    again.close()


def test_the_same_batch_twice_in_one_group_is_stored_once(store: Store) -> None:
    with writing(store) as taking:
        with held_up(store, taking):
            sent = [taking.submit(one, one.readings) for one in (batch(1), batch(1), batch(2), batch(1))]
        answers = [future.result(DEADLINE_S) for future in sent]
        assert [answer.duplicate for answer in answers] == [False, True, False, True]
        assert taking.stats.groups == 2  # the plug's and this one
    assert store.query("SELECT sequence FROM ledger WHERE agent = 'node-7'").rows() == [(2,)]
    assert count(store, "gpu_sample JOIN gpu USING (gpu_id) WHERE uuid = 'node-7-0'") == 20


def test_the_same_sequence_of_another_agent_or_epoch_is_another_batch(store: Store) -> None:
    with writing(store) as taking:
        for sent in (batch(1), batch(1, epoch=OTHER_EPOCH), batch(1, node="node-8")):
            assert put(taking, sent) == Acknowledgement(1)
    assert (count(store, "gpu_sample"), count(store, "ledger")) == (30, 3)


# One transaction


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, statement: str) -> Iterator[None]:
    """That statement fails, as one does on a full disk."""
    failure = "SELECT error('No space left on device')"
    with monkeypatch.context() as patched:
        if statement == "ledger":
            patched.setattr(writer, "_UPSERT_LEDGER", failure)
        elif statement == "gpu":
            patched.setattr(nodes, "_UPSERT_GPU", failure)
        else:
            patched.setitem(ingest._INSERTS, statement, failure)
        yield


@pytest.mark.parametrize("statement", [*ingest._INSERTS, "ledger", "gpu"])
def test_a_failure_between_inserts_leaves_nothing_of_the_batch_and_it_can_be_sent_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    with writing(store) as taking:
        with failing(monkeypatch, statement), pytest.raises(StoreError, match=r"could not commit: .*No space left"):
            put(taking, full_batch())
        assert set(everything(store).values()) == {0}
        assert put(taking, full_batch()) == Acknowledgement(1)
        assert put(taking, full_batch()) == Acknowledgement(1, duplicate=True)
        assert (taking.stats.batches, taking.stats.refused, taking.stats.group_errors) == (1, 0, 1)
    assert (count(store, "gpu_sample"), total_mj(store)) == (10, 3_000_000)


@contextmanager
def no_commit(monkeypatch: pytest.MonkeyPatch, store: Store) -> Iterator[None]:
    """Every statement goes well and COMMIT fails."""
    whole = store.transaction

    @contextmanager
    def full_disk() -> Iterator[duckdb.DuckDBPyConnection]:
        with whole() as connection:
            yield connection
            raise duckdb.IOException("Could not write file: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(store, "transaction", full_disk)
        yield


def test_a_commit_that_fails_acknowledges_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with writing(store) as taking:
        with no_commit(monkeypatch, store), pytest.raises(StoreError, match="No space left on device"):
            put(taking, full_batch())
        assert set(everything(store).values()) == {0}
        assert put(taking, full_batch()) == Acknowledgement(1)


@pytest.mark.parametrize("problem", [MemoryError(), duckdb.IOException("disk\nfull"), RuntimeError("closed")])
def test_a_failure_of_the_hub_s_own_is_a_store_error_and_the_writer_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def broken(*_: object) -> None:
        raise problem

    with writing(store) as taking:
        with monkeypatch.context() as patched:
            patched.setattr(writer, "insert_group", broken)
            sent = taking.submit(batch(1), 0)
            with pytest.raises(StoreError) as told:
                sent.result(2.0)
        assert told.value.http_status == 503
        assert put(taking, batch(1)) == Acknowledgement(1)


def test_a_caller_that_went_away_does_not_stop_the_writer(store: Store) -> None:
    """A cancelled request cancels its future; the others' batches are committed and acknowledged all the same."""
    with writing(store) as taking:
        with held_up(store, taking):
            gone, waiting = taking.submit(batch(1), 0), taking.submit(batch(1, node="node-8"), 0)
            assert gone.cancel()
        assert waiting.result(2.0) == Acknowledgement(1)
        assert put(taking, batch(1)).duplicate  # it was committed: sending it again is a no-op


def test_what_is_queued_when_the_writer_closes_is_committed(store: Store) -> None:
    taking = SampleWriter(store, raw_days=30, now=Clock())
    with held_up(store, taking):
        sent = [taking.submit(batch(sequence), 0) for sequence in range(1, 21)]
    taking.close()
    assert [future.result(0).sequence for future in sent] == list(range(1, 21))
    assert count(store, "gpu_sample JOIN gpu USING (gpu_id) WHERE uuid = 'node-7-0'") == 200
    assert count(store, "node_state") == 2


# The COMMIT trap


def test_one_bad_batch_of_fifty_is_refused_alone(store: Store) -> None:
    """DuckDB's COMMIT after a failed statement answers well and keeps nothing: the forty-nine must not be lost."""
    with writing(store) as taking:
        with held_up(store, taking):
            sent: list[Future[Acknowledgement]] = []
            for number in range(50):
                made = too_much(1, node="bad") if number == 17 else batch(1, node=f"node-{number}")
                sent.append(taking.submit(made, made.readings))
        good = [future.result(DEADLINE_S) for number, future in enumerate(sent) if number != 17]
        with pytest.raises(BatchRefused) as refused:
            sent[17].result(DEADLINE_S)
        assert good == [Acknowledgement(1)] * 49
        assert str(refused.value) == "`gpu_samples.energy_mj.3`: given 2147483648; accepted: at most 2147483647"
        assert refused.value.http_status == 422
        assert (taking.stats.refused, taking.stats.group_errors) == (1, 2)  # the group, and the bad one alone
        assert taking.stats.batches == 50  # with the plug
        good_again = batch(1, node="bad")
        assert put(taking, good_again) == Acknowledgement(1)  # nothing of the bad one is in the ledger
    # 51 nodes x 10 rows x 300 J
    assert (count(store, "node"), count(store, "gpu"), count(store, "ledger")) == (51, 51, 51)
    assert (count(store, "gpu_sample"), total_mj(store)) == (510, 510 * 300_000)
    assert store.query("SELECT count(DISTINCT gpu_id) AS n FROM gpu_sample")["n"][0] == 51


def test_a_bad_batch_between_two_good_ones_of_its_agent_leaves_them(store: Store) -> None:
    with writing(store) as taking:
        with held_up(store, taking):
            first, bad, last = (taking.submit(one, 0) for one in (batch(1), too_much(2), batch(3)))
        assert (first.result(DEADLINE_S), last.result(DEADLINE_S)) == (Acknowledgement(1), Acknowledgement(3))
        with pytest.raises(BatchRefused):
            bad.result(DEADLINE_S)
    assert store.query("SELECT sequence FROM ledger WHERE agent = 'node-7'").rows() == [(3,)]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"rows": [{"t_us": T0 + SECOND, "integral_mj": 2**31}]}, "gpu_samples.integral_mj.0"),
        ({"rows": [{"t_us": T0 + SECOND, "dt_us": 10 * SECOND, "energy_mj": 2**40}]}, "gpu_samples.energy_mj.0"),
        ({"host": [{"t_us": T0 + SECOND}, {"t_us": T0 + SECOND, "cpu_energy_mj": 2**31}]},
         "host_samples.cpu_energy_mj.1"),
        ({"host": [{"t_us": T0 + SECOND, "dram_energy_mj": 2**62}]}, "host_samples.dram_energy_mj.0"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field(store: Store, values: dict[str, Any], field: str) -> None:
    with writing(store) as taking, pytest.raises(BatchRefused, match=f"^`{field}`: given "):
        put(taking, batch(1, **values))
    assert set(everything(store).values()) == {0}


def test_a_gap_s_energy_may_be_larger_than_a_second_s(store: Store) -> None:
    gap = {"t_us": T0 + 600 * SECOND, "dt_us": 599 * SECOND, "energy_method": "bridged", "energy_mj": 2**40}
    with writing(store) as taking:
        put(taking, batch(1, rows=[gap]))
    assert store.query("SELECT t_us, dt_us, energy_mj FROM gpu_bridge").rows() == [
        (T0 + 600 * SECOND, 599 * SECOND, 2**40)
    ]
    assert count(store, "gpu_sample") == 0


def test_a_row_longer_than_a_minute_is_a_gap_whatever_its_method_says(store: Store) -> None:
    rows = [{"t_us": T0 + 120 * SECOND, "dt_us": dt, "energy_mj": 7} for dt in (60 * SECOND, 60 * SECOND + 1)]
    with writing(store) as taking:
        put(taking, batch(1, rows=rows))
    assert (count(store, "gpu_sample"), count(store, "gpu_bridge")) == (1, 1)


# Overload


def test_a_full_queue_is_told_and_counted_and_taken_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUE", 3)
    with writing(store) as taking:
        with held_up(store, taking):
            sent = [taking.submit(batch(sequence), 0) for sequence in (1, 2, 3)]
            with pytest.raises(Overloaded) as full:
                taking.submit(batch(4), 0)
        assert (full.value.http_status, full.value.retry_after_s > 0) == (503, True)
        assert [future.result(DEADLINE_S).sequence for future in sent] == [1, 2, 3]
        assert put(taking, batch(4)) == Acknowledgement(4)
        assert taking.stats.overloaded == 1


# Times


def test_late_and_future_rows_are_left_out_and_counted(store: Store) -> None:
    clock = Clock(T0 + 2 * DAY)
    now = clock.us
    # kept is (now - 1 day, now + 1 h]
    times = [now - DAY, now - DAY + 1, now, now + HOUR, now + HOUR + 1, SECOND]
    with writing(store, clock, raw_days=1) as taking:
        sent = batch(1, rows=[{"t_us": t, "energy_mj": 1} for t in times],
                     host=[{"t_us": now - DAY}, {"t_us": now}],
                     processes=[{"t_us": now - 2 * DAY}, {"t_us": now}])  # fmt: skip
        assert put(taking, sent) == Acknowledgement(1, late_rows=3 + 1 + 1)
        assert taking.stats.late_rows == 5
    kept = store.query("SELECT t_us FROM gpu_sample ORDER BY t_us")["t_us"].to_list()
    assert kept == [now - DAY + 1, now, now + HOUR]
    assert (count(store, "host_sample"), count(store, "process_sample")) == (1, 1)
    assert store.query("SELECT late_rows FROM node_state").rows() == [(5,)]


def test_a_batch_of_late_rows_alone_is_acknowledged_and_not_asked_for_again(store: Store) -> None:
    with writing(store, Clock(T0 + 3 * DAY), raw_days=1) as taking:
        assert put(taking, batch(1)) == Acknowledgement(1, late_rows=10)
        assert put(taking, batch(1)) == Acknowledgement(1, duplicate=True)
    assert (count(store, "gpu_sample"), count(store, "dirty_minute"), count(store, "ledger")) == (0, 0, 1)


# What is known of a node


def state(store: Store, node: str = "node-7") -> dict[str, Any]:
    rows = store.query("SELECT * FROM node JOIN node_state USING (node_id) WHERE name = $1", [node])
    return dict(rows.row(0, named=True))


def test_sequence_numbers_that_never_came_are_counted(store: Store) -> None:
    with writing(store) as taking:
        for sequence in (1, 2, 5, 6, 16):  # 3, 4 and 7 to 15 are missing: 2 + 9
            put(taking, batch(sequence))
        put(taking, batch(16))
    assert state(store)["skipped_batches"] == 11


def test_skipped_and_late_rows_add_up_across_a_restart(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(3))  # 1 and 2
    with writing(store, Clock(T0 + 3 * DAY), raw_days=1) as taking:
        put(taking, batch(5))  # 4; its ten rows are late
    assert (state(store)["skipped_batches"], state(store)["late_rows"]) == (3, 10)


def test_skew_is_the_node_s_clock_less_the_hub_s(store: Store) -> None:
    clock = Clock(T0)
    with writing(store, clock) as taking:
        put(taking, batch(1, sent_at_us=T0 + 7 * SECOND))
    assert state(store)["skew_s"] == pytest.approx(7.0, abs=1e-3)
    assert (state(store)["last_seen"], state(store)["last_sample_us"]) == (at(T0), T0 + 10 * SECOND)


def test_two_machines_under_one_name_are_seen(store: Store) -> None:
    clock = Clock()
    with writing(store, clock) as taking:
        for sequence in (1, 2):
            for epoch in (EPOCH, OTHER_EPOCH):
                clock.us += 10 * SECOND
                put(taking, batch(sequence, epoch=epoch))
    assert state(store)["twin_seen"] == at(T0 + HOUR + 40 * SECOND)


def test_two_machines_under_one_name_are_seen_within_one_group(store: Store) -> None:
    with writing(store) as taking, held_up(store, taking):
        for sequence in (1, 2):
            for epoch in (EPOCH, OTHER_EPOCH):
                taking.submit(batch(sequence, epoch=epoch), 0)
    assert state(store)["twin_seen"] == at(T0 + HOUR)


def test_a_fresh_spool_is_no_twin(store: Store) -> None:
    clock = Clock()
    with writing(store, clock) as taking:
        for epoch in (EPOCH, OTHER_EPOCH, "a" * 32):
            for sequence in (1, 2, 3):
                clock.us += 10 * SECOND
                put(taking, batch(sequence, epoch=epoch))
    assert state(store)["twin_seen"] is None


def test_an_old_spool_put_back_after_long_is_no_twin(store: Store) -> None:
    clock = Clock()
    with writing(store, clock) as taking:
        put(taking, batch(1))
        clock.us += 601 * SECOND
        put(taking, batch(1, epoch=OTHER_EPOCH))
        put(taking, batch(2))
    assert state(store)["twin_seen"] is None


def test_a_gpu_is_its_uuid_whatever_its_index_name_or_node(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(1))
        put(taking, batch(2, gpus=[gpu(index=3, uuid="node-7-0", status="lost", power_limit_mw=350_000)]))
        put(taking, batch(1, node="node-8", gpus=[gpu(uuid="node-7-0")]))
    rows = store.query("SELECT gpu_id, uuid, node.name, gpu_index, status FROM gpu JOIN node USING (node_id)").rows()
    assert rows == [(1, "node-7-0", "node-8", 0, "ok")]
    assert store.query("SELECT DISTINCT gpu_id FROM gpu_sample").rows() == [(1,)]


def test_a_change_of_a_gpu_reaches_the_store(store: Store) -> None:
    with writing(store) as taking:
        put(taking, batch(1))
        put(taking, batch(2, gpus=[gpu(status="lost", energy_method=None)]))
        put(taking, batch(3, gpus=[gpu(status="lost", energy_method=None), gpu(index=1)]))
    assert store.query("SELECT gpu_id, status, energy_method FROM gpu ORDER BY gpu_id").rows() == [
        (1, "lost", None), (2, "ok", "counter"),
    ]  # fmt: skip


def test_a_state_is_written_soon_though_no_batch_follows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "STATES_EVERY_S", 0.05)
    with writing(store) as taking:
        put(taking, batch(1))
        wait_until(lambda: count(store, "node_state") == 1, "the state of a silent node")
        assert store.query("SELECT sequence FROM node_state")["sequence"].to_list() == [1]


def test_a_state_outlives_the_failed_transaction_that_carried_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a node that falls silent at that moment keeps its old state until it sends again."""
    with writing(store) as taking:
        put(taking, batch(1, boot_id="first"))
        taking._states_written = -1e9  # due with the next batch
        with no_commit(monkeypatch, store), pytest.raises(StoreError):
            put(taking, batch(1, node="node-8"))
    assert state(store)["boot_id"] == "first"


def test_two_copies_of_one_disk_image_are_told_apart_by_their_boots(store: Store) -> None:
    """The same name, spool and epoch: only the boot differs. A machine that merely rebooted is no twin."""

    def booted(sequence: int, boot_id: str) -> Batch:
        one = batch(sequence)
        return one.model_copy(update={"node": one.node.model_copy(update={"boot_id": boot_id})})

    with writing(store, Clock()) as taking:
        for sequence, boot_id in ((1, "a"), (2, "b"), (3, "b")):
            put(taking, booted(sequence, boot_id))
    assert store.query("SELECT twin_seen FROM node_state")["twin_seen"][0] is None
    with writing(store, Clock()) as taking:
        for sequence, boot_id in ((4, "b"), (5, "c"), (6, "b")):
            put(taking, booted(sequence, boot_id))
    assert store.query("SELECT twin_seen FROM node_state")["twin_seen"][0] is not None
