"""The Latency page: its figures are the answer's with n and bucket beside them; what is open or too few says so."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.latency import Wanted, parse_wanted
from app.answers.query import NAMES, AccountQuery, parse_query
from app.backend.local import LocalBackend
from app.dashboard import latency_charts
from app.store.database import Store
from tests.answers.accounting import asked as asked_at
from tests.answers.accounting import minutes_of, served, take
from tests.batches import MODEL, batch, engine, gpu
from tests.dashboard.accounts import CONFIG, asked, fill, frame, opened, said
from tests.dashboard.test_views import metric, open_page

TTFT = Wanted(("ttft",))
QUARTERS = replace(asked_at(minutes=90), by="fleet_model", step="15min")


@pytest.fixture(scope="module")
def day(filled: LocalBackend) -> AppTest:
    """The page of that day."""
    return opened("latency", filled)


def shown(app: AppTest) -> tuple[AccountQuery, Wanted]:
    """What the address that the page gives asks for."""
    found = re.search(r"`/api/v1/latency\?([^`]*)`", str(app.caption[-1].value))
    assert found is not None
    words = dict(parse_qsl(found[1]))
    query = parse_query({name: words[name] for name in NAMES if name in words}, datetime.now(UTC) + timedelta(days=1))
    return query, parse_wanted(words)


def buckets(*counts: int, **values: Any) -> dict[str, Any]:
    """Counts up to 10, 50 and 100 ms, and above."""
    return {"ttft_us": 9, "ttft_buckets": list(counts), **values}


def test_an_empty_store_says_how_to_begin(page_backend: LocalBackend) -> None:
    app = open_page("latency")
    assert not app.exception
    assert app.title[0].value == "Latency"
    assert "`wattmix agent --hub http://" in app.info[0].value
    assert len(app.metric) == len(app.dataframe) == 0


def test_the_figures_are_the_answer_s(filled: LocalBackend, day: AppTest) -> None:
    """90 of 90 up to 10 ms: p50 the 45th, 10 x 45 / 90; all within 50 ms, by the sample at least 95.9%."""
    cards = {one.label: one.value for one in day.metric}
    assert cards == {
        "TTFT p50": "5.0 ms", "TTFT p90": "9.0 ms", "TTFT p99": "10 ms", "Within the limit": "95.9–100.0%",
        "Requests": "90",
    }  # fmt: skip
    total = filled.latency(*shown(day))["total"]
    assert total["whole"]["ttft"]["p99"]["value"] == pytest.approx(10.0)
    assert metric(day, "Within the limit")[1] == "TTFT ≤ 50 ms"
    assert metric(day, "Requests")[1] == "0 failed"


def test_what_a_percentile_rests_on_stands_beside_it(day: AppTest) -> None:
    """90 x 1% is less than one request."""
    assert "n = 90 first tokens, 1 of them above the p99, too few to trust it." in said(day)
    how = next(str(one.value) for one in day.markdown if "that 99% of n = 90 first tokens" in str(one.value))
    assert "in the bucket 0–10 ms, linear inside it: 10 ms" in how
    assert "too small a sample" in how


def test_fleets_and_models_with_n_and_flags(filled: LocalBackend, day: AppTest) -> None:
    rows = frame(day, "within the limit")
    lines = filled.latency(*shown(day))["lines"]
    assert [(row["fleet"], row["model"], row["n"]) for row in rows] == [("h100", MODEL, 30), ("home", MODEL, 60)]
    for row, line in zip(rows, lines, strict=True):
        for name in ("p50", "p90", "p99"):
            assert row[name] == pytest.approx(line["whole"]["ttft"][name]["value"])
    assert [row["p99 is in"] for row in rows] == ["0–10 ms", "0–10 ms"]
    assert [row["flags"] for row in rows] == [
        "p90 rests on 3 requests; p99 rests on 0.3 requests", "p99 rests on 0.6 requests",
    ]  # fmt: skip


def test_replicas_side_by_side(filled: LocalBackend, day: AppTest) -> None:
    rows = frame(day, "replica")
    assert [(row["replica"], row["fleet"], row["n"], row["requests"]) for row in rows] == [
        ("node-7:8000", "h100", 30, 30.0), ("desk-1:8000", "home", 60, 60.0),
    ]  # fmt: skip
    lines = filled.summary(asked(day))["lines"]
    found = [line["figures"]["ttft_p50_ms"]["value"] for line in lines if line["key"]["url"] is not None]
    assert [row["p50"] for row in rows] == pytest.approx(found)


def test_each_slo_has_a_verdict(day: AppTest) -> None:
    """90 of 90 are within it, and 99% of all may not be: the sample is too small to tell."""
    (line,) = [str(one.value) for one in day.markdown if "-badge[" in str(one.value)]
    assert line.startswith(":orange-badge[open] **org/model-14b**: 99% within TTFT ≤ 50 ms. 95.9–100.0% of 90 requests")


def test_a_limit_of_the_address_counts(filled: LocalBackend) -> None:
    """5 ms lies inside the bucket of all: none of them, or all."""
    app = opened("latency", filled, max_ms="5")
    assert metric(app, "Within the limit") == ("0.0–100.0%", "TTFT ≤ 5 ms")
    assert shown(app)[1] == Wanted(("ttft",), 5.0)


def test_another_latency_of_the_address_is_shown_and_why_it_is_missing(filled: LocalBackend) -> None:
    app = opened("latency", filled, metric="Inter-token")
    assert metric(app, "Inter-token p99")[:2] == ("–", "no ITL was observed in the period")
    assert shown(app)[1] == Wanted(("itl",))
    assert frame(app, "within the limit")[0]["missing"] == "no ITL was observed in the period"


def test_above_the_last_bound_only_a_lower_one_is_known(page_backend: LocalBackend) -> None:
    take(page_backend.store, batch(1, rows=minutes_of(300), engine_rows=served(**buckets(0, 0, 0, 1))))
    app = opened("latency", page_backend)
    assert metric(app, "TTFT p50")[0] == "≥ 100 ms"
    assert frame(app, "within the limit")[0]["p99 is in"] == "> 100 ms"
    assert "give a limit above, or add a fact of kind slo" in said(app)
    assert metric(app, "Within the limit")[0] == "–"


def test_simulated_numbers_are_marked_as_such(page_backend: LocalBackend, day: AppTest) -> None:
    """Law 10."""
    fill(page_backend.store, simulated=True)
    app = opened("latency", page_backend)
    assert ":violet-badge[" in said(app)
    assert {row["method"] for row in frame(app, "replica")} == {"simulated"}
    assert ":violet-badge[" not in said(day)
    assert {row["method"] for row in frame(day, "replica")} == {"measured"}


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two models, the second above the last bound; both are silent from 04:30 to 04:45 and from 05:00 on."""
    store = Store.open(tmp_path_factory.mktemp("answer") / "s.duckdb")
    pair = [engine(), engine(url="http://h:8001/metrics", model="org/other", gpus=[gpu(index=1).uuid])]
    rows = [row for number in range(2) for row in minutes_of(300, gpu=number)]
    done = [
        row
        for first, count in ((0, 30), (45, 15))
        for row in (
            *served(count, first, **buckets(1, 1, 0, 0)), *served(count, first, engine=1, **buckets(0, 0, 0, 2)),
        )
    ]  # fmt: skip
    take(store, batch(1, gpus=[gpu(), gpu(index=1)], rows=rows, engines=pair, engine_rows=done))
    found = LocalBackend(store, CONFIG).latency(QUARTERS, Wanted(("ttft",), 10.0))
    store.close()
    return found


def test_quantiles_over_time_are_lines_with_gaps_that_name_bucket_and_n(answer: dict[str, Any]) -> None:
    """15 up to 10 ms and 15 up to 50 a quarter: the p90 is the 27th, 10 + 40 x 12 / 15."""
    figure = latency_charts.quantiles_over_time(answer, "ttft", "TTFT", QUARTERS)
    lines = {(line.name, line.xaxis): line for line in figure.data}
    assert set(lines) == {(f"h100, {name}", axis) for name in ("model-14b", "other") for axis in ("x", "x2", "x3")}
    p90 = lines["h100, model-14b", "x2"]
    assert list(p90.y) == [pytest.approx(42.0), pytest.approx(42.0), None, pytest.approx(42.0), None, None]
    assert not p90.connectgaps
    assert list(p90.customdata[0]) == ["", "10–50 ms, n = 30, too few to trust it"]
    assert list(p90.customdata[2]) == ["", "nothing observed, n = 0"]
    open_ended = lines["h100, other", "x"]
    assert list(open_ended.customdata[0]) == ["≥ ", "> 100 ms, n = 30"]
    assert list(open_ended.marker.symbol)[:3] == ["triangle-up", "triangle-up", "circle"]
    assert figure.layout.yaxis.title.text == "ms"
    assert p90.line.color != open_ended.line.color


def test_attainment_is_a_band_per_stretch_without_a_gap(answer: dict[str, Any]) -> None:
    """Half of 30 are within 10 ms: by the sample from 33.2% to 66.8%."""
    figure = latency_charts.attainment_over_time(answer, [0.99], "Within the limit", QUARTERS)
    bands = [line for line in figure.data if line.name == "h100, model-14b"]
    assert [len(line.x) for line in bands] == [2, 2, 1, 1]
    low, high = bands[:2]
    assert [*low.y, *high.y] == pytest.approx([33.2, 33.2, 66.8, 66.8], abs=0.05)
    assert (low.fill, high.fill) == (None, "tonexty")
    assert [line.mode for line in bands] == ["lines", "lines", "markers", "markers"]
    assert figure.layout.shapes[0].y0 == 99.0
    assert figure.layout.yaxis.title.text == "% of requests"


def test_the_histogram_has_shares_by_bucket(answer: dict[str, Any]) -> None:
    figure = latency_charts.histogram(answer["lines"], "ttft", "TTFT by bucket")
    bars = {bar.name: dict(zip(bar.x, bar.y, strict=True)) for bar in figure.data}
    assert bars == {
        "h100, model-14b": {"0–10": pytest.approx(50.0), "10–50": pytest.approx(50.0), "> 100": None},
        "h100, other": {"0–10": None, "10–50": None, "> 100": pytest.approx(100.0)},
    }
    assert figure.layout.xaxis.title.text == "latency bucket (ms)"


def test_latencies_far_apart_get_a_logarithmic_axis(answer: dict[str, Any], filled: LocalBackend) -> None:
    near = filled.latency(QUARTERS, TTFT)
    figures = [latency_charts.quantiles_over_time(one, "ttft", "TTFT", QUARTERS) for one in (near, answer)]
    assert [figure.layout.yaxis.type for figure in figures] == ["linear", "linear"]
    far = {**answer, "lines": [answer["lines"][0], _times(answer["lines"][1], 10)]}
    assert latency_charts.quantiles_over_time(far, "ttft", "TTFT", QUARTERS).layout.yaxis3.type == "log"


def _times(line: dict[str, Any], factor: float) -> dict[str, Any]:
    """The line with latencies that are longer."""
    steps = {
        name: {**one, "values": [value and value * factor for value in one["values"]]} if name != "n" else one
        for name, one in line["steps"]["ttft"].items()
    }
    return {**line, "steps": {"ttft": steps}}


def test_lines_whose_short_names_are_alike_are_named_in_full() -> None:
    lines: list[dict[str, Any]] = [
        {"key": {"fleet": "a", "model": model}, "whole": {"ttft": {"histogram": []}}} for model in ("x/m", "y/m", "x/n")
    ]
    names = [bar.name for bar in latency_charts.histogram(lines, "ttft", "TTFT").data]
    assert names == ["a, x/m", "a, y/m", "a, n"]


@pytest.mark.parametrize(
    ("lower", "upper", "name"),
    [(0.0, 10.0, "0–10 ms"), (2500.0, None, "> 2,500 ms"), (0.5, 2.5, "0.5–2.5 ms"), (None, None, "nothing observed")],
)
def test_buckets_are_named_by_their_bounds(lower: float | None, upper: float | None, name: str) -> None:
    assert latency_charts.bucket_name(lower, upper) == name
