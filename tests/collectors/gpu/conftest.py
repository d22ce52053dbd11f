"""A fake NVIDIA driver for each test, current and old."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors.gpu.nvml import Pace
from collectors.gpu.process import GpuMeter
from tests.collectors.gpu.rig import Rig
from tests.collectors.gpu.watching import Watch
from tests.conftest import need
from tests.fakenvml.build import DRIVERS, FakeDriver, build

FAST = Pace(facts_s=0.3, processes_s=0.3, reprobe_s=3600)
Starter = Callable[..., Watch]


@pytest.fixture(scope="session")
def fake_libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """driver -> its library."""
    need(shutil.which("gcc") is not None, "gcc", "apt-get install gcc libc6-dev")
    return build(tmp_path_factory.mktemp("fakenvml"))


@pytest.fixture
def current_driver(fake_libraries: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """A current driver with two healthy GPUs."""
    return _driver("current", fake_libraries, tmp_path, monkeypatch)


@pytest.fixture(params=DRIVERS)
def driver(
    request: pytest.FixtureRequest, fake_libraries: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> FakeDriver:
    """A current and an old driver, each with two healthy GPUs."""
    return _driver(request.param, fake_libraries, tmp_path, monkeypatch)


@pytest.fixture
def rig(driver: FakeDriver, tmp_path: Path) -> Iterator[Rig]:
    """Reader and ledger in this process, on a clock that the test turns."""
    made = Rig(driver, tmp_path / "pci")
    yield made
    made.close()


@pytest.fixture
def begin(driver: FakeDriver, tmp_path: Path) -> Iterator[Starter]:
    """Starts meters on the fake driver and stops them at the end."""
    started: list[GpuMeter] = []
    driver.change(0, epoch=time.time() - 60, energy_step_ms=10)
    driver.change(1, epoch=time.time() - 60, energy_step_ms=10)

    def start(**settings) -> Watch:
        usual = {
            "nvml_library": str(driver.library),
            "interval_s": 0.1,
            "boot_id": "boot",
            "tick_deadline_s": 0.5,
            "init_deadline_s": 5.0,
            "backoff_s": 0.05,
            "quarantine_s": 60.0,
            "pace": FAST,
            "pci_devices": tmp_path / "pci",
        }
        meter = GpuMeter(**{**usual, **settings})
        started.append(meter)
        meter.start()
        return Watch(meter)

    yield start
    for meter in started:
        meter.stop()


def _driver(name: str, libraries: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    conf = folder / "gpus.conf"
    monkeypatch.setenv("FAKENVML_CONF", str(conf))
    return FakeDriver(libraries[name], conf, old=name == "old")
