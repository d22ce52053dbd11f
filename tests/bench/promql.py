"""The same GPUs in VictoriaMetrics, and one question asked of both: what did each fleet do each day?

It holds what a server of PromQL is given, scrapes: one a minute, which is Prometheus' default. Many scrape four times
as often, and then it has four times as much to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

import requests

from app.answers.query import AccountQuery
from app.answers.summary import series
from app.store.database import Store
from tests.bench.big_fleet import CONFIG, DAYS, HOUR_US, NOW, gpu_labels

METRICS = {"gpu_tokens": "generated_tokens", "gpu_joules": "energy_kwh", "gpu_usd": "cost"}
LAST_DAY = datetime.combine(NOW.date(), time(), UTC)
FIRST_DAY = LAST_DAY - timedelta(days=DAYS - 1)
QUERY = AccountQuery(FIRST_DAY, LAST_DAY, by="fleet", step="day", boundary="gpu", figures=tuple(METRICS.values()))
# An exporter there would know the price of the hour; which it is makes no difference to the time it takes.
_USD_PER_HOUR = {"h100-east": 2.0, "h100-west": 2.09, "rtx4090": 0.08}
_SECOND = 1_000_000
SCRAPES_PER_HOUR = 60
_MIDDLES_MS = [(2 * n + 1) * 3_600_000 // (2 * SCRAPES_PER_HOUR) for n in range(SCRAPES_PER_HOUR)]

# grain: one row per GPU and hour; an engine's tokens are shared out to its GPUs
_HOURS = f"""
    SELECT
        gpu_id,
        list(hour_us // 1000 ORDER BY hour_us) AS t_ms,
        list(coalesce(generated_tokens / replica_gpus, 0) ORDER BY hour_us) AS gpu_tokens,
        list(known_j + estimated_j ORDER BY hour_us) AS gpu_joules,
        list(provisioned_s / 3600 ORDER BY hour_us) AS gpu_usd
    FROM gpu_use_hour LEFT JOIN engine_hour USING (engine_id, hour_us)
    WHERE hour_us < {int(NOW.timestamp()) * _SECOND // HOUR_US * HOUR_US}
    GROUP BY gpu_id ORDER BY gpu_id
"""


def ours_by_day(store: Store) -> dict[str, Any]:
    return series(store, CONFIG, QUERY, NOW)


@dataclass
class Peer:
    """A server with the scrapes of each GPU and metric, an hour's being alike."""

    port: int
    store: Store
    samples: int = 0
    answers: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for lines in self._lines():
            requests.post(f"{self._url}/import", data=lines, timeout=300).raise_for_status()
        requests.get(f"http://127.0.0.1:{self.port}/internal/force_flush", timeout=60)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

    def _lines(self) -> Iterator[str]:
        rows = self.store.query(_HOURS).iter_rows(named=True)
        for labels, row in zip(gpu_labels(), rows, strict=True):
            row["gpu_usd"] = [hours * _USD_PER_HOUR[labels["fleet"]] for hours in row["gpu_usd"]]
            self.samples += len(METRICS) * SCRAPES_PER_HOUR * len(row["t_ms"])
            times = ",".join(str(hour_ms + middle) for hour_ms in row["t_ms"] for middle in _MIDDLES_MS)
            yield "\n".join(_line({"__name__": name, **labels}, row[name], times) for name in METRICS)

    def by_day(self, metric: str) -> dict[str, list[float]]:
        """By fleet, the sum of each day."""
        asked = {
            "query": f"sum by (fleet) (sum_over_time({metric}[1d]))", "step": "1d", "nocache": "1",
            "start": str(int(FIRST_DAY.timestamp()) + 86_400), "end": str(int(LAST_DAY.timestamp())),
        }  # fmt: skip
        answer = requests.get(f"{self._url}/query_range", params=asked, timeout=60).json()
        return {
            one["metric"]["fleet"]: [float(value) for _, value in one["values"]] for one in answer["data"]["result"]
        }

    def difference(self) -> float:
        """By how much its tokens and joules differ from ours, relative."""
        worst = 0.0
        for line in ours_by_day(self.store)["lines"]:
            for metric, factor in (("gpu_tokens", 1.0), ("gpu_joules", 3.6e6)):
                ours = line["figures"][METRICS[metric]]["values"]
                theirs = self.by_day(metric)[line["key"]["fleet"]]
                worst = max(
                    worst, *(abs(factor * one / other - 1) for one, other in zip(ours, theirs, strict=True))
                )  # fmt: skip
        return worst


def peer_by_day(peer: Peer) -> Mapping[str, Any]:
    return {metric: peer.by_day(metric) for metric in METRICS}


def _line(metric: Mapping[str, str], of_hours: Sequence[float], times: str) -> str:
    """A line to import: of each hour's sum so many equal parts."""
    values = ",".join(",".join([repr(of_hour / SCRAPES_PER_HOUR)] * SCRAPES_PER_HOUR) for of_hour in of_hours)
    return f'{{"metric":{json.dumps(metric)},"values":[{values}],"timestamps":[{times}]}}'
