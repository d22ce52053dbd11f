from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from app.answers.runs import Present, account_runs, assumptions_for, rows_as_csv, run_flags, run_row
from app.config import Config
from app.errors import UnknownName
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.market_prices import MarketPrice
from app.facts.settings import changes
from app.reference import prices
from app.reference.grid import grid_factor
from app.reference.prices import ListPrice
from collectors.benchmark.run import BenchmarkRun, Latency

NOW = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
MODEL = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"

COLUMNS = [
    "model", "qps", "gpu", "gpu_count", "duration_s", "completed", "prompt_tokens", "generated_tokens",
    "cost_per_run_usd", "usd_per_mtok_total", "usd_per_mtok_computed", "usd_per_mtok_output",
    "total_tokens_per_s", "output_tokens_per_s", "requests_per_s",
    "ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p95_ms", "ttft_p99_ms",
    "tpot_mean_ms", "tpot_p50_ms", "tpot_p90_ms", "tpot_p95_ms", "tpot_p99_ms",
    "joules_per_token", "tokens_per_kwh", "energy_method", "g_per_mtok", "usd_per_gpu_hour", "usd_per_kwh",
    "price_source", "tdp_w", "grid", "missing", "flags", "recorded_at", "source_file", "source_index", "source_line",
    "run_id",
]  # fmt: skip


def study_run(runs: list[BenchmarkRun], gpu: str, count: int, qps: float) -> BenchmarkRun:
    """A run of the 14B model; of a repeated pair the first."""
    return next(
        run
        for run in runs
        if (run.model, run.gpu_name, run.gpu_count, run.offered_requests_per_s, run.source_index)
        == (MODEL, gpu, count, qps, 0)
    )


@pytest.fixture
def h100(study_runs: list[BenchmarkRun]) -> BenchmarkRun:
    return study_run(study_runs, "NVIDIA-H100-PCIe", 1, 16)


@pytest.fixture
def rtx4090(study_runs: list[BenchmarkRun]) -> BenchmarkRun:
    """Row 6 of the study's table 2: two cards at 4 req/s."""
    return study_run(study_runs, "NVIDIA-GeForce-RTX-4090", 2, 4)


def row_of(run: BenchmarkRun, config: Config | None = None, **options: Any) -> dict[str, Any]:
    (account,) = account_runs([run], present(config or Config()), **options)
    return run_row(account)


def present(config: Config, *facts: Fact, cards: tuple[tuple[str, str], ...] = ()) -> Present:
    """What is in force when a hub with these settings knows these facts, too."""
    return Present(FactBook([*changes([], config.facts(), NOW), *facts]), config, NOW, cards)


def config_of(**fleet: Any) -> Config:
    return Config.model_validate({"fleet": [{"name": "mine", "gpu": "RTX 4090"} | fleet]})


def test_a_row_has_the_columns_of_table_csv_and_api_in_their_order(rtx4090: BenchmarkRun) -> None:
    assert list(row_of(rtx4090)) == COLUMNS


def test_row_6_of_table_2(rtx4090: BenchmarkRun) -> None:
    # 2 * 0.25 * 66.47 / 3600 = 0.00923; 83,123 tokens: 0.111; 900 W / 1,250.59 tokens/s = 0.7197 J/token
    row = row_of(rtx4090)
    assert (row["qps"], row["gpu"], row["gpu_count"], row["completed"]) == (4.0, "NVIDIA-GeForce-RTX-4090", 2, 200)
    assert row["prompt_tokens"] + row["generated_tokens"] == 83_123
    assert row["cost_per_run_usd"] == pytest.approx(0.00923, abs=5e-6)
    assert row["usd_per_mtok_total"] == pytest.approx(0.1111, abs=5e-5)
    assert row["usd_per_mtok_computed"] is None
    assert row["ttft_p99_ms"] == pytest.approx(638.69, abs=5e-3)
    assert row["joules_per_token"] == pytest.approx(0.7197, abs=5e-5)
    assert (row["energy_method"], row["tdp_w"], row["usd_per_gpu_hour"]) == ("tdp_estimate", 450.0, 0.25)
    assert row["missing"] == "usd_per_mtok_computed: cached prompt tokens were not recorded"
    assert row["recorded_at"].startswith("2025-06-") and row["recorded_at"].endswith("+00:00")
    json.dumps(row, allow_nan=False)


