"""Question: what does each fleet and replica do at this moment, what does it cost, and which one is off?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from app.accounting.balance import Balance, Observation, judge
from app.accounting.latency import quantile
from app.answers.figures import as_json, ttft_as_json
from app.answers.live_findings import judged_state, live_findings
from app.answers.live_fleets import fleet_as_json
from app.answers.replicas import BASIS, BOUNDARY, LiveGpu, Replica, live_gpus, live_replicas
from app.config import Config
from app.store.database import Store
from app.store.facts import fact_book
from app.store.live import BIN_S, LiveRows, LiveWindow, history_bounds_us, live_rows

WINDOW_S = 60
WINDOWS_S = (10, 900)  # the shortest and the longest that can be asked for
TTFT_WINDOW_S = 300
_WORST_FIRST = ("down", "silent", "slow", "unbalanced", "ok")


def live(store: Store, config: Config, now: datetime, *, window_s: int = WINDOW_S) -> dict[str, Any]:
    """Fleets, replicas and GPUs without an engine, as of `now`; replicas the worst first, with what was found of them.

    Rates and power are those of the newest `window_s` seconds of each replica, latencies and the comparison of like
    replicas those of the newest TTFT_WINDOW_S. Tokens: prompt + generated. Power: GPUs without their host.
    """
    window = LiveWindow(now, window_s, TTFT_WINDOW_S)
    rows = live_rows(store, window)
    gpus = live_gpus(rows, config, window, fact_book(store))
    replicas = live_replicas(rows, gpus, window)
    balance = judge(_observation(one) for one in replicas if one.state == "ok")
    named = {one.fleet for one in replicas} | {gpu.fleet for gpu in gpus}
    answers = [_replica(one, balance) for one in replicas]
    fleets = [fleet_as_json(name, replicas, gpus, balance) for name in sorted(named, key=_fleet_order)]
    return {
        "generated_at": now.isoformat(),
        "window_s": window_s,
        "ttft_window_s": TTFT_WINDOW_S,
        "basis": BASIS,
        "boundary": BOUNDARY,
        "host_w_per_gpu": 0.0,
        "cost_view": "bill",
        "simulated": any(one.row["simulated"] for one in replicas) or any(gpu.simulated for gpu in gpus),
        "methods": _methods(fleets),
        "fleets": fleets,
        "replicas": sorted(answers, key=_badness),
        "unallocated": [_unallocated(gpu, replicas) for gpu in gpus if not gpu.engines],
        "not_judged": [_not_judged(one.like, one.replicas, one.reason) for one in balance.not_judged],
        "findings": live_findings(replicas, balance),
        "history": _history(rows, window),
    }


def _observation(one: Replica) -> Observation:
    row = one.row
    ended, seconds = row["long_ended"], row["long_ended_s"] or 0.0
    median = quantile(one.ttft, 50)
    return Observation(
        replica=one.name,
        like=one.like,
        first_tokens=median.n,
        ttft_s=median.value_s,
        tokens_per_request_s=row["long_tokens_per_request_s"],
        requests_per_s=ended / seconds if ended is not None and seconds else None,
        seen_s=seconds,
    )


def _fleet_order(name: str | None) -> tuple[bool, str]:
    """By name; what belongs to no fleet is last."""
    return name is None, name or ""


def _badness(answer: dict[str, Any]) -> tuple[Any, ...]:
    slowness = answer["ttft_p50_ms"]["value"] or 0.0
    return _WORST_FIRST.index(answer["state"]), -slowness, answer["replica"]


def _replica(one: Replica, balance: Balance) -> dict[str, Any]:
    row = one.row
    return {
        "replica": one.name,
        "state": judged_state(one, balance),
        "reason": one.reason,
        "fleet": one.fleet,
        "node": row["node"],
        "url": row["url"],
        "label": row["label"],
        "model": row["model"],
        "kind": row["kind"],
        "version": row["version"],
        "simulated": row["simulated"],
        "gpus": row["uuids"],
        "cards": None if one.gpus is None else sorted(gpu.name for gpu in one.gpus),
        "price_source": "; ".join(sorted({gpu.price_source for gpu in one.gpus or ()})) or None,
        "last_seen": row["last_seen"].isoformat(),
        "from": _moment(row["start_us"]),
        "to": _moment(row["end_us"]),
        **{name: as_json(figure) for name, figure in one.figures.items()},
        **ttft_as_json(one.ttft, one.ttft_reason, row["simulated"]),
        "deviations": [
            {
                "quantity": found.quantity,
                "value": found.value,
                "peers_median": found.peers_median,
                "peers": found.peers,
                "factor": found.factor,
            }
            for found in balance.deviations
            if found.replica == one.name
        ],
    }


def _methods(fleets: Iterable[dict[str, Any]]) -> list[str]:
    """How the fleets' figures were got."""
    figures = [part for one in fleets for part in one.values() if isinstance(part, dict)]
    return sorted({figure["method"] for figure in figures if figure["value"] is not None})


def _unallocated(gpu: LiveGpu, replicas: Iterable[Replica]) -> dict[str, Any]:
    unclear = sorted(one.name for one in replicas if one.gpus is None and one.row["node"] == gpu.node)
    return {
        "node": gpu.node,
        "gpu": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "fleet": gpu.fleet,
        "simulated": gpu.simulated,
        "power_w": as_json(gpu.power_w),
        "usd_per_hour": as_json(gpu.usd_per_hour),
        "why": f"it may be one of {', '.join(unclear)}, whose GPUs are not known" if unclear else "no engine on it",
    }


def _not_judged(like: Any, replicas: int, reason: str) -> dict[str, Any]:
    fleet, model, card, gpus = like
    return {"fleet": fleet or None, "model": model or None, "card": card or None, "gpus": gpus, "replicas": replicas,
            "reason": reason}  # fmt: skip


def _history(rows: LiveRows, window: LiveWindow) -> dict[str, Any]:
    """Tokens/s by fleet over the last quarter of an hour; None where no engine of it has a sample."""
    first_us, end_us = history_bounds_us(window.at_us)
    bins = range(first_us, end_us, BIN_S * 1_000_000)
    by_fleet: dict[str | None, dict[int, float]] = {}
    for row in rows.history:
        by_fleet.setdefault(row["fleet"], {})[row["bin_us"]] = row["tokens_per_s"]
    return {
        "bin_s": BIN_S,
        "from": [_moment(start_us) for start_us in bins],
        "fleets": [
            {"fleet": name, "tokens_per_s": [values.get(start_us) for start_us in bins]}
            for name, values in by_fleet.items()
        ],
    }


def _moment(us: int | None) -> str | None:
    return None if us is None else datetime.fromtimestamp(us / 1e6, UTC).isoformat()
