"""Small fleets by chance: two to four GPUs with gaps and resets, engines that share and move, facts that change.

What is random comes from one seed, so that a failing example is told by a number.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from app.config import Config
from app.facts.fact import Fact
from app.store.database import Store
from app.store.facts import append_facts
from app.store.grid import append_points
from collectors.grid.point import IntensityPoint
from tests.batches import HOUR, MINUTE, SECOND, Clock, Row, at, batch, engine, gpu, put, uuid_of, writing
from tests.facts.builders import EVER, by_clock, fact, flat, owned, rented
from tests.grid_points import to_come, value
from tests.store.test_rollup import roll_up_all

# A stretch of the year each: an ordinary day, and the hours in which clocks change in Madrid, Los Angeles, Lord Howe.
STARTS = tuple(
    datetime(2026, *moment, tzinfo=UTC)
    for moment in ((2, 3, 4), (3, 8, 8), (3, 28, 22), (4, 4, 13), (10, 24, 21), (10, 25, 0), (11, 1, 6))
)
MODELS = ("m-14b", "m-32b")
CARDS = ("NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090")
LONG_AFTER = timedelta(days=2)
CONFIG = Config.model_validate(
    {
        "zone": [{"name": f"zone-{grams}", "g_per_kwh": grams, "basis": "lifecycle", "source": "a test"}
                 for grams in (50, 400)] + [{"name": "direct", "g_per_kwh": 90, "basis": "direct", "source": "a test"}],
        "fleet": [{"name": "alpha", "gpu": CARDS[0], "host_w_per_gpu": 40.0}, {"name": "beta", "gpu": CARDS[1]}],
    }
)  # fmt: skip


T = TypeVar("T")


@dataclass
class World:
    """[start, end): the time of which there are samples. thorough: whether `some` means all."""

    store: Store
    rng: random.Random
    start: datetime
    end: datetime
    nodes: Sequence[str]
    thorough: bool = False

    def some(self, things: Sequence[T], count: int) -> Sequence[T]:
        """So many of them, by chance."""
        return things if self.thorough else self.rng.sample(things, count)

    @property
    def now(self) -> datetime:
        return self.end + LONG_AFTER

    def moment(self) -> datetime:
        """Any second within."""
        seconds = int((self.end - self.start).total_seconds())
        return self.start + timedelta(seconds=self.rng.randrange(1, seconds))

    def minute(self) -> datetime:
        return self.moment().replace(second=0)


def world(folder: Path, seed: int, hours: int, *, thorough: bool = False) -> World:
    """A store with a fleet's samples, rolled up, and its facts."""
    rng = random.Random(seed)
    start = rng.choice(STARTS) + timedelta(minutes=rng.randrange(60))
    cards = rng.choice(((2,), (1, 1), (1, 2), (2, 2), (3, 1)))
    nodes = [f"node-{number}" for number in range(len(cards))]
    store = Store.open(folder / f"{uuid.uuid4().hex}.duckdb")
    made = World(store, rng, start, start + timedelta(hours=hours), nodes, thorough)
    _take(made, dict(zip(nodes, cards, strict=True)))
    append_facts(made.store, _facts(made), only_news=False)
    append_points(made.store, _intensities(made))
    return made


def later_facts(made: World, valid_from: datetime, known_at: datetime) -> list[Fact]:
    """What somebody learns afterwards: of everything something else, from then on."""
    rng = made.rng
    news = {
        ("price", "alpha"): rented(rng.uniform(3, 9), currency=rng.choice(["USD", "EUR"])),
        ("price", "beta"): rng.choice([owned(purchase=20_000.0), rented(rng.uniform(3, 9))]),
        ("tariff", "beta"): flat(rng.uniform(0.5, 1)),
        ("pue", "*"): {"pue": rng.uniform(1.5, 2)},
        ("zone", "alpha"): {"zone": "zone-50"},
        ("exchange_rate", "EUR"): {"usd_per_unit": rng.uniform(2, 3)},
        ("slo", MODELS[0]): {"max_ms": 100.0},
        ("embodied", "*"): {"life_years": 6.0},
        ("embodied", "beta"): {"method": "user", "kg_per_gpu": rng.uniform(100, 200)},
        ("market_factor", "alpha"): {"g_per_kwh": rng.uniform(1, 9)},
        **{("membership", node): {"fleet": rng.choice(["alpha", "beta", "gamma"])} for node in made.nodes},
    }
    return [fact(kind, subject, value, valid_from, known_at) for (kind, subject), value in news.items()]  # type: ignore[arg-type]


