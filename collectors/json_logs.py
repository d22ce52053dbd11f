"""The agent's log: one JSON object per line on stderr, in UTC. Callers log names of secrets, never their values."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = "wattmix.agent"
_MAX_TEXT = 1000


class JsonFormatter(logging.Formatter):
    """`{"time": ..., "level": ..., "message": ..., <fields>}`; a field never replaces the first three."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage()[:_MAX_TEXT],
        }
        for name, value in getattr(record, "fields", {}).items():
            line.setdefault(name, value[:_MAX_TEXT] if isinstance(value, str) else value)
        if record.exc_info and record.exc_info[0] is not None:
            line.setdefault("error", f"{record.exc_info[0].__name__}: {record.exc_info[1]}"[:_MAX_TEXT])
        return json.dumps(line, default=str)


def set_up(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send the agent's log to `stream` (stderr) and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger(LOGGER)
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)


def log(level: int, message: str, **fields: Any) -> None:
    """One line: `message` is constant text to search for, `fields` are what varies."""
    logging.getLogger(LOGGER).log(level, message, extra={"fields": fields})
