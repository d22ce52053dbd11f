"""Question: which what-ifs of the split were saved, and of what demand is one of them?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.errors import BadParameter, UnknownName
from app.split.demand import Demand, parse_demand
from app.split.scenario import knobs, what_if
from app.store.database import Store
from app.store.scenarios import Scenario, delete_scenario, find_scenario, save_scenario, scenarios

LONGEST_NAME, MOST = 100, 500
# The word in an address that names a scenario; it is no knob.
SCENARIO = "scenario"


def scenarios_as_json(store: Store) -> list[dict[str, Any]]:
    """By name, each with its demand."""
    return [_as_json(one) for one in scenarios(store)]


def keep_scenario(store: Store, name: str, demand: Demand, now: datetime) -> dict[str, Any]:
    """Save a demand under a name; one of that name is replaced. Raises BadParameter for a name that cannot be one."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        raise BadParameter(f"scenario: its name is 1 to {LONGEST_NAME} printable characters without a slash")
    known = {one.name for one in scenarios(store)}
    if name not in known and len(known) >= MOST:
        raise BadParameter(f"scenario {name!r}: {MOST} are kept already; delete one first")
    kept = Scenario(name, demand.model_dump(by_alias=True, mode="json"), now)
    save_scenario(store, kept)
    return _as_json(kept) | {"replaced": name in known}


def scenario_demand(store: Store, name: str) -> Demand:
    """Raises UnknownName, and DemandError for one that this version does not understand."""
    return parse_demand(_known(store, name).demand, f"scenario {name!r}")


def drop_scenario(store: Store, name: str) -> None:
    """Raises UnknownName."""
    delete_scenario(store, _known(store, name).name)


def asked_demand(store: Store, default: Demand, words: Mapping[str, Any]) -> Demand:
    """The demand that an address asks for: that of its scenario, else `default`, with its knobs turned."""
    changes = dict(words)
    name = changes.pop(SCENARIO, None)
    return what_if(default if name is None else scenario_demand(store, str(name)), changes)


def turned_knobs(start: Demand, demand: Demand) -> dict[str, float]:
    """The knobs of `demand` that are not where `start` has them: what an address of it has to say."""
    at_start = knobs(start)
    return {name: value for name, value in knobs(demand).items() if value is not None and at_start.get(name) != value}


def _known(store: Store, name: str) -> Scenario:
    found = find_scenario(store, name)
    if found is None:
        names = ", ".join(one.name for one in scenarios(store)) or "none is saved"
        raise UnknownName(f"no scenario {name!r}; accepted: {names}")
    return found


def _as_json(scenario: Scenario) -> dict[str, Any]:
    return {"name": scenario.name, "saved_at": scenario.saved_at.isoformat(), "demand": scenario.demand}
