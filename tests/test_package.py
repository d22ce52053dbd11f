"""The wheel as a user gets it: what it carries, and what each install can do."""

from __future__ import annotations

import json
import subprocess
import time
import zipfile
from pathlib import Path

import pytest
import requests

from tests.conftest import ROOT
from tests.hub_process import running
from tests.package_env import build_wheel, fresh_environment, requirements

pytestmark = pytest.mark.package

HUB_ONLY = {"duckdb", "polars", "streamlit", "plotly", "highspy", "pyarrow"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def base_bin(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """An environment as on a GPU node: the base install."""
    return fresh_environment(tmp_path_factory.mktemp("base") / "env", wheel, requirements(""))


@pytest.fixture(scope="session")
def hub_bin(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return fresh_environment(tmp_path_factory.mktemp("hub") / "env", wheel, requirements("hub"))


def test_the_wheel_carries_the_reference_data_and_the_theme(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        f"app/_data/{path.name}" for path in (ROOT / "data").iterdir() if path.suffix in (".csv", ".toml", ".md")
    }
    assert len(shipped) >= 10
    assert shipped <= names
    assert {"app/dashboard/.streamlit/config.toml", "app/dashboard/icon.svg", "app/_data/openapi.json"} <= names
    assert "app/_data/split.schema.json" in names
    assert "app/_data/wattmix.example.toml" in names
    # Nothing lands beside the packages, in a folder that all projects share.
    assert {name.split("/")[0] for name in names} == {"app", "collectors", "wattmix-0.1.0.dist-info"}
    assert not [name for name in names if ".duckdb" in name or name.startswith(("tests/", "data/"))]


def test_the_base_install_needs_none_of_the_hubs_packages() -> None:
    assert not requirements("") & HUB_ONLY
    assert requirements("hub") >= HUB_ONLY


def test_help_runs_on_a_gpu_node_and_serve_says_what_to_install(base_bin: Path, tmp_path: Path) -> None:
    helped = subprocess.run([base_bin / "wattmix", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert helped.returncode == 0
    assert "serve" in helped.stdout
    refused = subprocess.run([base_bin / "wattmix", "serve"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "pip install 'wattmix[hub]'" in refused.stderr
    assert "duckdb" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_agent_runs_on_a_gpu_node_without_the_hubs_packages(base_bin: Path, tmp_path: Path) -> None:
    command = [base_bin / "wattmix", "agent", "--once", "--nvml-library", str(tmp_path / "none.so")]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    reading = json.loads(told.stdout)
    assert reading["gpus"] == []
    assert "no_nvml" in reading["node"]["status"]
    assert reading["host"]["memory_total_bytes"] > 0


def test_the_base_install_has_the_nvml_module_of_nvidia_ml_py(base_bin: Path) -> None:
    code = "import pynvml, importlib.metadata as m; print(m.packages_distributions()['pynvml'])"
    said = subprocess.run([base_bin / "python", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "nvidia-ml-py" in said


def test_the_demo_of_an_installed_wheel_runs_from_another_folder_with_its_theme(hub_bin: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    # a user's folder of our name must not hide ours
    (elsewhere / "app").mkdir(parents=True)
    (elsewhere / "app" / "__init__.py").write_text("raise ImportError")
    command = [str(hub_bin / "wattmix")]
    with running(["demo", "--no-browser", "--db", str(tmp_path / "demo.duckdb")], elsewhere, command=command) as hub:
        assert len(requests.get(f"{hub.address}/api/v1/runs", timeout=30).json()["runs"]) == 130
        assert requests.get(f"{hub.address}/", timeout=30).status_code == 200
        deadline = time.monotonic() + 30
        while not requests.get(f"{hub.address}/api/v1/health", timeout=30).json()["nodes"]:
            assert time.monotonic() < deadline, "waited 30 s for a simulated node"
            time.sleep(0.1)
        assert hub.stop() == 0
    code = "from app.dashboard import theme_file; print(theme_file().read_text())"
    command = [str(hub_bin / "python"), "-P", "-c", code]
    theme = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=True)
    assert theme.stdout.strip() == (ROOT / ".streamlit" / "config.toml").read_text().strip()


@pytest.mark.network
@pytest.mark.parametrize("extra", ["", "[hub]"])
def test_a_real_install_from_the_registry(extra: str, wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["python3", "-m", "venv", tmp_path / "env"], check=True)
    pip = [tmp_path / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}"]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    wattmix = str(tmp_path / "env" / "bin" / "wattmix")
    assert subprocess.run([wattmix, "--version"], capture_output=True, text=True).stdout.startswith("wattmix ")
    if extra:
        arguments = ["demo", "--no-browser", "--no-simulation", "--db", str(tmp_path / "d.duckdb")]
        with running(arguments, tmp_path, command=[wattmix]) as hub:
            assert requests.get(f"{hub.address}/healthz", timeout=30).json()["demo"] is True
            assert hub.stop() == 0
    else:
        assert subprocess.run([wattmix, "serve"], capture_output=True, text=True).returncode == 2
