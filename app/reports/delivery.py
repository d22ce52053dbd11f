"""Puts a report into a folder: the CSV and its manifest, each whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.errors import DeliveryError
from app.reports.report import Report

MANIFEST_SUFFIX = ".manifest.json"
_TEMPORARY_SUFFIX = ".wattmix.tmp"
# A temporary file that has been there for so long was left by a crash.
_LEFT_BEHIND_S = 3600


@dataclass(frozen=True)
class Delivered:
    file: Path
    sha256: str
    rows: int


def file_name(name: str, report: Report) -> str:
    """`<name>_<from>_<to>.csv`: the same window has the same name."""
    window = report.request.window
    return f"{name}_{window.first}_{window.after}.csv"


def deliver(report: Report, folder: Path, name: str) -> Delivered:
    """Write the report, and then its manifest, replacing those of the same window. Raises DeliveryError."""
    file = folder / file_name(name, report)
    text = report.csv.encode("utf-8")
    sha256 = hashlib.sha256(text).hexdigest()
    about = {"file": file.name, "sha256": sha256, "name": name, **report.about()}
    manifest = json.dumps(about, indent=2, allow_nan=False).encode("utf-8") + b"\n"
    _write_all({file: text, file.with_name(file.name + MANIFEST_SUFFIX): manifest})
    return Delivered(file, sha256, len(report.rows))


def _write_all(contents: Mapping[Path, bytes]) -> None:
    """Every file is on the disk under a temporary name before the first gets its own."""
    staged: dict[Path, Path] = {}
    target = next(iter(contents))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_left_behind(target.parent)
        for target, content in contents.items():
            staged[target] = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_TEMPORARY_SUFFIX}")
            with staged[target].open("xb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
        for target, temporary in staged.items():
            temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as problem:
        for temporary in staged.values():
            with suppress(OSError):  # the first failure is the one to tell
                temporary.unlink(missing_ok=True)
        raise DeliveryError(
            f"{target}: cannot be written: {problem.strerror or problem}. Name a folder that can be written, "
            "or make room in it."
        ) from None


def _sync_folder(folder: Path) -> None:
    """Makes the new names last through a power cut; Windows has no such thing."""
    if os.name == "nt":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # what network shares say that cannot
            raise
    finally:
        os.close(opened)


def _clear_left_behind(folder: Path) -> None:
    for left in folder.glob(f".*{_TEMPORARY_SUFFIX}"):
        with suppress(FileNotFoundError):  # whoever writes it has just finished
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND_S:
                left.unlink()
