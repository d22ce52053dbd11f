"""`<db>.hub.json`: how a command finds the hub that owns a store (design law 7)."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class HubFile:
    pid: int
    address: str


def hub_file_path(db: Path) -> Path:
    return db.with_name(db.name + ".hub.json")


def write_hub_file(db: Path, hub: HubFile) -> None:
    """Written whole or not at all."""
    temporary = hub_file_path(db).with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(hub)), encoding="utf-8")
    temporary.replace(hub_file_path(db))


def read_hub_file(db: Path) -> HubFile | None:
    """What the last hub wrote; None when there is none or it cannot be read. It may be stale: a lock decides."""
    try:
        content = json.loads(hub_file_path(db).read_text(encoding="utf-8"))
        return HubFile(int(content["pid"]), str(content["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_hub_file(db: Path) -> None:
    """Remove our own file; leave one that another hub has written since."""
    hub = read_hub_file(db)
    if hub and hub.pid == os.getpid():
        hub_file_path(db).unlink(missing_ok=True)
