"""The study's runs as they ship are what the importer makes of the published files."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.reference.tables import data_folder
from collectors.benchmark import facts_csv
from collectors.benchmark.files import find_files, read_file
from collectors.benchmark.run import BenchmarkRun


def test_the_shipped_csv_is_what_the_importer_reads(raw_folder: Path, study_runs: list[BenchmarkRun]) -> None:
    outcomes = [read_file(found) for found in find_files([str(raw_folder)])]
    assert Counter(outcome.verdict for outcome in outcomes) == {"read": 120}
    runs = [run for outcome in outcomes for run in outcome.runs]
    assert sorted(runs, key=_place) == sorted(study_runs, key=_place)
    shipped = (data_folder() / "aibc2025_runs.csv").read_text(encoding="utf-8")
    assert sorted(facts_csv.write(runs).splitlines()) == sorted(shipped.splitlines())


def _place(run: BenchmarkRun) -> tuple[str, int]:
    return run.source_file, run.source_index


def test_the_shipped_csv_holds_the_study(study_runs: list[BenchmarkRun]) -> None:
    assert len(study_runs) == 130
    assert len({run.run_id for run in study_runs}) == 130
    assert len({run.model for run in study_runs}) == 13
    assert len({run.source_file for run in study_runs}) == 120
    assert Counter(run.source_index for run in study_runs) == {0: 120, 1: 10}
    assert Counter(run.source_line for run in study_runs) == {1: 120, 2: 10}
    assert {run.gpu_name for run in study_runs} == {"NVIDIA-H100-PCIe", "NVIDIA-GeForce-RTX-4090"}
    assert {run.offered_requests_per_s for run in study_runs} == {1.0, 4.0, 8.0, 16.0, 32.0}
    assert {run.backend for run in study_runs} == {"vllm"}
    assert all(set(run.latency) == {"ttft", "tpot", "itl"} for run in study_runs)


def test_a_run_has_the_figures_of_its_published_file(study_runs: list[BenchmarkRun]) -> None:
    """By hand from vllm_200prompts16qps_AceMath-7B-Instruct_sharegpt_1xNVIDIA-H100-PCIe.json."""
    name = "vllm_200prompts16qps_AceMath-7B-Instruct_sharegpt_1xNVIDIA-H100-PCIe.json"
    [run] = [run for run in study_runs if run.source_file == name]
    assert (run.model, run.gpu_count, run.completed) == ("nvidia/AceMath-7B-Instruct", 1, 200)
    assert (run.duration_s, run.prompt_tokens, run.generated_tokens) == (19.004579995002132, 40991, 43344)
    assert run.recorded_at == datetime(2025, 6, 10, 15, 11, 48, tzinfo=UTC)
    ttft = run.latency["ttft"]
    assert (ttft.mean_ms, ttft.std_ms) == (23.8536508748075, 3.6875280075840826)
    assert ttft.quantiles_ms == {50.0: 23.662257503019646, 90.0: 28.935293364338573, 95.0: 29.766114795347672,
                                 99.0: 31.638553107040924, 100.0: 33.87821197975427}  # fmt: skip
    assert run.latency["itl"].quantiles_ms[99.0] == 13.029872980550863


@pytest.mark.parametrize(
    ("column", "digest"),
    [
        ("duration_s", "d75876199b18ed8f"), ("prompt_tokens", "9cfa35a45847edae"), ("completed", "0ac98f4acbe5af1f"),
        ("generated_tokens", "fe8c17be278a3036"), ("run_id", "9de24eb0a3b8a31f"),
    ],
)  # fmt: skip
def test_no_cell_of_the_study_has_changed(study_runs: list[BenchmarkRun], column: str, digest: str) -> None:
    cells = [repr(getattr(run, column)) for run in sorted(study_runs, key=_place)]
    assert hashlib.sha256("\n".join(cells).encode()).hexdigest()[:16] == digest
