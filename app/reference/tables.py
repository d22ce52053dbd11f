"""Reads the shipped CSV tables: data/ in a checkout, app/_data in an installed wheel."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path


def data_folder() -> Path:
    """The folder of the reference tables."""
    packaged = Path(__file__).resolve().parent.parent / "_data"
    return packaged if packaged.is_dir() else checkout_folder() / "data"


def openapi_file() -> Path:
    """The description of the HTTP API: docs/openapi.json in a checkout."""
    packaged = data_folder() / "openapi.json"
    return packaged if packaged.is_file() else checkout_folder() / "docs" / "openapi.json"


def split_schema_file() -> Path:
    """The JSON Schema of the split's answer: docs/split.schema.json in a checkout."""
    packaged = data_folder() / "split.schema.json"
    return packaged if packaged.is_file() else checkout_folder() / "docs" / "split.schema.json"


def checkout_folder() -> Path:
    """The root of the source tree (meaningless in an installed wheel: see `in_checkout`)."""
    return Path(__file__).resolve().parent.parent.parent


def in_checkout() -> bool:
    """Whether this code runs from a source tree, where the default store lies in data/."""
    return (checkout_folder() / "pyproject.toml").is_file() and (checkout_folder() / "data").is_dir()


@cache
def read_table(name: str) -> tuple[dict[str, str], ...]:
    """Rows of data/`name`.csv, every cell as text."""
    with (data_folder() / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def optional_number(cell: str) -> float | None:
    return float(cell) if cell else None
