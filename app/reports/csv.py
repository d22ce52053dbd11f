"""Rows as CSV: UTF-8, LF, unrounded numbers, an empty cell for what is missing, and no cell that a spreadsheet runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.reports.columns import NAMES
from app.spreadsheet import csv_text


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    return csv_text(NAMES, ([row[name] for name in NAMES] for row in rows))
