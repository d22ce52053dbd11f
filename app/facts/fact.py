"""One fact: what holds of a subject from a moment on, since when that is known, and from where."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from app.facts.kinds import FactValue, Kind, value_content


@dataclass(frozen=True)
class Fact:
    """value: None ends what held until valid_from. Facts are added and never changed."""

    kind: Kind
    subject: str
    valid_from: datetime
    known_at: datetime
    source: str
    value: FactValue | None

    @property
    def identity(self) -> tuple[str, str, datetime, datetime, str, str | None]:
        """What tells facts apart."""
        return self.kind, self.subject, self.valid_from, self.known_at, self.source, self.value_json

    @cached_property
    def value_json(self) -> str | None:
        """The value in one spelling; None where the fact ends another."""
        return None if self.value is None else json.dumps(value_content(self.value), sort_keys=True)

    @property
    def order(self) -> tuple[datetime, datetime, str, str]:
        """Of facts about the same, the greatest is in force; equal times are told apart by what the facts say."""
        return self.valid_from, self.known_at, self.source, self.value_json or ""


def in_order(facts: Iterable[Fact]) -> list[Fact]:
    """By kind, subject and the order in which they come into force."""
    return sorted(facts, key=lambda fact: (fact.kind, fact.subject, *fact.order))