def add_late_samples(made: World) -> None:
    """Two hours of a node that was not heard of before."""
    rows = list(_gpu_rows(random.Random(1), made.start, made.start + timedelta(hours=2)))
    _put(made, [batch(node="late", gpus=[gpu("late")], rows=rows)])


def _take(made: World, cards: dict[str, int]) -> None:
    """The samples in three parts, each with engines of its own on the GPUs; in any order, rolled up in between."""
    rng = made.rng
    thirds = [made.start + (made.end - made.start) * part / 3 for part in range(4)]
    sent = []
    for node, count in cards.items():
        gpus = [gpu(node, index, name=CARDS[made.nodes.index(node) % 2]) for index in range(count)]
        rows = [row | {"gpu": index} for index in range(count) for row in _gpu_rows(rng, made.start, made.end)]
        scrapes = [row | {"engine": number} for number in range(2) for row in _engine_rows(rng, made.start, made.end)]
        for low, high in pairwise(thirds):
            part = [list(_between(of, low, high)) for of in (rows, scrapes)]
            if any(part):
                sent.append({"node": node, "gpus": gpus, "engines": _engines(rng, node, count), "rows": part[0],
                             "engine_rows": part[1]})  # fmt: skip
    if rng.random() < 0.5:
        rng.shuffle(sent)
    _put(made, [batch(number, **said) for number, said in enumerate(sent, 1)])


def _put(made: World, sent: Sequence[Any]) -> None:
    now_us = _us(made.now)
    with writing(made.store, Clock(now_us), raw_days=3000) as writer:
        for one in sent:
            put(writer, one)
            if made.rng.random() < 0.3:
                roll_up_all(made.store, _us(made.start) + made.rng.randrange(6 * HOUR))
    roll_up_all(made.store, now_us)


def _engines(rng: random.Random, node: str, cards: int) -> list[Any]:
    """Two engines, on any GPUs of the node: the same ones, several, or not known which."""
    placed = [rng.sample(range(cards), rng.randrange(1, cards + 1)) for _ in range(2)]
    return [
        engine(
            url=f"http://{node}:{8000 + number}/metrics",
            model=MODELS[number if rng.random() < 0.9 else 0],
            gpus=None if rng.random() < 0.1 else [uuid_of(node, index) for index in on],
            labels={"team": f"team-{number}"} if number else {},
        )
        for number, on in enumerate(placed)
    ]


def _gpu_rows(rng: random.Random, start: datetime, end: datetime) -> Iterator[Row]:
    """Samples of up to a minute, resets without an energy, bridged gaps with and without one, and holes."""
    t_us = _us(start)
    while t_us < _us(end) - MINUTE:
        kind = rng.choices(("row", "reset", "gap", "hole"), (30, 2, 1, 1))[0]
        dt_us = rng.choice((MINUTE, MINUTE, rng.randrange(SECOND, MINUTE)))
        if kind in ("gap", "hole"):
            dt_us = min(rng.randrange(1, 30 * MINUTE), _us(end) - t_us)
        t_us += dt_us
        if kind == "hole":
            continue
        mean_w = rng.choice((60, 300)) * rng.uniform(0.9, 1.1)
        lacks = kind == "reset" or (kind == "gap" and rng.random() < 0.3)
        yield {
            "t_us": t_us, "dt_us": dt_us, "energy_mj": None if lacks else round(mean_w * dt_us / 1e3),
            "energy_method": "bridged" if kind == "gap" else "counter", "thermal_slowdown": rng.random() < 0.1,
        }  # fmt: skip


def _engine_rows(rng: random.Random, start: datetime, end: datetime) -> Iterator[Row]:
    t_us = _us(start)
    while t_us < _us(end) - MINUTE:
        dt_us = rng.choice((MINUTE, rng.randrange(SECOND, MINUTE)))
        if rng.random() < 0.02:
            dt_us = min(rng.randrange(MINUTE, 40 * MINUTE), _us(end) - t_us)
        t_us += dt_us
        busy = rng.random() < 0.6
        finished = rng.randrange(5) if busy else 0
        yield {
            "t_us": t_us, "dt_us": dt_us, "running": int(busy), "prompt_tokens": rng.randrange(4000) * busy,
            "cached_tokens": 0, "generated_tokens": rng.randrange(4000) * busy, "finished_stop": finished,
            "finished_length": 0, "finished_aborted": rng.randrange(2) * busy, "prefill_us": rng.randrange(10**6),
            "decode_us": rng.randrange(10**7), "ttft_buckets": [finished, 0, rng.randrange(3) * busy, 0],
        }  # fmt: skip


