from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.answers.split import (
    default_demand,
    read_demand,
    saving_usd_per_hour,
    split_as_json,
    starting_knobs,
    with_options,
)
from app.config import Config
from app.errors import ConfigError, DemandError
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.reference.grid import grid_factor
from app.split.answer import SplitAnswer
from app.split.demand import Demand, parse_demand
from app.split.recommend import Recommendation, recommend
from collectors.benchmark.run import BenchmarkRun

NO_SETTINGS = Config()
MODEL = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"
TOKENS = {"model": MODEL, "prompt_tokens": 208, "generated_tokens": 209}

# The worked example: two classes for one 14B model, two fleets at the study's prices.
EXAMPLE: dict[str, Any] = {
    "class": [
        TOKENS | {"name": "chat", "requests_per_s": 5, "slo": [{"metric": "ttft", "percentile": 99, "max_ms": 60}]},
        TOKENS | {"name": "batch", "requests_per_s": 40},
    ],
    "fleet": [
        {"name": "h100", "gpu": "NVIDIA H100 PCIe", "usd_per_gpu_hour": 2.00, "g_per_kwh": 200, "pue": 1.2},
        {"name": "rtx4090", "gpu": "NVIDIA GeForce RTX 4090", "usd_per_gpu_hour": 0.25, "g_per_kwh": 200},
    ],
}

NOW = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)

Solve = Callable[..., dict[str, Any]]


def recommended(
    demand: Demand, runs: Sequence[BenchmarkRun], config: Config = NO_SETTINGS, *facts: Fact
) -> Recommendation:
    return recommend(*with_options(demand, runs, config, FactBook(facts), NOW))


@pytest.fixture
def example() -> dict[str, Any]:
    """The worked example, free to be changed."""
    return copy.deepcopy(EXAMPLE)


@pytest.fixture
def solve(study_runs: list[BenchmarkRun]) -> Solve:
    """The JSON of a demand over the study's runs."""

    def answer(content: dict[str, Any], config: Config | None = None) -> dict[str, Any]:
        return split_as_json(recommended(parse_demand(content, "test"), study_runs, config or Config()))

    return answer


def test_the_worked_example(solve: Solve) -> None:
    # chat:  5 * 417 = 2,085 tokens/s on one H100 at 16 req/s, whose 3,011.13 * 0.8 = 2,408.9 leave 323.9: $2.00
    # batch: 40 * 417 = 16,680; 323.9 beside chat; 16,356.1 on pairs of 1,619.37 * 0.8 = 1,295.5: 12.6, so 13: $6.50
    answer = solve(EXAMPLE)
    assert (answer["status"], answer["usd_per_hour"], answer["tokens_per_s"]) == ("optimal", 8.5, 18_765.0)
    assert [(r["fleet"], r["gpus_per_replica"], r["qps_point"], r["count"]) for r in answer["replicas"]] == [
        ("h100", 1, 16.0, 1),
        ("rtx4090", 2, 16.0, 13),
    ]
    shares = {(s["class"], s["fleet"], s["gpus_per_replica"]): s["share"] for s in answer["shares"]}
    assert shares == pytest.approx(
        {("chat", "h100", 1): 1.0, ("batch", "h100", 1): 323.9 / 16_680, ("batch", "rtx4090", 2): 16_356.1 / 16_680},
        abs=1e-5,
    )
    assert answer["usd_per_mtok"] == pytest.approx(8.5 / (18_765 * 3600 / 1e6), rel=1e-9)  # 8.5 / 67.554 = 0.12583


def test_the_worked_examples_watts_and_grams(solve: Solve) -> None:
    # H100:  70 + 280 * 0.8 = 294 W (idle 20% of 350 W); * 1.2 * 200 g/kWh = 70.56 g/h
    # 4090s: 13 pairs of 900 W: 13 * 180 + 720 * 16,356.1 / 1,619.37 = 2,340 + 7,272.2 = 9,612.2 W; 1,922.4 g/h
    answer = solve(EXAMPLE)
    assert answer["watts"] == pytest.approx(9906.2, abs=0.1)
    assert answer["g_per_hour"] == pytest.approx(70.56 + 1922.44, abs=0.05)
    assert answer["tokens_per_joule"] == pytest.approx(18_765 / 9906.2, rel=1e-5)
    assert answer["g_per_mtok"] == pytest.approx(1993.0 / 67.554, rel=1e-4)


