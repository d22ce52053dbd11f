"""Numbers of a price in an answer's JSON: what is none, or is none that can be, is told by its name."""

from __future__ import annotations

import math

from collectors.price.point import MAX_USD_PER_GPU_HOUR

MOST_GPUS = 64
MAX_NAME = 120


class NoPrice(Exception):
    """A price is not usable; str(problem) says why."""


def usd(value: object, what: str) -> float:
    """A price above 0: 0 and null mean that nothing is offered, never that it is free. Raises NoPrice."""
    if value is None:
        raise NoPrice(f"{what} is null: not offered")
    number = _number(value, what)
    if number == 0:
        raise NoPrice(f"{what} is 0: not offered, never free")
    if number < 0:
        raise NoPrice(f"{what} {number:g} is below 0")
    return number


def amount(value: object, what: str) -> float:
    """A number of at least 0; 0 is one. Raises NoPrice."""
    number = _number(value, what)
    if number < 0:
        raise NoPrice(f"{what} {number:g} is below 0")
    return number


def gpu_count(value: object, what: str) -> int:
    """What an instance's price is divided by. Raises NoPrice."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_GPUS:
        raise NoPrice(f"{what} {str(value)[:40]!r} is no number of GPUs from 1 to {MOST_GPUS}")
    return value


def checked_per_gpu(usd_per_gpu_hour: float) -> float:
    """Raises NoPrice for more than any GPU costs."""
    if not 0 < usd_per_gpu_hour <= MAX_USD_PER_GPU_HOUR:
        raise NoPrice(f"{usd_per_gpu_hour:g} USD/GPU-h is not above 0 and at most {MAX_USD_PER_GPU_HOUR:g}")
    return usd_per_gpu_hour


def name_of(value: object) -> str | None:
    """A name that can be shown, or None."""
    if not isinstance(value, str) or len(value) > MAX_NAME or not value.isprintable():
        return None
    return value.strip() or None


def _number(value: object, what: str) -> float:
    if value is None:
        raise NoPrice(f"{what} is null")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoPrice(f"{what} {str(value)[:40]!r} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NoPrice(f"{what} is no finite number")
    return number
