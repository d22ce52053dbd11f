"""The Live page shows the answer of a moment, names the replica that is off, and says what to do without any."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.facts import take_over
from app.backend.local import LocalBackend
from app.config import Config
from app.dashboard import charts
from app.store.database import Store
from collectors.samples import Batch
from tests.batches import Clock, at, batch, engine, put, writing
from tests.dashboard.test_views import metric, open_page
from tests.live_batches import replicas_up_to
from tests.serving import serving

CONFIG = Config.model_validate({
    "fleet": [{"name": "cheap_*1*", "gpu": "*", "price": {"plan": "rented", "usd_per_gpu_hour": 0.5}}],
    "node": [{"match": "*", "fleet": "cheap_*1*"}],
})  # fmt: skip


@pytest.fixture
def page_backend(store: Store) -> Iterator[LocalBackend]:
    with serving(LocalBackend(store, CONFIG)) as backend:
        yield backend


def now_us() -> int:
    return time.time_ns() // 1000


def take(store: Store, *batches: Batch) -> None:
    clock = Clock(now_us())
    with writing(store, clock) as taking:
        for one in batches:
            put(taking, one)
    take_over(store, CONFIG, at(clock.us))


def shown_answer(app: AppTest, backend: LocalBackend) -> dict[str, Any]:
    """The answer of the moment that the page says it shows."""
    window_s, moment = re.search(r"/api/v1/live\?window_s=(\d+)&at=([0-9T:.-]+Z)`", caption(app)).groups()  # type: ignore[union-attr]
    return backend.live(window_s=int(window_s), at=datetime.fromisoformat(moment))


def caption(app: AppTest) -> str:
    return str(app.caption[-1].value)


def said(app: AppTest) -> list[str]:
    return [one.value for one in app.markdown]


def test_an_empty_store_says_how_to_begin(page_backend: LocalBackend) -> None:
    app = open_page("live")
    assert not app.exception
    assert app.title[0].value == "Live"
    assert "`wattmix agent --hub http://" in app.info[0].value
    assert "[[agent.engine]]" in app.info[0].value
    assert len(app.dataframe) == len(app.metric) == 0


def test_gpus_without_engines_are_shown_and_how_to_name_engines(page_backend: LocalBackend) -> None:
    take(page_backend.store, replicas_up_to(now_us(), 0, idle=2))
    app = open_page("live")
    assert not app.exception
    assert "name them in `[[agent.engine]]`" in app.info[0].value
    assert metric(app, "Power") == ("100 W", "100 W without an engine")
    assert metric(app, "Tokens/s") == ("–", "no engine")
    assert len(app.dataframe) == 1


def test_the_figures_are_the_answer_s(page_backend: LocalBackend) -> None:
    """480 tokens/s on 1,250 W with the idle GPU, at 5 x $0.50/h: 0.384 tokens/J, $2.50 / 1.728 Mtok."""
    take(page_backend.store, replicas_up_to(now_us(), 4, idle=1))
    app = open_page("live")
    assert not app.exception
    assert metric(app, "Tokens/s") == ("480", "1.6 req/s, 12 running, 4 waiting")
    assert metric(app, "TTFT p99") == ("10 ms", "p50 5 ms, n = 480")
    assert metric(app, "Power") == ("1,250 W", "50 W without an engine")
    assert metric(app, "Tokens/J") == ("0.384", "total tokens, GPUs only")
    assert metric(app, "Cost") == ("$2.50/h", "$1.447 per Mtok")
    answer = shown_answer(app, page_backend)
    (fleet,) = answer["fleets"]
    assert fleet["tokens_per_joule"]["value"] == pytest.approx(0.384)
    assert f"{fleet['usd_per_mtok']['value']:.3f}" == "1.447"
    assert app.success[0].value == "No replica stands out among its like."
    assert any(text.startswith(r"**cheap\_\*1\***") for text in said(app))


def test_the_table_has_the_replicas_of_the_answer_in_its_order(page_backend: LocalBackend) -> None:
    take(page_backend.store, replicas_up_to(now_us(), 4, slow=[2]))
    app = open_page("live")
    answer = shown_answer(app, page_backend)
    rows = app.dataframe[0].value.to_dict("records")
    assert [row["replica"] for row in rows] == [one["replica"] for one in answer["replicas"]]
    assert [row["state"] for row in rows] == ["slow", "ok", "ok", "ok"]
    for row, one in zip(rows, answer["replicas"], strict=True):
        for column, name in (("tokens/s", "tokens_per_s"), ("TTFT p50", "ttft_p50_ms"), ("W", "power_w"),
                             ("tokens/J", "tokens_per_joule"), ("$/h", "usd_per_hour"), ("$/Mtok", "usd_per_mtok"),
                             ("waiting", "waiting"), ("req/s", "requests_per_s")):  # fmt: skip
            assert row[column] == pytest.approx(one[name]["value"]), column
        assert (row["method"], row["price"], row["GPUs"]) == ("measured", "user", "1x H100 PCIe 80GB")


def test_the_replica_that_is_off_is_named(page_backend: LocalBackend) -> None:
    take(page_backend.store, replicas_up_to(now_us(), 4, slow=[2]))
    app = open_page("live")
    finding = next(text for text in said(app) if text.startswith(":orange-badge[warning]"))
    assert finding.startswith(":orange-badge[warning] **node-7:8002** is slow: TTFT p50 75 ms, 15 times the median")
    assert any(":orange-badge[node-7:8002 slow]" in text for text in said(app))
    assert not app.success


def test_what_could_not_be_compared_is_said(page_backend: LocalBackend) -> None:
    take(page_backend.store, replicas_up_to(now_us(), 2, slow=[1]))
    app = open_page("live")
    assert not app.success
    assert any(
        text.value.startswith("Not compared: 2 replicas of org/model-14b on 1x H100 PCIe 80GB, fleet cheap")
        for text in app.caption
    )


def test_an_unbounded_latency_is_a_lower_bound(page_backend: LocalBackend) -> None:
    sent = replicas_up_to(now_us(), 1)
    assert sent.engine_samples is not None
    open_ended = sent.engine_samples.model_copy(update={"ttft_buckets": [[0, 0, 0, 2]] * len(sent.engine_samples)})
    take(page_backend.store, sent.model_copy(update={"engine_samples": open_ended}))
    app = open_page("live")
    assert metric(app, "TTFT p99")[0] == "≥ 100 ms"
    assert app.dataframe[0].value["p99 is"].to_list() == ["≥"]


def test_an_engine_that_is_down_says_why(page_backend: LocalBackend) -> None:
    down = batch(1, engines=[engine(status="connection refused")], sent_at_us=now_us())
    take(page_backend.store, down)
    app = open_page("live")
    assert not app.exception
    assert metric(app, "Tokens/s") == ("–", "connection refused")
    assert any("red-badge[problem]" in text and "is down: connection refused" in text for text in said(app))
    assert any(":red-badge[node-7:8000 down]" in text for text in said(app))
    row = app.dataframe[0].value.to_dict("records")[0]
    assert (row["state"], row["why"]) == ("down", "is down: connection refused")


@pytest.mark.parametrize("simulated", [False, True])
def test_simulated_numbers_are_marked_as_such(page_backend: LocalBackend, simulated: bool) -> None:
    """Law 10."""
    take(page_backend.store, replicas_up_to(now_us(), 3, simulated=simulated))
    app = open_page("live")
    badges = [text for text in said(app) if ":violet-badge[" in text]
    assert (len(badges) == 2) is simulated
    assert ("simulated" in caption(app)) is simulated
    assert set(app.dataframe[0].value["method"]) == {"simulated" if simulated else "measured"}


def test_the_window_is_the_url_s(page_backend: LocalBackend) -> None:
    take(page_backend.store, replicas_up_to(now_us(), 1))
    app = open_page("live", window_s="30")
    assert not app.exception
    assert "the newest 30 s of each replica" in caption(app)
    assert shown_answer(app, page_backend)["window_s"] == 30


def test_the_chart_has_a_line_a_fleet_and_leaves_gaps() -> None:
    history = {
        "bin_s": 15, "from": ["2026-02-03T04:00:00+00:00", "2026-02-03T04:00:15+00:00", "2026-02-03T04:00:30+00:00"],
        "fleets": [{"fleet": "h100", "tokens_per_s": [1.0, None, 3.0]},
                   {"fleet": None, "tokens_per_s": [None, None, 2.0]}],
    }  # fmt: skip
    figure = charts.tokens_by_fleet(history, "Tokens/s by fleet")
    assert [(line.name, list(line.y), line.connectgaps) for line in figure.data] == [
        ("h100", [1.0, None, 3.0], False), ("no fleet", [None, None, 2.0], False),
    ]  # fmt: skip
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("UTC", "tokens/s")
    assert len({line.line.color for line in figure.data}) == 2
