"""Where one fleet becomes cheaper than another for a class: at which load, price, g/kWh.

Each fleet carries the class alone, with replicas of the one option that is cheapest there. With n whole replicas of an
option (spares included), W the power of these under the load, p the price of a GPU-hour and I the g/kWh:

    $/h = n x GPUs x availability x p  +  kW x PUE x (tariff + carbon price x I)  +  carbon price x embodied g/h

So $/h is a line in p and in I, and the p or I at which the cheapest option of a fleet costs what the other fleet does
is the largest at which any of its options does: a closed form. In the load $/h jumps where one replica more is needed:
of these loads the nearest at which the order turns is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from app import units
from app.split.demand import Demand, SolveOptions, WorkloadClass
from app.split.inputs import FACTOR
from app.split.options import Option, admit
from app.split.weights import hour_of_load, hour_of_replica

_ROUNDING = 1e-9
# Jumps that are looked at in the search of a load, so that thousands of replicas take no longer.
MOST_JUMPS = 20_000


@dataclass(frozen=True)
class Alone:
    """A class on one option alone. usd_per_hour: what is minimised, carbon price included; grams: operational."""

    option: Option
    replicas: int
    rent_usd_per_hour: float
    power_w: float | None
    g_per_hour: float | None
    usd_per_hour: float

    @property
    def gpu_hours(self) -> float:
        """Paid in an hour."""
        return self.replicas * self.option.point.gpus * self.option.fleet.offer.availability

    @property
    def site_kw(self) -> float:
        return units.kw(self.power_w or 0.0) * self.option.fleet.offer.pue


@dataclass(frozen=True)
class Level:
    """value: of the input at which both cost the same; None when there is none, and `text` says why."""

    value: float | None
    unit: str
    text: str


@dataclass(frozen=True)
class LoadRange:
    """The order stays from low to high; None: as far as was looked at (a tenth, ten times)."""

    low: float | None
    high: float | None
    text: str


@dataclass(frozen=True)
class BreakEven:
    """Two fleets for one class. price, carbon: of the dearer fleet, at which it costs what the cheaper one does.
    grams: g/kWh of the fleet with more grams at which both emit the same."""

    class_name: str
    cheaper: Alone
    dearer: Alone
    load: LoadRange
    price: Level
    carbon: Level
    grams: Level


@dataclass(frozen=True)
class Rivals:
    """A class and, by fleet, the options that hold its limits."""

    solve: SolveOptions
    one: WorkloadClass
    fitting: Mapping[str, Sequence[Option]]

    def each(self, fleet: str) -> list[Alone]:
        """The fleet's options that have GPUs enough for the whole class."""
        options = self.fitting.get(fleet, ())
        found = (alone(self.solve, option, option.load_of(self.one)) for option in options)
        return [it for it in found if it is not None]

    def best(self, fleet: str) -> Alone | None:
        return min(self.each(fleet), key=lambda it: it.usd_per_hour, default=None)

    def least_usd_per_hour(self, fleet: str, rates: np.ndarray) -> np.ndarray:
        """What the fleet's best option costs at each of `rates` (requests/s); infinite where GPUs are too few."""
        least = np.full(len(rates), np.inf)
        for option in self.fitting[fleet]:
            load = rates / self.one.requests_per_s * option.load_of(self.one)
            replicas = replicas_alone(self.solve, option, load)
            each, filled = hour_of_replica(self.solve, option), hour_of_load(self.solve, option)
            usd = replicas * each.cost(self.solve) + load * filled.cost(self.solve)
            if option.fleet.offer.max_gpus is not None:
                usd[replicas * option.point.gpus > option.fleet.offer.max_gpus] = np.inf
            least = np.minimum(least, usd)
        return least


