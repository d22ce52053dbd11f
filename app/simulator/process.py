"""The simulator as a child of the hub that it feeds."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from app.reference.tables import checkout_folder, in_checkout

# Its end takes milliseconds; one that hangs is killed.
GRACE_S = 1.0


class SimulatorProcess:
    """A running simulator. It ends with `stop`, and by itself when this process is gone: its input closes then.

    past_days: how much of the past it fills first.
    """

    def __init__(self, hub: str, past_days: float = 7.0) -> None:
        environment = dict(os.environ)
        if in_checkout():
            known = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = os.pathsep.join([str(checkout_folder()), *filter(None, [known])])
        # -P: a folder `app` where the user happens to be must not hide ours.
        command = [sys.executable, "-P", "-m", "app.simulator", "--hub", hub, "--days", str(past_days)]
        command.append("--end-with-input")
        # A session of its own: Ctrl-C is for the hub, which then ends it.
        self._process = subprocess.Popen(  # noqa: S603  our own code
            command, stdin=subprocess.PIPE, env=environment, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> int:
        """End it; its exit status."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            return self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
