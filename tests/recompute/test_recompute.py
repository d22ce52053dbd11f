"""A simulated week (in `make test` a day of four nodes) accounted twice: by the product, and by hand from raw rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from app.accounting.periods import Period
from app.answers.account import account_lines
from app.answers.summary import series, summary
from tests.batches import SECOND, at
from tests.recompute.by_hand import Sums, quantile_ms
from tests.recompute.case import CONFIG, Case
from tests.recompute.simulated import Sent
from tests.simulator.wires import DAY_S

EXACT, ENERGY = 1e-9, 1e-3


@pytest.mark.parametrize("by", ["none", "fleet", "model", "fleet_model", "node", "gpu"])
def test_a_summary_is_what_the_raw_rows_say(case: Case, by: str) -> None:
    query = case.query(by=by)
    answer = summary(case.store, CONFIG, query, case.now)
    for line in (answer["total"], *answer["lines"]):
        key = {name: value for name, value in line["key"].items() if name != "gpu_name"}
        assert_same(line["figures"], case.by_hand(key, query.start, query.end), case.sent, by_gpu="gpu" in key)
    assert len(answer["lines"]) == {"none": 1, "node": _count(case, "node"), "gpu": _count(case, "gpu")}.get(
        by, len(answer["lines"])
    )


def _count(case: Case, name: str) -> int:
    return len({getattr(row, name) for row in case.sent.gpus})


@pytest.mark.parametrize(("tz", "step"), [("UTC", "hour"), ("Asia/Kathmandu", "hour"), ("America/Los_Angeles", "day")])
def test_each_step_of_a_series_is_what_the_raw_rows_say(case: Case, tz: str, step: Any) -> None:
    answer = series(case.store, CONFIG, case.query(by="fleet_model", tz=tz, step=step), case.now)
    assert {line["key"]["fleet"] for line in answer["lines"]} == {"h100", "rtx4090", "spot"}
    for number, period in enumerate(answer["periods"]):
        start, end = (datetime.fromisoformat(period[name]) for name in ("start", "end"))
        for line in answer["lines"]:
            figures = {
                name: {"value": found["values"][number], "reason": found["reasons"][number]}
                for name, found in line["figures"].items()
            }
            assert_same(figures, case.by_hand(line["key"], start, end), case.sent)


def test_a_report_s_lines_are_what_the_raw_rows_say(case: Case) -> None:
    """By days of UTC+05:45, the first and the last cut short: owned GPUs cost before and after, too."""
    edges_s = [case.start_s, *range(case.start_s + DAY_S - 345 * 60, case.end_s, DAY_S), case.end_s]
    periods = [Period(at(low * SECOND), at(high * SECOND), f"{low}") for low, high in pairwise(edges_s)]
    lines = account_lines(case.store, CONFIG, periods, boundary="it", basis="total", now=case.now)
    assert lines
    for line in lines:
        found = case.by_hand({"fleet": line.fleet, "model": line.model}, line.period.start, line.period.end)
        figures = {name: {"value": one.value, "reason": one.reason} for name, one in line.figures.items()}
        assert_same(figures, found, case.sent)


def assert_same(figures: Mapping[str, Any], by_hand: Sums, sent: Sent, *, by_gpu: bool = False) -> None:
    """Dollars to 1e-9, whole tokens, energy and grams to 0.1%; nothing that was there is missing."""
    wanted = _dollars(by_hand)
    for name, usd in wanted.items():
        if name in figures:
            _assert_close(figures, name, usd, EXACT)
    for name, joules in _joules(by_hand).items():
        if name in figures:
            _assert_close(figures, name, joules / 3.6e6, ENERGY)
    _assert_close(figures, "gpu_hours", by_hand.there_s / 3600, EXACT)
    _assert_close(figures, "carbon_g", by_hand.grams, ENERGY)
    _assert_close(figures, "carbon_market_g", by_hand.market_g, ENERGY)
    for name, grams in _embodied(by_hand).items():
        if name in figures:
            _assert_close(figures, name, grams, EXACT)
    if by_hand.there_s and "utilisation" in figures:
        _assert_close(figures, "utilisation", by_hand.seconds["used"] / by_hand.there_s, EXACT)
    if not by_gpu:  # there, a replica's tokens are shared out to its GPUs
        _assert_counts(figures, by_hand)
        _assert_quantiles(figures, by_hand, sent)


def _dollars(by_hand: Sums) -> dict[str, float]:
    usd = by_hand.usd
    return {
        "cost": by_hand.total_usd,
        "cost_used": usd["used"],
        "cost_idle": usd["idle"],
        "cost_unallocated": usd["unallocated"] + usd["off"],
    }


def _embodied(by_hand: Sums) -> dict[str, float]:
    grams = by_hand.embodied_g
    return {
        "embodied_g": sum(grams.values()),
        "embodied_active_g": grams["used"],
        "embodied_idle_g": grams["idle"],
        "embodied_unallocated_g": grams["unallocated"] + grams["off"],
    }


def _joules(by_hand: Sums) -> dict[str, float]:
    joules = by_hand.joules
    return {
        "energy_kwh": sum(joules.values()),
        "energy_active_kwh": joules["used"],
        "energy_idle_kwh": joules["idle"],
        "energy_unallocated_kwh": joules["unallocated"],
    }


def _sci(by_hand: Sums) -> float:
    return (by_hand.grams + sum(by_hand.embodied_g.values())) / by_hand.tokens * 1e6


def _assert_counts(figures: Mapping[str, Any], by_hand: Sums) -> None:
    counts = {
        "prompt_tokens": by_hand.prompt_tokens, "cached_tokens": by_hand.cached_tokens,
        "generated_tokens": by_hand.generated_tokens, "requests": by_hand.finished, "failed_requests": by_hand.failed,
    }  # fmt: skip
    for name, count in counts.items():
        assert (figures[name]["value"] or 0) == count, name
    if by_hand.tokens:
        _assert_close(figures, "usd_per_mtok", by_hand.total_usd / by_hand.tokens * 1e6, EXACT)
        _assert_close(figures, "sci_g_per_mtok", _sci(by_hand), ENERGY)
        _assert_close(figures, "tokens_per_joule", by_hand.tokens / sum(by_hand.joules.values()), ENERGY)


def _assert_quantiles(figures: Mapping[str, Any], by_hand: Sums, sent: Sent) -> None:
    if sum(by_hand.ttft) and "ttft_p99_ms" in figures:
        for percentile in (50, 90, 99):
            wanted = quantile_ms(by_hand.ttft, sent.ttft_bounds_us, percentile)
            _assert_close(figures, f"ttft_p{percentile}_ms", wanted, EXACT)
        assert figures["ttft_n"]["value"] == sum(by_hand.ttft)


def _assert_close(figures: Mapping[str, Any], name: str, wanted: float, within: float) -> None:
    found = figures[name]["value"]
    if found is None:
        assert wanted == 0, (name, figures[name]["reason"], wanted)
    else:
        assert found == pytest.approx(wanted, rel=within, abs=1e-12), name
