"""The published study: its tables and headline claims, recomputed from its raw runs.

Source: A. R. de Almeida, Idle Consumer GPUs as a Complement to Enterprise Hardware for LLM Inference, AIBC 2025,
doi:10.1145/3775043.3775047.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from app import units
from app.accounting.carbon import GridFactor
from app.accounting.cost import Rate
from app.accounting.run import RunAccount, RunAssumptions, account_run
from collectors.benchmark.run import BenchmarkRun

MODEL = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"
LOADS = (1, 4, 8, 16, 32)
DAY = date(2025, 6, 10)
H100, RTX4090 = "NVIDIA-H100-PCIe", "NVIDIA-GeForce-RTX-4090"
USD_PER_GPU_HOUR = {H100: 2.00, RTX4090: 0.25}
STUDY_TDP_W = {H100: 700.0, RTX4090: 450.0}
CORRECTED_TDP_W = {H100: 350.0, RTX4090: 450.0}
STUDY_GRID = GridFactor("EU27-2023", 242.0, "lifecycle", 2023, "default", "the study, section 2.4")
PUE = 1.0

# Of a repeated pair table 2 prints the first run, but in its row 17 the second.
_SECOND_OF_PAIR = {(32, H100, 1)}

Verdict = str


@dataclass(frozen=True)
class Claim:
    """A headline claim beside what the runs say. verdict: holds, holds in part, or does not hold."""

    claim: str
    verdict: Verdict
    finding: str


@dataclass(frozen=True)
class EnergyRow:
    """One row of table 3. printed_*: with the study's intermediate rounding; the others unrounded."""

    configuration: str
    qps: int
    tdp_w: float
    mtok_per_kwh: float
    g_per_mtok: float
    printed_mtok_per_kwh: float
    printed_g_per_mtok: float


def is_of_the_study(run: BenchmarkRun) -> bool:
    """Whether a run is one of the published ones: by its file's name and the day on which all of them were made."""
    named = run.source_file.rsplit("/", 1)[-1].startswith("vllm_200prompts")
    return named and run.recorded_at is not None and run.recorded_at.date() == DAY


class Study:
    """The study's 14B runs, as its table 2 chooses them. Raises KeyError when one is not among `runs`."""

    def __init__(self, runs: Sequence[BenchmarkRun], tdp_w: dict[str, float] = STUDY_TDP_W) -> None:
        found: dict[tuple[int, str, int], list[BenchmarkRun]] = {}
        for run in sorted(runs, key=lambda run: (run.source_file, run.source_index)):
            if is_of_the_study(run) and run.model == MODEL and run.offered_requests_per_s in LOADS:
                found.setdefault((int(run.offered_requests_per_s), run.gpu_name, run.gpu_count), []).append(run)
        self._accounts = {
            shape: account_run(pair[-1 if shape in _SECOND_OF_PAIR else 0], _assumptions(shape[1], tdp_w))
            for shape, pair in found.items()
        }

    def h100(self, qps: int) -> RunAccount:
        return self._accounts[qps, H100, 1]

    def rtx4090(self, count: int, qps: int) -> RunAccount:
        return self._accounts[qps, RTX4090, count]

    def table_2(self) -> list[RunAccount]:
        """The 20 rows in the order of the paper: by load, the H100 first, then 2, 4 and 8 cards."""
        return [
            account for qps in LOADS for account in (self.h100(qps), *(self.rtx4090(count, qps) for count in (2, 4, 8)))
        ]


def _assumptions(gpu: str, tdp_w: dict[str, float]) -> RunAssumptions:
    rate = Rate(USD_PER_GPU_HOUR[gpu], "user", "the study, table 1")
    return RunAssumptions(rate, tdp_w[gpu], STUDY_GRID, PUE)


def table_3(study: Study, tdp_w: dict[str, float] = STUDY_TDP_W) -> list[EnergyRow]:
    """The study's energy table: the H100 at 16 req/s against two 4090s at 4 req/s."""
    return [
        _energy_row("1x H100 PCIe", study.h100(16), tdp_w[H100], 16),
        _energy_row("2x RTX 4090", study.rtx4090(2, 4), tdp_w[RTX4090], 4),
    ]


def _energy_row(name: str, account: RunAccount, tdp_w: float, qps: int) -> EnergyRow:
    exact, grams = _value(account.tokens_per_kwh.value), _value(account.g_per_mtok.value)
    # The paper rounds tokens/hour to 0.1 M, cuts Mtok/kWh after one digit, and divides 242 g by that.
    tokens_per_hour = round(units.mtok(units.per_hour(account.total_tokens_per_s)), 1)
    printed = int(tokens_per_hour / units.kw(tdp_w * account.run.gpu_count) * 10 + 1e-9) / 10
    return EnergyRow(
        configuration=name,
        qps=qps,
        tdp_w=tdp_w,
        mtok_per_kwh=units.mtok(exact),
        g_per_mtok=grams,
        printed_mtok_per_kwh=printed,
        printed_g_per_mtok=round(_value(STUDY_GRID.g_per_kwh) / printed, 1),
    )


def energy_ratio(tdp_w: dict[str, float], runs: Sequence[BenchmarkRun], qps_h100: int, qps_4090: int) -> float:
    """Tokens per joule of the H100 over two 4090s at the given loads."""
    study = Study(runs, tdp_w)
    ours, theirs = study.h100(qps_h100).tokens_per_kwh.value, study.rtx4090(2, qps_4090).tokens_per_kwh.value
    return _value(ours) / _value(theirs)


def claims(runs: Sequence[BenchmarkRun]) -> list[Claim]:
    """The headline claims, each with what `runs` say. Raises KeyError when the study's runs are not all there."""
    study = Study(runs)
    return [claim(study) for claim in _CLAIMS] + [_claim_tokens_per_joule(runs)]


