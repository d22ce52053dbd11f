"""A demand over its admissible options as a mixed-integer program in numbers, ready for a solver.

minimise    sum_r n_r (price_r + c idle_r) + sum_kr x_kr c load_kr    c = (carbon price x intensity + tariff) x PUE
subject to  sum_r x_kr = 1                                every class served in full
            sum_k d_k x_kr <= u m_r n_r                   pool capacity in tokens/s, u = highest utilisation
            sum_r gpus_r n_r <= GPUs of the fleet
with d_k the class's tokens/s and m_r the point's. Source: design section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from app import units
from app.errors import DemandError
from app.split.demand import Demand, WorkloadClass
from app.split.options import Admission, Option

MOST_REPLICAS = 10_000_000  # beyond it a solver's integers are no longer exact


@dataclass(frozen=True)
class Program:
    """Columns: first n_r for each index in `used`, then x_kr for each of `pairs` (class, option index).

    capacity: usable tokens/s of one replica; most: replicas that carry all of an option's classes.
    replica_cost, pair_cost: USD/h per replica and per whole class, electricity and carbon price included; pair_watts: W
    above idle.
    """

    options: tuple[Option, ...]
    used: tuple[int, ...]
    pairs: tuple[tuple[WorkloadClass, int], ...]
    capacity: dict[int, float]
    most: dict[int, int]
    replica_cost: list[float]
    pair_cost: list[float]
    pair_watts: list[float]

    @property
    def costs(self) -> list[float]:
        return [*self.replica_cost, *self.pair_cost]

    @property
    def columns(self) -> int:
        return len(self.used) + len(self.pairs)

    @property
    def tokens_per_s(self) -> float:
        return sum({one.name: one.tokens_per_s for one, _ in self.pairs}.values())

    def tie_ranks(self) -> list[int]:
        """Place of each used option among equals: by fleet name, then the better $/token: one pool is filled first."""

        def order(position: int) -> tuple[str, float, int]:
            option = self.options[self.used[position]]
            return (option.fleet.name, option.usd_per_replica_hour / option.point.tokens_per_s, position)

        ranks = [0] * len(self.used)
        for rank, position in enumerate(sorted(range(len(self.used)), key=order)):
            ranks[position] = rank
        return ranks


def usd_per_gram(demand: Demand) -> float:
    return units.tonnes(demand.solve.carbon_usd_per_t)


def build_program(demand: Demand, admission: Admission) -> Program:
    """The program of the classes that have load, over the options that no other one makes superfluous.

    Raises DemandError when a class would take more replicas than can be counted exactly.
    """
    options = admission.options
    loaded = [one for one in demand.classes if one.tokens_per_s > 0]
    fitting = _without_dominated(demand, options, {one.name: _countable(demand, admission, one) for one in loaded})
    used = tuple(sorted({index for indices in fitting.values() for index in indices}))
    pairs = tuple((one, index) for one in loaded for index in fitting[one.name])
    capacity = {index: options[index].usable_tokens_per_s(demand.solve.max_utilisation) for index in used}
    carried = {index: sum(one.tokens_per_s for one, option in pairs if option == index) for index in used}
    pair_watts = [_load_w_per_token(options[index]) * one.tokens_per_s for one, index in pairs]
    return Program(
        options=options,
        used=used,
        pairs=pairs,
        capacity=capacity,
        most={index: math.ceil(carried[index] / capacity[index]) for index in used},
        replica_cost=[
            options[index].usd_per_replica_hour + _power_usd(demand, options[index], options[index].point.idle_w)
            for index in used
        ],
        pair_cost=[_power_usd(demand, options[index], w) for (_, index), w in zip(pairs, pair_watts, strict=True)],
        pair_watts=pair_watts,
    )


def _power_usd(demand: Demand, option: Option, power_w: float | None) -> float:
    """What an hour of this power costs beside the GPUs' price: electricity that is not in it, and the carbon price."""
    carbon = usd_per_gram(demand) * (option.fleet.g_per_h(power_w) or 0.0)
    return carbon + option.fleet.electricity_usd_per_h(power_w)


def _load_w_per_token(option: Option) -> float:
    """W above idle for each token/s on this option; 0 where the power is unknown."""
    point = option.point
    if point.idle_w is None or point.loaded_w is None:
        return 0.0
    return (point.loaded_w - point.idle_w) / point.tokens_per_s


def _countable(demand: Demand, admission: Admission, one: WorkloadClass) -> list[int]:
    """The class's options but those so small that it would take more than MOST_REPLICAS of them."""
    most_tokens_per_s = {
        index: MOST_REPLICAS * admission.options[index].usable_tokens_per_s(demand.solve.max_utilisation)
        for index in admission.admissible[one.name]
    }
    fitting = [index for index, most in most_tokens_per_s.items() if one.tokens_per_s <= most]
    if most_tokens_per_s and not fitting:
        raise DemandError(
            f"class {one.name}: {one.tokens_per_s:g} tokens/s would take more than {MOST_REPLICAS:,} replicas of any "
            "option; accepted: a smaller rate, or fewer tokens a request"
        )
    return fitting


def _without_dominated(
    demand: Demand, options: tuple[Option, ...], fitting: dict[str, list[int]]
) -> dict[str, list[int]]:
    """`fitting` without options that another of the same fleet and size beats in every respect.

    Whatever a dominated option carries, the same number of replicas of the other carries for no more money, power or
    replicas. Without this, near-like runs of one shape make the search symmetric and slow.
    """
    classes = {index: frozenset(name for name, found in fitting.items() if index in found)
               for indices in fitting.values() for index in indices}  # fmt: skip

    def beats(one: int, other: int) -> bool:
        a, b = options[one], options[other]
        if a.fleet.name != b.fleet.name or a.point.gpus != b.point.gpus or not classes[one] >= classes[other]:
            return False
        gains = (
            a.point.tokens_per_s - b.point.tokens_per_s,
            (b.point.idle_w or 0.0) - (a.point.idle_w or 0.0),
            _load_w_per_token(b) - _load_w_per_token(a),
        )
        like = classes[one] == classes[other] and not any(gains)
        return all(gain >= 0 for gain in gains) and (not like or one < other)

    kept = {index for index in classes if not any(beats(other, index) for other in classes if other != index)}
    return {name: [index for index in indices if index in kept] for name, indices in fitting.items()}
