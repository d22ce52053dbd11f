"""Classes that a program need not tell apart while it counts replicas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from app.split.demand import WorkloadClass
from app.split.options import Option


def merge_alike(
    classes: Sequence[WorkloadClass], options: Sequence[Option], fitting: Mapping[str, Sequence[int]]
) -> tuple[list[WorkloadClass], dict[str, Sequence[int]]]:
    """`classes` with those that may use the same options, in the same proportion of loads, added up to one.

    Whatever replicas carry the sum carry each of them in the same shares, and back: the least cost is the same, with
    fewer columns. Classes with share limits stay by themselves.
    """
    merged: list[WorkloadClass] = []
    found: dict[str, Sequence[int]] = {}
    for one in classes:
        place = next(
            (n for n, other in enumerate(merged) if _alike(one, other, options, fitting[one.name], found)), None
        )
        if place is None:
            merged.append(one)
            found[one.name] = fitting[one.name]
            continue
        other, index = merged[place], fitting[one.name][0]
        factor = 1 + options[index].load_of(one) / options[index].load_of(other)
        merged[place] = other.model_copy(update={"requests_per_s": other.requests_per_s * factor})
    return merged, found


def _alike(
    one: WorkloadClass,
    other: WorkloadClass,
    options: Sequence[Option],
    fitting: Sequence[int],
    found: Mapping[str, Sequence[int]],
) -> bool:
    if one.share or other.share or list(fitting) != list(found[other.name]):
        return False
    ratios = [options[index].load_of(one) / options[index].load_of(other) for index in fitting]
    return all(math.isclose(ratio, ratios[0], rel_tol=1e-12) for ratio in ratios)
