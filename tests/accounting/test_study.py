"""The published study's tables and claims, recomputed from its runs: the golden values of the accounting."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.accounting.study import (
    CORRECTED_TDP_W,
    H100,
    LOADS,
    MODEL,
    RTX4090,
    STUDY_TDP_W,
    Claim,
    Study,
    claims,
    energy_ratio,
    table_3,
)
from app.answers.study import study_findings
from collectors.benchmark.run import BenchmarkRun

TABLE_2 = list(
    csv.DictReader((Path(__file__).parent.parent / "data" / "aibc2025_table2.csv").read_text("utf-8").splitlines())
)


@pytest.fixture
def study(study_runs: list[BenchmarkRun]) -> Study:
    return Study(study_runs)


@pytest.fixture
def by_claim(study_runs: list[BenchmarkRun]) -> dict[str, Claim]:
    return {claim.claim: claim for claim in claims(study_runs)}


@pytest.mark.parametrize("printed", TABLE_2, ids=lambda row: f"row {row['row']}")
def test_table_2_is_reproduced_to_the_printed_digit(study: Study, printed: dict[str, str]) -> None:
    account = study.table_2()[int(printed["row"]) - 1]
    run, ttft = account.run, account.run.latency["ttft"]
    assert (run.model, run.gpu_name.removeprefix("NVIDIA-").removeprefix("GeForce-")) == (MODEL, printed["gpu"])
    assert {
        "row": printed["row"],
        "qps": f"{run.offered_requests_per_s:g}",
        "gpu_count": f"{run.gpu_count}",
        "gpu": printed["gpu"],
        "duration_s": f"{run.duration_s:.2f}",
        "cost_per_run_usd": f"{account.cost_usd.value:.3f}",
        "cost_per_mtok_usd": f"{account.usd_per_mtok_total.value:.3f}",
        "total_tokens_per_s": f"{account.total_tokens_per_s:.2f}",
        "requests_per_s": f"{account.requests_per_s:.2f}",
        "ttft_mean_ms": f"{ttft.mean_ms:.2f}",
        "ttft_p50_ms": f"{ttft.quantiles_ms[50]:.2f}",
        "ttft_p90_ms": f"{ttft.quantiles_ms[90]:.2f}",
        "ttft_p99_ms": f"{ttft.quantiles_ms[99]:.2f}",
    } == printed


def test_table_2_has_20_rows(study: Study) -> None:
    assert len(study.table_2()) == len(TABLE_2) == 20


def test_of_a_repeated_pair_table_2_prints_the_first_but_in_row_17_the_second(study: Study) -> None:
    chosen = [account.run.source_index for account in study.table_2()]
    assert chosen == [1 if row == 17 else 0 for row in range(1, 21)]


def test_the_choice_of_a_pair_does_not_depend_on_the_order_of_the_runs(study_runs: list[BenchmarkRun]) -> None:
    backwards = Study(study_runs[::-1]).table_2()
    assert [account.run for account in backwards] == [account.run for account in Study(study_runs).table_2()]


def test_the_same_run_costs_twice_as_much_per_output_token(study: Study) -> None:
    # row 6: $0.111 per total Mtok; 200 requests with about as many generated as prompt tokens: $0.223 per output Mtok
    account = study.rtx4090(2, 4)
    assert account.usd_per_mtok_total.value == pytest.approx(0.111, abs=5e-4)
    assert account.usd_per_mtok_output.value == pytest.approx(0.223, abs=5e-4)


def test_table_3_as_printed_and_unrounded(study: Study) -> None:
    # H100: 3011.13 tokens/s * 3600 = 10.840 M/h; / 0.7 kW = 15.486 Mtok/kWh; 242 / 15.486 = 15.63 g/Mtok
    #       printed: 10.8 M/h / 0.7 = 15.43, cut to 15.4; 242 / 15.4 = 15.7
    # 4090: 1250.59 tokens/s * 3600 =  4.502 M/h; / 0.9 kW =  5.002 Mtok/kWh; 242 /  5.002 = 48.38 g/Mtok
    #       printed:  4.5 M/h / 0.9 = 5.0; 242 / 5.0 = 48.4
    h100, rtx4090 = table_3(study)
    assert (h100.configuration, h100.qps, h100.tdp_w) == ("1x H100 PCIe", 16, 700.0)
    assert (rtx4090.configuration, rtx4090.qps, rtx4090.tdp_w) == ("2x RTX 4090", 4, 450.0)
    assert (h100.printed_mtok_per_kwh, h100.printed_g_per_mtok) == (15.4, 15.7)
    assert (rtx4090.printed_mtok_per_kwh, rtx4090.printed_g_per_mtok) == (5.0, 48.4)
    assert (round(h100.mtok_per_kwh, 3), round(h100.g_per_mtok, 2)) == (15.486, 15.63)
    assert (round(rtx4090.mtok_per_kwh, 3), round(rtx4090.g_per_mtok, 2)) == (5.002, 48.38)
    assert round(h100.printed_mtok_per_kwh / rtx4090.printed_mtok_per_kwh, 1) == 3.1


def test_table_3_with_the_pcie_cards_own_350_w(study_runs: list[BenchmarkRun]) -> None:
    # half the power: twice the tokens per kWh (2 * 15.4858 = 30.9716) and half the grams (15.627 / 2 = 7.814)
    h100, rtx4090 = table_3(Study(study_runs, CORRECTED_TDP_W), CORRECTED_TDP_W)
    assert (round(h100.mtok_per_kwh, 3), round(h100.g_per_mtok, 2)) == (30.972, 7.81)
    assert (round(rtx4090.mtok_per_kwh, 3), round(rtx4090.g_per_mtok, 2)) == (5.002, 48.38)


@pytest.mark.parametrize(
    ("tdp_w", "qps_4090", "ratio"),
    [
        (STUDY_TDP_W, 4, 3.1),  # (3011.13 / 700) / (1250.59 / 900) = 4.3016 / 1.3895 = 3.096
        (CORRECTED_TDP_W, 4, 6.2),  # (3011.13 / 350) / (1250.59 / 900) = 8.6032 / 1.3895 = 6.191
        (CORRECTED_TDP_W, 16, 4.8),  # (3011.13 / 350) / (1619.37 / 900) = 8.6032 / 1.7993 = 4.781
    ],
)
def test_tokens_per_joule_ratio(
    study_runs: list[BenchmarkRun], tdp_w: dict[str, float], qps_4090: int, ratio: float
) -> None:
    assert round(energy_ratio(tdp_w, study_runs, 16, qps_4090), 1) == ratio


# Each claim with its verdict and the numbers that the runs give; rows in the order of the loads 1, 4, 8, 16, 32 req/s.
CLAIMS = [
    # tokens/s of rows 3, 7, 11, 15, 19 over rows 1, 5, 9, 13, 17: 431.19/433.76 = 99%, 1344.58/1411.84 = 95%,
    # 1858.57/2240.95 = 83%, 1994.82/3011.13 = 66%, 1593.73/3097.79 = 51%
    ("62-78%", "holds in part", ["99%, 95%, 83%, 66%, 51%", "inside the range at 16 req/s"]),
    # 4 * 0.25 / 2.00 = 0.50 an hour; per Mtok 0.5 over each ratio above: 0.50, 0.53, 0.60, 0.75, 0.97
    ("half the cost", "holds in part", ["0.50 of the H100's price per hour", "0.50, 0.53, 0.60, 0.75, 0.97"]),
    (
        "best $/Mtok",
        "does not hold",
        [
            "$0.644, $0.207, $0.149, $0.139, $0.174",
            "$0.111 is two cards at 4 req/s",
            "$0.086, 2 cards at 16 req/s",
            "p99 TTFT 1.9 s",
        ],
    ),
    # 1 - 0.25 * (tokens/s of the H100 / tokens/s of two cards): 1 - 0.25 * 433.76/430.51 = 74.8% and so on
    ("75% lower", "holds", ["74.8%, 71.8%, 62.7%, 53.5%, 49.8%"]),
    ("below 55 ms", "holds in part", ["45.5 ms, 46.8 ms, 49.1 ms, 54.4 ms, 211.4 ms"]),
    ("200-500 ms", "holds in part", ["1,199 ms, 482 ms, 448 ms, 337 ms, 10,011 ms"]),
    # 4 * (tokens/s of two cards / tokens/s of the H100): 4 * 430.51/433.76 = 3.97, 3.54, 2.68, 2.15, 1.99
    ("4-7x more throughput", "holds in part", ["4.0x, 3.5x, 2.7x, 2.2x, 2.0x"]),
    ("3.1x more tokens per joule", "does not hold", ["3.1x only with 700 W", "350 W", "6.2x", "4.8x", "equal load"]),
]


@pytest.mark.parametrize(("words", "verdict", "numbers"), CLAIMS, ids=[claim[0] for claim in CLAIMS])
def test_headline_claim(by_claim: dict[str, Claim], words: str, verdict: str, numbers: list[str]) -> None:
    (claim,) = [claim for text, claim in by_claim.items() if words in text]
    assert claim.verdict == verdict
    assert [number for number in numbers if number not in claim.finding] == []


def test_every_headline_claim_is_judged(by_claim: dict[str, Claim]) -> None:
    assert len(by_claim) == len(CLAIMS) == 8


def test_the_findings_hold_both_power_limits_and_all_three_ratios(study_runs: list[BenchmarkRun]) -> None:
    found = study_findings(study_runs)
    assert found is not None
    assert [row["tdp_w"] for row in found["energy_study_assumptions"]] == [700.0, 450.0]
    assert [row["tdp_w"] for row in found["energy_corrected"]] == [350.0, 450.0]
    ratios: dict[str, float] = found["tokens_per_joule_ratio"]
    assert {name: round(ratio, 1) for name, ratio in ratios.items()} == {
        "published": 3.1,
        "corrected_tdp": 6.2,
        "corrected_tdp_equal_load": 4.8,
    }


@pytest.mark.parametrize("shape", [(qps, gpu, n) for qps in LOADS for gpu, n in ((H100, 1), (RTX4090, 4))])
def test_without_one_of_the_studys_runs_there_are_no_findings(
    study_runs: list[BenchmarkRun], shape: tuple[int, str, int]
) -> None:
    rest = [run for run in study_runs if (run.offered_requests_per_s, run.gpu_name, run.gpu_count) != shape]
    assert len(rest) < len(study_runs)
    assert study_findings(rest) is None


def test_an_empty_store_has_no_findings() -> None:
    assert study_findings([]) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"gpu_name": "NVIDIA A100-SXM4-80GB"},
        {"gpu_name": "NVIDIA-H100-PCIe", "duration_s": 500.0},
        {"model": "someone/else"},
    ],
    ids=["another card", "a later run on the same card", "another model"],
)
def test_runs_of_ones_own_beside_the_studys_leave_its_findings_alone(
    study_runs: list[BenchmarkRun], changes: dict[str, Any]
) -> None:
    like = next(run for run in study_runs if run.model == MODEL and run.offered_requests_per_s == 16)
    own = replace(like, source_file="a_run_of_my_own.json", **changes)
    assert study_findings([*study_runs, own]) == study_findings(study_runs)
