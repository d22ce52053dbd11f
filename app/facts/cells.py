"""A fact as cells of text, the same for a CSV row and a form: column by column, each mistake with what is accepted."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from app.facts.fact import Fact
from app.facts.fields import moment_of
from app.facts.kinds import (
    FORMS,
    KINDS,
    FactValue,
    Kind,
    ZoneFact,
    check_subject,
    check_valid_from,
    parse_value,
    value_content,
)
from app.validation import Strict, accepted, key_of

REQUIRED = ("kind", "subject", "valid_from", "source")
# Each column beside those of the value, with what it means.
FACT_COLUMNS: Mapping[str, str] = {
    "kind": f"one of {', '.join(KINDS)}",
    "subject": "what the fact is about: " + "; ".join(f"{kind}: {form.subject}" for kind, form in FORMS.items()),
    "valid_from": "from when it holds: a date (midnight in UTC) or a moment with its time zone",
    "source": "where it is from; shown beside what it makes",
    "ends": "`yes` in a row that ends, from valid_from on, what held before; its value is left empty",
}
# Each column of a value; docs/facts.md says which kind has which.
VALUE_COLUMNS: Mapping[str, str] = {
    "fleet": "the fleet of the node",
    "plan": "of a price: rented, owned; of a tariff: flat, time-of-use",
    "currency": "ISO 4217, such as EUR; USD when empty",
    "per_gpu_hour": "price of one GPU for one hour",
    "billing_increment_s": "seconds to which a rented stretch is rounded up; 0 when empty",
    "purchase": "what one GPU cost with its share of the machine",
    "residual": "what it will fetch; 0 when empty",
    "life_years": "years over which a purchase, or the carbon of making a GPU, is spread",
    "fixed_per_hour": "space, network and upkeep of one GPU for one hour; 0 when empty",
    "in_service": "when the GPUs began to serve; each from its first sight when empty",
    "retired": "when they were retired",
    "per_kwh": "price of a kWh; for time-of-use outside of the rules' hours. May be negative",
    "tz": "time zone of the rules' clock, such as Europe/Madrid",
    "rules": "hours with another price: `mon-fri 17:00-21:00 0.42; all 23:00-07:00 0.08`; the first that holds counts",
    "pue": "site energy over IT energy, 1 to 10",
    "zone": "grid zone",
    "g_per_kwh": "grams of CO2e per kWh that the supplier discloses",
    "method": "whose figures: pcf (the vendors'), boavizta or user; boavizta when empty",
    "policy": "full, or sunk: the cards were made anyway and count 0; full when empty",
    "kg_low": "least kilograms of CO2e to make one GPU; kg_per_gpu when empty",
    "kg_high": "most of them; kg_per_gpu when empty",
    "kg_per_gpu": "kilograms of CO2e to make one GPU with its share of the board; those of the tables when empty",
    "usd_per_unit": "US dollars for one unit of the currency",
    "input_usd_per_mtok": "US dollars for a million prompt tokens",
    "output_usd_per_mtok": "US dollars for a million generated tokens",
    "metric": "ttft, itl or e2e; ttft when empty",
    "percentile": "share of requests in percent; 99 when empty",
    "max_ms": "milliseconds at most",
}
COLUMNS = (*FACT_COLUMNS, *VALUE_COLUMNS, "known_at")
_TEXT = {"fleet", "plan", "currency", "in_service", "retired", "tz", "zone", "method", "policy", "metric"}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_RULE = re.compile(r"(?P<days>\S+)\s+(?P<from>\S+?)\s*-\s*(?P<to>\S+)\s+(?P<per_kwh>\S+)")


@dataclass(frozen=True)
class Problem:
    """A cell that is not accepted, and what is."""

    column: str
    given: str
    accepted: str


class _Refused(ValueError):
    """str(refused): what is accepted."""


def read_fact(
    cells: Mapping[str, str], known_at: datetime, zone_problem: Callable[[str], str | None]
) -> Fact | list[Problem]:
    """The fact of the cells, or what is wrong with them. An empty cell is one that is left out."""
    given = {name: cell for name, cell in cells.items() if cell}
    kind = next((one for one in KINDS if one == given.get("kind")), None)
    if kind is None:
        near = difflib.get_close_matches(given.get("kind", ""), KINDS, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        return [Problem("kind", given.get("kind", ""), f"one of {', '.join(KINDS)}{meant}")]
    problems: list[Problem] = []
    valid_from = _valid_from(kind, given.get("valid_from", ""), problems)
    subject, source = given.get("subject", ""), given.get("source", "")
    if (said := check_subject(kind, subject)) is not None:
        problems.append(Problem("subject", subject, said))
    if not source.strip() or len(source) > 500 or not source.isprintable():
        problems.append(Problem("source", source, "where the fact is from, in 1 to 500 printable characters"))
    value = _value(kind, given, zone_problem, problems)
    if problems or valid_from is None:
        return problems
    return Fact(kind, subject, valid_from, known_at, source, value)


def write_cells(fact: Fact) -> list[object]:
    """The cells of a fact, in the order of COLUMNS; numbers stay numbers."""
    content = {} if fact.value is None else value_content(fact.value)
    if "rules" in content:
        content["rules"] = write_rules(content["rules"])
    head = (fact.kind, fact.subject, _iso(fact.valid_from), fact.source, "" if fact.value else "yes")
    return [*head, *(content.get(name, "") for name in VALUE_COLUMNS), _iso(fact.known_at)]


def value_columns(kind: Kind, plan: str | None = None) -> list[str]:
    """The columns of a kind's value, or of one of its plans, in order."""
    named = {field.alias or name for model in _models(kind, plan) for name, field in model.model_fields.items()}
    return [name for name in VALUE_COLUMNS if name in named and (name != "plan" or len(FORMS[kind].values) > 1)]


