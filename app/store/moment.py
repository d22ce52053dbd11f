"""One moment of the store, for several reads: what is committed meanwhile is not seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl

from app.store.database import Query, Store
from app.store.kept import Block, Kept, Made


class Moment:
    """Reads that are repeated, as those of names are, are made once: the moment stays what it was."""

    def __init__(self, query: Query, kept: Kept, versions: Mapping[int, int]) -> None:
        self._query = query
        self._kept = kept
        self._versions = versions
        self._known: dict[tuple[Any, ...], pl.DataFrame] = {}

    def query(self, sql: str, parameters: list[Any] | dict[str, Any] | None = None) -> pl.DataFrame:
        if isinstance(parameters, dict):
            return self._query(sql, parameters)
        key = (sql, *(parameters or ()))
        if key not in self._known:
            self._known[key] = self._query(sql, parameters or [])
        return self._known[key]

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """See Kept."""
        return self._kept.once(what, make)

    def blocks(
        self, what: Hashable, blocks: Sequence[Block], start: str, read: Callable[[Sequence[Block]], pl.DataFrame]
    ) -> pl.DataFrame:
        """See Reader."""
        found = {block: self._kept.get(what, block, self._versions) for block in blocks}
        missing = [block for block, rows in found.items() if rows is None]
        if missing:
            rows = read(missing)
            length_us = missing[0][1] - missing[0][0]
            dated = rows.with_columns((pl.col(start) // length_us * length_us).alias("block_us"))
            by_block = dated.partition_by("block_us", as_dict=True, include_key=False)
            for block in missing:
                of_block = found[block] = by_block.get((block[0],), rows.clear())
                self._kept.put(what, block, self._versions, of_block)
        return pl.concat([rows for rows in found.values() if rows is not None])


@contextmanager
def moment(store: Store) -> Iterator[Moment]:
    with store.versioned_snapshot() as (query, versions):
        yield Moment(query, store.kept, versions)
