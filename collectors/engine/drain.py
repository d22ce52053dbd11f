"""What the engine collector hands over for a batch: engines, their rows, what is missing, and the state behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from collectors.engine.gpus import Placement, Served
from collectors.engine.placer import Placer
from collectors.engine.rows import EngineKey, Row, as_lists, bounds_by_engine, table_of
from collectors.engine.targets import EngineTarget
from collectors.engine.watch import GONE, Known
from collectors.samples import Engine, EngineSamples

_MOST_ENGINES = 1024  # a batch holds no more
_MOST_REASONS = 50
_MAX_TEXT = 500


@dataclass(frozen=True)
class Page:
    """A page under watch: its engines, each with its own status, and the status of the page as a whole."""

    target: EngineTarget
    status: str
    engines: Sequence[tuple[Known, str]]


@dataclass(frozen=True)
class EngineDrain:
    """What was seen since the last drain.

    engines: every engine known; the table's `engine` points into it. missing: `engine <host:port>...` -> why, in words.
    state: what to give to the next meter so that it continues just after these rows; keep it together with them.
    """

    engines: list[Engine] = field(default_factory=list)
    samples: EngineSamples | None = None
    missing: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)


def drain_of(
    pages: Sequence[Page], rows: Sequence[Row], placer: Placer, missing: Mapping[str, str], state: dict[str, Any]
) -> EngineDrain:
    """The drain of these pages. missing: reasons that concern no page."""
    targets = {page.target.url: page.target for page in pages}
    every = _every(pages, rows)
    listed = dict(list(every.items())[:_MOST_ENGINES])
    placements = placer.placements(
        [Served(url, _labels(url, listed), target.gpus, placer.pids.get(url, ())) for url, target in targets.items()]
    )
    bounds = bounds_by_engine(rows)
    engines = [
        _engine(
            key, known, status, targets[key[0]],
            Placement(None) if status == GONE else placements[key[0], key[1]],
            as_lists(bounds.get(key, {})),
        )
        for key, (known, status) in listed.items()
    ]  # fmt: skip
    reasons = {**missing, **_page_reasons(pages, listed), **_gpu_reasons(engines, placements)}
    if len(every) > len(listed):
        reasons["engines"] = f"of {len(every)} engines only {len(listed)} are told: a batch holds no more"
    samples = table_of([row for row in rows if row.key in listed], engines)
    return EngineDrain(engines, samples, dict(list(reasons.items())[:_MOST_REASONS]), state)


def _every(pages: Sequence[Page], rows: Sequence[Row]) -> dict[EngineKey, tuple[Known, str]]:
    """All engines with their status: those that have rows first, then the others of the pages."""
    known = {(page.target.url, one.label, one.model): (one, status) for page in pages for one, status in page.engines}
    # An engine may have been renamed since its row.
    with_rows = {row.key: (Known.of(row.interval.reading, row.interval.t_us), "ok") for row in rows}
    return {key: known.get(key, of_row) for key, of_row in with_rows.items()} | known


def _labels(url: str, listed: Mapping[EngineKey, tuple[Known, str]]) -> tuple[str, ...]:
    """The labels of a page's engines; one that it no longer shows shares no GPU with the others."""
    return tuple(dict.fromkeys(label for (at, label, _), (_, status) in listed.items() if at == url and status != GONE))


def _engine(
    key: EngineKey, known: Known, status: str, target: EngineTarget, placement: Placement, bounds: dict[str, list[int]]
) -> Engine:
    return Engine(
        url=key[0],
        label=key[1],
        model=key[2],
        kind=known.kind,
        version=known.version,
        started_us=known.started_us,
        gpus=None if placement.gpus is None else list(placement.gpus),
        gpus_source=placement.source,
        labels=target.labels,
        status=status[:_MAX_TEXT],
        **bounds,
    )


def _page_reasons(pages: Sequence[Page], listed: Mapping[EngineKey, object]) -> dict[str, str]:
    """Why a page shows no engine at all; an engine that is listed has its own status."""
    shown = {url for url, _, _ in listed}
    silent = [page for page in pages if page.target.url not in shown]
    empty = "its page shows no engine yet: some show none before their first request"
    return {_name(page.target.url): empty if page.status == "ok" else page.status for page in silent}


def _gpu_reasons(engines: Sequence[Engine], placements: Mapping[tuple[str, str], Placement]) -> dict[str, str]:
    """Why an engine's GPUs are not known; of one that is down its status says enough."""
    reasons: dict[str, str] = {}
    for engine in engines:
        if engine.status == "ok" and (why := placements[engine.url, engine.label].reason) is not None:
            reasons[f"{_name(engine.url)}{f' {engine.label}' if engine.label else ''}.gpus"] = why
    return reasons


def _name(url: str) -> str:
    return f"engine {urlsplit(url).netloc}"
