"""Numbers as people read them: rounding happens here, at the edge, and nowhere else."""

from __future__ import annotations

MISSING = "–"


def number(value: float | None, digits: int = 2) -> str:
    """E.g. 1,234.50; an en dash for a missing value."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def usd(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"${value:,.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    return MISSING if share is None else f"{share:.{digits}%}"


def markdown(text: str) -> str:
    """Text as it stands, for a place that reads Markdown: a dollar sign there would start a formula."""
    return text.replace("$", r"\$").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("~", r"\~")
