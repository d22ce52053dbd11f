"""A thousand GPUs of three fleets, made up: 640 rented H100s in two regions, one of them paid in EUR, and 360 owned
4090s with a tariff by the clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.config import Config

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
DAYS = 30
# Pages ask for ranges up to now.
NOW = datetime.now(UTC).replace(second=0, microsecond=0)
NOW_US = int(NOW.timestamp()) * 1_000_000
FIRST_US = NOW_US // HOUR_US * HOUR_US - DAYS * DAY_US
MODEL_14B, MODEL_32B = "org/chat-14b", "org/office-32b"
H100, RTX_4090 = "NVIDIA H100 80GB HBM3", "NVIDIA GeForce RTX 4090"
GPU_COUNT = 1_000

CONFIG = Config.model_validate(
    {
        "fleet": [
            {"name": "h100-east", "gpu": H100, "zone": "DE", "pue": 1.2, "host_w_per_gpu": 60,
             "price": {"plan": "rented", "usd_per_gpu_hour": 2.2}},
            {"name": "h100-west", "gpu": H100, "zone": "EU27", "pue": 1.3, "host_w_per_gpu": 60,
             "price": {"plan": "rented", "currency": "EUR", "per_gpu_hour": 1.9}},
            {"name": "rtx4090", "gpu": RTX_4090, "zone": "ES",
             "price": {"plan": "owned", "purchase_usd": 1800, "residual_usd": 500, "life_years": 3,
                       "tariff": {"per_kwh": 0.14, "tz": "Europe/Madrid",
                                  "rules": [{"days": "mon-fri", "from": "10:00", "to": "14:00", "per_kwh": 0.24},
                                            {"days": "mon-fri", "from": "18:00", "to": "22:00", "per_kwh": 0.24}]}}},
        ],
        "node": [{"match": "east-*", "fleet": "h100-east"}, {"match": "west-*", "fleet": "h100-west"},
                 {"match": "home-*", "fleet": "rtx4090"}],
        "exchange_rate": [{"currency": "EUR", "usd_per_unit": 1.1}],
        "slo": [{"model": MODEL_14B, "max_ms": 250}],
    }
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """Rows of nodes, GPUs and engines; engines with their GPUs, a power and a rate."""

    nodes: list[dict[str, Any]]
    gpus: list[dict[str, Any]]
    engines: list[dict[str, Any]]


def gpu_labels() -> list[dict[str, str]]:
    """What a Prometheus would have as labels of each GPU, in order of gpu_id."""
    made = make()
    nodes = {one["node_id"]: one["name"] for one in made.nodes}
    models = {gpu: one["model"] for one in made.engines for gpu in one["gpu_ids"]}
    fleets = {"east": "h100-east", "west": "h100-west", "home": "rtx4090"}
    return [
        {"gpu": one["uuid"], "node": nodes[one["node_id"]], "fleet": fleets[nodes[one["node_id"]][:4]],
         "model": models.get(one["gpu_id"], "")}
        for one in made.gpus
    ]  # fmt: skip


def make() -> Made:
    nodes: list[dict[str, Any]] = []
    gpus: list[dict[str, Any]] = []
    engines: list[dict[str, Any]] = []
    for number in range(80):
        region = ("east", "west")[number % 2]
        cards = _add_node(nodes, gpus, f"{region}-{number // 2:03}", H100, 8)
        for index, card in enumerate(cards):
            if not (index == 7 and number % 10 == 0):  # a GPU with no engine here and there
                model, rate = (MODEL_32B, 1.6) if index >= 6 else (MODEL_14B, 5.0)
                _add_engine(engines, nodes[-1], model, rate, [card])
    for number in range(180):
        cards = _add_node(nodes, gpus, f"home-{number:03}", RTX_4090, 2)
        _add_engine(engines, nodes[-1], MODEL_14B, 3.0, cards)
    assert len(gpus) == GPU_COUNT
    return Made(nodes, gpus, engines)


def _add_node(nodes: list[Any], gpus: list[Any], name: str, card: str, count: int) -> list[dict[str, Any]]:
    nodes.append({"node_id": len(nodes) + 1, "name": name})
    is_h100 = card == H100
    cards = [
        {"gpu_id": len(gpus) + index + 1, "uuid": f"{name}-{index}", "node_id": len(nodes), "name": card,
         "gpu_index": index, "idle_w": 90.0 if is_h100 else 55.0, "loaded_w": 480.0 if is_h100 else 260.0}
        for index in range(count)
    ]  # fmt: skip
    gpus += cards
    return cards


def _add_engine(engines: list[Any], node: dict[str, Any], model: str, rate: float, cards: list[dict[str, Any]]) -> None:
    number = len(engines) + 1
    engines.append(
        {"engine_id": number, "node_id": node["node_id"], "url": f"http://{node['name']}:{8000 + number}/metrics",
         "model": model, "rate": rate, "gpu_ids": [one["gpu_id"] for one in cards],
         "uuids": [one["uuid"] for one in cards],
         "labels": json.dumps({"team": ("search", "support", "labs")[number % 3]})}
    )  # fmt: skip
