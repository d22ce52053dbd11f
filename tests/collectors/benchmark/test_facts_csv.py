"""Runs as CSV: what is written reads back equal, and what cannot be read says which line."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given

from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun, Latency
from tests.collectors.benchmark.runs import RUN, benchmark_runs


@given(run=benchmark_runs())
def test_a_run_reads_back_equal_and_keeps_its_id(run: BenchmarkRun) -> None:
    [back] = facts_csv.read(facts_csv.write([run]))
    assert back == run
    assert back.run_id == run.run_id


def test_runs_keep_their_order_and_each_its_own_latencies() -> None:
    runs = [
        replace(RUN, latency={"e2e": Latency(5.0, None, {99.9: 7.0})}),
        replace(RUN, latency={}, completed=0),
        replace(RUN, latency={"ttft": Latency(None, None, {50.0: 1.0, 100.0: 2.0}), "tpot": Latency(1.0, 0.5, {})}),
    ]
    text = facts_csv.write(runs)
    assert list(facts_csv.read(text)) == runs
    header = text.splitlines()[0].split(",")
    assert header[header.index("source_line") + 1 :] == [
        "ttft_mean_ms", "ttft_std_ms", "ttft_p50_ms", "ttft_p100_ms", "tpot_mean_ms", "tpot_std_ms",
        "e2e_mean_ms", "e2e_std_ms", "e2e_p99.9_ms",
    ]  # fmt: skip


def test_no_runs_are_a_header() -> None:
    assert list(facts_csv.read(facts_csv.write([]))) == []


@pytest.mark.parametrize("name", ['a "quoted", b.json', "two\nlines.json", "carriage\rreturn.json", "ü €.json", "'"])
def test_a_file_name_reads_back_whatever_is_in_it(name: str) -> None:
    assert list(facts_csv.read(facts_csv.write([replace(RUN, source_file=name)]))) == [replace(RUN, source_file=name)]


@pytest.mark.parametrize("percentile", [99.99995, 1e-5, 33.3333333])
def test_a_percentile_is_never_rounded_to_another(percentile: float) -> None:
    run = replace(RUN, latency={"ttft": Latency(None, None, {percentile: 4.0, 100.0: 5.0})})
    assert list(facts_csv.read(facts_csv.write([run]))) == [run]


def test_a_date_without_zone_is_refused() -> None:
    text = facts_csv.write([RUN]).replace("2025-06-10T15:11:48+00:00", "2025-06-10T15:11:48")
    with pytest.raises(ValueError, match=r"line 2: `recorded_at` cannot be"):
        list(facts_csv.read(text))


@pytest.mark.parametrize("text", ["", "\n", "model,backend\nm,b\n", "hello"])
def test_missing_columns_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1: the columns .*gpu_name, .* are missing"):
        list(facts_csv.read(text))


_GOOD_ROW = next(csv.DictReader(io.StringIO(facts_csv.write([RUN]))))


def with_row(**changes: str) -> str:
    """A CSV whose first row (line 2) is good and whose second (line 3) has `changes`."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(_GOOD_ROW), lineterminator="\n")
    writer.writeheader()
    writer.writerows([_GOOD_ROW, _GOOD_ROW | changes])
    return out.getvalue()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("gpu_count", "0"), ("gpu_count", ""), ("gpu_count", "two"), ("gpu_count", "1.5"), ("num_prompts", "0"),
        ("completed", "201"), ("completed", "-1"), ("duration_s", "0"), ("duration_s", "nan"), ("duration_s", "inf"),
        ("duration_s", ""), ("prompt_tokens", "-1"), ("generated_tokens", "1e3"), ("offered_requests_per_s", "0"),
        ("offered_requests_per_s", "inf"), ("burstiness", "-1"), ("recorded_at", "yesterday"), ("source_line", ""),
        ("ttft_mean_ms", "-1"), ("ttft_mean_ms", "slow"), ("ttft_p99_ms", "nan"),
    ],
)  # fmt: skip
def test_an_impossible_cell_is_told_with_its_line(column: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"^line 3: "):
        list(facts_csv.read(with_row(**{column: value})))


@pytest.mark.parametrize(
    ("column", "value"),
    [("gpu_count", "two"), ("duration_s", "x"), ("num_prompts", ""), ("ttft_mean_ms", "slow"), ("recorded_at", "now")],
)
def test_a_cell_that_is_no_number_is_told_with_its_column(column: str, value: str) -> None:
    with pytest.raises(ValueError, match=column):
        list(facts_csv.read(with_row(**{column: value})))


@pytest.mark.parametrize("column", ["model", "gpu_name"])
def test_a_run_without_model_or_gpu_is_refused(column: str) -> None:
    with pytest.raises(ValueError, match=rf"^line 3: .*{column}"):
        list(facts_csv.read(with_row(**{column: ""})))


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(with_row().splitlines()[1].rsplit(",", 12)[0], id="a row that ends early"),
        pytest.param(with_row().splitlines()[1] + ",9,9", id="a row that is too long"),
        pytest.param(with_row(model="m" * 200_000).splitlines()[2], id="a field over csv's limit"),
        pytest.param(with_row().splitlines()[1].replace("vllm", "v\rm"), id="a bare carriage return"),
    ],
)
def test_a_row_that_is_no_row_is_a_value_error_with_its_line(row: str) -> None:
    header, good, _ = with_row().splitlines()
    with pytest.raises(ValueError, match=r"^line 3: "):
        list(facts_csv.read("\n".join([header, good, row, ""])))


def test_a_date_is_kept_with_its_zone() -> None:
    moment = datetime(2025, 6, 10, 15, 11, 48, 250_000, tzinfo=UTC)
    assert next(facts_csv.read(facts_csv.write([replace(RUN, recorded_at=moment)]))).recorded_at == moment
