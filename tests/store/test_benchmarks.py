"""Runs go in once, all or none, and come back equal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store import benchmarks
from app.store.benchmarks import Added, add_runs, read_runs
from app.store.database import Store
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun, Latency
from tests.collectors.benchmark.results import outcome_of, result, write_result
from tests.collectors.benchmark.runs import RUN, benchmark_runs


def by_id(runs: list[BenchmarkRun]) -> dict[str, BenchmarkRun]:
    return {run.run_id: run for run in runs}


def many(count: int) -> list[BenchmarkRun]:
    return [replace(RUN, duration_s=1.0 + number, source_index=number) for number in range(count)]


@settings(max_examples=15)
@given(runs=st.lists(benchmark_runs(), max_size=5))
def test_runs_come_back_equal_with_their_latencies(runs: list[BenchmarkRun]) -> None:
    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "s.duckdb")
        add_runs(store, runs)
        assert by_id(read_runs(store)) == by_id(runs)
        store.close()


def test_the_study_comes_back_equal_after_the_store_was_closed(tmp_path: Path, study_runs: list[BenchmarkRun]) -> None:
    store = Store.open(tmp_path / "s.duckdb")
    assert add_runs(store, study_runs) == Added(130, 0)
    store.close()
    store = Store.open(tmp_path / "s.duckdb")
    assert by_id(read_runs(store)) == by_id(study_runs)
    store.close()


def test_importing_again_changes_nothing(store: Store, study_runs: list[BenchmarkRun]) -> None:
    assert add_runs(store, study_runs[:50]) == Added(50, 0)
    assert add_runs(store, study_runs) == Added(80, 50)
    assert add_runs(store, study_runs) == Added(0, 130)
    assert by_id(read_runs(store)) == by_id(study_runs)


def test_a_run_from_two_files_is_one_run_and_keeps_its_first_source(store: Store) -> None:
    copy = replace(RUN, source_file="copy.json", source_index=3, source_line=9)
    assert add_runs(store, [RUN]) == Added(1, 0)
    assert add_runs(store, [copy]) == Added(0, 1)
    assert read_runs(store) == [RUN]
    assert add_runs(store, [replace(RUN, completed=1)] * 2) == Added(1, 1)


def test_no_runs_are_no_write(store: Store) -> None:
    assert add_runs(store, []) == Added(0, 0)
    assert (read_runs(store), store.benchmarks_revision) == ([], 0)


def test_runs_go_in_all_or_none(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_runs(store, [RUN])
    monkeypatch.setattr(benchmarks, "_INSERT_LATENCIES", "INSERT INTO benchmark_latency SELECT * FROM no_such_table")
    with pytest.raises(Exception, match="no_such_table"):
        add_runs(store, many(3))
    assert read_runs(store) == [RUN]
    monkeypatch.undo()
    assert add_runs(store, many(3)) == Added(3, 0)


def test_a_metric_without_mean_or_without_quantiles_stays_so(store: Store) -> None:
    latency = {"ttft": Latency(None, None, {99.9: 3.0}), "tpot": Latency(1.0, None, {}), "e2e": Latency(2.0, 0.0, {})}
    run = replace(RUN, latency=latency)
    add_runs(store, [run])
    assert read_runs(store) == [run]


@pytest.mark.parametrize("percentile", [99.99995, 1e-5, 33.3333333])
def test_a_percentile_is_never_rounded_to_another(store: Store, percentile: float) -> None:
    run = replace(RUN, latency={"ttft": Latency(None, None, {percentile: 4.0, 100.0: 5.0})})
    add_runs(store, [run])
    assert read_runs(store) == [run]


def test_a_date_of_another_zone_is_the_same_moment_and_the_same_run(store: Store) -> None:
    moment = RUN.recorded_at
    assert moment is not None
    run = replace(RUN, recorded_at=moment.astimezone(timezone(timedelta(hours=2))))
    add_runs(store, [run])
    [back] = read_runs(store)
    assert back.recorded_at == moment
    assert [back.run_id] == store.query("SELECT run_id FROM benchmark_run")["run_id"].to_list()


@pytest.mark.parametrize("key", ["gpu_count", "max_concurrency", "num_prompts", "total_input_tokens"])
@pytest.mark.parametrize("count", [2**31, 3_000_000_000, 2**53])
def test_what_the_importer_reads_can_be_stored(store: Store, tmp_path: Path, key: str, count: int) -> None:
    outcome = outcome_of(write_result(tmp_path / "a.json", result(**{key: count})))
    if outcome.verdict == "read":
        assert add_runs(store, outcome.runs) == Added(1, 0)
        assert read_runs(store) == list(outcome.runs)
    else:
        assert f"key `{key}`: given {count}" in str(outcome.reason)


@pytest.mark.parametrize("field", ["gpu_count", "max_concurrency", "num_prompts", "prompt_tokens", "source_line"])
def test_what_the_csv_of_facts_holds_can_be_stored(store: Store, field: str) -> None:
    rows = list(csv.DictReader(io.StringIO(facts_csv.write([RUN]))))
    rows[0][field] = str(10**30)
    text = "\n".join([",".join(rows[0]), ",".join(rows[0].values()), ""])
    try:
        runs = list(facts_csv.read(text))
    except ValueError as problem:
        assert str(problem).startswith("line 2: ")
        assert field in str(problem)
        return
    assert add_runs(store, runs) == Added(1, 0)


def test_runs_are_ordered_by_model_gpu_count_and_load(store: Store) -> None:
    ordered = [
        replace(RUN, model="a", gpu_name="h", gpu_count=1, offered_requests_per_s=2.0),
        replace(RUN, model="a", gpu_name="h", gpu_count=1, offered_requests_per_s=10.0),
        replace(RUN, model="a", gpu_name="h", gpu_count=1, offered_requests_per_s=None),
        replace(RUN, model="a", gpu_name="h", gpu_count=2, offered_requests_per_s=1.0),
        replace(RUN, model="a", gpu_name="i", gpu_count=1, offered_requests_per_s=1.0, source_file="a"),
        replace(RUN, model="a", gpu_name="i", gpu_count=1, offered_requests_per_s=1.0, source_file="b", completed=1),
        replace(RUN, model="b", gpu_name="h", gpu_count=1, offered_requests_per_s=1.0),
    ]
    add_runs(store, list(reversed(ordered)))
    assert read_runs(store) == ordered


class Counting:
    """A connection that counts what is executed on it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.statements = 0

    def execute(self, *arguments: Any) -> Any:
        self.statements += 1
        return self._connection.execute(*arguments)

    def __getattr__(self, name: str) -> Any:
        assert name in ("register", "unregister"), f"{name} is not counted"
        return getattr(self._connection, name)


