"""The agent's end of the child process: start it, take its lines without waiting, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from collectors.gpu.child import Order

# Not `-m`: the working folder must not hide a module. Our own code comes before an installed copy of it, but not
# before the standard library.
_START = (
    "import sys; p = sys.path; "
    "p.insert(next((i for i, x in enumerate(p) if x.endswith('-packages')), len(p)), sys.argv[1]); "
    "from collectors.gpu.child import main; main()"
)
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
# An answer to the end of its input takes a child milliseconds; one that hangs is killed.
_GRACE_S = 1.0


class Child:
    """A running child. `ended` once its end of the pipe is closed."""

    def __init__(self, order: Order) -> None:
        arguments = [sys.executable, "-P", "-c", _START, _PACKAGE_ROOT, json.dumps(order._asdict())]
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and code
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if self._process.stdout is None or self._process.stdin is None:
            raise RuntimeError("a child without pipes")
        self._input, self._output = self._process.stdin, self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._rest = b""
        self.ended = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def lines(self, timeout_s: float) -> list[list[Any]]:
        """Complete lines that have come, after waiting up to `timeout_s` for the first."""
        if self.ended or not self._poll.poll(max(0.0, timeout_s) * 1000):
            return []
        try:
            data = os.read(self._output, 1 << 20)
        except BlockingIOError:
            return []
        self.ended = not data
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line for line in map(_parse, whole) if line]

    def stop(self, *, kill: bool = False) -> int | None:
        """End it, by asking unless `kill`; its exit status, negative for a signal, None when it cannot be ended."""
        with contextlib.suppress(OSError):
            self._input.close()
        if kill:
            self._process.kill()
        status = self._wait()
        if status is None:
            self._process.kill()
            status = self._wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self.ended = True
        return status

    def _wait(self) -> int | None:
        try:
            return self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return None  # stuck in the kernel, in a driver call: even SIGKILL has to wait


def _parse(line: bytes) -> list[Any]:
    """The words of a line; none when it was cut short by the child's death."""
    try:
        words = json.loads(line)
    except ValueError:
        return []
    return words if isinstance(words, list) else []
