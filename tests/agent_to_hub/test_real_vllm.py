"""A real vLLM on the CPU under load, read by a real agent: its tokens reach the API as the client counted them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import requests

from tests.conftest import ROOT
from tests.fakenvml.build import ADA_UUID, FakeDriver, build
from tests.hub_process import free_port, running

TOOLS = ROOT.parent / "shared" / "tools"
INSTALL = (
    "python3 -m venv VENV && VENV/bin/pip install --no-deps -r requirements-vllm-0.32.0.txt "
    "(the list is beside tiny_vllm.py), then WATTMIX_VLLM_PYTHON=VENV/bin/python"
)
REQUESTS, AT_ONCE = 40, 6


@dataclass
class Client:
    """What the client saw: sums over its finished requests."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    cached_tokens: int = 0
    finished: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)

    def take(self, usage: dict[str, Any]) -> None:
        details = usage.get("prompt_tokens_details") or {}
        with self.guard:
            self.prompt_tokens += usage["prompt_tokens"]
            self.generated_tokens += usage["completion_tokens"]
            self.cached_tokens += details.get("cached_tokens") or 0
            self.finished += 1


def tiny_vllm() -> tuple[str, ModuleType]:
    """(an interpreter with vLLM, the module that starts it on a tiny model); skips where either is absent."""
    python = os.environ.get("WATTMIX_VLLM_PYTHON")
    if not python or not (TOOLS / "tiny_vllm.py").is_file():
        pytest.skip(f"no vLLM for the CPU here; install it with: {INSTALL}")
    spec = importlib.util.spec_from_file_location("tiny_vllm", TOOLS / "tiny_vllm.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return python, module


@contextmanager
def agent_beside(server: Any, driver: FakeDriver, hub: str, folder: Path) -> Iterator[None]:
    """An agent that finds the engine itself, and is told only its GPU."""
    engine = f'[[agent.engine]]\nurl = "{server.url}"\ngpus = ["{ADA_UUID}"]\n'
    (folder / "wattmix.toml").write_text(f"[agent]\nnode = 'cpu'\npush_every_s = 2\n{engine}", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WATTMIX_")}
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "agent", "--hub", hub, "--spool", str(folder / "spool.db"),
             "--nvml-library", str(driver.library)],
            cwd=folder, env=environment | {"PYTHONPATH": str(ROOT), "FAKENVML_CONF": str(driver.conf)},
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(10)


def load(server: Any, client: Client) -> None:
    """Forty requests, six at a time: streamed and not, a third of them with a prefix in common."""
    numbers = iter(range(REQUESTS))

    def work() -> None:
        while True:
            with client.guard:
                number = next(numbers, None)
            if number is None:
                return
            client.take(ask(server, number))

    workers = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def ask(server: Any, number: int) -> dict[str, Any]:
    prefix = "the same long beginning of a prompt " * 20 if number % 3 == 0 else ""
    body = {
        "model": server.served_name, "prompt": f"{prefix}question {number} " + "word " * (5 + number % 17),
        "max_tokens": 16 + 3 * (number % 20), "ignore_eos": True, "temperature": 0.8,
    }  # fmt: skip
    url = f"{server.url}/v1/completions"
    if number % 2:
        answer = requests.post(url, json=body, timeout=300)
        answer.raise_for_status()
        usage: dict[str, Any] = answer.json()["usage"]
        return usage
    streamed = body | {"stream": True, "stream_options": {"include_usage": True}}
    with requests.post(url, json=streamed, stream=True, timeout=300) as answer:
        answer.raise_for_status()
        pieces = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: {")]
    return next(usage for piece in reversed(pieces) if (usage := json.loads(piece).get("usage")))


@pytest.mark.slow
def test_the_tokens_of_a_real_vllm_reach_the_api_as_the_client_counted_them(tmp_path: Path) -> None:
    python, module = tiny_vllm()
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed; install it with: apt-get install gcc libc6-dev")
    driver = FakeDriver(build(tmp_path)["current"], tmp_path / "gpus.conf", old=False)
    driver.write()
    module.make_model(str(tmp_path / "model"), python=python)
    client = Client()
    with (
        running(["serve", "--db", str(tmp_path / "s.duckdb")], tmp_path) as hub,
        module.TinyVLLM(python, tmp_path / "model", port=free_port(), max_num_seqs=4) as server,
    ):
        with agent_beside(server, driver, hub.address, tmp_path):
            wait_for(lambda: engines(hub.address), 60)
            load(server, client)
            time.sleep(6)  # one scrape after the last token
        line = wait_for(lambda: last_line(hub.address, client), 150)
        print(json.dumps({"client": client.__dict__ | {"guard": None}, "api": line}, indent=1, default=str))
        assert client.finished == REQUESTS
        assert line["prompt_tokens"] == client.prompt_tokens
        assert line["generated_tokens"] == client.generated_tokens
        assert line["cached_tokens"] == client.cached_tokens > 0
        assert line["requests"] == line["ttft_n"] == REQUESTS
        assert line["cost_per_mtok"] > 0
        assert hub.stop() == 0


def engines(address: str) -> list[dict[str, Any]]:
    found = requests.get(f"{address}/api/v1/health", timeout=10).json().get("engines", [])
    return [one for one in found if one["status"] == "ok"]


def last_line(address: str, client: Client) -> dict[str, Any] | None:
    """The model's counts of the hours since the test began, summed, once their minutes are rolled up."""
    today = datetime.now(UTC).date()
    asked = {"kind": "hourly", "from": (today - timedelta(days=1)).isoformat(),
             "to": (today + timedelta(days=1)).isoformat(), "tz": "UTC"}  # fmt: skip
    answer = requests.get(f"{address}/api/v1/report", params=asked, timeout=30)
    answer.raise_for_status()
    rows = [row for row in answer.json()["rows"] if row["model"]]
    counted = ("prompt_tokens", "generated_tokens", "cached_tokens", "requests", "ttft_n")
    total = {name: sum(row[name] or 0 for row in rows) for name in counted}
    total["cost_per_mtok"] = rows[-1]["cost_per_mtok"] if rows else None
    return total if total["requests"] >= client.finished else None


def wait_for(found: Any, deadline_s: float) -> Any:
    end = time.monotonic() + deadline_s
    while not (result := found()):
        assert time.monotonic() < end, "nothing came through in time"
        time.sleep(0.5)
    return result