def break_evens(demand: Demand, options: Sequence[Option]) -> Iterator[BreakEven]:
    """For each class with load and each two fleets that can carry it alone."""
    admission = admit(demand, options)
    for one in demand.classes:
        if one.requests_per_s == 0:
            continue
        fitting: dict[str, list[Option]] = {}
        for index in admission.admissible[one.name]:
            option = admission.options[index]
            fitting.setdefault(option.fleet.name, []).append(option)
        rivals = Rivals(demand.solve, one, fitting)
        able = [found for offer in demand.fleets if (found := rivals.best(offer.name))]
        for first, second in combinations(able, 2):
            yield _break_even(rivals, *sorted((first, second), key=lambda it: it.usd_per_hour))


def _break_even(rivals: Rivals, cheaper: Alone, dearer: Alone) -> BreakEven:
    return BreakEven(
        class_name=rivals.one.name,
        cheaper=cheaper,
        dearer=dearer,
        load=_load(rivals, cheaper.option.fleet.name, dearer.option.fleet.name),
        price=_price(rivals, cheaper, dearer),
        carbon=_carbon(rivals, cheaper, dearer),
        grams=_grams(rivals, cheaper.option.fleet.name, dearer.option.fleet.name),
    )


def alone(solve: SolveOptions, option: Option, load: float) -> Alone | None:
    """load: the class's, in filled replicas. None when the fleet has too few GPUs."""
    offer = option.fleet.offer
    replicas = int(replicas_alone(solve, option, np.array(load)))
    if offer.max_gpus is not None and replicas * option.point.gpus > offer.max_gpus:
        return None
    idle_w = option.power_w(0.0)
    power_w = None if idle_w is None else replicas * idle_w + option.load_w * load
    g_per_hour = option.fleet.g_per_h(power_w, solve.carbon_signal)
    rent = replicas * option.usd_per_replica_hour
    carbon = (g_per_hour or 0.0) + replicas * (option.embodied_g_per_replica_hour or 0.0)
    usd = rent + option.fleet.electricity_usd_per_h(power_w) + solve.usd_per_gram * carbon
    return Alone(option, replicas, rent, power_w, g_per_hour, usd)


def replicas_alone(solve: SolveOptions, option: Option, load: np.ndarray) -> np.ndarray:
    """With spares, for a load in filled replicas."""
    carrying = np.ceil(load / option.usable_replicas(solve.max_utilisation) - _ROUNDING)
    return carrying + option.fleet.offer.spare_replicas


def _price(rivals: Rivals, cheaper: Alone, dearer: Alone) -> Level:
    """The largest price at which an option of the dearer fleet costs what the cheaper fleet does."""
    unit, name, other = "$/GPU-h", dearer.option.fleet.name, cheaper.option.fleet.name
    best = max(
        (cheaper.usd_per_hour - (it.usd_per_hour - it.rent_usd_per_hour)) / it.gpu_hours for it in rivals.each(name)
    )
    if best < 0:
        return Level(None, unit, f"Even for nothing {name} would cost more than {other} for {rivals.one.name}.")
    now = dearer.option.fleet.usd_per_gpu_hour
    return Level(best, unit, f"At ${best:.4g} instead of ${now:.4g} per GPU-hour {name} costs what {other} does.")


def _carbon(rivals: Rivals, cheaper: Alone, dearer: Alone) -> Level:
    """The g/kWh of the dearer fleet at which it costs what the cheaper one does, at the carbon price."""
    unit, name, other = "g/kWh", dearer.option.fleet.name, cheaper.option.fleet.name
    usd_per_gram = rivals.solve.usd_per_gram
    if usd_per_gram == 0:
        return Level(None, unit, "Carbon has no price here, so no g/kWh changes what is cheaper.")
    found = [
        (cheaper.usd_per_hour - (it.usd_per_hour - usd_per_gram * it.g_per_hour)) / (usd_per_gram * it.site_kw)
        for it in rivals.each(name)
        if it.g_per_hour is not None and it.site_kw > 0
    ]
    if not found:
        return Level(None, unit, f"The grams of {name} are not known.")
    best = max(found)
    if best < 0:
        return Level(None, unit, f"Even without any grams {name} would cost more than {other} for {rivals.one.name}.")
    return Level(best, unit, f"At {best:,.0f} g/kWh {name} costs what {other} does, carbon included.")


