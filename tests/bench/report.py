"""One line of a benchmark's result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Line:
    """peer_value: the same of the peer, in the same run; None where it has none or is not installed."""

    name: str
    value: float
    unit: str
    reach: str
    peer_value: float | None = None
    peer: str = ""
    note: str = ""


def show(lines: Sequence[Line]) -> None:
    table = Table("what", "ours", "unit", "to reach", "peer", "ours / peer", "notes", header_style="bold")
    for line in lines:
        peer = "" if line.peer_value is None else f"{line.peer}: {line.peer_value:.3g}"
        ratio = "" if line.peer_value is None else f"{line.value / line.peer_value:.2f}"
        table.add_row(line.name, f"{line.value:.3g}", line.unit, line.reach, peer, ratio, line.note)
    Console(width=170).print(table)