def test_the_worked_examples_reasons(solve: Solve) -> None:
    reasons = {reason["class"]: reason["text"] for reason in solve(EXAMPLE)["reasons"]}
    assert reasons["chat"].startswith("100% to h100: ")
    assert "rtx4090 is out" in reasons["chat"]
    assert "p99 TTFT 266.4 ms > 60 ms" in reasons["chat"]  # table 2, row 16: the lowest of all 4090 points
    assert reasons["batch"].startswith("98% to rtx4090: 2x ")
    # at 80%: 0.50 / (1,295.5 * 3600 / 1e6) = 0.107; 2.00 / (3,097.79 * 0.8 * 3600 / 1e6) = 0.224 with the repeat at
    # 32 req/s, 0.223 with its first run
    assert "rtx4090 $0.107/Mtok" in reasons["batch"]
    assert "h100 $0.22" in reasons["batch"]


def test_the_worked_examples_baselines(solve: Solve) -> None:
    # enterprise alone: 18,765 / 2,408.9 = 7.8, so 8 H100s: $16; consumer alone cannot hold chat's limit
    baselines = solve(EXAMPLE)["baselines"]
    assert set(baselines) == {"all_enterprise", "all_consumer"}
    enterprise, consumer = baselines["all_enterprise"], baselines["all_consumer"]
    assert (enterprise["status"], enterprise["usd_per_hour"], enterprise["saving_usd_per_hour"]) == ("optimal", 16, 7.5)
    assert (consumer["status"], consumer["usd_per_hour"], consumer["saving_usd_per_hour"]) == ("infeasible", None, None)
    assert "p99 TTFT 266.4 ms > 60 ms" in consumer["reason"]


def test_the_worked_example_shows_how_far_its_points_can_be_trusted(solve: Solve) -> None:
    # 200 requests carry no p99, and their arrivals (12.5 s at 16 req/s) are shorter than 3 x a request
    flags = {(share["class"], share["fleet"]): share["flags"] for share in solve(EXAMPLE)["shares"]}
    assert flags[("chat", "h100")] == ["small_sample", "burst"]
    assert flags[("batch", "rtx4090")] == ["burst"]


def test_the_shipped_demand_is_the_worked_example(solve: Solve, study_runs: list[BenchmarkRun]) -> None:
    demand = default_demand(Config(), FactBook([]), NOW)
    expected = parse_demand(EXAMPLE, "test")
    assert demand.classes == expected.classes
    assert [(fleet.gpu, fleet.usd_per_gpu_hour, fleet.pue) for fleet in demand.fleets] == [
        (fleet.gpu, fleet.usd_per_gpu_hour, fleet.pue) for fleet in expected.fleets
    ]
    assert recommended(demand, study_runs).answer.usd_per_hour == 8.5


@pytest.mark.parametrize("max_ms", [60, 1], ids=["optimal", "infeasible"])
def test_the_json_has_its_keys_and_no_nan_whatever_the_status(
    solve: Solve, example: dict[str, Any], max_ms: float
) -> None:
    example["class"][0]["slo"][0]["max_ms"] = max_ms
    answer = solve(example)
    assert answer["status"] == ("optimal" if max_ms == 60 else "infeasible")
    wanted = {"status", "usd_per_hour", "g_per_hour", "watts", "usd_per_mtok", "shares", "replicas", "excluded"}
    assert wanted | {"baselines", "reason", "reasons", "limits", "missing"} <= set(answer)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_every_excluded_option_tells_its_failing_number(solve: Solve) -> None:
    excluded = solve(EXAMPLE)["excluded"]
    # of the 14B runs: 15 on 4090s and the two at 32 req/s on the H100 are out for chat, none for batch
    assert {row["class"] for row in excluded} == {"chat"}
    assert all(" ms > 60 ms" in row["reason"] for row in excluded)
    assert "p99 TTFT 211.4 ms > 60 ms" in {row["reason"] for row in excluded}


def test_the_totals_are_the_sums_of_the_replicas(solve: Solve) -> None:
    # design law 9: parts sum to the whole
    answer = solve(EXAMPLE)
    for key in ("usd_per_hour", "watts", "g_per_hour"):
        assert answer[key] == pytest.approx(sum(row[key] for row in answer["replicas"]), rel=1e-12)
    assert answer["tokens_per_s"] == pytest.approx(sum(row["tokens_per_s"] for row in answer["shares"]), rel=1e-9)


def test_no_load_gives_zero_cost_and_no_cost_per_token(solve: Solve, example: dict[str, Any]) -> None:
    for one in example["class"]:
        one["requests_per_s"] = 0
    answer = solve(example)
    assert (answer["status"], answer["usd_per_hour"], answer["usd_per_mtok"]) == ("optimal", 0, None)
    json.dumps(answer, allow_nan=False)


def test_without_runs_nothing_fits_and_the_reason_says_so() -> None:
    answer = split_as_json(recommended(parse_demand(EXAMPLE, "test"), []))
    assert answer["status"] == "infeasible"
    assert f"no benchmark run of {MODEL}" in answer["reason"]


