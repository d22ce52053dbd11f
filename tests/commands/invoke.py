"""Runs `wattmix` in this process, as the console script does."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from app.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def wattmix(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """Exit code and output of `wattmix <arguments>`. An error that is not told in words is raised here."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["wattmix", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return Outcome(int(ended.value.code or 0), captured.out, captured.err)
