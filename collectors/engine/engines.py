"""Which engines a page is about, and which of its series are whose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collectors.engine.series import Found, PageError, Series
from collectors.engine.table import PROCESS_START, EngineTable

MAX_ENGINES = 256
_LONGEST_LABEL, _LONGEST_MODEL = 500, 200
_LATEST_US = 4_102_444_800_000_000  # the year 2100, as samples.Micros

_Owner = tuple[str | None, str | None]


@dataclass(frozen=True)
class PageEngine:
    """An engine of a page with its series by name. block_size: of its KV cache, in tokens; None where not told."""

    label: str
    model: str | None
    started_us: int | None
    block_size: int | None
    series: Mapping[str, Sequence[Series]]


@dataclass
class _Groups:
    """page: series of the page as a whole, by name. owned: of one engine, or of all where its label is missing."""

    page: defaultdict[str, list[Series]] = field(default_factory=lambda: defaultdict(list))
    owned: dict[_Owner, defaultdict[str, list[Series]]] = field(default_factory=dict)


def engines_of(found: Found, table: EngineTable) -> list[PageEngine]:
    """The engines of a page in order of label and model. Raises PageError when there are too many to tell apart."""
    groups = _grouped(found.series, table)
    owned = _with_shared(groups.owned)
    if any(table.only_with & series.keys() for series in owned.values()):
        owned = {owner: series for owner, series in owned.items() if table.only_with & series.keys()}
    engines = [_engine(owner, series, groups.page, table) for owner, series in owned.items()]
    if len({(engine.label, engine.model) for engine in engines}) < len(engines):
        raise PageError(f"the page shows engines whose names are alike in their first {_LONGEST_MODEL} characters")
    return sorted(engines, key=lambda engine: (engine.label, engine.model or ""))


def _grouped(found: Sequence[Series], table: EngineTable) -> _Groups:
    groups = _Groups()
    page_names = {PROCESS_START, table.block_size[0] if table.block_size else PROCESS_START}
    for series in found:
        if series.name in page_names:
            groups.page[series.name].append(series)
            continue
        owner = _owner(series.labels, table)
        if owner not in groups.owned:
            if len(groups.owned) >= MAX_ENGINES:
                raise PageError(f"the page shows more than {MAX_ENGINES} engines")
            groups.owned[owner] = defaultdict(list)
        groups.owned[owner][series.name].append(series)
    return groups


def _owner(labels: Mapping[str, str], table: EngineTable) -> _Owner:
    label = labels.get(table.engine_label) if table.engine_label else None
    return label, next((labels[name] for name in table.model_labels if labels.get(name)), None)


def _with_shared(owned: dict[_Owner, defaultdict[str, list[Series]]]) -> dict[_Owner, defaultdict[str, list[Series]]]:
    """The engines' series, and on a page whose only engine has a label also those that have none.

    Beside several engines nobody knows whose a count without a label is: it is nobody's.
    """
    labelled = {owner: series for owner, series in owned.items() if owner[0] is not None}
    if not labelled:
        return owned
    if len(labelled) == 1:
        (_, model), mine = next(iter(labelled.items()))
        for (label, of_model), shared in owned.items():
            if label is None and of_model in (None, model):
                for name, series in shared.items():
                    mine[name].extend(series)
    return labelled


def _engine(
    owner: _Owner, series: Mapping[str, list[Series]], page: Mapping[str, list[Series]], table: EngineTable
) -> PageEngine:
    label, model = owner
    return PageEngine(
        label=_printable(label or "", _LONGEST_LABEL),
        model=None if model is None else _printable(model, _LONGEST_MODEL),
        started_us=_started_us(series, page, table),
        block_size=_block_size(label, page, table),
        series=series,
    )


def _started_us(series: Mapping[str, list[Series]], page: Mapping[str, list[Series]], table: EngineTable) -> int | None:
    told = page.get(PROCESS_START) or (series.get(table.created) if table.created else None) or []
    seconds = [one.value for one in told]
    if len(seconds) != 1 or seconds[0] is None or not 0 < seconds[0] * 1_000_000 <= _LATEST_US:
        return None
    return round(seconds[0] * 1_000_000)


def _block_size(label: str | None, page: Mapping[str, list[Series]], table: EngineTable) -> int | None:
    if table.block_size is None:
        return None
    metric, name = table.block_size
    mine = [one.labels for one in page.get(metric, ()) if one.labels.get(table.engine_label or "") in (None, label)]
    sizes = {labels.get(name, "") for labels in mine}
    size = sizes.pop() if len(sizes) == 1 else ""
    return int(size) if size.isdecimal() and len(size) < 7 and int(size) else None


def _printable(name: str, longest: int) -> str:
    """A name as a row can hold it."""
    return "".join(char if char.isprintable() else " " for char in name[:longest])
