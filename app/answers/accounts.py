"""Accounts of periods, each in lines by what is asked for and as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.accounting.account import Account
from app.accounting.bill import Bill
from app.accounting.periods import Period
from app.answers.query import AccountQuery

Key = tuple[tuple[str, str | None], ...]
TOTAL: Key = ()
_KEYS: Mapping[str, tuple[str, ...]] = {
    "none": (), "fleet": ("fleet",), "model": ("model",), "fleet_model": ("fleet", "model"), "node": ("node",),
    "gpu": ("gpu",), "replica": ("fleet", "model", "node", "url", "engine"),
}  # fmt: skip
# What a key says more, where a row tells it.
_MORE: Mapping[str, tuple[str, ...]] = {"gpu": ("node", "gpu_name")}


@dataclass
class Accounts:
    """lines: by period and key; totals: by period, whatever the lines are grouped by. now: the hub's clock."""

    query: AccountQuery
    periods: Sequence[Period]
    now: datetime
    lines: dict[tuple[int, Key], Account] = field(default_factory=dict)
    totals: dict[int, Account] = field(default_factory=dict)
    _more: dict[Key, dict[str, str | None]] = field(default_factory=dict)

    @property
    def keys(self) -> list[Key]:
        """Of all periods, in order; what belongs to none comes last."""
        keys = {key for _, key in self.lines}
        return sorted(keys, key=lambda key: [(value is None, value or "") for _, value in key])

    @property
    def is_split_by_engine(self) -> bool:
        """Whether a GPU that engines share has parts in several lines."""
        return self.query.by in ("model", "fleet_model", "replica") or self.query.label is not None

    def named(self, key: Key) -> dict[str, str | None]:
        """The key for people: of a GPU also its node and card."""
        return dict(key) | self._more.get(key, {})

    def line(self, period: int, key: Key) -> Account:
        """An account without anything in it where there was nothing."""
        return self.lines.get((period, key)) or self._empty(period)

    def total(self, period: int = 0) -> Account:
        return self.totals.get(period) or self._empty(period)

    def whole(self, period: int) -> Account:
        """The total of a period, to add to."""
        if period not in self.totals:
            self.totals[period] = self._empty(period)
        return self.totals[period]

    def of(self, period: int, row: Mapping[str, Any]) -> tuple[Account, ...]:
        """What a row counts to: its line and the total, or both in one."""
        total = self.whole(period)
        key = self._key(row)
        if key == TOTAL:
            self.lines[period, TOTAL] = total
            return (total,)
        line = self.lines.get((period, key))
        if line is None:
            line = self.lines[period, key] = self._empty(period)
        for name in _MORE.get(self.query.by, ()):
            if row.get(name) is not None:
                self._more.setdefault(key, {})[name] = row[name]
        return line, total

    def _key(self, row: Mapping[str, Any]) -> Key:
        names = ("label",) if self.query.label is not None else _KEYS[self.query.by]
        return tuple((name, row.get(name)) for name in names)

    def _empty(self, period: int) -> Account:
        of = self.periods[period]
        seconds = (min(of.end, self.now) - of.start).total_seconds()
        return Account(Bill(self.query.boundary), self.query.basis, self.query.view, max(seconds, 0.0))
