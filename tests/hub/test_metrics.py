"""`GET /metrics`: the hub's counts, in Prometheus' format, and nothing of nodes or secrets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app import __version__
from app.store.database import Store
from tests.batches import DAY, SECOND, batch, seconds
from tests.hub.asgi import ask
from tests.hub.test_ingest import Hub, fresh, now_us


@pytest.fixture
def hub(store: Store) -> Iterator[Hub]:
    made = Hub(store)
    yield made
    made.parts.close()


def figures(hub: Hub) -> dict[str, float]:
    """Name, with the value of its label, -> value."""
    reply = ask(hub.app, "GET", "/metrics")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return {
        ":".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def test_each_batch_is_counted_by_what_became_of_it(hub: Hub) -> None:
    before = figures(hub)
    assert before["wattmix_ingest_batches_total:stored"] == 0
    hub.post(fresh(1))
    hub.post(fresh(1))
    # a row of 3 rows is late; each kept or late row has one reading
    hub.post(fresh(2, rows=[*seconds(now_us() - 8 * DAY, 1), *seconds(now_us() - 9 * SECOND, 2)]))
    found = figures(hub)
    assert {name: found[f"wattmix_ingest_batches_total:{name}"] for name in
            ("stored", "duplicate", "refused", "overloaded")} == {
        "stored": 2, "duplicate": 1, "refused": 0, "overloaded": 0,
    }  # fmt: skip
    assert found["wattmix_ingest_late_rows_total"] == 1
    assert found["wattmix_commits_total"] >= 2
    assert found["wattmix_commit_errors_total"] == found["wattmix_job_errors_total"] == 0
    assert found["wattmix_ingest_queue_batches"] == 0
    assert found["wattmix_last_commit_timestamp_seconds"] == pytest.approx(now_us() / 1e6, abs=60)
    assert found[f"wattmix_build_info:{__version__}"] == 1


def test_readings_are_the_stored_ones(hub: Hub) -> None:
    hub.post(fresh(1))
    assert figures(hub)["wattmix_ingest_readings_total"] == 10  # ten rows with an energy each
    hub.post(fresh(1))
    assert figures(hub)["wattmix_ingest_readings_total"] == 10


def test_a_late_row_s_readings_are_not_counted_as_stored(hub: Hub) -> None:
    hub.post(fresh(1, rows=[*seconds(now_us() - 8 * DAY, 4), *seconds(now_us() - 9 * SECOND, 2)]))
    assert figures(hub)["wattmix_ingest_readings_total"] == 2


def test_a_refused_batch_is_counted(hub: Hub) -> None:
    rows = [dict(row) for row in seconds(now_us() - 10 * SECOND, 10)]
    rows[3]["energy_mj"] = 2**31
    assert hub.post(fresh(1, rows=rows)).status == 422
    assert hub.post(b"{").status == 422
    assert figures(hub)["wattmix_ingest_batches_total:refused"] == 2


def test_no_node_s_name_is_among_the_figures(hub: Hub) -> None:
    hub.post(batch(1, node="a-secret-place", rows=seconds(now_us() - 10 * SECOND, 10)))
    assert "a-secret-place" not in ask(hub.app, "GET", "/metrics").text
