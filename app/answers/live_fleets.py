"""Fleets of a moment: sums of replicas and GPUs, ratios of sums, quantiles of merged buckets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from app.accounting.balance import Balance
from app.accounting.figure import Figure, missing, total
from app.accounting.latency import merged
from app.accounting.rates import sum_of_known, tokens_per_joule_now, usd_per_mtok_now
from app.answers.figures import as_json, ttft_as_json
from app.answers.live_findings import judged_state
from app.answers.replicas import LiveGpu, Replica, labelled

_SUMS = {
    "tokens_per_s": "tokens/s", "generated_tokens_per_s": "tokens/s", "requests_per_s": "req/s",
    "failed_per_s": "req/s", "running": "requests", "waiting": "requests",
}  # fmt: skip


def fleet_as_json(
    name: str | None, replicas: Sequence[Replica], gpus: Sequence[LiveGpu], balance: Balance
) -> dict[str, Any]:
    """The fleet `name` of all replicas and GPUs."""
    mine = [one for one in replicas if one.fleet == name]
    cards = [gpu for gpu in gpus if gpu.fleet == name]
    idle = [gpu for gpu in cards if not gpu.engines]
    simulated = any(one.row["simulated"] for one in mine) or any(gpu.simulated for gpu in cards)
    no_ttft = mine[0].ttft_reason if mine else "no engine"
    return {
        "fleet": name,
        "simulated": simulated,
        "models": sorted({one.row["model"] for one in mine if one.row["model"]}),
        "cards": sorted({gpu.name for gpu in cards}),
        "gpus": len(cards),
        "replicas": len(mine),
        "live": sum(one.state == "ok" for one in mine),
        "off": [{"replica": one.name, "state": state} for one in mine if (state := judged_state(one, balance)) != "ok"],
        **{key: as_json(sum_of_known((one.figures[key] for one in mine), unit, "no engine")) for key, unit in
           _SUMS.items()},
        **ttft_as_json(merged(bucket for one in mine for bucket in one.ttft), no_ttft, simulated),
        "power_w": as_json(sum_of_known((gpu.power_w for gpu in cards), "W", "no GPU is measured")),
        "usd_per_hour": as_json(sum_of_known((gpu.usd_per_hour for gpu in cards), "USD/h", "no GPU is known")),
        **{key: as_json(labelled(figure, simulated)) for key, figure in _ratios(mine, cards).items()},
        "unallocated_gpus": len(idle),
        "unallocated_power_w": as_json(sum_of_known((gpu.power_w for gpu in idle), "W", "no such GPU")),
        "unallocated_usd_per_hour": as_json(sum_of_known((gpu.usd_per_hour for gpu in idle), "USD/h", "no such GPU")),
        "price_source": "; ".join(sorted({gpu.price_source for gpu in cards})) or None,
    }  # fmt: skip


def _ratios(replicas: Sequence[Replica], gpus: Sequence[LiveGpu]) -> dict[str, Figure]:
    """Tokens per joule and USD per Mtok of a fleet, over one set of tokens and GPUs (design law 3).

    The set: live replicas of which tokens and power are known, and GPUs that no live replica uses, idle ones too. Left
    out are the GPUs whose tokens are not known: of other live replicas, and on nodes where it is not known which GPUs
    an engine uses. The figures' coverage is the share of live replicas in the set.
    """
    live = [one for one in replicas if one.state == "ok"]
    known = [one for one in live if None not in (one.figures["tokens_per_s"].value, one.figures["power_w"].value)]
    if 2 * len(known) < len(live) or not known:
        reason = _why_not(live, len(known))
        return {"tokens_per_joule": missing("tokens/J", "measured", reason),
                "usd_per_mtok": missing("USD/Mtok", "measured", reason)}  # fmt: skip
    spare = _spare(gpus, unclear={one.row["node"] for one in live if one.gpus is None})
    tokens = total((one.figures["tokens_per_s"] for one in known), "tokens/s")
    power = total([*(one.figures["power_w"] for one in known), *(gpu.power_w for gpu in spare)], "W")
    cost = total([*(one.figures["usd_per_hour"] for one in known), *(gpu.usd_per_hour for gpu in spare)], "USD/h")
    share = len(known) / len(live)
    found = {"tokens_per_joule": tokens_per_joule_now(tokens, power), "usd_per_mtok": usd_per_mtok_now(cost, tokens)}
    return {key: replace(figure, coverage=share) for key, figure in found.items()}


def _spare(gpus: Iterable[LiveGpu], unclear: set[str]) -> list[LiveGpu]:
    """GPUs of known power that no live replica uses; none without an engine on `unclear` nodes."""
    return [
        gpu for gpu in gpus
        if gpu.power_w.value is not None and not gpu.live and (gpu.engines or gpu.node not in unclear)
    ]  # fmt: skip


def _why_not(live: Sequence[Replica], known: int) -> str:
    if not live:
        return "no replica has samples now"
    figures = [one.figures[name] for one in live for name in ("tokens_per_s", "power_w")]
    first = next(figure.reason for figure in figures if figure.value is None)
    return f"tokens and power are known of {known} of {len(live)} replicas; the first other one: {first}"