def plans(kind: Kind) -> list[str]:
    """The plans that a kind offers; none where it has one form only."""
    models = FORMS[kind].values
    return [str(model.model_fields["plan"].default) for model in models] if len(models) > 1 else []


def write_rules(rules: list[dict[str, Any]]) -> str:
    return "; ".join(f"{rule['days']} {rule['from']}-{rule['to']} {rule['per_kwh']!r}" for rule in rules)


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _models(kind: Kind, plan: str | None) -> Iterator[type[Strict]]:
    for model in FORMS[kind].values:
        if plan is None or len(FORMS[kind].values) == 1 or model.model_fields["plan"].default == plan:
            yield model


def _valid_from(kind: Kind, cell: str, problems: list[Problem]) -> datetime | None:
    try:
        moment = moment_of(cell)
    except ValueError as refused:
        problems.append(Problem("valid_from", cell, str(refused)))
        return None
    if (said := check_valid_from(kind, moment)) is not None:
        problems.append(Problem("valid_from", cell, said))
    return moment


def _value(
    kind: Kind, given: Mapping[str, str], zone_problem: Callable[[str], str | None], problems: list[Problem]
) -> FactValue | None:
    """The value of the cells; None where the row ends a fact, and where a problem was added."""
    named = [name for name in VALUE_COLUMNS if name in given]
    if "ends" in given:
        refused = [Problem(name, given[name], "empty in a row with ends = yes") for name in named]
        problems += refused if given["ends"] == "yes" else [Problem("ends", given["ends"], "yes, or empty")]
        return None
    plan = given.get("plan")
    if plans(kind) and plan not in plans(kind):
        problems.append(Problem("plan", plan or "", f"{' or '.join(plans(kind))} for kind {kind}"))
        return None
    columns = value_columns(kind, plan)
    what = f"kind {kind}" + (f" with plan {plan}" if plans(kind) else "")
    surplus = [name for name in named if name not in columns]
    problems += [Problem(name, given[name], f"empty for {what}") for name in surplus]
    content, mistyped = _content({name: given[name] for name in columns if name in given})
    problems += mistyped
    return None if surplus or mistyped else _parsed(kind, content, given, zone_problem, problems)


def _content(given: Mapping[str, str]) -> tuple[dict[str, Any], list[Problem]]:
    """The cells as values of their types, and those that are of another."""
    content: dict[str, Any] = {}
    problems = []
    for name, cell in given.items():
        try:
            content[name] = cell if name in _TEXT else _rules(cell) if name == "rules" else _number(cell)
        except _Refused as refused:
            problems.append(Problem(name, cell, str(refused)))
    return content, problems


def _parsed(
    kind: Kind,
    content: dict[str, Any],
    given: Mapping[str, str],
    zone_problem: Callable[[str], str | None],
    problems: list[Problem],
) -> FactValue | None:
    try:
        value = parse_value(kind, content)
    except ValidationError as refused:
        problems += [_problem(kind, finding, given) for finding in refused.errors(include_url=False)]
        return None
    if isinstance(value, ZoneFact) and (said := zone_problem(value.zone)) is not None:
        problems.append(Problem("zone", value.zone, said))
    return value


def _problem(kind: Kind, finding: Any, given: Mapping[str, str]) -> Problem:
    key = key_of(finding["loc"])
    column, _, within = key.removesuffix("]").partition("[")
    if column not in COLUMNS:  # of several cells together
        column = value_columns(kind)[-1]
    if finding["type"] == "missing":
        return Problem(column, "", VALUE_COLUMNS[column])
    said = accepted(finding)
    return Problem(column, given.get(column, ""), f"{said} (rule {', '.join(within.split('].'))})" if within else said)


def _number(cell: str) -> float:
    if not _NUMBER.fullmatch(cell):
        raise _Refused("a number such as 0.25, without separators of thousands")
    return float(cell)


def _rules(cell: str) -> list[dict[str, Any]]:
    found = []
    for part in cell.split(";"):
        rule = _RULE.fullmatch(part.strip())
        if rule is None or not _NUMBER.fullmatch(rule["per_kwh"]):
            raise _Refused(f"{VALUE_COLUMNS['rules']} (not {part.strip()!r})")
        found.append(rule.groupdict() | {"per_kwh": float(rule["per_kwh"])})
    return found
