"""Numbers as people read them: rounding happens here, at the edge, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app import units

MISSING = "–"
# More characters do not fit a card.
_MOST_DIGITS = 9
_MANY = 1e8
# From here on grams are told in kilograms.
_MANY_GRAMS = 100_000.0
_NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")


def number(value: float | None, digits: int = 2) -> str:
    """E.g. 1,234.50; an en dash for a missing value."""
    return MISSING if value is None else f"{value:,.{digits}f}"


def short(text: str) -> str:
    """A number as written, where it is long without what nobody reads: "254,120 kWh" for "254,120.03 kWh", "4,537
    million" for "4,536,838,112"."""
    written = _NUMBER.search(text)
    if written is None or len(written[0]) <= _MOST_DIGITS:
        return text
    value = float(written[0].replace(",", ""))
    in_millions = value >= _MANY
    said = f"{value / 1e6:,.0f} million" if in_millions else f"{value:,.0f}"
    return text[: written.start()] + said + text[written.end() :]


def grams(value: float | None) -> str:
    """Grams of CO2e, many of them in kilograms: 16,805 gCO2e; 1,790 kgCO2e."""
    if value is None:
        return MISSING
    return f"{value:,.0f} gCO2e" if value < _MANY_GRAMS else f"{units.kilograms(value):,.0f} kgCO2e"


def signed(value: float, form: str) -> str:
    """A change by a format such as "+.1%": what rounds to nothing has no sign, ±0.0%."""
    said = f"{value:{form}}"
    return said if re.search("[1-9]", said) else f"±{said[1:]}"


def basis_said(basis: str) -> str:
    """Of a carbon intensity: lifecycle or direct, or that its provider does not say which."""
    return "basis not said" if basis == "provider" else basis


def utc_clock(moment: datetime | str) -> str:
    """E.g. 2026-02-03 04:05Z, of a moment or its ISO 8601 form."""
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def usd(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"${value:,.{digits}f}"


def gpu_price(usd_per_gpu_hour: float | None, usd_per_kwh: float | None) -> str:
    """E.g. $2.00/h; $0.05/h + $0.300/kWh for a GPU that one owns."""
    electricity = f" + {usd(usd_per_kwh, 3)}/kWh" if usd_per_kwh is not None else ""
    return f"{usd(usd_per_gpu_hour)}/h{electricity}"


def fleet_prices(prices: Mapping[str, Mapping[str, Any]]) -> str:
    """The prices of a split, each with its source."""
    return "; ".join(
        f"{fleet} {gpu_price(price['usd_per_gpu_hour'], price['usd_per_kwh'])} ({price['source']})"
        for fleet, price in prices.items()
    )


def load_point(requests_per_s: float | None) -> str:
    """The load at which a replica was measured."""
    return "all at once" if requests_per_s is None else f"{requests_per_s:.4g} req/s"


def percent(share: float | None, digits: int = 0) -> str:
    return MISSING if share is None else f"{share:.{digits}%}"


def markdown(text: str) -> str:
    """Text as it stands, for a place that reads Markdown: a dollar sign there would start a formula."""
    return text.replace("$", r"\$").replace("_", r"\_").replace("*", r"\*").replace("[", r"\[").replace("~", r"\~")
