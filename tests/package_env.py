"""Fresh environments for packaging tests, made without a network: links to what is installed here already."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from tests.conftest import ROOT


def build_wheel(folder: Path) -> Path:
    """The project's wheel, built with the backend that is installed here."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("wattmix-*.whl")
    return wheel


def requirements(extra: str) -> set[str]:
    """Names of every distribution that `wattmix` with `extra` ("" for none) needs, all the way down."""
    found: set[str] = set()
    todo = [("wattmix", extra)]
    while todo:
        name, wanted = todo.pop()
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker and not needed.marker.evaluate({"extra": wanted}):
                continue
            if _canonical(needed.name) not in found | {"wattmix"}:
                found.add(_canonical(needed.name))
                todo += [(needed.name, one) for one in needed.extras or {""}]
    return found


def fresh_environment(folder: Path, wheel: Path, distributions: Iterable[str]) -> Path:
    """A virtual environment with `wheel` installed and only `distributions` linked in. Returns its bin folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in distributions:
        _link(metadata.distribution(name), site)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps",
         "--no-index", str(wheel)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return folder / "bin"


def _link(distribution: metadata.Distribution, site: Path) -> None:
    tops = {Path(file.parts[0]) for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        target = Path(str(distribution.locate_file(str(top))))
        if not (site / top).exists():
            (site / top).symlink_to(target, target_is_directory=target.is_dir())


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
