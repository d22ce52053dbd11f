"""What `wattmix doctor` says of one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and for anything but `ok` what to do."""

    level: Level
    what: str
    remedy: str = ""
