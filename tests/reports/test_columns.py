"""A line's cells are its figures, unrounded, in the units of the columns; docs/reports.md lists exactly those."""

from __future__ import annotations

import math

import pytest

from app.accounting.latency import Quantile
from app.reports.columns import DESCRIBED, NAMES, Frame, row
from tests.conftest import ROOT
from tests.reports.lines import NOW, figure, line

FRAME = Frame("Europe/Madrid", NOW)


def test_docs_list_exactly_the_columns_in_order() -> None:
    lines = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("| column | unit | meaning |") + 2
    listed = []
    for text in lines[start:]:
        if not text.startswith("|"):
            break
        name, unit, meaning = (cell.strip() for cell in text.strip("|").split(" | "))
        listed.append((name.strip("`"), "" if unit == "–" else unit, meaning))
    assert tuple(listed) == DESCRIBED


def test_a_row_has_the_columns_in_order_and_no_name_twice() -> None:
    assert tuple(row(line(), FRAME)) == NAMES
    assert len(set(NAMES)) == len(NAMES)


def test_a_row_holds_the_lines_figures_in_the_columns_units() -> None:
    assert row(line(), FRAME) == {
        "period": "2026-02-03", "tz": "Europe/Madrid",
        "start_utc": "2026-02-02T23:00:00+00:00", "end_utc": "2026-02-03T23:00:00+00:00",
        "fleet": "h100", "model": "org/model", "gpu_hours": 48.0,
        "prompt_tokens": 1_500_000, "cached_tokens": 250_000, "generated_tokens": 500_000,
        "requests": 1000, "failed_requests": 3,
        "energy_kwh": 1.0, "energy_idle_kwh": 0.25, "boundary": "it",
        "cost": 96.0, "cost_used": 60.0, "cost_working": 20.0, "cost_slack": 40.0, "cost_idle": 36.0,
        "cost_unallocated": 0.0, "currency": "USD", "cost_per_mtok": 48.0, "basis": "total",
        "tokens_per_joule": 2e6 / 3.6e6, "carbon_g": 213.02, "g_per_mtok": 106.51,
        "carbon_market_g": 50.0, "embodied_g": 800.0, "embodied_low_g": 300.0, "embodied_high_g": 900.0,
        "sci_g_per_mtok": 506.51,
        "ttft_p50_ms": 50.0, "ttft_p90_ms": 80.0, "ttft_p99_ms": 120.0, "ttft_at_least": None, "ttft_n": 1000,
        "coverage": 0.995, "method": "measured", "price_source": "wattmix.toml, fleet h100",
        "grid": "EU27 213.02 g/kWh, PUE 1.2", "carbon_basis": "boundary site (GPUs x PUE); tokens: total",
        "known_at": "2026-02-04T05:00:00+00:00", "missing": None,
    }  # fmt: skip


def test_what_is_missing_is_none_with_its_reason_and_reasons_are_told_once() -> None:
    no_price = figure(None, reason="no price for X1")
    cells = row(line(cost=no_price, usd_per_mtok=no_price, cached_tokens=figure(None)), FRAME)
    assert (cells["cost"], cells["cost_per_mtok"], cells["cached_tokens"]) == (None, None, None)
    assert cells["missing"] == "cached_tokens: not told by the engine; cost, cost_per_mtok: no price for X1"


def test_idle_gpus_have_no_model_and_nothing_is_made_up_for_them() -> None:
    nothing = Quantile(None, None, None, 0)
    idle = line(model=None, fleet=None, requests=figure(0), usd_per_mtok=figure(None, reason="no tokens"),
                ttft={50.0: nothing, 90.0: nothing, 99.0: nothing}, coverage=None)  # fmt: skip
    cells = row(idle, FRAME)
    assert (cells["fleet"], cells["model"], cells["ttft_p50_ms"], cells["coverage"]) == (None, None, None, None)
    assert (cells["requests"], cells["ttft_n"]) == (0, 0)
    assert cells["missing"] == (
        "fleet: no fleet claims these GPUs; model: no engine was on these GPUs; cost_per_mtok: no tokens; "
        "ttft_p50_ms, ttft_p90_ms, ttft_p99_ms: no first token in the period; coverage: no GPU time"
    )


@pytest.mark.parametrize(
    ("open_ended", "marked"),
    [((), None), ((99.0,), "p99"), ((90.0, 99.0), "p90 p99"), ((50.0, 90.0, 99.0), "p50 p90 p99")],
)
def test_a_quantile_past_the_last_bucket_is_marked_as_a_lower_bound(
    open_ended: tuple[float, ...], marked: str | None
) -> None:
    ttft = {
        p: Quantile(5.0, 5.0, math.inf, 10) if p in open_ended else Quantile(0.1, 0.05, 0.2, 10)
        for p in (50.0, 90.0, 99.0)
    }
    cells = row(line(ttft=ttft), FRAME)
    assert cells["ttft_at_least"] == marked
    assert cells["ttft_p99_ms"] == (5000.0 if 99.0 in open_ended else 100.0)
    assert cells["missing"] is None


def test_percentiles_that_no_engine_gave_are_missing() -> None:
    cells = row(line(ttft={}), FRAME)
    assert (cells["ttft_p90_ms"], cells["ttft_n"]) == (None, 0)
    assert cells["missing"] == "ttft_p50_ms, ttft_p90_ms, ttft_p99_ms: not measured"
