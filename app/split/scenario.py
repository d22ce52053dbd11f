"""What-if: a demand with some numbers replaced, under the names that the page's URL and the API share.

rps.<class>    requests/s            slo.<class>   ms of the class's first SLO
usd.<fleet>    USD per GPU-hour      g.<fleet>     gCO2e per kWh
carbon         USD per tonne CO2e    util          highest utilisation, 0 to 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import DemandError
from app.split.demand import Demand, parse_demand

WHAT_IF = "what-if"


def knobs(demand: Demand) -> dict[str, float | None]:
    """Every replaceable number of `demand` and its value; None for a fleet's g/kWh or price that it does not say."""
    found: dict[str, float | None] = {}
    for one in demand.classes:
        found[f"rps.{one.name}"] = one.requests_per_s
        if one.slo:
            found[f"slo.{one.name}"] = one.slo[0].max_ms
    for fleet in demand.fleets:
        found[f"usd.{fleet.name}"] = fleet.usd_per_gpu_hour
        found[f"g.{fleet.name}"] = fleet.g_per_kwh
    found["carbon"] = demand.solve.carbon_usd_per_t
    found["util"] = demand.solve.max_utilisation
    return found


def what_if(demand: Demand, changes: Mapping[str, Any], where: str = "query") -> Demand:
    """`demand` with `changes` applied, numbers or text. Raises DemandError that names the knob."""
    changed = demand
    for name, value in changes.items():
        if name not in knobs(demand):
            raise DemandError(f"{where}: `{name}`: no such knob; accepted: {', '.join(knobs(demand))}")
        changed = _changed(changed, name, value, where)
    return changed


def _changed(demand: Demand, name: str, value: Any, where: str) -> Demand:
    content = demand.model_dump(by_alias=True)
    content["class"], content["fleet"] = list(content["class"]), list(content["fleet"])
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        raise DemandError(f"{where}: `{name}`: given {value[:60]!r}; accepted: a number") from None
    _apply(content, name, number)
    try:
        return parse_demand(content, where)
    except DemandError as problem:
        accepted = str(problem).rsplit("accepted: ", 1)[-1]
        raise DemandError(f"{where}: `{name}`: given {repr(value)[:60]}; accepted: {accepted}") from None


def _apply(content: dict[str, Any], name: str, value: Any) -> None:
    kind, _, target = name.partition(".")
    if kind == "carbon":
        content["solve"]["carbon_usd_per_t"] = value
    elif kind == "util":
        content["solve"]["max_utilisation"] = value
    elif kind in ("rps", "slo"):
        one = next(one for one in content["class"] if one["name"] == target)
        if kind == "rps":
            one["requests_per_s"] = value
        else:
            one["slo"] = [one["slo"][0] | {"max_ms": value}, *one["slo"][1:]]
    else:
        fleet = next(fleet for fleet in content["fleet"] if fleet["name"] == target)
        if kind == "usd" and value != fleet["usd_per_gpu_hour"]:
            fleet["price_source"] = WHAT_IF
        if kind == "g" and value != fleet["g_per_kwh"]:
            fleet["g_source"] = WHAT_IF if value is not None else None
        fleet["usd_per_gpu_hour" if kind == "usd" else "g_per_kwh"] = value