def _claim_throughput(study: Study) -> Claim:
    ratios = {q: study.rtx4090(4, q).total_tokens_per_s / study.h100(q).total_tokens_per_s for q in LOADS}
    inside = [q for q, ratio in ratios.items() if 0.62 <= round(ratio, 2) <= 0.78]
    return Claim(
        "4x RTX 4090 reach 62-78% of H100 throughput",
        _verdict(len(inside), len(LOADS)),
        f"tokens/s ratio {_by_load(ratios, '{:.0%}')}; inside the range at {_loads(inside)}",
    )


def _claim_half_cost(study: Study) -> Claim:
    hourly = 4 * USD_PER_GPU_HOUR[RTX4090] / USD_PER_GPU_HOUR[H100]
    ratios = {q: _usd(study.rtx4090(4, q)) / _usd(study.h100(q)) for q in LOADS}
    return Claim(
        "4x RTX 4090 do so at about half the cost",
        _verdict(sum(ratio <= 0.55 for ratio in ratios.values()), len(LOADS)),
        f"{hourly:.2f} of the H100's price per hour; per Mtok {_by_load(ratios, '{:.2f}')} of the H100's",
    )


def _claim_best_cost(study: Study) -> Claim:
    four = {q: _usd(study.rtx4090(4, q)) for q in LOADS}
    best = min(study.table_2(), key=_usd)
    two_at_4 = _usd(study.rtx4090(2, 4))
    return Claim(
        "Four cards give the best $/Mtok, $0.111-0.149",
        _verdict(int(best.run.gpu_name == RTX4090 and best.run.gpu_count == 4), 1),
        f"four cards: {_by_load(four, '${:.3f}')}; ${two_at_4:.3f} is two cards at 4 req/s; the lowest is "
        f"${_usd(best):.3f}, {_shape(best)}, with p99 TTFT {_p99(best) / 1e3:.1f} s",
    )


def _claim_saving(study: Study) -> Claim:
    savings = {q: 1 - _usd(study.rtx4090(2, q)) / _usd(study.h100(q)) for q in LOADS}
    reached = [q for q, saving in savings.items() if round(saving, 2) >= 0.75]
    return Claim(
        "Up to 75% lower token cost",
        _verdict(1 if reached else 0, 1),
        f"two cards against the H100 at equal load: {_by_load(savings, '{:.1%}')} lower",
    )


def _claim_h100_latency(study: Study) -> Claim:
    p99 = {q: _p99(study.h100(q)) for q in LOADS}
    return Claim(
        "H100 p99 TTFT stays below 55 ms even at high load",
        _verdict(sum(value < 55 for value in p99.values()), len(LOADS)),
        f"p99 TTFT {_by_load(p99, '{:.1f} ms')}",
    )


def _claim_consumer_latency(study: Study) -> Claim:
    p99 = {q: _p99(study.rtx4090(4, q)) for q in LOADS}
    return Claim(
        "Consumer clusters answer in 200-500 ms",
        _verdict(sum(200 <= value <= 500 for value in p99.values()), len(LOADS)),
        f"4x RTX 4090, p99 TTFT {_by_load(p99, '{:,.0f} ms')}",
    )


def _claim_throughput_per_dollar(study: Study) -> Claim:
    ratios = {q: _usd(study.h100(q)) / _usd(study.rtx4090(2, q)) for q in LOADS}
    return Claim(
        "2x RTX 4090 give 4-7x more throughput per dollar",
        _verdict(sum(4 <= round(ratio, 1) <= 7 for ratio in ratios.values()), len(LOADS)),
        f"at equal load {_by_load(ratios, '{:.1f}x')}",
    )


def _claim_tokens_per_joule(runs: Sequence[BenchmarkRun]) -> Claim:
    published = energy_ratio(STUDY_TDP_W, runs, 16, 4)
    corrected = energy_ratio(CORRECTED_TDP_W, runs, 16, 4)
    equal_load = energy_ratio(CORRECTED_TDP_W, runs, 16, 16)
    return Claim(
        "The H100 makes 3.1x more tokens per joule",
        _verdict(int(round(equal_load, 1) == 3.1), 1),
        f"{published:.1f}x only with 700 W for the PCIe card, whose limit is 350 W, and unequal load (16 against "
        f"4 req/s); {corrected:.1f}x at 350 W; {equal_load:.1f}x at 350 W and equal load (16 req/s). All from TDP",
    )


_CLAIMS: tuple[Callable[[Study], Claim], ...] = (
    _claim_throughput,
    _claim_half_cost,
    _claim_best_cost,
    _claim_saving,
    _claim_h100_latency,
    _claim_consumer_latency,
    _claim_throughput_per_dollar,
)


def _verdict(holding: int, cases: int) -> Verdict:
    if holding == cases:
        return "holds"
    return "holds in part" if holding else "does not hold"


def _usd(account: RunAccount) -> float:
    return _value(account.usd_per_mtok_total.value)


def _p99(account: RunAccount) -> float:
    return account.run.latency["ttft"].quantiles_ms[99.0]


def _shape(account: RunAccount) -> str:
    return f"{account.run.gpu_count} cards at {account.run.offered_requests_per_s:g} req/s"


def _by_load(values: dict[int, float], form: str) -> str:
    return ", ".join(form.format(value) for value in values.values()) + f" at {_loads(list(values))}"


def _loads(loads: list[int]) -> str:
    return ", ".join(str(load) for load in loads) + " req/s" if loads else "no load"


def _value(value: float | None) -> float:
    if value is None:
        raise ValueError("the study's figures are complete; a missing one is a fault")
    return value