def test_a_row_gives_the_total_tokens_per_kwh_and_grams_of_the_study(h100: BenchmarkRun) -> None:
    # table 3 unrounded: 15.486 Mtok/kWh and 15.63 g/Mtok at 700 W, 242 g/kWh and PUE 1
    row = row_of(h100, assume="study")
    assert row["tokens_per_kwh"] == pytest.approx(15.486e6, abs=500)
    assert row["g_per_mtok"] == pytest.approx(15.63, abs=5e-3)
    assert row["tdp_w"] == 700.0
    assert row["grid"] == "EU27-2023 2023 average, 242 g/kWh lifecycle (default), PUE 1"


def test_corrected_assumptions_take_the_cards_own_tdp_and_the_default_zone(h100: BenchmarkRun) -> None:
    # 350 W / 3,011.13 tokens/s = 0.11624 J/token, half the study's 0.23247
    row, as_studied = row_of(h100), row_of(h100, assume="study")
    assert row["tdp_w"] == 350.0
    assert row["joules_per_token"] == pytest.approx(0.11624, abs=5e-6)
    assert as_studied["joules_per_token"] == pytest.approx(2 * row["joules_per_token"], rel=1e-12)
    eu27 = grid_factor("EU27").g_per_kwh
    assert eu27 is not None
    assert row["g_per_mtok"] == pytest.approx(350 / 3011.13 / 3.6 * eu27, rel=1e-5)  # J/token -> kWh/Mtok: / 3.6
    assert row["usd_per_mtok_total"] == as_studied["usd_per_mtok_total"]


def test_the_studys_assumptions_leave_cards_it_did_not_test_at_their_own_tdp(h100: BenchmarkRun) -> None:
    assert row_of(replace(h100, gpu_name="NVIDIA L40S"), assume="study")["tdp_w"] == 350.0


def test_the_studys_assumptions_win_over_a_fleets_zone_and_pue(rtx4090: BenchmarkRun) -> None:
    row = row_of(rtx4090, config_of(zone="FR", pue=1.5), assume="study")
    assert row["grid"].startswith("EU27-2023 ") and row["grid"].endswith("PUE 1")


def test_an_unknown_card_keeps_its_run_and_says_what_is_missing(h100: BenchmarkRun) -> None:
    row = row_of(replace(h100, gpu_name="NVIDIA H900"))
    dollars = ("cost_per_run_usd", "usd_per_mtok_total", "usd_per_mtok_output", "usd_per_gpu_hour")
    physics = ("joules_per_token", "tokens_per_kwh", "g_per_mtok", "tdp_w")
    assert {row[name] for name in (*dollars, *physics)} == {None}
    assert "no price for NVIDIA H900" in row["missing"]
    assert "no TDP for NVIDIA H900" in row["missing"]
    assert row["total_tokens_per_s"] == pytest.approx(3011.13, abs=5e-3)


def test_each_reason_is_told_once_with_the_figures_it_takes_away(h100: BenchmarkRun) -> None:
    row = row_of(replace(h100, prompt_tokens=0, generated_tokens=0, completed=0))
    assert row["missing"].count("no tokens") == 1
    assert row["cost_per_run_usd"] is not None
    assert {row[name] for name in ("usd_per_mtok_total", "usd_per_mtok_output", "joules_per_token")} == {None}
    assert row["ttft_p99_ms"] is not None


OFFERS = (
    ListPrice("NVIDIA H100 PCIe", "old", 2.0, date(2025, 5, 1), "a"),
    ListPrice("NVIDIA H100 PCIe", "dear", 3.0, date(2026, 1, 10), "b"),
    ListPrice("NVIDIA H100 PCIe", "cheap", 2.5, date(2026, 1, 10), "c"),
    ListPrice("NVIDIA H100 NVL", "another card", 0.1, date(2025, 5, 1), "d"),
)


@pytest.mark.parametrize(
    ("recorded", "usd"),
    [
        (datetime(2025, 5, 1, tzinfo=UTC), 2.0),
        (datetime(2026, 1, 9, 23, 59, tzinfo=UTC), 2.0),
        (datetime(2026, 1, 10, tzinfo=UTC), 2.5),  # of one day the lowest
        (datetime(2027, 1, 10, 23, 59, tzinfo=UTC), 2.5),  # 365 days old
        (None, 2.5),  # undated: the newest
    ],
)
def test_a_run_keeps_the_list_price_of_its_own_day(
    monkeypatch: pytest.MonkeyPatch, h100: BenchmarkRun, recorded: datetime | None, usd: float
) -> None:
    monkeypatch.setattr(prices, "list_prices", lambda: OFFERS)
    row = row_of(replace(h100, recorded_at=recorded))
    assert row["usd_per_gpu_hour"] == usd
    assert row["price_source"].startswith("list price, ")


