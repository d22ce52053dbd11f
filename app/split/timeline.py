"""A demand hour by hour: what arrives, what may be served, and how clean each fleet's electricity is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.errors import DemandError
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Option, admit

HOUR = timedelta(hours=1)
MOST_HOURS = 168


@dataclass(frozen=True)
class PlanHour:
    """load: class name -> what its requests_per_s is multiplied by, 1 where it is not told. g_per_kwh: fleet name ->
    average intensity of the hour; where it is None or not told, the fleet's own.
    """

    start: datetime
    load: Mapping[str, float] = field(default_factory=dict)
    g_per_kwh: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Timeline:
    """admission: with the mean intensity of the hours; an option is in it only where it is one in all of them.
    own: fleet name -> its own intensity.
    """

    demand: Demand
    hours: tuple[PlanHour, ...]
    admission: Admission
    own: Mapping[str, float | None]

    @classmethod
    def of(cls, demand: Demand, options: Sequence[Option], hours: Sequence[PlanHour]) -> Timeline:
        """Raises DemandError where the hours do not follow each other, or name what the demand has not."""
        _check(demand, hours)
        own = {option.fleet.name: option.fleet.g_per_kwh for option in options}
        averages = {name: _mean([_told(hour, name, value) for hour in hours]) for name, value in own.items()}
        on_average = [_with_grams(option, averages[option.fleet.name]) for option in options]
        return cls(demand, tuple(hours), admit(demand, on_average), own)

    def factor(self, one: WorkloadClass, number: int) -> float:
        return self.hours[number].load.get(one.name, 1.0)

    def arrived(self, one: WorkloadClass, number: int) -> float:
        """Hours of the class's rate that have arrived by the end of the hour."""
        return math.fsum(self.factor(one, earlier) for earlier in range(number + 1))

    def arriving(self, number: int) -> Demand:
        """The hour's demand with every class served as it arrives."""
        return self._at({one.name: self.factor(one, number) for one in self.demand.classes})

    def within_reach(self, number: int) -> Demand:
        """The same, but of a deferrable class all that has arrived so far: the most that the hour may serve."""
        return self._at(
            {
                one.name: self.arrived(one, number) if one.deferrable else self.factor(one, number)
                for one in self.demand.classes
            }
        )

    def at_most(self) -> Demand:
        """Every class at the most that any hour may serve of it."""
        last = len(self.hours) - 1
        return self._at(
            {one.name: self.arrived(one, last) if one.deferrable else self._peak(one) for one in self.demand.classes}
        )

    def at_peak(self) -> Demand:
        """Every class at the most that arrives in an hour."""
        return self._at({one.name: self._peak(one) for one in self.demand.classes})

    def admission_of(self, number: int) -> Admission:
        """With the intensities of the hour."""
        hour = self.hours[number]
        options = tuple(
            _with_grams(option, _told(hour, option.fleet.name, self.own[option.fleet.name]))
            for option in self.admission.options
        )
        return replace(self.admission, options=options)

    def _peak(self, one: WorkloadClass) -> float:
        return max(self.factor(one, number) for number in range(len(self.hours)))

    def _at(self, factors: Mapping[str, float]) -> Demand:
        classes = tuple(
            one.model_copy(update={"requests_per_s": one.requests_per_s * factors[one.name]})
            for one in self.demand.classes
        )
        return self.demand.model_copy(update={"classes": classes})


def _with_grams(option: Option, g_per_kwh: float | None) -> Option:
    return replace(option, fleet=replace(option.fleet, g_per_kwh=g_per_kwh))


def _told(hour: PlanHour, fleet: str, own: float | None) -> float | None:
    said = hour.g_per_kwh.get(fleet)
    return own if said is None else said


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


def _check(demand: Demand, hours: Sequence[PlanHour]) -> None:
    if not 1 <= len(hours) <= MOST_HOURS:
        raise DemandError(f"plan: {len(hours)} hours; accepted: 1 to {MOST_HOURS}")
    names = {"class": {one.name for one in demand.classes}, "fleet": {fleet.name for fleet in demand.fleets}}
    for number, hour in enumerate(hours):
        if hour.start.tzinfo is None or hour.start != hours[0].start + number * HOUR:
            raise DemandError(
                f"plan: hour {number} starts at {hour.start.isoformat()}; accepted: hours in a row, in UTC"
            )
        for what, said in (("class", hour.load), ("fleet", hour.g_per_kwh)):
            unknown = sorted(set(said) - names[what])
            if unknown:
                listed = ", ".join(sorted(names[what]))
                raise DemandError(f"plan: {what} {', '.join(unknown)} in hour {number}; accepted: {listed}")
            wrong = [value for value in said.values() if value is not None and not 0 <= value < math.inf]
            if wrong:
                raise DemandError(
                    f"plan: {wrong[0]:g} for a {what} in hour {number}; accepted: finite numbers from 0 on"
                )
