"""The route of grid intensity, the hub's own figures of it, and that a hub with a provider that hangs is a hub."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from app.config import Config
from app.hub.parts import HubParts
from app.store.database import Store
from app.store.grid import append_points
from collectors.samples import encode
from tests.batches import wait_until
from tests.grid_points import NOW, hour_of
from tests.hub.asgi import Reply, ask
from tests.hub.grid_server import Grid
from tests.hub.grid_server import grid as grid
from tests.hub.test_ingest import fresh

SECRET = "planted-key-2187"


@pytest.fixture
def hub(store: Store, grid: Grid) -> Iterator[Starlette]:
    entries = [
        {"provider": "energy_charts", "zones": {"DE": "de"}, "base_url": grid.address},
        {"provider": "watttime", "zones": {"US-CA": "CAISO_NORTH"}, "user": "u", "key_env": "NO_SUCH_PASSWORD"},
    ]
    parts = HubParts(store, Config.model_validate({"grid": entries}))
    yield Starlette(routes=parts.api.routes())
    parts.close()


def of_zone(hub: Starlette, zone: str = "DE", **query: str) -> Reply:
    return ask(hub, "GET", "/api/v1/grid", query={"zone": zone} | query)


def figures(hub: Starlette) -> dict[str, float]:
    """Name, with the values of its labels, -> value."""
    return {
        ":".join([sample.name, *(sample.labels[name] for name in sorted(sample.labels))]): sample.value
        for family in text_string_to_metric_families(ask(hub, "GET", "/metrics").text)
        for sample in family.samples
    }


def answered(hub: Starlette) -> None:
    """Wait until the provider has been asked about the past and what is to come."""
    name = "wattmix_grid_requests_total:energy_charts:answered:DE"
    wait_until(lambda: figures(hub)[name] == 2, "the provider has answered twice")


def test_a_hub_asks_and_answers(hub: Starlette) -> None:
    answered(hub)
    answer = of_zone(hub).json()
    assert (answer["zone"], answer["current"]["from"], answer["current"]["g_per_kwh"]) == ("DE", "live", 300)
    assert {hour["method"] for hour in answer["hours"]} == {"measured", "forecast"}
    assert of_zone(hub, "aws:eu-central-1").json()["current"] | {"age_s": 0, "value_age_s": 0} == answer["current"] | {
        "age_s": 0, "value_age_s": 0,
    }  # fmt: skip


def test_metrics_tell_each_provider(hub: Starlette) -> None:
    answered(hub)
    found = figures(hub)
    assert found["wattmix_grid_requests_total:energy_charts:failed:DE"] == 0
    assert found["wattmix_grid_points_total:energy_charts:DE"] > 48 * 4
    assert found["wattmix_grid_up:energy_charts:DE"] == 1
    assert found["wattmix_grid_last_answer_timestamp_seconds:energy_charts:DE"] == pytest.approx(time.time(), abs=60)
    assert found["wattmix_grid_up:watttime:US-CA"] == 0
    assert found["wattmix_grid_requests_total:watttime:failed:US-CA"] == 0


def test_health_has_the_providers(hub: Starlette) -> None:
    answered(hub)
    states = {one["provider"]: one["state"] for one in ask(hub, "GET", "/api/v1/health").json()["grid"]}
    assert states == {"energy_charts": "ok", "watttime": "absent"}


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({}, 400, "query `zone`: the name of a zone is missing; such as zone=DE"),
        ({"zone": "Atlantis"}, 404, "no grid intensity for zone 'Atlantis'"),
        ({"zone": "DE", "from": "soon"}, 400, "query `from`: given 'soon'; accepted: a date"),
        ({"zone": "DE", "from": "2026-02-03", "to": "2026-02-02"}, 400, "`from` is before `to`"),
        ({"zone": "DE", "from": "2020-02-03", "to": "2026-02-02"}, 400, "by at most 400 days"),
        ({"zone": "DE", "known-at": "2200-01-01T00:00Z"}, 400, "query `known-at`: given"),
        ({"zone": "DE", "zones": "x"}, 400, "query `zones`: no such parameter; accepted: from, known-at, to, zone"),
    ],
)
def test_what_cannot_be_answered_is_told(hub: Starlette, query: dict[str, str], status: int, words: str) -> None:
    reply = ask(hub, "GET", "/api/v1/grid", query=query)
    assert reply.status == status
    assert words in reply.json()["error"]


def test_others_need_a_read_token(hub: Starlette) -> None:
    assert ask(hub, "GET", "/api/v1/grid", query={"zone": "DE"}, client="192.0.2.7").status == 401


@pytest.mark.parametrize("do", ["hang", "500", "cut", "wrong type"])
def test_samples_and_answers_wait_for_no_provider(
    store: Store, grid: Grid, do: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The measurement path beside a provider that does its worst."""
    grid.do = do
    append_points(store, [hour_of(number, number > 1) for number in range(4)])
    entries: list[dict[str, Any]] = [
        {"provider": "electricity_maps", "zones": {"DE": "DE"}, "key": SECRET, "base_url": grid.address},
        {"provider": "energy_charts", "zones": {"DE": "de"}, "base_url": grid.address},
    ]
    parts = HubParts(store, Config.model_validate({"grid": entries}))
    hub = Starlette(routes=parts.api.routes())
    wait_until(lambda: grid.paths, "the provider is asked")
    began = time.monotonic()
    sent = ask(hub, "POST", "/api/v1/ingest", body=encode(fresh(1)), content_type="application/json")
    assert sent.status == 200
    answer = ask(hub, "GET", "/api/v1/grid", query={"zone": "DE"}).json()
    told = ask(hub, "GET", "/metrics").text + ask(hub, "GET", "/api/v1/health").text + caplog.text
    assert time.monotonic() - began < 3
    # the hour before now is known as measured, this one as a forecast
    assert answer["current"]["from"] == "cached"
    assert [hour["method"] for hour in answer["hours"] if hour["hour"] <= NOW.isoformat()][-2:] == [
        "measured",
        "forecast",
    ]
    assert SECRET not in told
    assert SECRET not in str(answer)
    parts.close()
    assert time.monotonic() - began < 6