def _grams(rivals: Rivals, *fleets: str) -> Level:
    """Operational grams alone, each fleet with its option of least grams."""
    unit = "g/kWh"
    known = [[it for it in rivals.each(fleet) if it.g_per_hour is not None] for fleet in fleets]
    if not all(known):
        return Level(None, unit, "The grams of both fleets would have to be known.")
    least = [min(found, key=lambda it: it.g_per_hour or 0.0) for found in known]
    greener, other = sorted(least, key=lambda it: it.g_per_hour or 0.0)
    name = other.option.fleet.name
    frugal = min(it.site_kw for it in rivals.each(name))
    if frugal == 0:
        return Level(None, unit, f"{name} draws no power.")
    value = (greener.g_per_hour or 0.0) / frugal
    words = f"At {value:,.0f} g/kWh {name} emits what {greener.option.fleet.name} does for {rivals.one.name}."
    return Level(value, unit, words)


def _load(rivals: Rivals, cheaper: str, dearer: str) -> LoadRange:
    """How far the rate may move from now before the order turns."""
    now = rivals.one.requests_per_s
    low, lowest = _first_turn(rivals, cheaper, dearer, now / FACTOR)
    high, highest = _first_turn(rivals, cheaper, dearer, now * FACTOR)
    start = f"{low:.4g}" if low is not None else f"{lowest:.4g} (looked at no further)"
    end = f"{high:.4g}" if high is not None else f"{highest:.4g} (looked at no further)"
    words = f"{cheaper} costs no more than {dearer} for {rivals.one.name} from {start} to {end} req/s."
    return LoadRange(low, high, words)


def _first_turn(rivals: Rivals, cheaper: str, dearer: str, end: float) -> tuple[float | None, float]:
    """(the nearest load towards `end` at which `cheaper` comes to cost more, None when none; the last looked at)"""

    def behind(rates: np.ndarray) -> np.ndarray:
        theirs = rivals.least_usd_per_hour(dearer, rates)
        found = np.full(len(rates), -np.inf)
        np.subtract(rivals.least_usd_per_hour(cheaper, rates), theirs, out=found, where=np.isfinite(theirs))
        return found

    now = rivals.one.requests_per_s
    edges = np.unique([now, end, *_jumps(rivals, (cheaper, dearer), *sorted((now, end)))])
    edges = (edges if now < end else edges[::-1])[:MOST_JUMPS]
    near, far = edges[:-1], edges[1:]
    # Inside a piece each option's cost is a line: two points near its ends tell where the least ones cross.
    first, last = near + (far - near) * _ROUNDING, far - (far - near) * _ROUNDING
    is_behind, comes_behind = behind(first) > _ROUNDING, behind(last) > _ROUNDING
    turned = np.flatnonzero(is_behind | comes_behind)
    if not len(turned):
        return None, float(edges[-1])
    piece = turned[0]
    turn = near[piece] if is_behind[piece] else _crossing(behind, first[piece], last[piece])
    return float(turn), float(near[piece])


def _crossing(behind: Callable[[np.ndarray], np.ndarray], inside: float, outside: float) -> float:
    """By bisection: where several options of a fleet take turns within a piece, its cost is no single line."""
    for _ in range(50):
        middle = (inside + outside) / 2
        if behind(np.array([middle]))[0] > _ROUNDING:
            outside = middle
        else:
            inside = middle
    return inside


def _jumps(rivals: Rivals, fleets: tuple[str, str], low: float, high: float) -> Iterator[float]:
    """Rates at which an option of the fleets needs a replica more."""
    full = rivals.solve.max_utilisation
    for option in (option for fleet in fleets for option in rivals.fitting[fleet]):
        each = option.usable_replicas(full) * rivals.one.requests_per_s / option.load_of(rivals.one)
        first, last = math.floor(low / each) + 1, math.ceil(high / each) - 1
        nearest = range(first, last + 1)
        nearest = nearest[:MOST_JUMPS] if low == rivals.one.requests_per_s else nearest[-MOST_JUMPS:]
        yield from (number * each for number in nearest)
