"""What `wattmix doctor` says of grid providers: one real question to each for each of its zones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.commands.checks import Check
from app.config import Config
from app.formatting import basis_said
from collectors.grid.provider import Absent, IntensityAnswer, Provider
from collectors.grid.registry import PROVIDERS
from collectors.http.client import Http
from collectors.http.problem import SourceProblem
from collectors.http.transport import Bounds

# A person waits. What does not answer is left alone, so its other zones cost no time.
BOUNDS = Bounds(connect_s=5.0, read_s=8.0, total_s=10.0)


def grid_checks(config: Config, http: Http | None = None) -> Iterator[Check]:
    """Nothing where no [[grid]] is configured."""
    asking = http or Http(bounds=BOUNDS)
    for settings in config.grid:
        title = PROVIDERS[settings.provider].title
        provider = settings.make(asking)
        if isinstance(provider, Absent):
            remedy = "set what it needs in its [[grid]] of wattmix.toml; until then the yearly average counts"
            yield Check("problem", f"grid provider {title} is not asked: {provider.reason}", remedy)
            continue
        for zone in settings.zones:
            yield _asked(provider, f"grid provider {title}, zone {zone}", zone, asking.utc_now())


def _asked(provider: Provider, name: str, zone: str, now: datetime) -> Check:
    try:
        answer = provider.latest(zone)
    except SourceProblem as problem:
        return Check("problem", f"{name}: {problem.what} ({problem.where})", problem.advice)
    return Check("ok", f"{name}: {_value(answer, now)}")


def _value(answer: IntensityAnswer, now: datetime) -> str:
    point = answer.points[-1]
    grams = point.reason if point.g_per_kwh is None else f"{point.g_per_kwh:.0f} g/kWh"
    behind_s = (now - point.end).total_seconds()
    age = f", ended {behind_s / 60:.0f} min ago" if behind_s > 0 else ""
    return f"{grams} {point.kind}, {basis_said(point.basis)}, {point.how}{age}"
