"""Replicas and GPUs of the last minutes as figures, from raw rows: what the Live page's fleets are made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal
from urllib.parse import urlsplit

from app import units
from app.accounting.cost import Rate
from app.accounting.energy import Boundary
from app.accounting.figure import Figure, missing, total, weakest
from app.accounting.latency import Bucket, merged
from app.accounting.rates import (
    gpu_usd_per_hour,
    mean_power_w,
    per_second,
    tokens_per_joule_now,
    usd_per_mtok_now,
)
from app.answers.findings import duration
from app.answers.terms import fleet_terms
from app.config import Config
from app.facts.book import FactBook
from app.store.live import FRESH_S, LiveRows, LiveWindow

BASIS: Literal["total"] = "total"
BOUNDARY: Boundary = "it"
# Past such a silence nobody knows whether a GPU is still there and paid for (design section 4, Provisioned).
GAP_TOLERANCE_S = 600.0

State = Literal["ok", "silent", "down"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class LiveGpu:
    """engines: how many are on it; live: how many of them have samples now. Those share it in equal parts.

    Without a live one the others share it: one that ended and began again elsewhere takes no part of what runs now.
    """

    uuid: str
    name: str
    index: int
    node: str
    fleet: str | None
    simulated: bool
    power_w: Figure
    usd_per_hour: Figure
    price_source: str
    slowed_share: float | None
    engines: int
    live: int


@dataclass(frozen=True)
class Replica:
    """One engine with its GPUs. reason: why it has no figures. gpus: None when not known; of them, those measured.

    tokens_per_s, power_w and usd_per_hour are the parts of its fleet's ratios; figures: all, by name.
    """

    name: str
    row: Row
    state: State
    reason: str | None
    gpus: tuple[LiveGpu, ...] | None
    figures: Mapping[str, Figure]
    ttft: Sequence[Bucket]
    ttft_reason: str

    @property
    def fleet(self) -> str | None:
        fleet: str | None = self.row["fleet"]
        return fleet

    @property
    def like(self) -> tuple[Any, ...]:
        """Replicas that can be compared: the same model on the same fleet, cards and number of them."""
        cards = tuple(sorted(gpu.name for gpu in self.gpus)) if self.gpus else ()
        return self.fleet or "", self.row["model"] or "", cards[0] if cards else "", len(self.row["uuids"] or ())


def engine_name(node: str, url: str, label: str) -> str:
    """E.g. "rack1-node7:8000", "rack1-node7:8000/1" for the second engine of one URL, "hub 10.0.0.7:8000"."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    is_own = host in ("", "localhost", "::1", node.lower()) or host.startswith("127.")
    place = f"{node}{port}" if is_own else f"{node} {host}{port}"
    return f"{place}/{label}" if label else place


def engine_names(rows: Sequence[Row]) -> list[str]:
    """The engines' names, each its own: where the short ones are alike, with the model; else in full."""
    names = [engine_name(row["node"], row["url"], row["label"]) for row in rows]
    by_model = [f"{name} ({row['model'] or 'no model'})" for row, name in zip(rows, names, strict=True)]
    full = [f"{row['node']} {row['url']}{row['label'] and '/'}{row['label']} ({row['model']})" for row in rows]
    for longer in (by_model, full):
        count = Counter(names)
        names = [long if count[name] > 1 else name for name, long in zip(names, longer, strict=True)]
    return names


def live_gpus(rows: LiveRows, config: Config, window: LiveWindow, book: FactBook) -> list[LiveGpu]:
    @cache
    def terms(fleet: str | None, gpu_name: str) -> tuple[Rate, float]:
        """Price and PUE of the moment; looked up once for all GPUs of a name."""
        found = fleet_terms(book, config, fleet, gpu_name, window.at)
        if found.is_owned and found.usd_per_kwh is None:
            return Rate(None, found.method, found.source, reason=found.reason or found.no_tariff), found.pue
        return Rate(found.usd_per_gpu_hour, found.method, found.source, found.usd_per_kwh, found.reason), found.pue

    users = Counter(uuid for row in rows.engines for uuid in row["uuids"] or ())
    live = Counter(uuid for row in rows.engines if row["end_us"] is not None for uuid in row["uuids"] or ())
    return [
        _gpu(row, window, *terms(row["fleet"], row["name"]), engines=users[row["uuid"]], live=live[row["uuid"]])
        for row in rows.gpus
    ]


def _gpu(row: Row, window: LiveWindow, rate: Rate, pue: float, *, engines: int, live: int) -> LiveGpu:
    age_s = (window.at_us - row["last_us"]) / 1e6
    if row["window_s"] is None:
        power = missing("W", "measured", f"no sample for {duration(age_s)}")
    else:
        power = mean_power_w(row["energy_j"], row["covered_s"], row["window_s"])
    cost = gpu_usd_per_hour(rate, power, pue)
    if age_s > GAP_TOLERANCE_S:
        cost = missing("USD/h", rate.method, f"not seen for {duration(age_s)}: it may be gone")
    return LiveGpu(
        uuid=row["uuid"],
        name=row["name"],
        index=row["gpu_index"],
        node=row["node"],
        fleet=row["fleet"],
        simulated=row["simulated"],
        power_w=labelled(power, row["simulated"]),
        usd_per_hour=labelled(cost, row["simulated"]),
        price_source=rate.source,
        slowed_share=row["slowed_s"] / row["covered_s"] if row["slowed_s"] and row["covered_s"] else None,
        engines=engines,
        live=live,
    )


