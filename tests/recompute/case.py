"""Simulated time in a store, priced by facts that change meanwhile; the same prices in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from app.answers.query import AccountQuery
from app.config import Config
from app.facts.fact import Fact
from app.simulator.fleet import H100, RTX_4090
from app.store.database import Store
from app.store.facts import append_facts
from tests.batches import SECOND, at
from tests.facts.builders import by_clock, fact, owned, rented
from tests.recompute.by_hand import Ledger, Price, Prices, Sums
from tests.recompute.simulated import Sent, fill
from tests.simulator.wires import DAY_S, WEDNESDAY_S, WORLD, node_named, of_the_day

MADRID = 3600  # of UTC+1 in November
ZONES = [
    {"name": "grey", "g_per_kwh": 400.0, "basis": "lifecycle", "source": "a test"},
    {"name": "green", "g_per_kwh": 50.0, "basis": "lifecycle", "source": "a test"},
]
CONFIG = Config.model_validate(
    {
        "zone": ZONES,
        "fleet": [{"name": "h100", "gpu": H100.name, "host_w_per_gpu": 50.0},
                  {"name": "rtx4090", "gpu": RTX_4090.name}, {"name": "spot", "gpu": RTX_4090.name}],
    }
)  # fmt: skip

# What changes on the Wednesday, in seconds since 1970.
H100_DEARER_S = of_the_day(13, 37)
EURO_FALLS_S = of_the_day(8)
PUE_RISES_S = of_the_day(6)
GREENER_S = of_the_day(20, 5)
GREENER_SUPPLY_S = of_the_day(16, 45)
LONGER_LIFE_S = of_the_day(9, 50)
MOVES_S = of_the_day(15, 20)
FACTS: list[Fact] = [
    fact("price", "h100", rented(2.0)),
    fact("price", "h100", rented(2.4), at(H100_DEARER_S * SECOND)),
    fact("price", "spot", rented(0.30)),
    # EUR 1752 over 2 years of 8760 hours: EUR 0.10 an hour, switched on or not
    fact("price", "rtx4090", owned(currency="EUR", purchase=1752.0, life_years=2.0, in_service="2026-01-01")),
    fact("tariff", "rtx4090", by_clock(0.20, ("mon-fri", "18:00", "22:00", 0.35)) | {"currency": "EUR"}),
    fact("exchange_rate", "EUR", {"usd_per_unit": 1.10}),
    fact("exchange_rate", "EUR", {"usd_per_unit": 1.05}, at(EURO_FALLS_S * SECOND)),
    fact("pue", "h100", {"pue": 1.2}),
    fact("pue", "h100", {"pue": 1.35}, at(PUE_RISES_S * SECOND)),
    fact("pue", "*", {"pue": 1.0}),
    fact("zone", "*", {"zone": "grey"}),
    fact("zone", "rtx4090", {"zone": "green"}, at(GREENER_S * SECOND)),
    *(
        fact("market_factor", fleet, {"g_per_kwh": grams})
        for fleet, grams in (("h100", 45), ("spot", 300), ("rtx4090", 80))
    ),
    fact("market_factor", "rtx4090", {"g_per_kwh": 20}, at(GREENER_SUPPLY_S * SECOND)),
    # 350.4 kg over 4 years of 8760 hours: 10 g an hour; of the 4090 the table has 185.1 kg; those of spot are sunk
    fact("embodied", "h100", {"method": "user", "kg_per_gpu": 350.4}),
    fact("embodied", "*", {"life_years": 3.0}),
    fact("embodied", "*", {"life_years": 6.0}, at(LONGER_LIFE_S * SECOND)),
    fact("embodied", "spot", {"policy": "sunk"}),
    fact("membership", "gamer-5", {"fleet": "spot"}, at(MOVES_S * SECOND)),
    *(fact("membership", node.name, {"fleet": "h100" if node.card == H100 else "rtx4090"}) for node in WORLD.nodes),
]


def fleet_of(node: str, us: int) -> str:
    if node == "gamer-5" and us >= MOVES_S * SECOND:
        return "spot"
    return "h100" if node.startswith("h100") else "rtx4090"


def price_of(fleet: str, us: int) -> Price:
    seconds = us // SECOND
    if fleet == "h100":
        pue = 1.35 if seconds >= PUE_RISES_S else 1.2
        usd = 2.4 if seconds >= H100_DEARER_S else 2.0
        return Price(usd, None, pue, 50.0, 400.0, market_g_per_kwh=45.0, embodied_g_per_hour=10.0)
    if fleet == "spot":
        return Price(0.30, None, 1.0, 0.0, 400.0, market_g_per_kwh=300.0)
    euro = 1.05 if seconds >= EURO_FALLS_S else 1.10
    local = datetime.fromtimestamp(seconds + MADRID, UTC)
    per_kwh = 0.35 if local.weekday() < 5 and 18 <= local.hour < 22 else 0.20
    grams = 50.0 if seconds >= GREENER_S else 400.0
    market = 20.0 if seconds >= GREENER_SUPPLY_S else 80.0
    embodied = 185_100 / ((6 if seconds >= LONGER_LIFE_S else 3) * 8760)
    return Price(0.10 * euro, per_kwh * euro, 1.0, 0.0, grams, True, market, embodied)


CHANGES_S = (H100_DEARER_S, EURO_FALLS_S, PUE_RISES_S, GREENER_S, GREENER_SUPPLY_S, LONGER_LIFE_S, MOVES_S)
PRICES = Prices(price_of, fleet_of, [seconds * SECOND for seconds in CHANGES_S])


@dataclass
class Case:
    """A stretch of simulated time in a store, and its rows."""

    store: Store
    sent: Sent
    start_s: int
    end_s: int

    @property
    def now(self) -> datetime:
        return at((self.end_s + 3 * 3600) * SECOND)

    @cached_property
    def ledger(self) -> Ledger:
        start_us, end_us = self.start_s * SECOND, self.end_s * SECOND
        # Periods of tests, and hours of tariffs, begin with a quarter of an hour.
        return Ledger(self.sent, PRICES, start_us, end_us, range(start_us, end_us, 900 * SECOND))

    def query(self, **asked: Any) -> AccountQuery:
        return replace(AccountQuery(at(self.start_s * SECOND), at(self.end_s * SECOND)), **asked)

    def by_hand(self, key: Mapping[str, Any], start: datetime, end: datetime) -> Sums:
        bounds = [int(moment.timestamp()) * SECOND for moment in (start, end)]
        return self.ledger.sums(*bounds, lambda of, fleet: all(_is(of, fleet, *item) for item in key.items()))


def _is(of: Any, fleet: str, name: str, value: str | None) -> bool:
    return (fleet if name == "fleet" else getattr(of, name, None)) == value


def a_case(folder: Path, names: tuple[str, ...], start_s: int, end_s: int, live: range) -> Iterator[Case]:
    """The nodes of those names in a store of the folder, up to (start, end]."""
    store = Store.open(folder / "store.duckdb")
    sent = fill(store, WORLD, [node_named(WORLD, name) for name in names], start_s, end_s, live)
    append_facts(store, FACTS)
    yield Case(store, sent, start_s, end_s)
    store.close()


def a_day(folder: Path) -> Iterator[Case]:
    """The Wednesday of four nodes: a restart, a node that leaves for 20 minutes and one for the night, a bare GPU."""
    nodes = ("h100-3", "h100-4", "gamer-5", "gamer-6")
    live = range(of_the_day(18), of_the_day(18, 20))
    yield from a_case(folder, nodes, WEDNESDAY_S, WEDNESDAY_S + DAY_S, live)


def a_week(folder: Path) -> Iterator[Case]:
    """All nodes, from Monday to Sunday."""
    nodes = tuple(node.name for node in WORLD.nodes)
    live = range(of_the_day(18), of_the_day(19))
    yield from a_case(folder, nodes, WEDNESDAY_S - 2 * DAY_S, WEDNESDAY_S + 5 * DAY_S, live)
