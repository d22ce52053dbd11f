"""Which options no best answer needs, because another of the same fleet and size is no worse in any respect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.split.demand import WorkloadClass
from app.split.options import Option

_Shape = tuple[str, str, int, bool]


def without_dominated(
    classes: Sequence[WorkloadClass], options: Sequence[Option], fitting: Mapping[str, Sequence[int]]
) -> dict[str, list[int]]:
    """`fitting` without options that another of the same fleet, model and size beats in every respect.

    Let the other take over all replicas and shares: each class loads it by no more, each watt, dollar and gram is no
    more, spares are needed in one pool rather than two, and fleet, model and size, by which GPUs, shares and switching
    are counted, stay. So it holds under every kind of limit. Without this, near-like runs of one shape make the
    search symmetric and slow.
    """
    loads: dict[int, dict[str, float]] = {}
    for one in classes:
        for index in fitting[one.name]:
            loads.setdefault(index, {})[one.name] = options[index].load_of(one)
    known = {index: _Demands(options[index], of_classes) for index, of_classes in loads.items()}
    kept: dict[_Shape, list[_Demands]] = {}
    needed = set[int]()
    # What beats an option comes before it, and what beats a beaten one beats that, too: the kept ones are enough.
    for index in sorted(known, key=lambda index: (*known[index].order, index)):
        mine = known[index]
        rivals = kept.setdefault(mine.shape, [])
        if not any(rival.beats(mine) for rival in rivals):
            rivals.append(mine)
            needed.add(index)
    return {name: [index for index in indices if index in needed] for name, indices in fitting.items()}


class _Demands:
    """What an option takes: idle W, and for each class that may use it replicas and W above idle. Less is better.

    order: none that is beaten comes before one that beats it, but for its like.
    """

    def __init__(self, option: Option, loads: Mapping[str, float]) -> None:
        self.shape = _shape(option)
        self._idle_w = option.point.idle_w or 0.0
        self._by_class = {name: (load, load * option.load_w) for name, load in loads.items()}
        self.order = (-len(loads), self._idle_w, tuple(self._by_class.values()))

    def beats(self, other: _Demands) -> bool:
        """In every respect no worse; of two alike both do."""
        mine = self._by_class
        return self._idle_w <= other._idle_w and all(
            name in mine and mine[name][0] <= load and mine[name][1] <= load_w
            for name, (load, load_w) in other._by_class.items()
        )


def _shape(option: Option) -> _Shape:
    """Unknown power is comparable with unknown power only."""
    point = option.point
    return option.fleet.name, point.model, point.gpus, point.power_w(1.0) is None
