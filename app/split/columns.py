"""What each column of a split's program means: replicas, shares, pools in use, replicas switched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.split.demand import Demand, FleetOffer, Running, WorkloadClass
from app.split.options import Option, same_model


@dataclass(frozen=True)
class Group:
    """Replicas of one fleet, model and size, and how many of them run today."""

    fleet: str
    members: tuple[int, ...]
    today: int


@dataclass(frozen=True)
class Columns:
    """First n_r for each index in `used`, then x_kr for each of `pairs` (class, option index), then z_r for each of
    `spared`, then |N_g - today_g| for each of `groups`.

    stopped: replicas of today that have no option left and are stopped in any case.
    """

    options: tuple[Option, ...]
    used: tuple[int, ...]
    pairs: tuple[tuple[WorkloadClass, int], ...]
    spared: tuple[int, ...]
    groups: tuple[Group, ...]
    stopped: int

    @property
    def count(self) -> int:
        return len(self.used) + len(self.pairs) + len(self.spared) + len(self.groups)

    def replicas(self) -> Iterator[tuple[int, int, Option]]:
        """(column, option index, option)"""
        return ((column, index, self.options[index]) for column, index in enumerate(self.used))

    def shares(self) -> Iterator[tuple[int, WorkloadClass, int]]:
        """(column, class, option index)"""
        return ((column, one, index) for column, (one, index) in enumerate(self.pairs, len(self.used)))

    def in_use(self) -> dict[int, int]:
        """Option index -> column of its z_r."""
        first = len(self.used) + len(self.pairs)
        return {index: column for column, index in enumerate(self.spared, first)}

    def switches(self) -> Iterator[tuple[int, Group]]:
        return enumerate(self.groups, self.count - len(self.groups))

    def switched(self, counts: Mapping[int, int]) -> int:
        """Replicas started or stopped, with so many of each option."""
        moved = (abs(sum(counts[index] for index in group.members) - group.today) for group in self.groups)
        return sum(moved) + self.stopped

    def spares(self, index: int) -> int:
        return self.options[index].fleet.offer.spare_replicas

    def most(self, max_utilisation: float) -> dict[int, int]:
        """Per used option: replicas that carry all of its classes, with spares; or all that run today."""
        loads = dict.fromkeys(self.used, 0.0)
        for one, index in self.pairs:
            loads[index] += self.options[index].load_of(one)
        today = {index: group.today for group in self.groups for index in group.members}
        return {
            index: max(
                math.ceil(load / self.options[index].usable_replicas(max_utilisation)) + self.spares(index),
                today.get(index, 0),
            )
            for index, load in loads.items()
        }


def lay_out(
    demand: Demand,
    options: tuple[Option, ...],
    loaded: Sequence[WorkloadClass],
    fitting: Mapping[str, Sequence[int]],
) -> Columns:
    used = tuple(sorted({index for indices in fitting.values() for index in indices}))
    groups, stopped = groups_of(demand, options, used) if demand.solve.switch_usd_per_replica else ([], 0)
    return Columns(
        options=options,
        used=used,
        pairs=tuple((one, index) for one in loaded for index in fitting[one.name]),
        spared=tuple(index for index in used if options[index].fleet.offer.spare_replicas),
        groups=tuple(groups),
        stopped=stopped,
    )


def groups_of(demand: Demand, options: Sequence[Option], used: Sequence[int]) -> tuple[list[Group], int]:
    """The groups of the used options, and today's replicas of none of them."""
    members: dict[tuple[str, Running | tuple[str, int]], list[int]] = {}
    offers = {fleet.name: fleet for fleet in demand.fleets}
    for index in used:
        option = options[index]
        offer = offers.get(option.fleet.name, option.fleet.offer)
        members.setdefault((offer.name, _running(offer, option) or (option.point.model, option.point.gpus)), []).append(
            index
        )
    groups = [
        Group(fleet, tuple(indices), shape.replicas if isinstance(shape, Running) else 0)
        for (fleet, shape), indices in members.items()
    ]
    running = sum(shape.replicas for fleet in demand.fleets for shape in fleet.today)
    return groups, running - sum(group.today for group in groups)


def _running(offer: FleetOffer, option: Option) -> Running | None:
    """What of the fleet's replicas today is of the option's model and size."""
    found = [
        one
        for one in offer.today
        if one.gpus_per_replica == option.point.gpus and same_model(one.model, option.point.model)
    ]
    return found[0] if found else None
