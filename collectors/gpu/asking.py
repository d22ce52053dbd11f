"""Asking one GPU: every field fails alone, a refusal is remembered, a nonsensical answer is dropped and counted."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from collectors.gpu.words import LOSSES, REFUSALS, UNINITIALIZED, UNKNOWN, code_of, code_words, why_missing

T = TypeVar("T")
Number = TypeVar("Number", int, float)


class GpuLost(Exception):
    """The GPU does not answer any more; the others may."""


class NvmlGone(Exception):
    """NVML was shut down under us: only a new process helps."""


class Asker:
    """The questions put to one GPU. missing: field -> why it has no value now; rejected: answers out of range."""

    def __init__(self, nvml: ModuleType, mono_us: Callable[[], int], reprobe_us: int) -> None:
        self.missing: dict[str, str] = {}
        self.rejected = 0
        self.unknown_errors = 0
        self._problems = _problems(nvml)
        self._refusing = (getattr(nvml, "NVMLLibraryMismatchError", AttributeError), AttributeError)
        self._mono_us, self._reprobe_us = mono_us, reprobe_us
        self._refused_at: dict[str, int] = {}
        self._way: dict[str, int] = {}

    def forget(self) -> None:
        """Ask again what was refused: the GPU's mode has changed."""
        self._refused_at.clear()
        self._way.clear()

    def refused(self, field: str) -> bool:
        """Whether the field was refused for good less than the re-probe time ago."""
        at = self._refused_at.get(field)
        if at is None:
            return False
        if self._mono_us() - at < self._reprobe_us:
            return True
        del self._refused_at[field]
        self._way.pop(field, None)
        return False

    def refuse(self, field: str, why: str) -> None:
        """Do not ask for the field until the re-probe."""
        self._refused_at[field] = self._mono_us()
        self.missing[field] = why

    def ask(self, field: str, *ways: Callable[[], T]) -> T | None:
        """The answer of the first of `ways` that the driver has; None with a reason in `missing`.

        Raises GpuLost and NvmlGone.
        """
        if self.refused(field):
            return None
        why = "no driver function for it"
        for position in range(self._way.get(field, 0), len(ways)):
            try:
                answer = ways[position]()
            except self._problems as problem:
                why = why_missing(problem)
                if not self._is_refusal(problem):
                    self.missing[field] = why
                    return None
                self._way[field] = position + 1
            else:
                self.missing.pop(field, None)
                return answer
        self.refuse(field, why)
        return None

    def settle(self, field: str, code: int) -> None:
        """Take note of NVML's return code of one field of a call that answers for several."""
        self._raise_if_fatal(code)
        if code in REFUSALS:
            self.refuse(field, code_words(code))
        else:
            self.missing[field] = code_words(code)

    def within(self, field: str, value: Number | None, low: Number, high: Number) -> Number | None:
        """`value` if it is from `low` to `high`; else None, counted: blank markers of drivers are such values."""
        if value is None or low <= value <= high:
            return value
        self.rejected += 1
        self.missing[field] = f"the driver reported a value outside {low} to {high}"
        return None

    def _is_refusal(self, problem: BaseException) -> bool:
        code = code_of(problem)
        if code is not None:
            self._raise_if_fatal(code)
        return code in REFUSALS or isinstance(problem, self._refusing)

    def _raise_if_fatal(self, code: int) -> None:
        if code in LOSSES:
            raise GpuLost(code_words(code))
        if code == UNINITIALIZED:
            raise NvmlGone(code_words(code))
        self.unknown_errors += code == UNKNOWN


def _problems(nvml: ModuleType) -> tuple[type[BaseException], ...]:
    """What a call of nvidia-ml-py can raise; its mismatch error is no NVMLError, and old versions lack it."""
    mismatch = getattr(nvml, "NVMLLibraryMismatchError", AttributeError)
    return (nvml.NVMLError, mismatch, UnicodeDecodeError, OSError, AttributeError, ValueError)


def text(value: str | bytes | None) -> str | None:
    """Text of old and new versions of nvidia-ml-py, printable; None when there is none."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if value is None:
        return None
    return "".join(sign if sign.isprintable() else "?" for sign in value).strip()[:200] or None