def test_an_unknown_zone_is_refused_with_its_fleet_and_those_near_it(solve: Solve, example: dict[str, Any]) -> None:
    del example["fleet"][1]["g_per_kwh"]
    example["fleet"][1]["zone"] = "EU72"
    with pytest.raises(DemandError, match=r"fleet rtx4090, `zone`: .*'EU72'.*EU27"):
        solve(example)


def test_a_zone_is_looked_up_and_labelled_default(solve: Solve, example: dict[str, Any]) -> None:
    for fleet in example["fleet"]:
        del fleet["g_per_kwh"]
        fleet["zone"] = "eu27"
    answer, eu27 = solve(example), grid_factor("EU27").g_per_kwh
    assert eu27 is not None
    assert answer["g_per_hour"] == pytest.approx((0.294 * 1.2 + 9.6122) * eu27, rel=1e-5)
    assert "(default)" in answer["assumptions"]["carbon"]["h100"]


def test_a_zone_of_ones_own_wins_over_the_table(solve: Solve, example: dict[str, Any]) -> None:
    own = {"name": "EU27", "g_per_kwh": 10, "basis": "direct", "source": "a contract"}
    for fleet in example["fleet"]:
        del fleet["g_per_kwh"]
        fleet["zone"] = "EU27"
    answer = solve(example, Config.model_validate({"zone": [own]}))
    assert answer["g_per_hour"] == pytest.approx((0.294 * 1.2 + 9.6122) * 10, rel=1e-5)
    assert answer["assumptions"]["carbon"]["h100"] == "EU27, 10 g/kWh direct (user)"


def test_grams_per_kwh_win_over_the_zone(solve: Solve, example: dict[str, Any]) -> None:
    example["fleet"][0]["zone"] = "nowhere at all"
    assert solve(example)["g_per_hour"] == solve(EXAMPLE)["g_per_hour"]


def test_unknown_grams_are_missing_with_the_fleet_named_and_never_zero(solve: Solve, example: dict[str, Any]) -> None:
    del example["fleet"][1]["g_per_kwh"]
    answer = solve(example)
    assert (answer["g_per_hour"], answer["g_per_mtok"], answer["usd_per_hour"]) == (None, None, 8.5)
    assert answer["missing"] == ["fleet rtx4090: neither zone nor g_per_kwh is set"]


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        ({"name": "x", "gpu": "RTX 4090", "usd_per_gpu_hour": 0.2}, "neither zone nor g_per_kwh is set"),
        ({"name": "x", "gpu": "NVIDIA H900", "usd_per_gpu_hour": 0.2, "g_per_kwh": 1}, "no TDP for NVIDIA H900"),
    ],
)
def test_a_carbon_price_on_unknown_grams_is_refused_with_what_is_lacking(
    solve: Solve, example: dict[str, Any], fleet: dict[str, Any], words: str
) -> None:
    example["fleet"].append(fleet)
    assert solve(example)["status"] == "optimal"
    example["solve"] = {"carbon_usd_per_t": 1}
    with pytest.raises(DemandError, match=f"fleet x: .*{words}"):
        solve(example)


def test_a_carbon_price_moves_work_to_the_fleet_with_fewer_grams(solve: Solve, example: dict[str, Any]) -> None:
    # per Mtok at full load: 4090s 900 W / 1,619.37 = 154 Wh, 30.9 g; H100 350 W / 3,011.13 * 1.2 = 38.7 Wh, 7.7 g;
    # the H100 costs about $0.12 more: above 0.12 / 23.1 g = $5,000/t (less for idle replicas) it takes all
    example["solve"] = {"carbon_usd_per_t": 20_000, "gap": 0}
    answer = solve(example)
    assert {row["fleet"] for row in answer["replicas"]} == {"h100"}
    grams = answer["g_per_hour"] + answer["embodied_g_per_hour"]
    assert answer["solver"]["objective_usd_per_hour"] == pytest.approx(answer["usd_per_hour"] + 0.02 * grams, rel=1e-6)


@pytest.mark.parametrize("gpu", ["NVIDIA-GeForce-RTX-4090", "rtx 4090", "NVIDIA_GeForce_RTX_4090"])
def test_a_fleets_card_is_found_however_it_is_spelled(solve: Solve, example: dict[str, Any], gpu: str) -> None:
    example["fleet"][1]["gpu"] = gpu
    assert solve(example)["usd_per_hour"] == 8.5


