"""The spool's file: who owns it, how it is opened, what happens when it is corrupt."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import IO

SCHEMA_VERSION = 1
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS batch (
        sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, first_t_us INTEGER NOT NULL, last_t_us INTEGER NOT NULL,
        readings INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS rejected (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, reason TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
"""

_REMEDIES = {
    sqlite3.SQLITE_FULL: "free some disk space there",
    sqlite3.SQLITE_IOERR: "check the disk and its free space",
    sqlite3.SQLITE_BUSY: "another program holds it open; close that program",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable for this user",
    sqlite3.SQLITE_CANTOPEN: "make the folder writable for this user",
    sqlite3.SQLITE_PERM: "make the file and its folder writable for this user",
}


class SpoolError(Exception):
    """The spool could not do it, and did nothing. The message says which file, what is wrong and what to do."""

    @classmethod
    def of(cls, path: Path, problem: sqlite3.Error) -> SpoolError:
        """`problem` in a person's words."""
        remedy = _REMEDIES.get(_primary_code(problem), "see the message")
        return cls(f"the spool {path} cannot be used: {problem}; {remedy}")


class SpoolBusy(SpoolError):
    """Another agent owns the spool. pid: that agent, where it could be read."""

    def __init__(self, path: Path, pid: int | None) -> None:
        who = f"the agent with pid {pid}" if pid else "another agent"
        super().__init__(f"the spool {path} is used by {who}; stop it, or give this agent a spool of its own")
        self.pid = pid


class SpoolLock:
    """Holds `<spool>.lock` for this process; the system frees it when the process ends, however it ends.

    Raises SpoolBusy when another process holds it, SpoolError when the file cannot be made.
    """

    def __init__(self, spool: Path) -> None:
        path = spool.with_name(f"{spool.name}.lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+", encoding="ascii")
        except OSError as problem:
            raise SpoolError(f"the spool's lock {path} cannot be made: {problem.strerror}") from None
        try:
            _lock(self._file)
        except OSError:
            pid = _pid_in(self._file)
            self._file.close()
            raise SpoolBusy(spool, pid) from None
        try:
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
        except OSError:
            # A full disk: the lock holds all the same, only the pid is not told to others.
            return

    def release(self) -> None:
        """Let others have it. The file stays: removing it would race with the next owner."""
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str]) -> None:
        file.seek(4096)  # past the pid, which others must be able to read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _pid_in(file: IO[str]) -> int | None:
    try:
        file.seek(0)
        return int(file.read(32))
    except (OSError, ValueError):
        return None


def open_file(path: Path) -> sqlite3.Connection:
    """The spool's database, made if absent. Raises sqlite3.DatabaseError, and SpoolError for a newer schema."""
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        # Before the first table, so that space given back after an outage leaves the disk.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        connection.execute("PRAGMA cache_size = -1024")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise SpoolError(f"the spool {path} was written by a newer agent (schema {version}); update this one")
        findings = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if findings != "ok":
            raise _corrupt(findings)
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        connection.execute("SELECT sequence, body, first_t_us, last_t_us, readings FROM batch LIMIT 0")
    except BaseException:
        connection.close()
        raise
    return connection


def is_corrupt(problem: sqlite3.Error) -> bool:
    """Whether the file itself is damaged, as opposed to a full disk or a lock."""
    return _primary_code(problem) in _CORRUPT


def set_aside(path: Path) -> int:
    """Rename the file (and its write-ahead log) to `<name>.corrupt-NNNN`; only the last two are kept. Returns NNNN."""
    earlier = sorted(path.parent.glob(f"{path.name}.corrupt-????"))
    number = int(earlier[-1].name[-4:]) + 1 if earlier and earlier[-1].name[-4:].isdigit() else len(earlier) + 1
    for old in earlier[:-1]:
        old.unlink(missing_ok=True)
    path.replace(path.with_name(f"{path.name}.corrupt-{number:04d}"))
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return number


def _corrupt(findings: str) -> sqlite3.DatabaseError:
    problem = sqlite3.DatabaseError(f"the file is damaged: {findings}")
    problem.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return problem


def _primary_code(problem: sqlite3.Error) -> int:
    # Extended codes carry the primary one in their low byte.
    return (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF
