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


def weigh(demand: Demand, columns: Columns) -> Weights:
    watts, usd, grams, switched = ([0.0] * columns.count for _ in range(4))
    for column, _, option in columns.replicas():
        idle_w = option.power_w(0.0)
        watts[column] = idle_w or 0.0
        usd[column] = option.usd_per_replica_hour + option.fleet.electricity_usd_per_h(idle_w)
        grams[column] = _grams(demand, option, idle_w) + (option.embodied_g_per_replica_hour or 0.0)
    for column, one, index in columns.shares():
        option = columns.options[index]
        load_w = option.load_w * option.load_of(one)
        watts[column] = load_w
        usd[column] = option.fleet.electricity_usd_per_h(load_w)
        grams[column] = _grams(demand, option, load_w)
    for column, _ in columns.switches():
        switched[column] = 1.0
    return Weights(tuple(watts), tuple(usd), tuple(grams), tuple(switched))


def _grams(demand: Demand, option: Option, power_w: float | None) -> float:
    return option.fleet.g_per_h(power_w, demand.solve.carbon_signal) or 0.0
