"""How a demand moves through the week, by the tokens that engines made in the last weeks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import fmean
from typing import Any

from app import units
from app.facts.fields import LAST_MOMENT
from app.split.options import same_model
from app.store.accounts import engine_rows
from app.store.reader import Reader

LOOKED_AT = timedelta(days=28)
# With less than a day nothing is known of its shape.
LEAST_HOURS = 24
_HOUR = timedelta(hours=1)
Curve = Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class LoadCurve:
    """factors: UTC (weekday from Monday on, hour) -> part of the busiest such hour's tokens; empty where `hours`, in
    which the model was seen, are too few: then every hour is as busy.
    """

    factors: Curve
    hours: int

    def at(self, moment: datetime) -> float:
        utc = moment.astimezone(UTC)
        return self.factors.get((utc.weekday(), utc.hour), 1.0)

    def as_json(self) -> dict[str, Any]:
        how = f"tokens of {self.hours} hours of the last {LOOKED_AT.days} days" if self.factors else "flat"
        lacks = f"the model was seen in {self.hours} h of the last {LOOKED_AT.days} days, {LEAST_HOURS} h are needed"
        return {"source": how, "reason": None if self.factors else lacks, "hours": self.hours}


def load_curves(reader: Reader, models: Sequence[str], now: datetime) -> dict[str, LoadCurve]:
    """Of each model, by the full hours before `now`."""
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    count = int(LOOKED_AT / _HOUR)
    starts = [end - (count - number) * _HOUR for number in range(count + 1)]
    bounds = [(number, *span) for number, span in enumerate(pairwise(units.us_of_moment(one) for one in starts))]
    made: dict[str, dict[datetime, int]] = {model: {} for model in models}
    for row in engine_rows(reader, bounds, by="none", known_at=LAST_MOMENT):
        for model in models if row["model"] is not None else ():
            if same_model(model, row["model"]):
                hour, tokens = starts[row["position"]], (row["prompt_tokens"] or 0) + (row["generated_tokens"] or 0)
                made[model][hour] = made[model].get(hour, 0) + tokens
    return {model: LoadCurve(_factors(hours), len(hours)) for model, hours in made.items()}


def _factors(made: Mapping[datetime, int]) -> Curve:
    """Of an hour of the week that was not seen, the mean of that hour on other days; else as the busiest."""
    if len(made) < LEAST_HOURS or not any(made.values()):
        return {}
    cells: dict[tuple[int, int], list[int]] = {}
    for start, tokens in made.items():
        cells.setdefault((start.weekday(), start.hour), []).append(tokens)
    means = {cell: fmean(tokens) for cell, tokens in cells.items()}
    most = max(means.values())
    found: dict[tuple[int, int], float] = {}
    for day in range(7):
        for hour in range(24):
            others = [mean for (_, other), mean in means.items() if other == hour]
            mean = means.get((day, hour), fmean(others) if others else most)
            found[day, hour] = mean / most
    return found
