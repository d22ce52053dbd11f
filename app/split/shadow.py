"""Shadow prices: what one natural unit more of each limit is worth, by solving again with it.

The dual values of a mixed-integer program's relaxation are never shown: replicas are whole, and their price is not
linear. Both solves are exact (gap 0), so each figure is the difference of two optima. Source: design section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.split.answer import SplitAnswer
from app.split.case import Case
from app.split.demand import Demand
from app.split.options import Option

Kind = Literal["gpus", "slo", "watts", "usd", "grams", "share", "load"]
# One natural unit of each cap: 100 W, $1/h, 1 kg/h; of a share 5 points; of load 1 request/s.
MORE_WATTS, MORE_USD, MORE_GRAMS, MORE_SHARE, MORE_REQUESTS = 100.0, 1.0, 1000.0, 0.05, 1.0
_NOTHING = 1e-6


@dataclass(frozen=True)
class UnitMore:
    """A limit with one unit more, from `start` to `end`. name: the fleet, class or key that is limited."""

    kind: Kind
    name: str
    class_name: str | None
    start: float
    end: float
    unit: str
    words: str
    case: Case
    is_plural: bool = False


@dataclass(frozen=True)
class ShadowPrice:
    """saves_usd_per_hour: of what is minimised, carbon price included; negative where it costs, None where the unit
    more fits nowhere. usd_per_hour, g_per_hour: change of the bill and of the grams."""

    more: UnitMore
    saves_usd_per_hour: float | None
    usd_per_hour: float | None
    g_per_hour: float | None

    @property
    def is_binding(self) -> bool:
        return self.saves_usd_per_hour is not None and abs(self.saves_usd_per_hour) > _NOTHING

    @property
    def text(self) -> str:
        """E.g. "One more GPU of h100 saves $1.10/h." """
        saves, words = self.saves_usd_per_hour, self.more.words
        if saves is None:
            return f"{words} fits nowhere."
        is_dearer = saves < 0 or (self.more.kind == "load" and not self.is_binding)
        verb = ("cost" if is_dearer else "save") + ("" if self.more.is_plural else "s")
        return f"{words} {verb} {f'{_usd(abs(saves))}/h' if self.is_binding else 'nothing'}."


def shadow_prices(demand: Demand, options: Sequence[Option]) -> tuple[SplitAnswer, list[ShadowPrice]]:
    """(the answer at gap 0, a price per limit: the largest saving first, loads last). None if infeasible."""
    case = Case.of(demand, options).with_solve(gap=0.0)
    base = case.answer()
    if base.objective_usd_per_hour is None:
        return base, []
    found = [_price(base, more) for more in units_more(case)]
    return base, sorted(found, key=lambda one: (one.more.kind == "load", -(one.saves_usd_per_hour or 0.0)))


def _price(base: SplitAnswer, more: UnitMore) -> ShadowPrice:
    answer = more.case.answer()
    saves = _difference(answer.objective_usd_per_hour, base.objective_usd_per_hour)
    return ShadowPrice(
        more,
        saves_usd_per_hour=saves,
        usd_per_hour=_difference(base.usd_per_hour, answer.usd_per_hour),
        g_per_hour=_difference(base.g_per_hour, answer.g_per_hour),
    )


def _difference(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else second - first


def units_more(case: Case) -> Iterator[UnitMore]:
    """Every limit of a case with one unit more."""
    yield from _more_gpus(case)
    yield from _looser_slos(case)
    yield from _higher_caps(case)
    yield from _wider_shares(case)
    for one in case.demand.classes:
        more = one.requests_per_s + MORE_REQUESTS
        changed = case.with_class(one.name, requests_per_s=more)
        words = f"One more request/s of {one.name}"
        yield UnitMore("load", one.name, one.name, one.requests_per_s, more, "req/s", words, changed)


def _more_gpus(case: Case) -> Iterator[UnitMore]:
    """Of each limited fleet one GPU; where its smallest replica takes several, so many."""
    sizes: dict[str, int] = {}
    for option in case.admission().options:
        name = option.fleet.name
        sizes[name] = min(sizes.get(name, option.point.gpus), option.point.gpus)
    for offer in case.demand.fleets:
        if offer.max_gpus is None or offer.name not in sizes:
            continue
        size = sizes[offer.name]
        more = offer.max_gpus + size
        words = f"One more GPU of {offer.name}" if size == 1 else f"{size} more GPUs of {offer.name}"
        changed = case.with_offer(offer.name, max_gpus=more)
        yield UnitMore("gpus", offer.name, None, offer.max_gpus, more, "GPUs", words, changed, is_plural=size > 1)


def _looser_slos(case: Case) -> Iterator[UnitMore]:
    """Each SLO at the next value at which an option comes in that this SLO alone keeps out."""
    for one in case.demand.classes:
        for number, slo in enumerate(one.slo):
            above = [value for value in case.slo_values_ms(one.name, number) if value > slo.max_ms]
            if above:
                changed = case.with_slo(one.name, number, above[0])
                limit = f"p{slo.percentile:g} {slo.metric.upper()}"
                words = f"{one.name}'s {limit} from {slo.max_ms:.4g} to {above[0]:.4g} ms"
                yield UnitMore("slo", limit, one.name, slo.max_ms, above[0], "ms", words, changed)


def _wider_shares(case: Case) -> Iterator[UnitMore]:
    for one in case.demand.classes:
        for limit in one.share:
            for key, end in (("min", max(0.0, limit.min - MORE_SHARE)), ("max", min(1.0, limit.max + MORE_SHARE))):
                start = getattr(limit, key)
                if start == end:
                    continue
                wider = limit.model_copy(update={key: end})
                changed = case.with_class(one.name, share=tuple(wider if it == limit else it for it in one.share))
                least = "at least" if key == "min" else "at most"
                words = f"{one.name} on {limit.fleet} {least} {end:.0%} instead of {start:.0%}"
                yield UnitMore("share", limit.fleet, one.name, start, end, "share", words, changed)


def _higher_caps(case: Case) -> Iterator[UnitMore]:
    solve = case.demand.solve
    if solve.max_watts is not None:
        more = solve.max_watts + MORE_WATTS
        changed = case.with_solve(max_watts=more)
        words = f"The power cap from {solve.max_watts:,.0f} to {more:,.0f} W"
        yield UnitMore("watts", "max_watts", None, solve.max_watts, more, "W", words, changed)
    if solve.max_usd_per_hour is not None:
        more = solve.max_usd_per_hour + MORE_USD
        changed = case.with_solve(max_usd_per_hour=more)
        words = f"The budget from {_usd(solve.max_usd_per_hour)} to {_usd(more)}/h"
        yield UnitMore("usd", "max_usd_per_hour", None, solve.max_usd_per_hour, more, "$/h", words, changed)
    if solve.max_g_per_hour is not None:
        more = solve.max_g_per_hour + MORE_GRAMS
        changed = case.with_solve(max_g_per_hour=more)
        words = f"The carbon cap from {solve.max_g_per_hour:,.0f} to {more:,.0f} g/h"
        yield UnitMore("grams", "max_g_per_hour", None, solve.max_g_per_hour, more, "g/h", words, changed)


def _usd(value: float) -> str:
    """Cents, and where these would be 0 or too few two digits."""
    return f"${value:,.2f}" if value >= 0.1 else f"${value:.2g}"
