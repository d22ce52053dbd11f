"""A demand with the options it is solved over, and copies of both with one thing changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.split.answer import SplitAnswer
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Fleet, Option, admit
from app.split.recommend import best_split


@dataclass(frozen=True)
class Case:
    """Fleets are told twice, in the demand and in the options: a change is made in both."""

    demand: Demand
    options: tuple[Option, ...]

    @classmethod
    def of(cls, demand: Demand, options: Sequence[Option]) -> Case:
        return cls(demand, tuple(options))

    def answer(self) -> SplitAnswer:
        return best_split(self.demand, self.options)

    def admission(self) -> Admission:
        return admit(self.demand, self.options)

    def workload(self, name: str) -> WorkloadClass:
        return next(one for one in self.demand.classes if one.name == name)

    def with_solve(self, **changes: Any) -> Case:
        solve = self.demand.solve.model_copy(update=changes)
        return replace(self, demand=self.demand.model_copy(update={"solve": solve}))

    def with_class(self, name: str, **changes: Any) -> Case:
        classes = tuple(one.model_copy(update=changes) if one.name == name else one for one in self.demand.classes)
        return replace(self, demand=self.demand.model_copy(update={"classes": classes}))

    def with_slo(self, name: str, number: int, max_ms: float) -> Case:
        """With another limit in SLO `number` of a class, counted from 0."""
        slo = list(self.workload(name).slo)
        slo[number] = slo[number].model_copy(update={"max_ms": max_ms})
        return self.with_class(name, slo=tuple(slo))

    def with_offer(self, name: str, **changes: Any) -> Case:
        """With keys of a fleet's offer changed."""
        offers = {offer.name: offer for offer in self.demand.fleets}
        offers[name] = offers[name].model_copy(update=changes)
        demand = self.demand.model_copy(update={"fleets": tuple(offers.values())})
        return replace(self, demand=demand)._with_fleet(name, offer=offers[name])

    def with_intensity(self, name: str, g_per_kwh: float) -> Case:
        """With other grams of a fleet's kWh, of the kind that the carbon signal names."""
        if self.demand.solve.carbon_signal == "marginal":
            return self.with_offer(name, marginal_g_per_kwh=g_per_kwh)
        return self._with_fleet(name, g_per_kwh=g_per_kwh)

    def with_speed(self, name: str, factor: float) -> Case:
        """With all points of a fleet making `factor` times the tokens/s at the same power."""

        def faster(option: Option) -> Option:
            return replace(option, point=replace(option.point, tokens_per_s=factor * option.point.tokens_per_s))

        options = tuple(faster(option) if option.fleet.name == name else option for option in self.options)
        return replace(self, options=options)

    def fleets(self) -> dict[str, Fleet]:
        """Those that have an option, by name."""
        return {option.fleet.name: option.fleet for option in self.options}

    def without_grams(self) -> str | None:
        """Why the grams of some admissible option are not known; None when all are."""
        admission = self.admission()
        for index in sorted({index for found in admission.admissible.values() for index in found}):
            option = admission.options[index]
            if option.power_w(1.0) is None:
                return f"no power is known for {option.point.gpu_name}"
            if option.fleet.g_per_h(1.0, self.demand.solve.carbon_signal) is None:
                average = self.demand.solve.carbon_signal == "average"
                return f"fleet {option.fleet.name}: {option.fleet.carbon_label if average else 'no marginal_g_per_kwh'}"
        return None

    def slo_values_ms(self, name: str, number: int) -> list[float]:
        """What SLO `number` of a class was measured at by each option that nothing else bars: distinct, ascending."""
        freed = self.with_slo(name, number, math.inf).admission()
        slo, policy = self.workload(name).slo[number], self.demand.solve.small_samples
        values = {freed.options[index].point.slo_value_ms(slo, policy)[0] for index in freed.admissible[name]}
        return sorted(value for value in values if value is not None and math.isfinite(value))

    def _with_fleet(self, name: str, **changes: Any) -> Case:
        options = tuple(
            replace(option, fleet=replace(option.fleet, **changes)) if option.fleet.name == name else option
            for option in self.options
        )
        return replace(self, options=options)