def statements_of(store: Store, runs: list[BenchmarkRun], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """(SQL statements to write `runs`, SQL statements to read all)."""
    written: list[Counting] = []
    read: list[str] = []
    transaction, query = store.transaction, store.query

    @contextmanager
    def counted_transaction() -> Iterator[Counting]:
        with transaction() as connection:
            written.append(Counting(connection))
            yield written[-1]

    def counted_query(sql: str, parameters: list[Any] | None = None) -> pl.DataFrame:
        read.append(sql)
        return query(sql, parameters)

    with monkeypatch.context() as patched:
        patched.setattr(store, "transaction", counted_transaction)
        patched.setattr(store, "query", counted_query)
        add_runs(store, runs)
        read_runs(store)
    return sum(one.statements for one in written), len(read)


def test_the_number_of_statements_does_not_grow_with_the_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    few = statements_of(store, many(2), monkeypatch)
    assert statements_of(store, many(500), monkeypatch) == few
    assert sum(few) <= 6


@pytest.mark.parametrize("sql", [benchmarks._RUNS, benchmarks._LATENCIES], ids=["runs", "latencies"])
def test_a_read_scans_one_table_once(store: Store, sql: str) -> None:
    plan = "\n".join(str(text) for _, text in store.query(f"EXPLAIN {sql}").rows()).upper().replace("_", " ")
    assert plan.count("SEQ SCAN") + plan.count("TABLE SCAN") == 1
    assert "JOIN" not in plan
    assert "CROSS PRODUCT" not in plan
