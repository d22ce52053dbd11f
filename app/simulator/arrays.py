"""The arrays of the simulator: their types, random numbers for them, and their way into a table of the wire."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from collectors.samples import EngineSamples, GpuSamples

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TableT = TypeVar("TableT", GpuSamples, EngineSamples)


def generator(seed: int, *words: str | int) -> np.random.Generator:
    """Random numbers for one purpose, named by `words`: the same for the same words, in any order of asking."""
    numbers = [zlib.crc32(word.encode()) if isinstance(word, str) else word for word in words]
    return np.random.default_rng([seed, *numbers])


def interpolated(at: Floats, points: Floats, values: Floats) -> Floats:
    """Straight lines between the points, level beyond them."""
    found: Floats = np.interp(at, points, values)
    return found


def wire_table(
    table: type[TableT], pieces: Sequence[Mapping[str, Ints | Bools]], same: Mapping[str, Any]
) -> TableT | None:
    """The pieces one after the other; None without rows. same: columns that hold one value.

    Its values are not checked one by one: they are made here, hundreds of thousands of them.
    """
    if not pieces:
        return None
    columns: dict[str, Any] = {name: np.concatenate([piece[name] for piece in pieces]).tolist() for name in pieces[0]}
    rows = len(columns["t_us"])
    columns |= {name: [value] * rows for name, value in same.items()}
    return table.model_construct(**columns)
