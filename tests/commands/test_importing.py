"""`wattmix import`: the good files go in, each other one is named with its reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from app.store.benchmarks import read_runs
from app.store.database import Store
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun
from tests.collectors.benchmark.profiles import AIPERF
from tests.collectors.benchmark.reports import benchmark, report
from tests.collectors.benchmark.results import result, without, write_result
from tests.collectors.benchmark.runs import RUN
from tests.commands.invoke import wattmix

Capture = pytest.CaptureFixture[str]


def stored(db: Path) -> list[BenchmarkRun]:
    store = Store.open(db)
    runs = read_runs(store)
    store.close()
    return runs


def test_good_files_go_in_and_broken_ones_are_named(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    write_result(folder / "good.json", result(), result(request_rate=32.0))
    write_result(folder / "deep" / "also.json", result(request_rate=1.0))
    write_result(folder / "broken.json", result(request_rate=2.0), result(duration=0))
    (folder / "torn.json").write_text(json.dumps(result())[:100])
    (folder / "other.json").write_text("{}")
    (folder / ".DS_Store").write_bytes(b"\x00\xff")
    db = tmp_path / "s.duckdb"
    outcome = wattmix(capsys, "import", folder, "--db", db)
    assert outcome.code == 2
    assert outcome.out == f"3 runs imported, 0 already there; 2 of 6 files read.\nStore: {db}\n"
    assert outcome.err.splitlines()[:3] == [
        "skipped .DS_Store: not a .json file",
        "skipped other.json: JSON, but no result of vLLM, GuideLLM, AIPerf or GenAI-Perf",
        "broken broken.json: object 2 (line 2), key `duration`: given 0; accepted: seconds > 0",
    ]
    assert outcome.err.splitlines()[3].startswith("broken torn.json: line 1, column ")
    assert sorted(run.source_file for run in stored(db)) == ["deep/also.json", "good.json", "good.json"]


def test_importing_again_changes_nothing(capsys: Capture, tmp_path: Path) -> None:
    path, db = write_result(tmp_path / "a.json", result()), tmp_path / "s.duckdb"
    for counts in ("1 runs imported, 0 already there", "0 runs imported, 1 already there"):
        outcome = wattmix(capsys, "import", path, "--db", db)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"{counts}; 1 of 1 files read.")
    assert len(stored(db)) == 1


def test_the_study_s_files_are_imported(capsys: Capture, tmp_path: Path, raw_folder: Path) -> None:
    outcome = wattmix(capsys, "import", raw_folder, "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("130 runs imported, 0 already there; 120 of 120 files read.")


def test_skipped_files_are_no_failure(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("x")
    outcome = wattmix(capsys, "import", tmp_path / "empty", "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.err) == (0, "skipped notes.txt: not a .json file\n")
    assert outcome.out.startswith("0 runs imported, 0 already there; 0 of 1 files read.")


@pytest.mark.parametrize("path", ["nowhere.json", "*.nothing", "no/such/folder"])
def test_a_path_that_leads_nowhere_imports_nothing(capsys: Capture, tmp_path: Path, path: str) -> None:
    good = write_result(tmp_path / "a.json", result())
    outcome = wattmix(capsys, "import", good, path, "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"error: no such file or folder, and no file matches: {path}\n"
    assert not (tmp_path / "s.duckdb").exists()


def test_files_without_a_gpu_need_the_options(capsys: Capture, tmp_path: Path) -> None:
    path, db = write_result(tmp_path / "a.json", without("gpu_name", "gpu_count")), tmp_path / "s.duckdb"
    outcome = wattmix(capsys, "import", path, "--db", db)
    assert outcome.code == 2
    assert "key `gpu_name`: given None; accepted: a GPU name; or name it with --gpu" in outcome.err
    assert "--gpu-count" in wattmix(capsys, "import", path, "--db", db, "--gpu", "RTX 4090").err
    assert stored(db) == []
    assert wattmix(capsys, "import", path, "--db", db, "--gpu", "RTX 4090", "--gpu-count", 2).code == 0
    assert [(run.gpu_name, run.gpu_count) for run in stored(db)] == [("RTX 4090", 2)]
    [row] = json.loads(wattmix(capsys, "runs", "--db", db, "--format", "json").out)["runs"]
    assert row["usd_per_gpu_hour"] == 0.25


@pytest.mark.parametrize("arguments", [["--gpu", " "], ["--gpu", "a\nb"], ["--gpu-count", "1" + 20 * "0"]])
def test_a_gpu_option_out_of_all_reason_is_refused_in_words(
    capsys: Capture, tmp_path: Path, arguments: list[str]
) -> None:
    outcome = wattmix(capsys, "import", write_result(tmp_path / "a.json", result()), "--db", "s.duckdb", *arguments)
    assert outcome.code == 2
    assert "gpu" in outcome.err
    assert not (tmp_path / "s.duckdb").exists() or stored(tmp_path / "s.duckdb") == []


def test_a_card_that_is_not_known_is_imported_and_its_price_is_missing(capsys: Capture, tmp_path: Path) -> None:
    path, db = write_result(tmp_path / "a.json", result(gpu_name="Home-made Card")), tmp_path / "s.duckdb"
    assert wattmix(capsys, "import", path, "--db", db).code == 0
    [row] = json.loads(wattmix(capsys, "runs", "--db", db, "--format", "json").out)["runs"]
    assert row["cost_per_run_usd"] is None
    assert row["joules_per_token"] is None
    assert "no price for Home-made Card" in row["missing"]
    assert "no TDP for Home-made Card" in row["missing"]


def test_a_file_over_the_limit_needs_a_higher_limit(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_text(json.dumps(result()) + " " * 1_000_000)
    refused = wattmix(capsys, "import", path, "--db", tmp_path / "s.duckdb", "--max-file-mb", 1)
    assert refused.code == 2
    assert "broken big.json: 1 MB; a result file may have 1 MB (raise it with --max-file-mb)" in refused.err
    assert wattmix(capsys, "import", path, "--db", tmp_path / "s.duckdb", "--max-file-mb", 2).code == 0


def test_a_csv_of_facts_is_imported(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text(facts_csv.write([RUN]))
    assert wattmix(capsys, "import", tmp_path / "facts.csv", "--db", tmp_path / "s.duckdb").code == 0
    assert stored(tmp_path / "s.duckdb") == [RUN]


def test_reports_of_other_load_generators_go_in_with_the_gpu_of_the_command_line(
    capsys: Capture, tmp_path: Path
) -> None:
    folder, db = tmp_path / "results", tmp_path / "s.duckdb"
    write_result(folder / "benchmarks.json", report(benchmark("poisson"), benchmark("throughput")))
    write_result(folder / "artifacts" / "profile_export_aiperf.json", AIPERF)
    refused = wattmix(capsys, "import", folder, "--db", db)
    assert refused.code == 2
    assert refused.err.count("a GPU name given with --gpu") == 2
    outcome = wattmix(capsys, "import", folder, "--gpu", "NVIDIA L40S", "--gpu-count", 2, "--db", db)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("3 runs imported, 0 already there; 2 of 2 files read.")
    assert [(run.offered_requests_per_s, run.gpu_count, run.source_file) for run in stored(db)] == [
        (2.5, 2, "artifacts/profile_export_aiperf.json"),
        (2.5, 2, "benchmarks.json"),
        (None, 2, "benchmarks.json"),
    ]
    assert "Qwen/Qwen3-8B" in wattmix(capsys, "runs", "--db", db, "--format", "csv").out


def test_many_broken_files_are_counted_and_not_all_listed(capsys: Capture, tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number:02}.json").write_text("{")
    outcome = wattmix(capsys, "import", tmp_path, "--db", tmp_path.parent / "s.duckdb")
    assert outcome.code == 2
    assert outcome.err.count("broken ") == 20
    assert outcome.err.endswith("... and 5 more broken\n")


@pytest.mark.parametrize("name", ["[red]a.json", "[bold]a[bold].json", "a\\.json", "[a\\].json", "line\nfeed.json"])
def test_a_file_name_is_told_as_it_is(capsys: Capture, tmp_path: Path, name: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / name).write_text("{")
    outcome = wattmix(capsys, "import", tmp_path / "runs", "--db", tmp_path / "s.duckdb")
    assert outcome.code == 2
    assert f"broken {name}: line 1, column 2: not JSON" in outcome.err


def test_a_file_name_that_is_no_utf_8_is_imported_or_refused_in_words(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    try:
        (tmp_path / "runs" / os.fsdecode(b"caf\xe9.json")).write_text(json.dumps(result()))
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    outcome = wattmix(capsys, "import", tmp_path / "runs", "--db", tmp_path / "s.duckdb")
    assert outcome.code in (0, 2)
    if outcome.code == 0:
        assert wattmix(capsys, "runs", "--db", tmp_path / "s.duckdb", "--format", "csv").code == 0


@pytest.mark.parametrize("key", ["gpu_count", "max_concurrency", "num_prompts", "total_input_tokens"])
def test_a_count_out_of_all_reason_is_stored_or_refused_in_words(capsys: Capture, tmp_path: Path, key: str) -> None:
    path = write_result(tmp_path / "a.json", result(**{key: 3_000_000_000}))
    outcome = wattmix(capsys, "import", path, "--db", tmp_path / "s.duckdb")
    assert outcome.code in (0, 2)
    assert outcome.code == 0 or key in outcome.err


def test_nothing_goes_in_when_the_store_cannot_be_opened(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "s.duckdb").write_text("not a store")
    path = write_result(tmp_path / "a.json", result())
    outcome = wattmix(capsys, "import", path, "--db", tmp_path / "s.duckdb")
    assert (outcome.code, outcome.out) == (2, "")
    assert "is not a DuckDB file" in outcome.err
