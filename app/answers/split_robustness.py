"""Question: how far may each input be wrong before another mix is best, and where does one fleet overtake another?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.errors import DemandError
from app.split.break_even import BreakEven, Level, break_evens
from app.split.demand import Demand
from app.split.inputs import inputs
from app.split.options import Option
from app.split.robustness import Bar, InputRange, exact_answer, fleets_in_use, robustness


def split_robustness(demand: Demand, options: Sequence[Option], names: Sequence[str] | None = None) -> dict[str, Any]:
    """Of all inputs, or of those named: each takes up to 26 solves, so a page asks for one after the other.

    {reason, usd_per_hour, names: [...], replicas: {option: count}, fleets: [...], inputs: [...], break_even: [...]}.
    names: of all inputs (see app/split/inputs.py). replicas, fleets: what stays.

    An input: {name, label, unit, value, low, high, low_factor, high_factor, low_is_open, high_is_open, reason, tornado:
    {low: {factor, value, usd_per_hour}, high: {...}} | null, solves, text}. The answer stays from low to high; open
    where it still did at the end of what was looked at. usd_per_hour: what is minimised, carbon price included.

    break_even: of each two fleets for a class, empty where inputs are named: {class, cheaper, dearer, usd_per_hour:
    {fleet: ...}, load: {low, high, unit, text}, price|carbon|grams: {value, unit, text}}; null where there is none, as
    text says.

    Raises DemandError where an input is not one.
    """
    known = {one.name: one for one in inputs(demand, options)}
    for name in names or ():
        if name not in known:
            raise DemandError(f"`inputs`: given {name[:60]!r}; accepted: {', '.join(known)}")
    wanted = [one for name, one in known.items() if names is None or name in names]
    base = exact_answer(demand, options)
    return {
        "reason": base.reason,
        "usd_per_hour": base.objective_usd_per_hour,
        "names": list(known),
        "replicas": {pool.option.label: pool.count for pool in base.pools},
        "fleets": sorted(fleets_in_use(base)),
        "inputs": [_range(found) for found in robustness(base, wanted)],
        "break_even": [] if names else [_break_even(found) for found in break_evens(demand, options)],
    }


def _range(found: InputRange) -> dict[str, Any]:
    one = found.input
    return {
        "name": one.name,
        "label": one.label,
        "unit": one.unit,
        "value": one.value,
        "low": found.low,
        "high": found.high,
        "low_factor": found.low / one.value if found.low is not None and one.value else None,
        "high_factor": found.high / one.value if found.high is not None and one.value else None,
        "low_is_open": found.low_is_open,
        "high_is_open": found.high_is_open,
        "reason": found.reason,
        "tornado": {"low": _bar(found.bars[0]), "high": _bar(found.bars[1])} if found.bars else None,
        "solves": found.solves,
        "text": found.text,
    }


def _bar(bar: Bar) -> dict[str, Any]:
    return {"factor": bar.factor, "value": bar.value, "usd_per_hour": bar.objective_usd_per_hour}


def _break_even(found: BreakEven) -> dict[str, Any]:
    cheaper, dearer = found.cheaper.option.fleet.name, found.dearer.option.fleet.name
    return {
        "class": found.class_name,
        "cheaper": cheaper,
        "dearer": dearer,
        "usd_per_hour": {cheaper: found.cheaper.usd_per_hour, dearer: found.dearer.usd_per_hour},
        "load": {"low": found.load.low, "high": found.load.high, "unit": "req/s", "text": found.load.text},
        "price": _level(found.price),
        "carbon": _level(found.carbon),
        "grams": _level(found.grams),
    }


def _level(level: Level) -> dict[str, Any]:
    return {"value": level.value, "unit": level.unit, "text": level.text}
