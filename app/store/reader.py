"""What rows are read from: a Store, or a moment of it that keeps what it has read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import polars as pl

from app.store.kept import Block, Made


class Reader(Protocol):
    def query(self, sql: str, parameters: list[Any] | dict[str, Any] | None = None) -> pl.DataFrame: ...

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` says, or has said before. what: all that it depends on."""
        ...

    def blocks(
        self, what: Hashable, blocks: Sequence[Block], start: str, read: Callable[[Sequence[Block]], pl.DataFrame]
    ) -> pl.DataFrame:
        """Rows of blocks, at least one, each dated by its column `start`: what is not kept of them is read."""
        ...
