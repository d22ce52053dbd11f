"""The command line: help everywhere, exit codes, errors in words on stderr, and nothing heavy on a GPU node."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import typer

from app import __version__, cli
from app.cli import hub
from app.cli.options import HUB_MODULES
from tests.commands.invoke import wattmix

COMMANDS = ["serve", "demo", "import", "runs", "split", "status", "grid", "prices", "agent", "doctor"]
OPTIONS = {
    "serve": ["--db", "--config", "--host", "--port", "--insecure"],
    "demo": ["--db", "--port", "--no-browser", "--no-simulation"],
    "status": ["--db", "--config", "--format"],
    "grid": ["--json", "--db", "--config"],
    "prices": ["--source", "--gpu", "--base-url", "--json"],
    "agent": ["--hub", "--token-file", "--node", "--nvml-library", "--spool", "--once", "--format", "--config"],
    "doctor": ["--hub", "--token-file", "--nvml-library", "--config"],
    "import": ["--db", "--config", "--gpu", "--gpu-count", "--max-file-mb"],
    "runs": ["--model", "--gpu", "--assume", "--format", "--db", "--config"],
    "split": ["--demand", "--format", "--db", "--config"],
}


def test_the_commands_are_these() -> None:
    root = typer.main.get_group(cli.cli)
    assert sorted(root.commands) == sorted([*COMMANDS, "report", "facts", "token"])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_options(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    outcome = wattmix(capsys, command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(rf"Usage: .*\b{command} \[OPTIONS\]", outcome.out)
    assert all(option in outcome.out for option in OPTIONS[command])


def test_help_lists_every_command_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = wattmix(capsys, "--help")
    assert outcome.code == 0
    assert all(command in outcome.out for command in COMMANDS)


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = wattmix(capsys)
    assert all(command in outcome.out + outcome.err for command in COMMANDS)


@pytest.mark.parametrize(
    ("option", "environment"), [("--db", "WATTMIX_DB"), ("--config", "WATTMIX_CONFIG"), ("--port", "8501")]
)
def test_help_names_the_environment_and_the_default_of_an_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str, environment: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    [line] = [line for line in wattmix(capsys, "serve", "--help").out.splitlines() if option in line]
    assert environment in line


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert wattmix(capsys, "--version").out == f"wattmix {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["runz"],
        ["runs", "--modle", "x"],
        ["runs", "--format", "xml"],
        ["runs", "--assume", "best"],
        ["runs", "surplus"],
        ["import"],
        ["import", "a.json", "--gpu-count", "0"],
        ["import", "a.json", "--gpu-count", "two"],
        ["import", "a.json", "--max-file-mb", "0"],
        ["split", "--format", "csv"],
        ["serve", "--port", "0"],
        ["serve", "--port", "65536"],
        ["serve", "--port", "http"],
        ["demo", "--host", "0.0.0.0"],
    ],
)
def test_wrong_usage_is_exit_code_2_on_stderr(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    outcome = wattmix(capsys, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Error" in outcome.err


@pytest.mark.parametrize("command", ["runs", "split", "serve", "import"])
@pytest.mark.parametrize("fault", ["config", "db"])
def test_a_mistake_is_told_in_one_line_on_stderr(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, fault: str
) -> None:
    wrong = tmp_path / "wrong [bold]file"
    wrong.write_text("this is [neither\n" * 300)
    path = [tmp_path] if command == "import" else []
    outcome = wattmix(capsys, command, *path, f"--{fault}", wrong)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert str(wrong) in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_environment_may_name_store_and_config(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTMIX_DB", str(tmp_path / "from_environment.duckdb"))
    assert wattmix(capsys, "runs", "--format", "json").code == 0
    assert (tmp_path / "from_environment.duckdb").is_file()
    monkeypatch.setenv("WATTMIX_CONFIG", str(tmp_path / "none.toml"))
    assert "none.toml: no such file" in wattmix(capsys, "runs").err


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ("agent", "doctor")])
def test_without_the_hub_s_packages_a_command_says_what_installs_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    found = importlib.util.find_spec

    def without_duckdb(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("duckdb", "highspy") else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_duckdb)
    outcome = wattmix(capsys, command, *([tmp_path] if command in ("import", "grid") else []))
    assert outcome.code == 2
    assert outcome.err == (
        f"error: `wattmix {command}` needs the hub, which is not installed here (duckdb, highspy missing). "
        "Install it with: pip install 'wattmix[hub]'\n"
    )


def test_help_loads_none_of_the_hub_s_packages() -> None:
    """A GPU node has none of them."""
    code = "import sys, json; import app.cli, collectors.benchmark.files; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    assert {name.partition(".")[0] for name in loaded} & set(HUB_MODULES) == set()


def test_the_module_is_the_command_and_tells_errors_without_a_trace(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "app", "runs", "--config", "none.toml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "error: none.toml: no such file\n"


def test_an_error_of_ours_keeps_its_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(command: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(hub, "need_hub", broken)
    monkeypatch.setattr(sys, "argv", ["wattmix", "runs"])
    with pytest.raises(ZeroDivisionError):
        cli.main()
