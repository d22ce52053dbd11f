"""Lines of an account as a table: a column per figure, what is missing with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from app.dashboard.figure_cards import LOW_COVERAGE, is_low
from app.dashboard.figure_words import WORDS
from app.formatting import MISSING, percent
from app.reference.gpus import display_name

_KEYS = {"gpu_name": "card", "gpu": "GPU", "node": "node", "fleet": "fleet", "model": "model"}
# Whole numbers, which may be large.
_COUNTED = ("tokens", "requests")
Line = Mapping[str, Any]


def figure_table(lines: Sequence[Line], names: Sequence[str], *, key: str | None = None) -> None:
    """Draw the lines with these figures; methods and what is missing stand in the last columns."""
    rows = [_row(line, names) for line in lines]
    columns = {WORDS[name].label: _column(name) for name in names}
    floats = dict.fromkeys(columns, pl.Float64())
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=floats)
    st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=columns, key=key)


def _row(line: Line, names: Sequence[str]) -> dict[str, Any]:
    figures = {name: line["figures"][name] for name in names}
    return (
        {_KEYS.get(name, name): _named(name, value) for name, value in line["key"].items()}
        | {WORDS[name].label: figure["value"] for name, figure in figures.items()}
        | {"method": _methods(figures.values()), "coverage": _coverage(figures.values()), "missing": _missing(figures)}
    )


def _named(name: str, value: str | None) -> str:
    if value is None:
        return MISSING
    return display_name(value) if name == "gpu_name" else value


def _column(name: str) -> Any:
    words = WORDS[name]
    digits = int(words.d3[-2])
    if words.unit == "%":
        form = "percent"
    elif words.unit.startswith("USD"):
        form = f"$%.{digits}f"
    elif words.unit in _COUNTED:
        form = "localized"
    else:
        form = f"%.{digits}f" if words.whole is words.form else f"%.{digits}f {words.unit}"
    return st.column_config.NumberColumn(format=form, help=f"{words.explained} Unit: {words.unit}.")


def _methods(figures: Any) -> str:
    return ", ".join(dict.fromkeys(figure["method"] for figure in figures if figure["value"] is not None)) or MISSING


def _coverage(figures: Any) -> str:
    """E.g. "72% (low)": how much of the time energy was measured, the least of the figures that tell it."""
    told = [figure for figure in figures if figure["coverage"] is not None]
    if not told:
        return MISSING
    least = min(told, key=lambda figure: figure["coverage"])
    return percent(least["coverage"]) + (f" (below {percent(LOW_COVERAGE)})" if is_low(least) else "")


def _missing(figures: Mapping[str, Any]) -> str:
    """E.g. "$/Mtok: no engine"; figures with one reason share it."""
    told: dict[str, list[str]] = {}
    for name, figure in figures.items():
        if figure["reason"] is not None:
            told.setdefault(figure["reason"], []).append(WORDS[name].label)
    return "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in told.items())
