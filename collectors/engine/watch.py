"""What is known of one metrics page: its engines from look to look, while it is down, and across the agent's runs."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from collectors.engine.difference import Differences, Interval, Key
from collectors.engine.reading import EngineReading
from collectors.engine.server import Look
from collectors.engine.targets import EngineTarget
from collectors.json_logs import log
from collectors.samples import EngineKind

LISTED_US = 3_600_000_000
MAX_KNOWN = 512
NOT_YET = "not read yet"
GONE = "its page no longer shows it"
_LOOKS_REMEMBERED = 256


@dataclass
class Known:
    """The last that was seen of an engine. seen_us: when its page showed it last."""

    kind: EngineKind
    label: str
    model: str | None
    version: str | None
    started_us: int | None
    seen_us: int

    @classmethod
    def of(cls, reading: EngineReading, seen_us: int) -> Known:
        return cls(reading.kind, reading.label, reading.model, reading.version, reading.started_us, seen_us)


@dataclass
class _State:
    """looked_us: when the page was last had."""

    differences: Any = None
    kind: EngineKind | None = None
    model: str | None = None
    looked_us: int = 0
    known: list[Known] = field(default_factory=list)


_STATE = TypeAdapter(_State)


class Watch:
    """One page. Not thread-safe: the meter's lock is around every call.

    state: as `state()` gave it; one of another shape counts as absent, and is logged. found: by discovery, and not
    configured.
    """

    def __init__(self, target: EngineTarget, state: object = None, *, found: bool = False) -> None:
        self.target = target
        self.found = found
        self.status = NOT_YET
        self._state, self._differences = _restored(target.url, state)
        self._known: dict[Key, Known] = {(one.label, one.model): one for one in self._state.known}
        self._shown: frozenset[Key] = frozenset()
        self._looks: OrderedDict[int, float] = OrderedDict()

    @property
    def kind(self) -> EngineKind | None:
        return self._state.kind

    @property
    def model(self) -> str | None:
        """The model that engines without one in the page were given last."""
        return self._state.model

    @property
    def looked_us(self) -> int:
        """When the page was last had; 0: never."""
        return self._state.looked_us

    @property
    def was_looked_at(self) -> bool:
        return self.status != NOT_YET

    @property
    def started_us(self) -> int | None:
        """When the process began that shows the page, if each of its engines tells the same."""
        starts = {known.started_us for key, known in self._known.items() if key in self._shown}
        return starts.pop() if len(starts) == 1 else None

    @property
    def shown(self) -> frozenset[Key]:
        """The engines on the page at the last look that had one."""
        return self._shown

    def take(self, look: Look) -> list[Interval]:
        """What the engines did up to this look."""
        t_us = look.at.t_us
        if look.reason is not None:
            self.status = look.reason
            self._differences.missed(t_us, refused=look.refused)
            if look.refused:
                self._remember(look)
            return []
        self.status = "ok"
        intervals = [self._steady(interval, look) for interval in self._differenced(look)]
        self._remember(look)
        readings = _named(look.readings, look.model)
        self._shown = frozenset((reading.label, reading.model) for reading in readings)
        self._known |= {(reading.label, reading.model): Known.of(reading, t_us) for reading in readings}
        for key in sorted(self._known, key=lambda key: self._known[key].seen_us)[
            : max(len(self._known) - MAX_KNOWN, 0)
        ]:
            del self._known[key]
        self._state.kind, self._state.model, self._state.looked_us = look.kind, look.model, t_us
        return intervals

    def _differenced(self, look: Look) -> list[Interval]:
        unnamed = any(reading.model is None for reading in look.readings)
        renamed = unnamed and self.looked_us and look.model != self.model and not look.is_new
        intervals: list[Interval] = []
        if renamed:
            # The same process by another name: what it did so far goes by the old one, and the new one begins here.
            intervals = self._differences.look(_named(look.readings, self.model), look.at.t_us)
            self._differences = Differences()
            self._known = {}
        return intervals + self._differences.look(_named(look.readings, look.model), look.at.t_us)

    def _remember(self, look: Look) -> None:
        self._looks[look.at.t_us] = look.at.mono_s
        if len(self._looks) > _LOOKS_REMEMBERED:
            self._looks.popitem(last=False)

    def _steady(self, interval: Interval, look: Look) -> Interval:
        """The interval's length by the clock that is never set, where its beginning is a look of this run."""
        began_s = self._looks.get(interval.t_us - interval.dt_us)
        if began_s is None:
            return interval
        return replace(interval, dt_us=max(round((look.at.mono_s - began_s) * 1e6), 1))

    def engines(self, now_us: int) -> list[tuple[Known, str]]:
        """The engines of the page with their status, as long as they were seen in the last hour."""
        return [
            (known, self._status_of(key))
            for key, known in sorted(self._known.items(), key=lambda item: (item[0][0], item[0][1] or ""))
            if now_us - known.seen_us < LISTED_US
        ]

    def _status_of(self, key: Key) -> str:
        if self.status != "ok" or key in self._shown:
            return self.status
        return GONE if self._shown else "its page shows no figures before a first request"

    def state(self) -> dict[str, Any]:
        """All that is known, as JSON can hold it."""
        return {
            "differences": self._differences.state(),
            "kind": self.kind,
            "model": self.model,
            "looked_us": self.looked_us,
            "known": [asdict(known) for known in self._known.values()],
        }


def _restored(url: str, state: object) -> tuple[_State, Differences]:
    try:
        known = _State() if state is None else _STATE.validate_python(state)
        return known, Differences(known.differences)
    except (ValidationError, ValueError) as problem:
        told = str(problem).splitlines()[0]
        log(logging.ERROR, "what was kept of an engine is of no use; its counts begin anew", url=url, error=told)
        return _State(), Differences()


def _named(readings: Sequence[EngineReading], model: str | None) -> list[EngineReading]:
    return [replace(reading, model=model) if reading.model is None and model else reading for reading in readings]


def last_seen_us(state: object) -> int:
    """When the page of a kept state was last had; 0 where it does not tell."""
    looked_us = state.get("looked_us") if isinstance(state, Mapping) else None
    return looked_us if isinstance(looked_us, int) else 0
