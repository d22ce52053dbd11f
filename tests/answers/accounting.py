"""A store of hand-worked hours for tests of accounts: two fleets, prices, and rows of a minute each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from app.answers.facts import take_over
from app.answers.query import AccountQuery
from app.answers.summary import Answer, series, summary
from app.config import Config
from app.facts.fact import Fact
from app.facts.kinds import FactValue, Kind
from app.store.database import Store
from app.store.facts import append_facts
from tests.batches import CARD, HOUR, MINUTE, T0, Clock, Row, at, put, writing
from tests.store.test_rollup import AFTER, roll_up_all

START = at(T0)
NOW = at(AFTER + 2 * HOUR)
HOME_CARD = "NVIDIA GeForce RTX 4090"
SETTINGS: dict[str, Any] = {
    "fleet": [
        {"name": "h100", "gpu": CARD, "zone": "EU27", "pue": 1.2,
         "price": {"plan": "rented", "usd_per_gpu_hour": 2.0}},
        {"name": "home", "gpu": "*RTX 4090", "zone": "EU27",
         "price": {"plan": "owned", "purchase_usd": 1752, "life_years": 2, "tariff_usd_per_kwh": 0.2}},
    ],
    "node": [{"match": "node-*", "fleet": "h100"}, {"match": "desk-*", "fleet": "home"}],
}  # fmt: skip
CONFIG = Config.model_validate(SETTINGS)
EU27_G_PER_KWH = 213.02


def minutes_of(watts: int, count: int = 60, first: int = 0, **values: Any) -> list[Row]:
    """A row a minute at a constant power, by the counter."""
    return [
        {"t_us": T0 + (first + number + 1) * MINUTE, "dt_us": MINUTE, "energy_mj": watts * 60_000, **values}
        for number in range(count)
    ]


def served(count: int = 60, first: int = 0, **values: Any) -> list[Row]:
    """A scrape a minute: 100 prompt and 50 generated tokens, one request."""
    known = {
        "prompt_tokens": 100, "generated_tokens": 50, "finished_stop": 1, "finished_length": 0, "finished_failed": 0,
        "running": 1,
    }  # fmt: skip
    return [{"t_us": T0 + (first + number + 1) * MINUTE, "dt_us": MINUTE, **known, **values} for number in range(count)]


def idle(count: int = 60, first: int = 0, **values: Any) -> list[Row]:
    nothing = {"prompt_tokens": 0, "generated_tokens": 0, "finished_stop": 0, "running": 0}
    return served(count, first, **{**nothing, **values})


def take(store: Store, *sent: Any, config: Config = CONFIG) -> None:
    """Batches through the writer and the rollups, with the settings' facts known an hour later."""
    with writing(store, Clock(AFTER), raw_days=3000) as taking:
        for one in sent:
            put(taking, one)
    roll_up_all(store)
    take_over(store, config, at(AFTER + HOUR))


def know(
    store: Store, kind: Kind, subject: str, value: FactValue | None, minute: int = 0, known_at: datetime = NOW
) -> None:
    """A fact valid from that minute after T0."""
    fact = Fact(kind, subject, START + timedelta(minutes=minute), known_at, "a contract", value)
    append_facts(store, [fact])


def asked(first: int = 0, minutes: int = 60, **said: Any) -> AccountQuery:
    """[first, first + minutes) after T0."""
    start = START + timedelta(minutes=first)
    return AccountQuery(start, start + timedelta(minutes=minutes), **said)


def summed(store: Store, first: int = 0, minutes: int = 60, *, config: Config = CONFIG, **said: Any) -> Answer:
    return summary(store, config, asked(first, minutes, **said), NOW)


def stepped(store: Store, first: int = 0, minutes: int = 60, *, config: Config = CONFIG, **said: Any) -> Answer:
    return series(store, config, asked(first, minutes, **said), NOW)


def value(line: Answer, name: str) -> float:
    figure = line["figures"][name]
    assert figure["value"] is not None, figure["reason"]
    return float(figure["value"])


def values(line: Answer, names: Sequence[str]) -> list[float]:
    return [value(line, name) for name in names]
