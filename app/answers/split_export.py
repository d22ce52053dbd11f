"""Question: by which weights would a router send this demand to the recommended mix?"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from app import __version__
from app.split.demand import Demand
from app.split.options import Option, same_model
from app.split.recommend import best_split
from app.split.router import Shape, router_plan
from app.split.router_files import RouterFormat, router_file
from app.store.database import Store
from app.store.engine_addresses import EngineAddress, engine_addresses
from collectors.engine.targets import DEFAULT_PATH


def export_split(store: Store, demand: Demand, options: Sequence[Option], form: RouterFormat, now: datetime) -> str:
    """The best mix of `options` as the settings of a router. Raises DemandError where no mix carries the demand."""
    seen = list(engine_addresses(store, now))
    shapes = {(option.fleet.name, option.point.model, option.point.gpus) for option in options}
    engines = {shape: urls for shape in shapes if (urls := _addresses(shape, seen))}
    plan = router_plan(demand, best_split(demand, options), options, engines)
    return router_file(plan, form, now, __version__)


def _addresses(shape: Shape, seen: Sequence[EngineAddress]) -> list[str]:
    fleet, model, gpus = shape
    return [
        base
        for one in seen
        if one.fleet == fleet and one.gpus == gpus and _same(one.model, model) and (base := _base_of(one.url))
    ]


def _same(served: str, measured: str) -> bool:
    return same_model(served, measured) or same_model(measured, served)


def _base_of(url: str) -> str | None:
    """Where the engine answers requests; None for an address that means another machine elsewhere."""
    parts = urlsplit(url)
    host = parts.hostname or "localhost"
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = host == "localhost"
    return None if is_own else f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix(DEFAULT_PATH)}"
