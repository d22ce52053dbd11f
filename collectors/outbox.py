"""Batches on their way into the spool: in memory, and bounded, while the spool cannot take them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import Any

from collectors.json_logs import log
from collectors.samples import Batch
from collectors.spool import Spool
from collectors.spool_file import SpoolError

MAX_WAITING = 180  # half an hour of batches of 10 s, a few MB


class Outbox:
    """Appends to the spool in order; while the disk is full or the file locked, the newest batches wait in memory."""

    def __init__(self, spool: Spool, max_waiting: int = MAX_WAITING) -> None:
        self._spool = spool
        self._max_waiting = max_waiting
        self._waiting: deque[tuple[Batch, Mapping[str, Any]]] = deque()
        self._lost = 0

    @property
    def waiting(self) -> int:
        """Batches that are only in memory."""
        return len(self._waiting)

    @property
    def lost(self) -> int:
        """Batches given up since the spool last took one; it counts them when it takes the next."""
        return self._lost

    def put(self, batch: Batch, state: Mapping[str, Any]) -> bool:
        """Spool `batch` after those that wait, each with its state. False when some still wait: try again later."""
        self._waiting.append((batch, state))
        while len(self._waiting) > self._max_waiting:
            self._waiting.popleft()
            self._lost += 1
        return self.retry()

    def retry(self) -> bool:
        """Spool what waits. False when some still does."""
        had_trouble = len(self._waiting) > 1
        while self._waiting:
            batch, state = self._waiting[0]
            try:
                self._spool.append(batch, state, lost_batches=self._lost)
            except SpoolError as problem:
                told = {"error": str(problem), "batches_in_memory": len(self._waiting), "batches_lost": self._lost}
                log(logging.ERROR, "the spool takes no batches; they wait in memory", **told)
                return False
            self._waiting.popleft()
            self._lost = 0
        if had_trouble:
            log(logging.INFO, "the spool takes batches again")
        return True
