"""Which options no best answer needs, because another of the same fleet and size is no worse in any respect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.split.demand import WorkloadClass
from app.split.options import Option


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

    def beats(one: int, other: int) -> bool:
        if _shape(options[one]) != _shape(options[other]) or not loads[one].keys() >= loads[other].keys():
            return False
        gains = list(_gains(options[one], options[other], loads[one], loads[other]))
        like = loads[one].keys() == loads[other].keys() and not any(gains)
        return all(gain >= 0 for gain in gains) and (not like or one < other)

    kept = {index for index in loads if not any(beats(other, index) for other in loads if other != index)}
    return {name: [index for index in indices if index in kept] for name, indices in fitting.items()}


def _shape(option: Option) -> tuple[str, str, int, bool]:
    """Unknown power is comparable with unknown power only."""
    point = option.point
    return option.fleet.name, point.model, point.gpus, point.power_w(1.0) is None


def _gains(a: Option, b: Option, loads_a: Mapping[str, float], loads_b: Mapping[str, float]) -> list[float]:
    """In what a is better than b, > 0, or worse, < 0."""
    idle = (b.point.idle_w or 0.0) - (a.point.idle_w or 0.0)
    gains = [idle]
    for name, load in loads_b.items():
        gains += [load - loads_a[name], load * b.load_w - loads_a[name] * a.load_w]
    return gains