def test_another_card_has_no_runs(solve: Solve, example: dict[str, Any]) -> None:
    example["fleet"][0]["gpu"] = "NVIDIA H100 80GB HBM3"
    answer = solve(example)
    assert answer["status"] == "infeasible"
    assert f"h100: no benchmark run of {MODEL} on its GPU" in answer["reason"]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({}, ("enterprise", "consumer")),
        ({"kind": "colo"}, ("enterprise", "colo")),
        ({"kind": "enterprise"}, ("enterprise", "enterprise")),
    ],
)
def test_a_fleets_kind_is_its_own_word_or_else_its_cards(
    study_runs: list[BenchmarkRun], example: dict[str, Any], changes: dict[str, str], kinds: tuple[str, str]
) -> None:
    example["fleet"][1] |= changes
    found = recommended(parse_demand(example, "test"), study_runs)
    assert tuple(pool.option.fleet.kind for pool in found.answer.pools) == kinds


def test_refused_small_samples_leave_chat_without_an_option(solve: Solve, example: dict[str, Any]) -> None:
    example["solve"] = {"small_samples": "refuse"}
    answer = solve(example)
    assert answer["status"] == "infeasible"
    assert "200 requests cannot show a p99" in answer["reason"]


def test_penalised_small_samples_hold_1_25_times_their_maximum(
    study_runs: list[BenchmarkRun], example: dict[str, Any]
) -> None:
    example["solve"] = {"small_samples": "penalise"}
    found = recommended(parse_demand(example, "test"), study_runs)
    maxima = [
        share.option.point.latency["ttft"].quantiles_ms[100.0]
        for share in found.answer.shares
        if share.class_name == "chat"
    ]
    assert maxima
    assert all(1.25 * maximum <= 60 for maximum in maxima)


def test_repeats_of_a_run_are_numbered_by_their_date(study_runs: list[BenchmarkRun]) -> None:
    first = next(
        run
        for run in study_runs
        if (run.model, run.gpu_name, run.offered_requests_per_s) == (MODEL, "NVIDIA-H100-PCIe", 16)
    )
    late = replace(first, recorded_at=datetime(2026, 1, 1, tzinfo=UTC), duration_s=first.duration_s * 2)
    undated = replace(first, recorded_at=None, duration_s=first.duration_s * 3)
    slo = [{"metric": "ttft", "percentile": 99, "max_ms": 0.001}]
    demand = parse_demand(
        {"class": [TOKENS | {"name": "chat", "requests_per_s": 5, "slo": slo}], "fleet": [EXAMPLE["fleet"][0]]}, "test"
    )
    excluded = recommended(demand, [undated, late, first]).answer.excluded
    assert {out.option.occurrence: out.option.point.point_id for out in excluded} == {
        1: first.run_id,
        2: late.run_id,
        3: undated.run_id,
    }
    endings = {out.option.occurrence: out.option.label.rpartition(" at 16 req/s")[2] for out in excluded}
    assert endings == {1: "", 2: " (run 2)", 3: " (run 3)"}


@pytest.mark.parametrize(
    ("mix", "alone", "saving"), [(8.5, 16.0, 7.5), (8.5, None, None), (None, 16.0, None), (8.5, 8.5, 0.0)]
)
def test_the_saving_is_the_baseline_less_the_mix(mix: float | None, alone: float | None, saving: float | None) -> None:
    def answer(usd: float | None) -> SplitAnswer:
        return SplitAnswer("infeasible" if usd is None else "optimal", usd_per_hour=usd)

    assert saving_usd_per_hour(answer(mix), answer(alone)) == saving


def test_the_knobs_start_at_the_zones_grams() -> None:
    start = starting_knobs(default_demand(Config(), FactBook([]), NOW), Config())
    assert start["g.h100"] == start["g.rtx4090"] == grid_factor("EU27").g_per_kwh
    assert (start["rps.chat"], start["slo.chat"], start["usd.rtx4090"]) == (5.0, 60.0, 0.25)


def test_the_demand_of_the_settings_wins_over_the_shipped_one(tmp_path: Path) -> None:
    text = 'class = [{ name = "own", model = "m", requests_per_s = 1, prompt_tokens = 1, generated_tokens = 1 }]\n'
    path = tmp_path / "own.toml"
    path.write_text(text + 'fleet = [{ name = "f", gpu = "RTX 4090", usd_per_gpu_hour = 1 }]\n', encoding="utf-8")
    config = Config.model_validate({"split": {"demand": str(path)}})
    assert default_demand(config, FactBook([]), NOW).classes[0].name == "own"


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (None, ConfigError, "no such file"),
        (b"[[class]\n", ConfigError, "not TOML"),
        (b"\xff\xfe", ConfigError, "not UTF-8"),
        (b"[solve]\ngap = 2\n", DemandError, "`solve.gap`: given 2; accepted: a number < 1"),
    ],
)
def test_a_demand_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, error: type[ConfigError], words: str
) -> None:
    path = tmp_path / "demand.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error) as caught:
        read_demand(path)
    assert str(path) in str(caught.value) and words in str(caught.value)
