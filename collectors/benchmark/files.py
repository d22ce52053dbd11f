"""Result files on disk: find them, split them into JSON objects, and say what became of each."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from collectors.benchmark import aiperf, facts_csv, guidellm, vllm
from collectors.benchmark.fields import GpuOverride
from collectors.benchmark.run import BenchmarkRun

MAX_FILE_BYTES = 64 * 1024 * 1024

_DECODER = json.JSONDecoder()

Verdict = Literal["read", "skipped", "broken"]


class Importer(Protocol):
    """A load generator's result objects: whether a JSON value is one, and the runs in it, the first at `index`."""

    def recognises(self, candidate: object) -> bool: ...

    def parse(
        self, result: Any, /, *, file: str, index: int, line: int, gpu: GpuOverride | None
    ) -> Sequence[BenchmarkRun]: ...


# By what is in the file, never by its name. No object is of two kinds.
_IMPORTERS: tuple[Importer, ...] = (vllm, guidellm, aiperf)


@dataclass(frozen=True)
class FileOutcome:
    """What one file gave. `reason` says in words why it was skipped (not ours) or is broken (ours, unusable)."""

    file: str
    verdict: Verdict
    runs: tuple[BenchmarkRun, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class FoundFile:
    """A file to read; `name` is its path below the folder it was found in. named: the user typed this very file."""

    path: Path
    name: str
    named: bool


class PathNotFound(FileNotFoundError):
    """A path given by the user that is neither a file, a folder nor a glob with matches."""


def find_files(paths: Sequence[str]) -> list[FoundFile]:
    """Every file under the given files, folders and globs, in a stable order. Raises PathNotFound for a dead path."""
    found: dict[Path, FoundFile] = {}
    for text in paths:
        path = Path(text).expanduser()
        matches = [path] if path.exists() else _matches(path)
        if not matches:
            raise PathNotFound(f"no such file or folder, and no file matches: {text}")
        for match in matches:
            for file in _below(match):
                found.setdefault(file.path.resolve(), file)
    return list(found.values())


def _matches(pattern: Path) -> list[Path]:
    """What a glob matches; Path.glob cannot do it, for it takes no absolute pattern."""
    return [Path(match) for match in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207


def _below(path: Path) -> Iterator[FoundFile]:
    if not path.is_dir():
        yield FoundFile(path, _utf8(path.name), named=True)
        return
    for folder, subfolders, names in os.walk(path):
        subfolders.sort()
        for name in sorted(names):
            file = Path(folder) / name
            yield FoundFile(file, _utf8(file.relative_to(path).as_posix()), named=False)


def _utf8(name: str) -> str:
    """A file name as text that can be stored and shown; bytes that are no UTF-8 become question marks."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_file(found: FoundFile, *, gpu: GpuOverride | None = None, max_bytes: int = MAX_FILE_BYTES) -> FileOutcome:
    """The runs of one file: all of them, or none and the reason."""
    if not found.named and found.path.suffix.lower() not in (".json", ".jsonl"):
        return FileOutcome(found.name, "skipped", reason="not a .json file")
    try:
        text = _read_text(found.path, max_bytes)
        if found.path.suffix.lower() == ".csv":
            return FileOutcome(found.name, "read", tuple(facts_csv.read(text)))
        objects = list(_json_objects(text))
    except ValueError as problem:
        return FileOutcome(found.name, "broken", reason=str(problem))
    except OSError as problem:
        return FileOutcome(found.name, "broken", reason=f"cannot be read: {problem.strerror}")
    return _parse_objects(found.name, objects, gpu)


def _read_text(path: Path, max_bytes: int) -> str:
    if not path.is_file():
        raise ValueError("not a regular file")
    size = path.stat().st_size
    if size > max_bytes:
        raise ValueError(
            f"{size / 1e6:.0f} MB; a result file may have {max_bytes / 1e6:.0f} MB (raise it with --max-file-mb)"
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise ValueError(f"not UTF-8 text (byte {problem.start})") from None
    if not text.strip():
        raise ValueError("the file is empty")
    return text


def _json_objects(text: str) -> Iterator[tuple[int, Any]]:
    """(line, value) of each JSON value in a text: one or several one after another, or the items of an array."""
    position, line, counted = _next(text, 0), 1, 0
    try:
        while position < len(text):
            if text[position] == "[":
                found, end = _array_items(text, position)
            else:
                value, end = _DECODER.raw_decode(text, position)
                found = [(position, value)]
            for start, value in found:
                line += text.count("\n", counted, start)
                counted = start
                yield line, value
            position = _next(text, end)
    except json.JSONDecodeError as problem:
        raise ValueError(f"line {problem.lineno}, column {problem.colno}: not JSON ({problem.msg})") from None
    except (RecursionError, ValueError) as problem:
        raise ValueError(f"line {text.count(chr(10), 0, position) + 1}: JSON that cannot be read ({problem})") from None


def _array_items(text: str, position: int) -> tuple[list[tuple[int, Any]], int]:
    """([(position, value) of each item], end) of the array that starts at `position`."""
    items: list[tuple[int, Any]] = []
    position = _next(text, position + 1)
    if text[position : position + 1] == "]":
        return items, position + 1
    while True:
        value, end = _DECODER.raw_decode(text, position)
        items.append((position, value))
        position = _next(text, end)
        if text[position : position + 1] == "]":
            return items, position + 1
        if text[position : position + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _next(text, position + 1)


def _next(text: str, position: int) -> int:
    """The first position from `position` on that is no white space."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _parse_objects(name: str, objects: list[tuple[int, Any]], gpu: GpuOverride | None) -> FileOutcome:
    kinds = [_importer_of(value) for _, value in objects]
    if not any(kinds):
        return FileOutcome(name, "skipped", reason="JSON, but no result of vLLM, GuideLLM, AIPerf or GenAI-Perf")
    runs: list[BenchmarkRun] = []
    for number, (importer, (line, value)) in enumerate(zip(kinds, objects, strict=True), start=1):
        if importer is None:
            return FileOutcome(name, "broken", reason=f"object {number} (line {line}) is not a benchmark result")
        try:
            runs += importer.parse(value, file=name, index=len(runs), line=line, gpu=gpu)
        except ValueError as problem:
            return FileOutcome(name, "broken", reason=f"object {number} (line {line}), key {problem}")
    return FileOutcome(name, "read", tuple(runs))


def _importer_of(value: object) -> Importer | None:
    return next((importer for importer in _IMPORTERS if importer.recognises(value)), None)
