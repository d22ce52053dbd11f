"""The Health page shows what `wattmix status` says, and an empty store what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from app.backend.local import LocalBackend
from app.config import Config
from app.store.database import Store
from app.store.grid import append_points
from app.store.rollup import roll_up
from app.store.source_states import GridState, PriceState, write_state
from tests.batches import DAY, MINUTE, SECOND, Clock, batch, engine, gpu, put, seconds, writing
from tests.dashboard.test_views import metric, open_page
from tests.grid_points import value
from tests.serving import serving


@pytest.fixture
def page_backend(store: Store) -> Iterator[LocalBackend]:
    with serving(LocalBackend(store, Config())) as backend:
        yield backend


def fill(store: Store) -> None:
    """A silent node without GPUs, and one with a GPU measured and one lost."""
    now = time.time_ns() // 1000
    with writing(store, Clock(now - 10 * MINUTE)) as taking:
        put(taking, batch(1, node="*gone*", rows=[], gpus=[], sent_at_us=now - 10 * MINUTE))
    with writing(store, Clock(now)) as taking:
        start = (now // MINUTE - 5) * MINUTE
        gap = {"t_us": start + 2 * MINUTE, "dt_us": MINUTE, "energy_method": "bridged"}
        rows = [*seconds(start, 60, power_instant_mw=300_000), gap]
        cards = [gpu(), gpu(index=1, status="lost")]
        put(
            taking,
            batch(1, rows=rows, gpus=cards, sent_at_us=now, own={"spool_batches": 3, "memory_bytes": 42_000_000}),
        )
    while roll_up(store, now, oldest_raw_us=now - 7 * DAY, oldest_minute_us=now - 30 * DAY):
        pass


def test_an_empty_store_says_what_to_do(page_backend: LocalBackend) -> None:
    app = open_page("health")
    assert not app.exception
    assert app.title[0].value == "Health"
    assert app.info[0].value.startswith("No node has sent anything yet. On a GPU node: `wattmix agent --hub http://")
    assert len(app.dataframe) == len(app.metric) == 0


def test_the_page_shows_the_figures_of_the_answer(page_backend: LocalBackend) -> None:
    fill(page_backend.store)
    app = open_page("health")
    assert not app.exception
    assert metric(app, "Nodes seen") == ("1 of 2", "1 silent")
    assert metric(app, "GPUs") == ("2", "1 with a problem")
    assert metric(app, "Lowest coverage") == ("50.0%", "of the last day")  # a minute measured, a minute not
    assert metric(app, "Batches on nodes") == ("3", "waiting to be sent")
    answer = page_backend.health()
    nodes, gpus = (table.value.to_dict("records") for table in app.dataframe)
    assert [(row["node"], row["state"], row["GPUs"], row["fleet"]) for row in nodes] == [
        ("*gone*", "silent", 0, "–"), ("node-7", "ok", 2, "–"),
    ]  # fmt: skip
    assert (nodes[1]["agent MB"], nodes[1]["waiting"]) == (42, 3)
    for row, one in zip(gpus, answer["gpus"], strict=True):
        assert (row["GPU"], row["status"], row["uuid"]) == (one["gpu"], one["status"], one["uuid"])
    # 60 s x 300 W = 18 kJ = 0.005 kWh
    assert (gpus[0]["W"], gpus[0]["kWh, last day"], gpus[0]["coverage"], gpus[0]["gaps s"]) == (
        pytest.approx(300), pytest.approx(0.005), pytest.approx(0.5), pytest.approx(60),
    )  # fmt: skip


def test_what_to_do_is_listed_worst_first_and_in_plain_text(page_backend: LocalBackend) -> None:
    fill(page_backend.store)
    app = open_page("health")
    said = [one.value for one in app.markdown if "badge" in one.value]
    findings = [one for part in ("nodes", "gpus") for row in page_backend.health()[part] for one in row["findings"]]
    assert len(said) == len(findings) >= 3
    levels = [text.split("badge[")[1].split("]")[0] for text in said]
    assert levels == sorted(levels, key=["problem", "warning", "note"].index)
    assert any("no batch for 10 min" in text for text in said)
    assert any(r"\*gone\*" in text for text in said)


def test_all_well_is_said(page_backend: LocalBackend) -> None:
    now = time.time_ns() // 1000
    with writing(page_backend.store, Clock(now)) as taking:
        put(taking, batch(1, rows=seconds(now - 10 * SECOND, 10), sent_at_us=now))
    app = open_page("health")
    assert not app.exception
    assert app.success[0].value == "Nothing to do: every node is seen, every GPU is measured."
    assert metric(app, "Nodes seen") == ("1 of 1", "0 silent")


def test_engines_have_a_table_and_what_is_found_of_them_is_listed(page_backend: LocalBackend) -> None:
    now = time.time_ns() // 1000
    two = [engine(version="0.32.0"), engine(url="http://127.0.0.1:8001/metrics", gpus=None, status="HTTP 503")]
    with writing(page_backend.store, Clock(now)) as taking:
        put(taking, batch(1, rows=[], engines=two, sent_at_us=now))
    app = open_page("health")
    assert not app.exception
    assert metric(app, "Engines read") == ("1 of 2", "1 down or silent")
    engines = app.dataframe[1].value.to_dict("records")
    assert [(row["engine"], row["state"], row["kind"], row["GPUs"], row["data"]) for row in engines] == [
        ("node-7:8000", "ok", "vllm 0.32.0", "1 (config)", "measured"),
        ("node-7:8001", "down", "vllm", "not known", "measured"),
    ]  # fmt: skip
    (problem,) = [one.value for one in app.markdown if "badge" in one.value]
    assert problem.startswith(":red-badge[problem] **node-7:8001**: engine down: HTTP 503. Is it serving at http")


def test_simulated_nodes_are_marked(page_backend: LocalBackend) -> None:
    """Law 10."""
    now = time.time_ns() // 1000
    with writing(page_backend.store, Clock(now)) as taking:
        put(taking, batch(1, rows=[], engines=[engine()], sent_at_us=now, simulated=True))
    app = open_page("health")
    assert any("violet-badge" in one.value and "simulated" in one.value for one in app.markdown)
    assert [table.value["data"].to_list() for table in app.dataframe] == [["simulated"]] * 3


def test_grid_providers_stand_with_their_state_and_what_counts_instead(page_backend: LocalBackend) -> None:
    now = datetime.now(UTC)
    maps = {"provider": "electricity_maps", "zones": {"DE": "DE", "FR": "FR"}, "key_env": "NO_SUCH_TOKEN"}
    page_backend.config = Config.model_validate({"grid": [maps]})
    append_points(page_backend.store, [value(now - timedelta(minutes=90), 60, 321)])
    problem = {"problem": "HTTP 500: a*b", "problem_kind": "failed", "advice": "it is asked again later"}
    write_state(page_backend.store, GridState("electricity_maps", "DE", asked_at=now, **problem))  # type: ignore[arg-type]
    write_state(page_backend.store, GridState("electricity_maps", "FR", asked_at=now, answered_at=now))
    app = open_page("health")
    assert not app.exception
    (table,) = app.dataframe
    germany, france = table.value.to_dict("records")
    assert (germany["provider"], germany["zone"], germany["state"]) == ("Electricity Maps", "DE", "failing")
    assert (germany["g/kWh"], germany["by"], germany["basis"], germany["value ended"]) == (
        321, "measured", "lifecycle", "30 min ago",
    )  # fmt: skip
    assert germany["instead"] == "DE 2025 average, 329.65 g/kWh lifecycle (default)"
    assert (france["state"], france["last answer"]) == ("behind", "0 s ago")
    told = " ".join(one.value for one in app.markdown)
    assert "**Electricity Maps, zone DE**: it has never answered: HTTP 500: a\\*b" in told
    assert "**Electricity Maps, zone FR**: it has no values yet" in told


def test_grid_providers_stand_below_the_gpus(page_backend: LocalBackend) -> None:
    fill(page_backend.store)
    charts = {"provider": "energy_charts", "zones": {"DE": "de"}}
    page_backend.config = Config.model_validate({"grid": [charts]})
    app = open_page("health")
    assert not app.exception
    assert [one.value for one in app.subheader] == ["Nodes", "GPUs", "Grid providers"]
    assert app.dataframe[-1].value.to_dict("records")[0]["state"] == "waiting"


def test_price_sources_stand_with_their_state_and_what_is_not_used(page_backend: LocalBackend) -> None:
    now = datetime.now(UTC)
    source = {"provider": "runpod", "market": "secure"}
    page_backend.config = Config.model_validate({"prices": {"source": [source]}})
    refused = (("NVIDIA L4", "9 USD/GPU-h is above 0.1 to 2"),)
    write_state(page_backend.store, PriceState("runpod", "secure", now, now, refused=refused))
    app = open_page("health")
    assert not app.exception
    (table,) = app.dataframe
    (row,) = table.value.to_dict("records")
    assert (row["provider"], row["market"], row["state"], row["cards"], row["not used"]) == (
        "RunPod", "secure", "ok", 0, 1,
    )  # fmt: skip
    told = " ".join(one.value for one in app.markdown)
    assert "**RunPod, secure prices**: its price of L4 is not used: 9 USD/GPU-h is above 0.1 to 2" in told
