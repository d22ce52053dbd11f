"""A column's value from the series of one engine, by the sources that its kind's table names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from collectors.engine.series import Number, Series
from collectors.engine.table import FACTORS, Labels, Source

_LARGEST = 2**63 - 1
_WHOLE_PPM = 1_000_000


@dataclass(frozen=True)
class Shown:
    """What a page shows of one engine. block_size: tokens of a KV cache block, None where the page does not tell."""

    series: Mapping[str, Sequence[Series]]
    helps: Mapping[str, str]
    block_size: int | None


def value_of(sources: Iterable[Source], shown: Shown) -> int | None:
    """The value of the first source that the page has, in the column's unit; None where none is there or it is no
    number that the column could hold: a negative one, NaN, a fraction of a token, a share above 1."""
    for source in sources:
        series = shown.series.get(source.metric)
        if not series or not source.holds_in(shown.helps):
            continue
        chosen = _passing(series, source.where)
        if chosen or source.zero_without:
            return _in_unit(_combined(chosen, source), series, source, shown.block_size)
    return None


def _in_unit(number: Number | None, series: Sequence[Series], source: Source, block_size: int | None) -> int | None:
    if number is not None and source.share_of is not None:
        whole = _combined(_passing(series, source.share_of), source)
        number = number / whole if whole else None
    if number is None or not 0 <= number * FACTORS[source.unit] <= _LARGEST:
        return None
    if source.unit != "count":
        value = round(number * FACTORS[source.unit])
        return None if source.unit == "ratio" and value > _WHOLE_PPM else value
    if number != int(number):
        return None
    if not source.in_blocks:
        return int(number)
    return None if block_size is None else int(number) * block_size


def _passing(series: Sequence[Series], where: Labels) -> list[Series]:
    return [one for one in series if all(one.labels.get(name) in values for name, values in where.items())]


def _combined(series: Sequence[Series], source: Source) -> Number | None:
    """One number of several series; None when one of them has none."""
    values = [one.value for one in series if one.value is not None and one.value >= 0]
    if len(values) < len(series):
        return None
    if source.largest:
        return max(values, default=0)
    if not source.copies:
        return sum(values)
    largest: defaultdict[frozenset[tuple[str, str]], Number] = defaultdict(int)
    for one, value in zip(series, values, strict=True):
        others = frozenset(pair for pair in one.labels.items() if pair[0] not in source.copies)
        largest[others] = max(largest[others], value)
    return sum(largest.values())