def live_replicas(rows: LiveRows, gpus: Iterable[LiveGpu], window: LiveWindow) -> list[Replica]:
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    named = zip(rows.engines, engine_names(rows.engines), strict=True)
    return [_replica(row, name, by_uuid, rows, window) for row, name in named]


def _replica(row: Row, name: str, by_uuid: Mapping[str, LiveGpu], rows: LiveRows, window: LiveWindow) -> Replica:
    state, reason = _state(row, window.at)
    gpus = None if row["uuids"] is None else tuple(by_uuid[uuid] for uuid in row["uuids"] if uuid in by_uuid)
    figures = _counted(row, reason) | _metered(row, gpus)
    figures["tokens_per_joule"] = tokens_per_joule_now(figures["tokens_per_s"], figures["power_w"])
    figures["usd_per_mtok"] = usd_per_mtok_now(figures["usd_per_hour"], figures["tokens_per_s"])
    silent = "no first token in this window" if row["tells_ttft"] else "not told by the engine"
    return Replica(
        name=name,
        row=row,
        state=state,
        reason=reason,
        gpus=gpus,
        figures={key: labelled(figure, row["simulated"]) for key, figure in figures.items()},
        ttft=merged(_buckets(rows.ttft.get(row["engine_id"], ()))),
        ttft_reason=reason or silent,
    )


def _state(row: Row, at: datetime) -> tuple[State, str | None]:
    """Whether it has samples now, and if not, why."""
    if row["end_us"] is not None:
        return "ok", None
    if row["status"] != "ok":
        return "down", row["status"]
    node_age_s = math.inf if row["node_seen"] is None else (at - row["node_seen"]).total_seconds()
    if node_age_s > FRESH_S:
        return "silent", f"nothing from node {row['node']} for {duration(node_age_s)}"
    age_s = (at - row["last_seen"]).total_seconds()
    if age_s > FRESH_S:
        return "silent", f"its agent has not read it for {duration(age_s)}"
    why = "it just started, its agent is catching up, or the node's clock is off"
    return "silent", f"no sample of the last {FRESH_S} s: {why}"


def _counted(row: Row, reason: str | None) -> dict[str, Figure]:
    """What the engine counts and shows itself."""
    why = reason or "not told by the engine"
    kv_usage = None if row["kv_usage_ppm"] is None else row["kv_usage_ppm"] / 1e6
    return {
        "tokens_per_s": per_second(row["tokens"], row["tokens_s"], "tokens/s", why),
        "generated_tokens_per_s": per_second(row["generated_tokens"], row["generated_s"], "tokens/s", why),
        "requests_per_s": per_second(row["finished"], row["finished_s"], "req/s", why),
        "failed_per_s": per_second(row["failed"], row["failed_s"], "req/s", why),
        "running": _gauge(row["running"], "requests", why),
        "waiting": _gauge(row["waiting"], "requests", why),
        "kv_usage": _gauge(kv_usage, "share", why),
    }


def _gauge(value: float | None, unit: str, why: str) -> Figure:
    return missing(unit, "measured", why) if value is None else Figure(value, unit, "measured")


def _metered(row: Row, gpus: Sequence[LiveGpu] | None) -> dict[str, Figure]:
    """Power and cost of its GPUs, each in equal parts among the engines on it."""
    if gpus is None:
        reason = "its GPUs are not known"
    elif not row["uuids"]:
        reason = "it runs on no GPU"
    elif len(gpus) < len(row["uuids"]):
        reason = f"{len(row['uuids']) - len(gpus)} of its {len(row['uuids'])} GPUs are not measured"
    elif row["end_us"] is None and any(gpu.live for gpu in gpus):
        reason = "another engine is on its GPUs now"
    else:
        return {
            "power_w": total((_part(gpu.power_w, gpu) for gpu in gpus), "W"),
            "usd_per_hour": total((_part(gpu.usd_per_hour, gpu) for gpu in gpus), "USD/h"),
        }
    return {name: missing(unit, "measured", reason) for name, unit in (("power_w", "W"), ("usd_per_hour", "USD/h"))}


def _part(figure: Figure, gpu: LiveGpu) -> Figure:
    """One replica's equal part of a GPU's figure: by a rule and not by a measurement, unless it is all of it."""
    sharers = gpu.live or gpu.engines
    if figure.value is None or sharers == 1:
        return figure
    return replace(figure, value=figure.value / sharers, method=weakest((figure.method, "estimated")))


def labelled(figure: Figure, simulated: bool) -> Figure:
    """Simulated numbers keep their label wherever they go (design law 10)."""
    return replace(figure, method=weakest((figure.method, "simulated"))) if simulated else figure


def _buckets(rows: Iterable[tuple[int, int | None, int]]) -> Iterable[Bucket]:
    for lower_us, upper_us, n in rows:
        upper_s = math.inf if upper_us is None else units.seconds_of_us(upper_us)
        yield Bucket(units.seconds_of_us(lower_us), upper_s, n)
