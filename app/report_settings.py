"""`[reports]` and `[[report]]` of wattmix.toml: which reports are written when, and where to."""

from __future__ import annotations

import importlib.util
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from app.accounting.energy import Boundary
from app.accounting.periods import time_zone, zone_names
from app.accounting.tokens import Basis
from app.validation import Strict

Kind = Literal["fleet-day", "hourly"]
WindowLength = Literal["hour", "day", "week", "month"]


class ReportSettings(Strict):
    """folder: where scheduled reports go; without it, beside the store."""

    folder: str | None = None


def _report_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise ValueError("1 to 64 letters, digits, dots, hyphens and underscores; it begins the names of the files")
    return name


def _cron(expression: str) -> str:
    """Checked where reports can run: a GPU node has no cronsim."""
    if importlib.util.find_spec("cronsim") is not None:
        from app import cron

        cron.check(expression)
    return expression


def _time_zone(name: str) -> str:
    """Checked where there is a time zone database: a bare GPU node may have none."""
    if zone_names():
        time_zone(name)
    return name


class ReportSchedule(Strict):
    """A report that is written each time `cron` is due in `tz`, on the last complete `window` before that."""

    name: Annotated[str, AfterValidator(_report_name)]
    kind: Kind
    cron: Annotated[str, AfterValidator(_cron)]
    tz: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    window: WindowLength = "day"
    boundary: Boundary = "it"
    basis: Basis = "total"
    out: str | None = None

    @model_validator(mode="after")
    def _an_hour_has_no_days(self) -> ReportSchedule:
        if self.window == "hour" and self.kind != "hourly":
            raise ValueError('window = "hour" beside kind = "hourly" only')
        return self
