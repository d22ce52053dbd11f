"""Turns pydantic's findings into lines a person can act on: file, key, value given, what is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from collectors.http.address import checked_base_url

# Values of the keys that tell alternatives apart: pydantic puts them into a finding's path, the file has no such key.
_TAGS = {"rented", "owned", "flat", "time-of-use"}

# Keys whose values are shown to nobody.
_SECRETS = {"key"}

# Numbers as TOML and JSON write them: no text, and true is not 1.
Number = Annotated[float, pydantic.Strict()]
Whole = Annotated[int, pydantic.Strict()]

# Bounds far beyond anything real, so that products of what a file says stay finite.
Usd = Annotated[Number, pydantic.Field(ge=0, le=1e9)]
Pue = Annotated[Number, pydantic.Field(ge=1, le=10)]
GramsPerKwh = Annotated[Number, pydantic.Field(ge=0, le=10_000)]

# The address of a provider, without a slash at its end.
BaseUrl = Annotated[str, AfterValidator(checked_base_url)]


def known_in(names: Collection[str]) -> AfterValidator:
    """One of the names of a table."""

    def known(name: str) -> str:
        if name not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return name

    return AfterValidator(known)


class Strict(BaseModel):
    """Base of everything read from a file or a request: unknown keys, NaN and infinities are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True, frozen=True, strict=False)


def describe(problem: ValidationError, where: str) -> str:
    """One line per finding, e.g. "demand.toml: `fleet[1].pue`: given 'x'; accepted: a number"."""
    return "\n".join(_line(finding, where) for finding in problem.errors(include_url=False))


def _line(finding: Any, where: str) -> str:
    key = key_of(finding["loc"])
    if finding["type"] == "extra_forbidden":
        return f"{where}: `{key}`: no such key (a misspelling?)"
    if finding["type"] == "missing":
        return f"{where}: `{key}`: the key is missing"
    # What an address carries beside the place it names may be a secret.
    told = _without_secrets(finding["input"], finding["loc"])
    given = re.sub(r"\?[^'\"\s]+", "?...", re.sub(r"://[^/'\"\s]*@", "://...@", repr(told)))
    shown = given if len(given) <= 60 else given[:57] + "..."
    return f"{where}: `{key}`: given {shown}; accepted: {accepted(finding)}"


def _without_secrets(given: Any, location: tuple[int | str, ...]) -> Any:
    """What was given, without the values of keys that are secrets."""
    if location and location[-1] in _SECRETS:
        return "..."
    if isinstance(given, dict):
        return {name: _without_secrets(value, (name,)) for name, value in given.items()}
    return [_without_secrets(one, ()) for one in given] if isinstance(given, list | tuple) else given


def key_of(location: tuple[int | str, ...]) -> str:
    """The key as the file has it; list items count from 1, and the tag of a choice is left out."""
    key = ""
    for part in (part for part in location if part not in _TAGS):
        name = part if isinstance(part, int) or part.isprintable() else repr(part)
        key += f"[{name + 1}]" if isinstance(name, int) else f".{name}" if key else name
    return key or "(the whole file)"


def accepted(finding: Any) -> str:
    """What a finding of pydantic's says is accepted, in words."""
    context = finding.get("ctx", {})
    wanted: dict[str, Callable[[], object]] = {
        "literal_error": lambda: context["expected"],
        "greater_than": lambda: f"a number > {context['gt']:g}",
        "greater_than_equal": lambda: f"a number >= {context['ge']:g}",
        "less_than": lambda: f"a number < {context['lt']:g}",
        "less_than_equal": lambda: f"a number <= {context['le']:g}",
        "float_parsing": lambda: "a number",
        "float_type": lambda: "a number",
        "finite_number": lambda: "a finite number",
        "int_parsing": lambda: "a whole number",
        "int_type": lambda: "a whole number",
        "int_from_float": lambda: "a whole number",
        "string_type": lambda: "text",
        "list_type": lambda: "a list",
        "tuple_type": lambda: "a list",
        "model_type": lambda: "a table of keys",
        "model_attributes_type": lambda: "a table of keys",
        "dict_type": lambda: "a table of keys",
        "bool_parsing": lambda: "true or false",
        "union_tag_invalid": lambda: context["expected_tags"],
        "union_tag_not_found": lambda: "a table with its kind named",
        "value_error": lambda: str(context["error"]),
    }
    say = wanted.get(finding["type"])
    return str(say()) if say else str(finding["msg"])