def _facts(made: World) -> list[Fact]:
    """Of two fleets, all known since ever: a rented one and an owned one, with changes at any second."""
    rng = made.rng
    in_service = rng.choice((None, made.start - timedelta(days=3), made.minute()))
    served = {"purchase": 20_000.0, "residual": 5_000.0, "fixed_per_hour": 0.01}
    dates = {} if in_service is None else {"in_service": in_service.isoformat()}
    increment = rng.choice((0, 0, 60, 3600))
    rules = ("all", "00:00", "07:30", rng.uniform(-0.1, 0.1)), ("mon-fri", "18:00", "22:00", rng.uniform(0.2, 0.4))
    given: list[tuple[Any, str, Any, datetime]] = [
        ("price", "alpha", rented(2.0, billing_increment_s=increment), EVER),
        ("price", "alpha", rented(rng.uniform(1, 3), currency="EUR", billing_increment_s=increment), made.moment()),
        ("price", "beta", owned(**served, **dates), EVER),
        ("tariff", "beta", by_clock(0.15, *rules, tz=rng.choice(("Europe/Madrid", "America/Los_Angeles"))), EVER),
        ("tariff_hour", "beta", {"per_kwh": -0.05}, made.moment().replace(minute=0, second=0)),
        ("exchange_rate", "EUR", {"usd_per_unit": 1.1}, EVER),
        ("exchange_rate", "EUR", {"usd_per_unit": 1.2}, made.moment()),
        ("pue", "*", {"pue": 1.2}, EVER),
        ("pue", "beta", {"pue": 1.4}, made.moment()),
        ("zone", "*", {"zone": "zone-400"}, EVER),
        ("zone", "beta", {"zone": "zone-50"}, made.moment()),
        ("slo", MODELS[0], {"max_ms": 50.0}, EVER),
    ]
    for number, node in enumerate(made.nodes):
        given.append(("membership", node, {"fleet": ("alpha", "beta")[number % 2]}, EVER))
        if rng.random() < 0.5:
            given.append(("membership", node, {"fleet": rng.choice(("alpha", "beta", "gamma"))}, made.moment()))
    return [fact(*one) for one in given + _carbon_facts(made)]


def _carbon_facts(made: World) -> list[tuple[Any, str, Any, datetime]]:
    """Of two bases in some worlds, with suppliers of one fleet or of both, and cards that are sunk from some moment."""
    rng = made.rng
    given: list[tuple[Any, str, Any, datetime]] = [
        ("embodied", "*", {"life_years": 5.0}, EVER),
        ("embodied", "alpha", {"method": "user", "kg_low": 100.0, "kg_per_gpu": 200.0, "kg_high": 600.0}, EVER),
        ("embodied", "alpha", {"method": "user", "kg_per_gpu": 300.0}, made.moment()),
        ("market_factor", "alpha", {"g_per_kwh": 30.0}, EVER),
    ]
    if rng.random() < 0.5:
        given.append(("market_factor", "beta", {"g_per_kwh": 60.0}, rng.choice((EVER, made.moment()))))
    if rng.random() < 0.5:
        given.append(("embodied", "beta", {"policy": "sunk"}, made.moment()))
    if rng.random() < 0.3:
        given.append(("zone", "alpha", {"zone": "direct"}, rng.choice((EVER, made.moment()))))
    return given


def _intensities(made: World) -> Iterator[IntensityPoint]:
    """Of some hours of both lifecycle zones, or of half of them: measured, estimated or forecast.

    In some worlds one zone's provider tells direct factors from some hour on, or does not say what its are.
    """
    rng, known_at = made.rng, made.end + timedelta(hours=1)
    other, changes_at = rng.choice(("lifecycle", "direct", "provider")), made.moment()
    hours = int((made.end - made.start) / timedelta(hours=1)) + 2
    first = made.start.replace(minute=0)
    for zone in ("zone-50", "zone-400"):
        for number in range(hours):
            start, minutes, grams = first + timedelta(hours=number), rng.choice((30, 60)), rng.uniform(0, 900)
            basis = other if zone == "zone-50" and start >= changes_at else "lifecycle"
            kind = rng.choice(("none", "measured", "estimated", "forecast"))
            if kind == "forecast":
                yield to_come(start, minutes, grams, known_at, zone=zone, basis=basis)
            elif kind != "none":
                how: dict[str, Any] = {"estimated": True, "estimation_method": "a test"} if kind == "estimated" else {}
                yield value(start, minutes, grams, zone=zone, basis=basis, fetched_at=known_at, **how)


def _between(rows: Sequence[Row], low: datetime, high: datetime) -> Iterator[Row]:
    return (row for row in rows if low < at(row["t_us"]) <= high)


def _us(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND
