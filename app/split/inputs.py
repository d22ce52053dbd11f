"""The inputs of a split that may turn out otherwise, each with its value now and how to solve with another one.

rps.<class>     requests/s                    tokens.<class>  tokens of a request, prompt and generated alike
slo.<class>     ms of its first SLO; slo.<class>.2 of its second, ...
usd.<fleet>     USD per GPU-hour              g.<fleet>       gCO2e per kWh by the carbon signal
speed.<fleet>   throughput of all its points, 1 being as measured
carbon          USD per tonne CO2e            util            highest utilisation, 0 to 1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.split.case import Case
from app.split.demand import Demand, WorkloadClass
from app.split.options import Option

FACTOR = 10.0  # inputs are looked at from a tenth to ten times their value
MOST_USD_PER_T = 1000.0  # where carbon has no price yet: up to here, above any price in force


@dataclass(frozen=True)
class Input:
    """low, high: how far it is looked at. case: as it is now. slo: (class, number of the SLO) where it is one.

    reason: why it cannot be moved. is_idle: it cannot change the answer, whatever its value.
    """

    name: str
    label: str
    unit: str
    value: float
    low: float
    high: float
    case: Case
    changed: Callable[[float], Case]
    slo: tuple[str, int] | None = None
    reason: str | None = None
    is_idle: bool = False


def inputs(demand: Demand, options: Sequence[Option]) -> list[Input]:
    """Every input in the order of the demand: classes, fleets with an option, then what holds for all."""
    case = Case.of(demand, options).with_solve(gap=0.0)
    found: list[Input] = []
    for one in demand.classes:
        found += _of_class(case, one)
    for name in [offer.name for offer in demand.fleets if offer.name in case.fleets()]:
        found += _of_fleet(case, name)
    return [*found, _carbon(case), _utilisation(case)]


def slo_names(demand: Demand) -> dict[str, tuple[str, int]]:
    """The name of each SLO's input -> (class, number of the SLO, counted from 0)."""
    return {_slo_name(one, number): (one.name, number) for one in demand.classes for number in range(len(one.slo))}


def _slo_name(one: WorkloadClass, number: int) -> str:
    return f"slo.{one.name}" if number == 0 else f"slo.{one.name}.{number + 1}"


def _of_class(case: Case, one: WorkloadClass) -> Iterator[Input]:
    name = one.name
    yield _around(
        f"rps.{name}",
        f"{name}: rate",
        "req/s",
        one.requests_per_s,
        case,
        lambda v: case.with_class(name, requests_per_s=v),
    )
    tokens = one.prompt_tokens + one.generated_tokens

    def resized(value: float) -> Case:
        scale = value / tokens
        sizes = {"prompt_tokens": scale * one.prompt_tokens, "generated_tokens": scale * one.generated_tokens}
        return case.with_class(name, **sizes)

    idle = one.requests_per_s == 0
    yield _around(f"tokens.{name}", f"{name}: tokens of a request", "tokens", tokens, case, resized, is_idle=idle)
    for number, slo in enumerate(one.slo):
        yield Input(
            name=_slo_name(one, number),
            label=f"{name}: p{slo.percentile:g} {slo.metric.upper()}",
            unit="ms",
            value=slo.max_ms,
            low=slo.max_ms / FACTOR,
            high=slo.max_ms * FACTOR,
            case=case,
            changed=_slo_changed(case, name, number),
            slo=(name, number),
            is_idle=idle,
        )


def _slo_changed(case: Case, name: str, number: int) -> Callable[[float], Case]:
    return lambda value: case.with_slo(name, number, value)


def _of_fleet(case: Case, name: str) -> Iterator[Input]:
    fleet = case.fleets()[name]
    usd = fleet.usd_per_gpu_hour
    yield _around(
        f"usd.{name}", f"{name}: price", "$/GPU-h", usd, case, lambda v: case.with_offer(name, usd_per_gpu_hour=v)
    )
    solve = case.demand.solve
    grams = fleet.g_per_h(1000.0 / fleet.offer.pue, solve.carbon_signal)  # of a kW for an hour
    counted = solve.carbon_usd_per_t > 0 or solve.max_g_per_hour is not None
    yield _around(
        f"g.{name}",
        f"{name}: grid",
        "g/kWh",
        grams or 0.0,
        case,
        lambda v: case.with_intensity(name, v),
        reason=None if grams is not None else "its grams are not known",
        is_idle=not counted,
    )
    yield _around(f"speed.{name}", f"{name}: throughput", "x measured", 1.0, case, lambda v: case.with_speed(name, v))


def _carbon(case: Case) -> Input:
    value, label, unit = case.demand.solve.carbon_usd_per_t, "carbon price", "$/t"

    def changed(price: float) -> Case:
        return case.with_solve(carbon_usd_per_t=price)

    unknown = case.without_grams()
    reason = f"grams are not known, {unknown}" if unknown else None
    if value == 0:
        return Input("carbon", label, unit, 0.0, 0.0, MOST_USD_PER_T, case, changed, reason=reason)
    return _around("carbon", label, unit, value, case, changed, reason=reason)


def _utilisation(case: Case) -> Input:
    value = case.demand.solve.max_utilisation

    def changed(most: float) -> Case:
        return case.with_solve(max_utilisation=most)

    return Input("util", "highest utilisation", "", value, value / FACTOR, min(1.0, value * FACTOR), case, changed)


def _around(
    name: str,
    label: str,
    unit: str,
    value: float,
    case: Case,
    changed: Callable[[float], Case],
    *,
    reason: str | None = None,
    is_idle: bool = False,
) -> Input:
    reason = reason or (None if value else "it is 0")
    return Input(
        name, label, unit, value, value / FACTOR, value * FACTOR, case, changed, reason=reason, is_idle=is_idle
    )
