from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accounting.carbon import GridFactor
from app.accounting.cost import Rate
from app.accounting.figure import Figure
from app.accounting.run import RunAccount, RunAssumptions, account_run
from collectors.benchmark.run import BenchmarkRun

GRID = GridFactor("EU27-2023", 242.0, "lifecycle", 2023, "default", "a table")
RENTED = RunAssumptions(Rate(0.25, "user", "a contract"), 450.0, GRID, 1.2)
NO_PRICE = Rate(None, "default", "list prices", reason="no price for X")

# 2 GPUs for 90 s: 180 GPU-seconds; 100 requests with 20,000 prompt and 30,000 generated tokens
RUN = BenchmarkRun(
    "org/model", "vllm", "X", 2, 4.0, 1.0, None, 100, 100, 90.0, 20_000, 30_000, {}, None, "run.json", 0, 1
)


def test_one_run_by_hand() -> None:
    account = account_run(RUN, RENTED)
    # cost: 2 * 0.25 * 90 / 3600 = 0.0125; energy: 2 * 450 * 90 = 81,000 J = 0.0225 kWh; grams: 0.0225 * 1.2 * 242
    assert account.cost_usd.value == pytest.approx(0.0125, rel=1e-12)
    assert account.usd_per_mtok_total.value == pytest.approx(0.0125 / 0.05, rel=1e-12)  # 0.25
    assert account.usd_per_mtok_output.value == pytest.approx(0.0125 / 0.03, rel=1e-12)  # 0.41667
    assert account.energy_j.value == 81_000.0
    assert account.joules_per_token.value == pytest.approx(1.62, rel=1e-12)
    assert account.tokens_per_kwh.value == pytest.approx(50_000 / 0.0225, rel=1e-12)
    assert account.g_per_mtok.value == pytest.approx(0.0225 * 1.2 * 242 / 0.05, rel=1e-12)  # 130.68
    assert account.total_tokens_per_s == pytest.approx(50_000 / 90, rel=1e-12)
    assert account.output_tokens_per_s == pytest.approx(30_000 / 90, rel=1e-12)
    assert account.requests_per_s == pytest.approx(100 / 90, rel=1e-12)


def test_each_figure_carries_its_unit_and_method() -> None:
    account = account_run(RUN, RENTED)
    assert [(f.unit, f.method) for f in (account.cost_usd, account.usd_per_mtok_total, account.energy_j)] == [
        ("USD", "user"),
        ("USD/Mtok", "user"),
        ("J", "tdp_estimate"),
    ]
    assert (account.g_per_mtok.unit, account.g_per_mtok.method) == ("gCO2e/Mtok", "tdp_estimate")


def test_an_owned_run_pays_depreciation_and_the_tariff_on_site_energy() -> None:
    # 2 * 0.05 * 90 / 3600 = 0.0025; 0.0225 kWh * PUE 1.2 = 0.027 kWh at $0.30 = 0.0081; together 0.0106
    owned = replace(RENTED, rate=Rate(0.05, "user", "owned", tariff_usd_per_kwh=0.30))
    account = account_run(RUN, owned)
    assert account.cost_usd.value == pytest.approx(0.0106, rel=1e-12)
    assert account.usd_per_mtok_total.value == pytest.approx(0.212, rel=1e-12)


def test_without_a_price_dollars_are_missing_and_the_rest_stands() -> None:
    account = account_run(RUN, replace(RENTED, rate=NO_PRICE))
    dollars = (account.cost_usd, account.usd_per_mtok_total, account.usd_per_mtok_output, account.usd_per_mtok_computed)
    assert [(figure.value, figure.reason) for figure in dollars] == [(None, "no price for X")] * 4
    assert account.joules_per_token.value == pytest.approx(1.62, rel=1e-12)


def test_without_a_tdp_joules_and_grams_are_missing_and_dollars_stand() -> None:
    account = account_run(RUN, replace(RENTED, tdp_w=None))
    missing = (account.energy_j, account.joules_per_token, account.tokens_per_kwh, account.g_per_mtok)
    assert [(figure.value, figure.reason) for figure in missing] == [(None, "no TDP for X")] * 4
    assert account.usd_per_mtok_total.value == pytest.approx(0.25, rel=1e-12)


