"""Looks at every page on time: each look has a thread of its own, so that one that hangs holds up no other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from collectors.engine.server import EngineServer, Look
from collectors.json_logs import log

MAX_AT_ONCE = 64
_GOLDEN = 0.618  # its multiples, less their whole parts, never come close together


@dataclass
class _Page:
    server: EngineServer
    spread: float
    next_s: float = 0.0
    is_first: bool = True
    is_busy: bool = False


class Schedule:
    """Each page every `every_s` seconds, at most one look at a page and MAX_AT_ONCE looks at a time.

    on_look: called with the page's URL and what was seen, in the look's thread. Pages are spread over the interval
    after their first look, which comes at once.
    """

    def __init__(self, every_s: float, on_look: Callable[[str, Look], None]) -> None:
        self._every_s = every_s
        self._on_look = on_look
        self._pages: dict[str, _Page] = {}
        self._added = 0
        self._news = threading.Condition()
        self._is_stopping = False

    def add(self, url: str, server: EngineServer) -> None:
        with self._news:
            self._added += 1
            self._pages[url] = _Page(server, self._added * _GOLDEN % 1)
            self._news.notify_all()

    def remove(self, url: str) -> None:
        with self._news:
            self._pages.pop(url, None)

    def start(self) -> None:
        threading.Thread(target=self._run, name="engines", daemon=True).start()

    def stop(self) -> None:
        """No further looks; those under way end by themselves."""
        with self._news:
            self._is_stopping = True
            self._news.notify_all()

    def _run(self) -> None:
        with self._news:
            while not self._is_stopping:
                now_s = time.monotonic()
                room = MAX_AT_ONCE - sum(page.is_busy for page in self._pages.values())
                idle = sorted((page.next_s, url) for url, page in self._pages.items() if not page.is_busy)
                for next_s, url in idle[:room]:
                    if next_s <= now_s:
                        self._begin(url, now_s)
                waiting = [page.next_s for page in self._pages.values() if not page.is_busy and page.next_s > now_s]
                self._news.wait(min(waiting) - now_s if waiting else None)

    def _begin(self, url: str, now_s: float) -> None:
        page = self._pages[url]
        page.is_busy = True
        if page.is_first:
            page.next_s, page.is_first = now_s + self._every_s * (1 + page.spread) / 2, False
        else:
            # What was slept through is not made up for.
            page.next_s = max(page.next_s + self._every_s, now_s)
        threading.Thread(target=self._look, args=(url, page), name="engine look", daemon=True).start()

    def _look(self, url: str, page: _Page) -> None:
        try:
            self._on_look(url, page.server.look())
        except Exception as problem:  # whatever it is, the page is looked at again
            log(logging.ERROR, "a look at an engine failed", url=url, error=f"{type(problem).__name__}: {problem}")
        finally:
            with self._news:
                page.is_busy = False
                self._news.notify_all()
