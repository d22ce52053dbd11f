"""Plain data as YAML, always the same text for the same data. Text is quoted as in JSON, which YAML reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

Plain = str | int | bool | Mapping[str, "Plain"] | Sequence["Plain"]


def yaml_text(document: Mapping[str, Plain]) -> str:
    """A document in block style, with a line break at its end. Keys are words of ours: they are not quoted."""
    return "".join(f"{line}\n" for line in _mapping(document, ""))


def _mapping(mapping: Mapping[str, Plain], indent: str) -> Iterator[str]:
    for key, value in mapping.items():
        if isinstance(value, Mapping) and value:
            yield f"{indent}{key}:"
            yield from _mapping(value, indent + "  ")
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield f"{indent}{key}:"
            yield from _sequence(value, indent + "  ")
        else:
            yield f"{indent}{key}: {_scalar(value)}"


def _sequence(items: Sequence[Plain], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(item)}"


def _scalar(value: Plain) -> str:
    """A number, a truth value, quoted text, or an empty list or mapping."""
    return json.dumps(value, ensure_ascii=True)