def test_a_run_before_the_first_list_price_has_none(monkeypatch: pytest.MonkeyPatch, h100: BenchmarkRun) -> None:
    monkeypatch.setattr(prices, "list_prices", lambda: OFFERS)
    row = row_of(replace(h100, recorded_at=datetime(2025, 4, 30, tzinfo=UTC)))
    assert row["cost_per_run_usd"] is None
    assert "no price for H100" in row["missing"] and "on or before 2025-04-30" in row["missing"]
    assert "2025-05-01" in row["missing"]


def test_a_list_price_that_was_too_old_when_the_run_was_made_is_not_used(
    monkeypatch: pytest.MonkeyPatch, h100: BenchmarkRun
) -> None:
    """Age is counted to the run's own day: what is old today was not old then."""
    monkeypatch.setattr(prices, "list_prices", lambda: OFFERS)
    late = replace(h100, recorded_at=datetime(2030, 1, 1, tzinfo=UTC))
    row = row_of(late)
    assert (row["cost_per_run_usd"], row["usd_per_gpu_hour"]) == (None, None)
    # 2026-01-10 to 2030-01-01: 1,452 days
    assert "list price of 2026-01-10 is 1452 days old; the limit is 365" in row["missing"]
    longer = Config.model_validate({"prices": {"max_age_days": 1452}})
    assert row_of(late, longer)["usd_per_gpu_hour"] == 2.5


@pytest.mark.parametrize(
    ("recorded", "usd"),
    [
        (NOW - timedelta(days=21), 1.99),  # the list price of 2026-11-09
        (NOW - timedelta(days=10), 2.4),
        (NOW - timedelta(days=2), 2.6),
        (None, 2.6),  # undated: as of now
    ],
)
def test_a_run_has_what_a_market_asked_when_it_was_made(
    h100: BenchmarkRun, recorded: datetime | None, usd: float
) -> None:
    told = [
        MarketPrice("NVIDIA H100 PCIe", "runpod", "secure", asked, 1, NOW - timedelta(days=days), NOW)
        for days, asked in ((20, 2.4), (2, 2.6))
    ]
    present_book = Present(FactBook([], market_prices=told), Config(), NOW)
    (account,) = account_runs([replace(h100, recorded_at=recorded)], present_book)
    assert run_row(account)["usd_per_gpu_hour"] == usd


def test_the_shipped_list_gives_the_study_its_own_prices(h100: BenchmarkRun, rtx4090: BenchmarkRun) -> None:
    assert [row_of(run)["usd_per_gpu_hour"] for run in (h100, rtx4090)] == [2.0, 0.25]


def test_the_price_of_a_fleet_wins_over_the_list(rtx4090: BenchmarkRun) -> None:
    row = row_of(rtx4090, config_of(price={"plan": "rented", "usd_per_gpu_hour": 1.0}))
    assert (row["usd_per_gpu_hour"], row["price_source"]) == (1.0, "wattmix.toml, fleet mine")
    assert row["cost_per_run_usd"] == pytest.approx(2 * 66.47 / 3600, rel=1e-4)


def test_an_owned_fleet_pays_depreciation_and_electricity(rtx4090: BenchmarkRun) -> None:
    # (1,752 - 0) / (4 * 8760) = $0.05/h; 2 * 0.05 * 66.47 / 3600 = 0.0018464
    # 900 W * 66.47 s = 59,823 J * PUE 1.2 / 3.6e6 = 0.019941 kWh at $0.30 = 0.0059823; together 0.0078287
    price = {"plan": "owned", "purchase_usd": 1752, "life_years": 4, "tariff_usd_per_kwh": 0.30}
    row = row_of(rtx4090, config_of(price=price, pue=1.2))
    assert row["usd_per_gpu_hour"] == pytest.approx(0.05, rel=1e-12)
    assert row["cost_per_run_usd"] == pytest.approx(0.0078287, rel=1e-4)


def test_a_fleet_without_a_price_leaves_the_list_price(rtx4090: BenchmarkRun) -> None:
    row = row_of(rtx4090, config_of(zone="FR", pue=1.5))
    assert row["usd_per_gpu_hour"] == 0.25
    assert row["grid"] == f"{grid_factor('FR').label}, PUE 1.5"


