"""A day of two fleets for page tests: worked, idle and unallocated hours, and the pages of that day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest

from app.answers.query import AccountQuery, parse_query
from app.backend.local import LocalBackend
from app.config import Config
from app.facts.kinds import HostedPrice, LatencySlo, RentedPrice
from app.store.database import Store
from tests.answers.accounting import HOME_CARD, SETTINGS, idle, know, minutes_of, served, take
from tests.batches import MODEL, batch, engine, gpu, uuid_of
from tests.dashboard.test_views import open_page
from tests.serving import serving

# The day of T0, in UTC.
DAY = {"range": "custom", "from": "2026-02-03", "to": "2026-02-04", "tz": "UTC"}
# Minutes of that day are still kept, whenever the tests run.
CONFIG = Config.model_validate(SETTINGS | {"store": {"minute_days": 36_500}})
SINCE_LONG_AGO = -1_000_000


def fill(store: Store, *, simulated: bool = False) -> None:
    """From 04:00 to 05:00: an H100 that works for half of it beside one without an engine, and a 4090 that works.

    The H100s' price goes from $2 to $4 at 04:30. First tokens take up to 10 ms; the SLO is 50 ms.
    """
    latencies = {"ttft_us": 9_000, "ttft_buckets": [1, 0, 0, 0]}
    rows = [*minutes_of(300, 30), *minutes_of(100, 30, first=30), *minutes_of(50, gpu=1)]
    work = [*served(30, **latencies), *idle(30, first=30)]
    rented = batch(1, rows=rows, gpus=[gpu(), gpu(index=1)], engine_rows=work, simulated=simulated)
    home = batch(
        1, node="desk-1", rows=minutes_of(200), gpus=[gpu("desk-1", name=HOME_CARD)],
        engines=[engine(gpus=[uuid_of("desk-1")])], engine_rows=served(60, **latencies), simulated=simulated,
    )  # fmt: skip
    take(store, rented, home)
    know(store, "price", "h100", RentedPrice(per_gpu_hour=4.0), minute=30)
    know(store, "slo", MODEL, LatencySlo(percentile=99, max_ms=50), minute=SINCE_LONG_AGO)
    hosted = HostedPrice(input_usd_per_mtok=100, output_usd_per_mtok=400)
    know(store, "hosted_price", "example-ai/Model-14B", hosted, minute=SINCE_LONG_AGO)


def open_day(page: str, **query: str) -> AppTest:
    return open_page(page, **(DAY | query))


def asked(app: AppTest) -> AccountQuery:
    """The query whose address the page gives."""
    found = re.search(r"`/api/v1/summary\?([^`]*)`", str(app.caption[-1].value))
    assert found is not None
    return parse_query(dict(parse_qsl(found[1])), datetime.now(UTC) + timedelta(days=1))


def frame(app: AppTest, column: str) -> list[dict[str, Any]]:
    """The rows of the one table that has that column."""
    (table,) = [one.value for one in app.dataframe if column in one.value.columns]
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows


def opened(page: str, backend: LocalBackend, /, **query: str) -> AppTest:
    """The page of that day, drawn from a backend."""
    with serving(backend):
        app = open_day(page, **query)
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return " ".join(str(one.value) for one in (*app.markdown, *app.caption, *app.info))
