"""GPUs that hung or crashed the child: left alone for a while, so that the others are read. Pure: times are given."""

from __future__ import annotations

from typing import NamedTuple

LONGEST_S = 600.0


class _Sentence(NamedTuple):
    until_s: float
    wait_s: float
    why: str
    served: bool = False


class Quarantine:
    """Who is left alone, by UUID, or `#<index>` for a GPU that hangs before it tells its UUID.

    first_s: how long the first time; each time after that twice as long, up to ten minutes.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._sentences: dict[str, _Sentence] = {}

    def put(self, gpu: str, why: str, now_s: float) -> None:
        """Leave `gpu` alone from now on."""
        before = self._sentences.get(gpu)
        wait_s = self._first_s if before is None else min(2 * before.wait_s, LONGEST_S)
        self._sentences[gpu] = _Sentence(now_s + wait_s, wait_s, why)

    def held(self) -> dict[str, str]:
        """Those to be left alone -> why."""
        return {gpu: one.why for gpu, one in self._sentences.items() if not one.served}

    def release(self, now_s: float) -> bool:
        """Let those go whose time is over; whether there were any. Who behaves for ten minutes is forgiven."""
        due = [gpu for gpu, one in self._sentences.items() if not one.served and now_s >= one.until_s]
        for gpu in due:
            self._sentences[gpu] = self._sentences[gpu]._replace(served=True)
        self._sentences = {
            gpu: one for gpu, one in self._sentences.items() if not one.served or now_s < one.until_s + LONGEST_S
        }
        return bool(due)
