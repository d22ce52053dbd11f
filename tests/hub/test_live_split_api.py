"""Live curves and today's demand over HTTP are those of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.answers.facts import take_over
from app.backend.local import LocalBackend
from app.backend.over_http import HubBackend
from app.config import Config
from app.errors import WattmixError
from app.store.database import Store
from app.store.rollup import roll_up
from tests.answers.accounting import SETTINGS, minutes_of, served
from tests.batches import CARD, HOUR, MODEL, SECOND, T0, Clock, batch, put, writing
from tests.hub_process import running

CONFIG = Config.model_validate(SETTINGS)


def fill_last_hours(store: Store) -> None:
    """The three hours before the last full one: a request a minute of 100 + 50 tokens at 300 W."""
    hour_us = int(datetime.now(UTC).timestamp()) * SECOND // HOUR * HOUR
    moved_us = hour_us - 4 * HOUR - T0
    rows, engine_rows = (
        [{**row, "t_us": row["t_us"] + moved_us} for row in of_then] for of_then in (minutes_of(300, 180), served(180))
    )
    with writing(store, Clock(hour_us + HOUR)) as taking:
        put(taking, batch(1, rows=rows, engine_rows=engine_rows))
    while roll_up(store, hour_us + 2 * HOUR, oldest_raw_us=0, oldest_minute_us=0):
        pass
    take_over(store, CONFIG, datetime.now(UTC) - timedelta(minutes=1))


def test_a_hub_backend_answers_as_the_store_does(tmp_path: Path) -> None:
    """Design law 7. 150 tokens a minute are 2.5/s."""
    store = Store.open(tmp_path / "s.duckdb")
    fill_last_hours(store)
    local = LocalBackend(store, CONFIG)
    curves, demand = local.live_curves(), local.live_demand()
    # filled to the brim: at 80% the one card would not do
    full = demand.model_copy(update={"solve": demand.solve.model_copy(update={"max_utilisation": 1.0})})
    planned = local.split_plan(full, hours=2)
    store.close()
    (curve,) = curves["curves"]
    assert [(point["tokens_per_s"], point["provenance"]["minutes"]) for point in curve["points"]] == [(2.5, 175)]
    assert [(one.model, one.tokens_per_s) for one in demand.classes] == [(MODEL, pytest.approx(2.5))]
    assert [(fleet.name, fleet.gpu, fleet.usd_per_gpu_hour) for fleet in demand.fleets] == [("h100", CARD, 2.0)]
    (tmp_path / "wattmix.toml").write_text(
        '[[fleet]]\nname = "h100"\ngpu = "NVIDIA H100 PCIe"\nzone = "EU27"\npue = 1.2\n'
        'price = { plan = "rented", usd_per_gpu_hour = 2.0 }\n[[node]]\nmatch = "node-*"\nfleet = "h100"\n'
    )
    serve = ["serve", "--db", str(tmp_path / "s.duckdb"), "--config", str(tmp_path / "wattmix.toml")]
    with running(serve, tmp_path) as hub:
        remote = HubBackend(hub.address)
        assert remote.live_demand() == demand
        over_http = remote.split_plan(full, hours=2)
        assert (planned["status"], len(planned["hours"])) == ("optimal", 2)
        assert over_http["totals"] == pytest.approx(planned["totals"])
        with pytest.raises(WattmixError, match="query `hours`: given '169'; accepted: a whole number from 1 to 168"):
            remote.split_plan(hours=169)
        assert remote.live_curves()["curves"] == curves["curves"]
        with pytest.raises(WattmixError, match="query `live`: given 'yes'; accepted: 0, 1"):
            remote._call("GET", "/api/v1/split/demand", params={"live": "yes"})
