"""Facts as CSV: one row a fact, one column a field of its value. Every row is read or none: all findings are told.

What is written can be read again. `known_at` is written to be seen and not read: a fact is known from its import on.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from io import StringIO

from app.facts.cells import COLUMNS, REQUIRED, Problem, read_fact, write_cells
from app.facts.fact import Fact, in_order
from app.facts.kinds import Kind
from app.spreadsheet import csv_text, uninert

MAX_FINDINGS = 100


@dataclass(frozen=True)
class Finding:
    """A cell that is not accepted. column None: the whole line."""

    line: int
    column: str | None
    given: str
    accepted: str

    def told(self, file: str) -> str:
        where = f"{file}: line {self.line}" + (f", column `{self.column}`" if self.column else "")
        shown = repr(self.given if len(self.given) <= 60 else f"{self.given[:57]}...")
        return f"{where}: given {shown}; accepted: {self.accepted}"


@dataclass
class FactTable:
    """What was read: facts, or what is wrong with the rows."""

    facts: list[Fact] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def told(self, file: str) -> str:
        """The findings, a line each."""
        shown = [finding.told(file) for finding in self.findings[:MAX_FINDINGS]]
        more = len(self.findings) - len(shown)
        return "\n".join([*shown, f"... and {more} more"] if more else shown)


def read(text: str, known_at: datetime, zone_problem: Callable[[str], str | None]) -> FactTable:
    """The facts of a CSV text, known from `known_at` on. zone_problem: what is accepted in place of an unknown zone."""
    reader = csv.reader(StringIO(text.removeprefix("\ufeff"), newline=""))
    try:
        header = [cell.strip() for cell in next(reader, [])]
        rows = list(_lines(reader))
    except csv.Error as problem:
        return FactTable([], [Finding(reader.line_num, None, str(problem), "CSV: commas, and quotes in pairs")])
    if findings := list(_header_findings(header)):
        return FactTable([], findings)
    table = FactTable()
    said: dict[tuple[Kind, str, datetime], tuple[int, Fact]] = {}
    for line, cells in rows:
        if len(cells) != len(header):
            table.findings.append(Finding(line, None, ",".join(cells), f"{len(header)} cells, as in the header"))
            continue
        given = {name: uninert(cell.strip()) for name, cell in zip(header, cells, strict=True)}
        found = read_fact(given, known_at, zone_problem)
        if isinstance(found, Fact):
            _add(table, said, line, found)
        else:
            table.findings += [_finding(line, problem) for problem in found]
    if not rows:
        table.findings.append(Finding(1, None, "", "rows below the header"))
    return table


def write(facts: Iterable[Fact]) -> str:
    """The facts as CSV, by kind, subject and time."""
    return csv_text(COLUMNS, (write_cells(fact) for fact in in_order(facts)))


def _add(table: FactTable, said: dict[tuple[Kind, str, datetime], tuple[int, Fact]], line: int, fact: Fact) -> None:
    """Take over a fact, unless another row says otherwise for the same moment: which of them holds is not known."""
    earlier = said.setdefault((fact.kind, fact.subject, fact.valid_from), (line, fact))
    if earlier[1].value != fact.value:
        accepted = f"one row for each kind, subject and valid_from; line {earlier[0]} says otherwise"
        table.findings.append(Finding(line, "valid_from", fact.valid_from.isoformat(), accepted))
    table.facts.append(fact)


def _finding(line: int, problem: Problem) -> Finding:
    return Finding(line, problem.column, problem.given, problem.accepted)


def _lines(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line on which it begins."""
    line = 2
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1  # type: ignore[attr-defined]


def _header_findings(header: Sequence[str]) -> Iterator[Finding]:
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            yield Finding(1, name, name, f"the columns {', '.join(COLUMNS)}{meant}")
        elif header.count(name) > 1:
            yield Finding(1, name, name, "each column once")
    if absent := [name for name in REQUIRED if name not in header]:
        yield Finding(1, None, ",".join(header), f"a header with {', '.join(absent)}, separated by commas")