def test_an_unknown_grid_leaves_grams_alone_missing() -> None:
    grid = GridFactor("XX", None, "lifecycle", None, "default", "a table", reason="no factor for XX")
    account = account_run(RUN, replace(RENTED, grid=grid))
    assert (account.g_per_mtok.value, account.g_per_mtok.reason) == (None, "no factor for XX")
    assert account.joules_per_token.value is not None


def test_a_load_test_does_not_record_the_cache_so_computed_tokens_are_missing() -> None:
    computed = account_run(RUN, RENTED).usd_per_mtok_computed
    assert (computed.value, computed.reason) == (None, "cached prompt tokens were not recorded")


def test_a_run_without_tokens_still_costs_but_no_ratio_exists() -> None:
    account = account_run(replace(RUN, prompt_tokens=0, generated_tokens=0, completed=0), RENTED)
    assert account.cost_usd.value == pytest.approx(0.0125, rel=1e-12)
    assert account.energy_j.value == 81_000.0
    ratios = (account.usd_per_mtok_total, account.usd_per_mtok_output, account.joules_per_token, account.g_per_mtok)
    assert [(figure.value, figure.reason) for figure in ratios] == [(None, "no tokens")] * 4


def test_a_run_that_only_read_prompts_has_a_total_but_no_output_ratio() -> None:
    account = account_run(replace(RUN, generated_tokens=0), RENTED)
    assert account.usd_per_mtok_total.value == pytest.approx(0.0125 / 0.02, rel=1e-12)
    assert account.usd_per_mtok_output.reason == "no tokens"


def _ratios(account: RunAccount) -> list[Figure]:
    return [account.usd_per_mtok_total, account.joules_per_token, account.g_per_mtok]


@settings(derandomize=True, deadline=None)
@given(
    prompt=st.integers(0, 10**6),
    generated=st.integers(1, 10**6),
    factor=st.integers(2, 1000),
    duration_s=st.floats(0.1, 1e5),
    gpus=st.integers(1, 64),
    tariff=st.none() | st.floats(0, 1),
    pue=st.floats(1, 3),
)
def test_dollars_joules_and_grams_share_their_denominator(
    prompt: int, generated: int, factor: int, duration_s: float, gpus: int, tariff: float | None, pue: float
) -> None:
    # design law 3: k times the tokens in the same window on the same GPUs divide every ratio by k
    assumptions = RunAssumptions(Rate(0.25, "user", "x", tariff_usd_per_kwh=tariff), 450.0, GRID, pue)
    few = replace(RUN, gpu_count=gpus, duration_s=duration_s, prompt_tokens=prompt, generated_tokens=generated)
    many = replace(few, prompt_tokens=prompt * factor, generated_tokens=generated * factor)
    for one, other in zip(_ratios(account_run(few, assumptions)), _ratios(account_run(many, assumptions)), strict=True):
        assert one.value is not None and other.value is not None
        assert one.value == pytest.approx(other.value * factor, rel=1e-9)


@settings(derandomize=True, deadline=None)
@given(generated=st.integers(1, 10**6), duration_s=st.floats(0.1, 1e5), gpus=st.integers(1, 64), pue=st.floats(1, 3))
def test_ratios_times_the_same_tokens_give_back_the_totals(
    generated: int, duration_s: float, gpus: int, pue: float
) -> None:
    run = replace(RUN, gpu_count=gpus, duration_s=duration_s, generated_tokens=generated)
    account = account_run(run, replace(RENTED, pue=pue))
    dollars, joules, grams = [figure.value for figure in _ratios(account)]
    assert dollars is not None and joules is not None and grams is not None
    mtok = (20_000 + generated) / 1e6
    assert dollars * mtok == pytest.approx(gpus * 0.25 * duration_s / 3600, rel=1e-9)
    assert joules * mtok * 1e6 == pytest.approx(gpus * 450 * duration_s, rel=1e-9)
    assert grams * mtok == pytest.approx(gpus * 450 * duration_s / 3.6e6 * pue * 242, rel=1e-9)
