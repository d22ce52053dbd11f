"""CSV text: unrounded, missing as an empty cell, lines ended by LF, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
from collections.abc import Iterable

# Names come from other machines: a cell that begins so would be run as a formula.
_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r", "\n")
_CRLF = "\r\n"


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """The header and the rows. Text with a comma, quote or line break of either kind is quoted."""
    lines = _Lines()
    writer = csv.writer(lines, lineterminator=_CRLF)
    writer.writerow(header)
    writer.writerows(map(inert, cells) for cells in rows)
    return "".join(lines.ended)


def inert(value: object) -> object:
    """`value`, with text that a spreadsheet would run as a formula prefixed; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and _is_run(value) else value


def uninert(cell: str) -> str:
    """The text that `inert` made `cell` of."""
    return cell[1:] if cell.startswith("'") and _is_run(cell[1:]) else cell


def _is_run(text: str) -> bool:
    """Whether a spreadsheet would run it, or it looks like what `inert` makes of such a text."""
    return text.lstrip("'").startswith(_RUN_BY_SPREADSHEETS)


class _Lines:
    """Ends each line by LF: until Python 3.13 the writer quotes a lone CR only when its line ends hold one."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def write(self, line: str) -> None:
        self.ended.append(line.removesuffix(_CRLF) + "\n")