def test_a_fleet_of_another_card_does_not_count(h100: BenchmarkRun) -> None:
    config = config_of(price={"plan": "rented", "usd_per_gpu_hour": 9.0}, pue=3.0)
    assert assumptions_for(h100, present(config)) == assumptions_for(h100, present(Config()))


def test_the_defaults_count_for_cards_no_fleet_claims(h100: BenchmarkRun) -> None:
    config = Config.model_validate({"defaults": {"zone": "FR", "pue": 1.3}})
    assert row_of(h100, config)["grid"] == f"{grid_factor('FR').label}, PUE 1.3"


@pytest.mark.parametrize(
    ("model", "gpu", "runs"),
    [
        (None, None, 130),
        ("AceMath-7B-Instruct", None, 5),
        (MODEL, None, 25),
        (MODEL, "RTX 4090", 15),
        ("deepseek-r1-distill-qwen-14b", "nvidia h100 pcie", 10),
    ],
)
def test_runs_are_chosen_by_model_and_card(
    study_runs: list[BenchmarkRun], model: str | None, gpu: str | None, runs: int
) -> None:
    found = [account.run for account in account_runs(study_runs, present(Config()), model=model, gpu=gpu)]
    assert len(found) == runs
    assert all(run.model.lower().endswith((model or "").lower()) for run in found)
    assert all((gpu or "").split(" ")[-1].lower() in run.gpu_name.lower() for run in found)


def test_an_unknown_model_or_card_is_refused_with_those_there_are(study_runs: list[BenchmarkRun]) -> None:
    with pytest.raises(UnknownName, match=rf"no run of model 'x'; the store has: .*{MODEL}"):
        account_runs(study_runs, present(Config()), model="x")
    with pytest.raises(UnknownName, match=r"no run on GPU 'A100'; the store has: .*NVIDIA-H100-PCIe"):
        account_runs(study_runs, present(Config()), model=MODEL, gpu="A100")


def test_an_empty_store_says_how_to_fill_it() -> None:
    assert account_runs([], present(Config())) == []
    with pytest.raises(UnknownName, match="wattmix import"):
        account_runs([], present(Config()), model="x")


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({}, ["small_sample", "burst"]),  # 200 requests in 12.5 s
        ({"num_prompts": 5000, "completed": 5000, "duration_s": 313.0}, []),
        ({"num_prompts": 5000, "completed": 5000, "duration_s": 400.0}, ["saturated"]),  # 12.5 of 16 req/s = 0.78
    ],
)
def test_a_runs_flags(h100: BenchmarkRun, changes: dict[str, Any], flags: list[str]) -> None:
    latency = h100.latency if not changes else {"e2e": Latency(mean_ms=5000.0)}
    run = replace(h100, latency=latency, **changes)
    assert run_flags(run) == flags
    assert row_of(run)["flags"] == (" ".join(flags) or None)


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_csv_holds_every_row_unrounded_and_missing_as_empty(study_runs: list[BenchmarkRun]) -> None:
    rows = [run_row(account) for account in account_runs(study_runs, present(Config()))]
    cells = read_csv(rows_as_csv(rows))
    assert [list(cell) for cell in cells] == [COLUMNS] * 130
    assert [float(cell["usd_per_mtok_total"]) for cell in cells] == [row["usd_per_mtok_total"] for row in rows]
    assert {cell["usd_per_mtok_computed"] for cell in cells} == {""}


def test_the_csv_without_rows_has_its_header() -> None:
    assert rows_as_csv([]) == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_text_that_a_spreadsheet_would_run_stays_text(h100: BenchmarkRun, start: str) -> None:
    evil = f'{start}HYPERLINK("http://x","y")'
    row = row_of(replace(h100, model=evil, source_file=evil))
    text = rows_as_csv([row])
    (cell,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (cell["model"], cell["source_file"]) == (f"'{evil}", f"'{evil}")
    assert row["model"] == evil  # JSON keeps the name as it is


def test_numbers_and_harmless_text_stay_as_they_are() -> None:
    row = {"number": -1.5, "text": "a=b, c-d", "quoted": 'say "hi"\nthere', "nothing": None}
    assert read_csv(rows_as_csv([row])) == [
        {"number": "-1.5", "text": "a=b, c-d", "quoted": 'say "hi"\nthere', "nothing": ""}
    ]
