"""The series of a metrics page that a reader needs, found without parsing the rest of the page.

An engine's page has hundreds of lines of which a fifth matters, and prometheus_client takes some 20 microseconds for
each. So lines are found by their prefix, only those of wanted names are parsed, and a series' name and labels once for
all looks: they stay, only the value changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from collectors.engine.table import PROCESS_START, EngineTable

Number = int | float
MAX_LINES = 200_000  # of the engine's own metrics
MAX_SERIES = 20_000
MAX_PARSED_CHARS = 4_000_000  # prometheus_client takes a second or two for them
MAX_LINE_CHARS = 8_192
_REMEMBERED_CHARS = 512
_HELP_CHARS = 1_000
_LABELLED = re.compile(r'[^{]*\{(?:[^"}]|"(?:\\.|[^"\\])*")*\}')


class PageError(ValueError):
    """A page that cannot be read as a whole; the message is for a person."""


class Series(NamedTuple):
    """A series of a page; value is None where the page shows none that can be read, or two that differ."""

    name: str
    labels: Mapping[str, str]
    value: Number | None


@dataclass(frozen=True)
class Found:
    """helps: metric -> its help, of those whose help matters."""

    series: list[Series]
    helps: Mapping[str, str]


class _Head(NamedTuple):
    """A line without its value; `identity` is the same however the labels are ordered."""

    name: str
    labels: Mapping[str, str]
    identity: tuple[str, tuple[tuple[str, str], ...]]


def find_series(text: str, table: EngineTable) -> Found:
    """The series of `text` that `table` names. Raises PageError where there are too many of them."""
    helps = {metric: _help(text, metric) for metric in table.explained}
    names = table.names_for(helps)
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Series] = {}
    budget = MAX_PARSED_CHARS
    for line in _lines(text, (*table.prefixes, PROCESS_START)):
        written, value = _split(line, names)
        if written is None:
            continue
        head = _head(written) if len(written) <= _REMEMBERED_CHARS else _parse(written)
        budget -= len(line)
        if budget < 0 or len(found) >= MAX_SERIES:
            most = f"at most {MAX_SERIES} of them, and {MAX_PARSED_CHARS} characters, are read"
            raise PageError(f"the page shows too many series of {table.name}: {most}")
        if head is None:
            continue
        known = found.get(head.identity)
        number = _number(value)
        # A page that contradicts itself tells nothing.
        same = known is None or known.value == number
        found[head.identity] = Series(head.name, head.labels, number if same else None)
    return Found(list(found.values()), helps)


def shows(text: str, prefix: str) -> bool:
    """Whether `text` has a metric whose name begins so: a series of it, or its TYPE where there is none yet."""
    return text.startswith(prefix) or f"\n{prefix}" in text or f"# TYPE {prefix}" in text


def _lines(text: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    """Lines that begin with a prefix; searched for, so that the others cost next to nothing."""
    left = MAX_LINES
    for prefix in prefixes:
        for start in _starts(text, prefix):
            left -= 1
            if left < 0:
                raise PageError(f"the page has more than {MAX_LINES} lines of {prefix}*")
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            if end - start <= MAX_LINE_CHARS:
                yield text[start:end]


def _starts(text: str, prefix: str) -> Iterator[int]:
    if text.startswith(prefix):
        yield 0
    wanted = f"\n{prefix}"
    at = text.find(wanted)
    while at >= 0:
        yield at + 1
        at = text.find(wanted, at + 1)


def _split(line: str, names: frozenset[str]) -> tuple[str | None, str]:
    """The line up to its value, and the rest; None for a name that is not wanted."""
    if (brace := line.find("{")) >= 0:
        if line[:brace].rstrip() not in names:
            return None, ""
        # Only an exemplar can bring a brace after the labels: then their end is looked for, past quoted ones.
        labelled = _LABELLED.match(line) if " # {" in line else None
        end = labelled.end() if labelled else line.rfind("}") + 1
        return line[:end], line[end:]
    name, _, value = line.partition(" ")
    return (name, value) if name in names else (None, "")


@lru_cache(maxsize=8_192)
def _head(written: str) -> _Head | None:
    return _parse(written)


def _parse(written: str) -> _Head | None:
    """Name and labels by prometheus_client's own reading; None for what it cannot read."""
    try:
        sample = next(iter(text_string_to_metric_families(f"{written} 0"))).samples[0]
    except (ValueError, LookupError, StopIteration):
        return None
    return _Head(sample.name, sample.labels, (sample.name, tuple(sorted(sample.labels.items()))))


def _number(rest: str) -> Number | None:
    """The value after a series' labels; a time stamp may follow it."""
    parts = rest.split(None, 1)
    if not parts or "_" in parts[0]:
        return None
    try:
        number = int(parts[0]) if parts[0].isdecimal() else float(parts[0])
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _help(text: str, metric: str) -> str:
    mark = f"# HELP {metric} "
    start = text.find(mark)
    if start < 0:
        return ""
    end = text.find("\n", start)
    return text[start + len(mark) : min(len(text) if end < 0 else end, start + _HELP_CHARS)]
