"""The fake driver's library, built from C, and the file that holds the state of its GPUs."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("fakenvml.c")
DRIVERS = ("current", "old")

# Two healthy GPUs; tests change what they are about.
ADA: dict[str, object] = {
    "name": "NVIDIA GeForce RTX 4090",
    "uuid": "GPU-00000000-0000-4000-8000-00000000ADA0",
    "bus_id": "00000000:01:00.0",
    "architecture": 8,
    "power_mw": 300_000,
    "limit_mw": 450_000,
    "energy_mj": 1_000_000_000,
    "mem_total": 25_757_220_864,
    "mem_used": 21_474_836_480,
    "mem_reserved": 455_081_984,
    "util": 97,
    "util_mem": 61,
    "temp_c": 64,
    "sm_mhz": 2520,
    "mem_mhz": 10_501,
    "reasons": 4,
    "proc0": "4242:20971520000",
}
HOPPER: dict[str, object] = {
    **ADA,
    "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-00000000-0000-4000-8000-000000000090",
    "bus_id": "00000000:1B:00.0",
    "architecture": 9,
    "power_mw": 600_000,
    "limit_mw": 700_000,
    "energy_mj": 987_654_321_000,
    "mem_total": 85_520_809_984,
    "mem_used": 64_424_509_440,
    "reasons": 0,
    "proc0": "5151",
    "mig": 0,
}
ADA_UUID = "00000000-0000-4000-8000-00000000ada0"
HOPPER_UUID = "00000000-0000-4000-8000-000000000090"


def build(folder: Path) -> dict[str, Path]:
    """Compile the library as a current and as an old driver; driver -> file."""
    built = {}
    for driver in DRIVERS:
        built[driver] = folder / f"libfakenvml-{driver}.so"
        flags = ["-DOLD_DRIVER"] if driver == "old" else []
        command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", *flags]
        subprocess.run([*command, "-o", str(built[driver]), str(SOURCE), "-lm"], check=True)
    return built


class FakeDriver:
    """A fake driver: change `node` or `gpus`, then `write`; running readers see it at their next call."""

    def __init__(self, library: Path, conf: Path, *, old: bool) -> None:
        self.library = library
        self.conf = conf
        self.old = old
        self.node: dict[str, object] = {"driver_version": "580.65.06"}
        self.gpus: list[dict[str, object]] = [dict(ADA), dict(HOPPER)]
        self.write()

    def write(self) -> None:
        """Put the state in force, atomically."""
        lines = [f"{key}={value}" for key, value in self.node.items()]
        for index, gpu in enumerate(self.gpus):
            lines += [f"[gpu{index}]", *(f"{key}={value}" for key, value in gpu.items() if value is not None)]
        new = self.conf.with_suffix(".new")
        new.write_bytes("\n".join(lines).encode("latin-1") + b"\n")
        new.replace(self.conf)

    def change(self, gpu: int | None, **keys: object) -> None:
        """Set keys of a GPU, or of the node (None); a key `ret__nvmlX` means `ret.nvmlX`; None takes it away."""
        target = self.node if gpu is None else self.gpus[gpu]
        for key, value in keys.items():
            name = key.replace("__", ".")
            target.pop(name, None)
            if value is not None:
                target[name] = value
        self.write()
