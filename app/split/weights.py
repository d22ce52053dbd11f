"""What an hour of each column of a split's program draws, costs and emits."""

from __future__ import annotations

from dataclasses import dataclass

from app.split.columns import Columns
from app.split.demand import Demand, SolveOptions
from app.split.options import Option


@dataclass(frozen=True)
class Weights:
    """Per column: W, $/h (price and electricity), g/h (operational by the carbon signal, and embodied), switches.

    Power and grams that are unknown count 0; where a cap or the marginal signal needs them the option is out before.
    """

    watts: tuple[float, ...]
    usd: tuple[float, ...]
    grams: tuple[float, ...]
    switched: tuple[float, ...]

    def costs(self, solve: SolveOptions) -> tuple[float, ...]:
        return tuple(
            usd + solve.usd_per_gram * grams + solve.switch_usd_per_hour * switched
            for usd, grams, switched in zip(self.usd, self.grams, self.switched, strict=True)
        )


@dataclass(frozen=True)
class Hour:
    """W, $/h and g/h of one thing, as in Weights."""

    watts: float
    usd: float
    grams: float

    def cost(self, solve: SolveOptions) -> float:
        return self.usd + solve.usd_per_gram * self.grams


def hour_of_replica(solve: SolveOptions, option: Option) -> Hour:
    """A replica on order, without load."""
    idle = _hour(solve, option, option.power_w(0.0))
    rent, embodied = option.usd_per_replica_hour, option.embodied_g_per_replica_hour or 0.0
    return Hour(idle.watts, rent + idle.usd, idle.grams + embodied)


def hour_of_load(solve: SolveOptions, option: Option, load: float = 1.0) -> Hour:
    """What a load, in filled replicas, adds to replicas that are there."""
    return _hour(solve, option, option.load_w * load)


def _hour(solve: SolveOptions, option: Option, power_w: float | None) -> Hour:
    fleet = option.fleet
    return Hour(
        power_w or 0.0, fleet.electricity_usd_per_h(power_w), fleet.g_per_h(power_w, solve.carbon_signal) or 0.0
    )


def weigh(demand: Demand, columns: Columns) -> Weights:
    hours = {column: hour_of_replica(demand.solve, option) for column, _, option in columns.replicas()}
    for column, one, index in columns.shares():
        option = columns.options[index]
        hours[column] = hour_of_load(demand.solve, option, option.load_of(one))
    nothing = Hour(0.0, 0.0, 0.0)
    each = [hours.get(column, nothing) for column in range(columns.count)]
    switched = {column for column, _ in columns.switches()}
    return Weights(
        watts=tuple(hour.watts for hour in each),
        usd=tuple(hour.usd for hour in each),
        grams=tuple(hour.grams for hour in each),
        switched=tuple(float(column in switched) for column in range(columns.count)),
    )
