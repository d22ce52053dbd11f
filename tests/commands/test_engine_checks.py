"""What `wattmix doctor` says of engines."""

from __future__ import annotations

from typing import Any

import pytest

from app.commands.checks import Check
from app.commands.engine_checks import engine_checks
from collectors.samples import Engine

GPUS = [{"uuid": "aa-0", "index": 4}, {"uuid": "bb-1", "index": 5}]
URL = "http://127.0.0.1:8000/metrics"


def engine(**changes: Any) -> dict[str, Any]:
    known = {"url": URL, "label": "0", "model": "org/model", "kind": "vllm", "version": "0.32.0"}
    return Engine(**{**known, **changes}).model_dump(mode="json")


def checks(*engines: dict[str, Any], missing: dict[str, str] | None = None, is_searching: bool = True) -> list[Check]:
    reading = {"gpus": GPUS, "engines": list(engines), "missing": missing or {}}
    return list(engine_checks(reading, is_searching=is_searching))


@pytest.mark.parametrize(
    ("changes", "level", "what"),
    [
        ({"gpus": ["aa-0", "bb-1"], "gpus_source": "processes"}, "ok",
         f"vllm 0.32.0 at {URL}, engine 0: org/model, on GPU 4, 5 (by its processes)"),
        ({"gpus": ["cc-2"], "gpus_source": "config", "label": "", "version": None}, "ok",
         f"vllm at {URL}: org/model, on GPU cc-2 (as configured)"),
        ({"gpus": [], "gpus_source": "environment"}, "ok",
         f"vllm 0.32.0 at {URL}, engine 0: org/model, on no GPU (by its environment)"),
        ({"model": None}, "ok",
         f"vllm 0.32.0 at {URL}, engine 0: model unknown (set `model` in [[agent.engine]]), GPUs unknown"),
        ({"status": "down: connection refused; is vLLM running on port 8000?"}, "problem",
         f"vllm 0.32.0 at {URL}, engine 0: down: connection refused; is vLLM running on port 8000?"),
    ],
)  # fmt: skip
def test_an_engine_is_told_with_its_model_and_gpus(changes: dict[str, Any], level: str, what: str) -> None:
    assert checks(engine(**changes)) == [Check(level, what)]  # type: ignore[arg-type]


def test_what_cannot_be_told_has_its_reason() -> None:
    missing = {
        "dram_energy_mj": "no counter",
        "engine 127.0.0.1:8000": "down: connection refused",
        "engine 127.0.0.1:8001 1.gpus": "set `gpus`",
        "engine at http://127.0.0.1:80/metrics": "not counted: it passes on the page of another",
        "engines": "Darwin does not tell here which ports are listened on",
    }
    assert checks(missing=missing) == [
        Check("problem", "engine 127.0.0.1:8000: down: connection refused"),
        Check("note", "the GPUs of engine 127.0.0.1:8001 1 are not known", "set `gpus`"),
        Check("note", "engine at http://127.0.0.1:80/metrics: not counted: it passes on the page of another"),
        Check("note", "Darwin does not tell here which ports are listened on"),
    ]


@pytest.mark.parametrize(
    ("is_searching", "what"),
    [(True, "no engine was found on this node's ports"), (False, "no engine is configured")],
)
def test_a_node_without_engines_is_told_how_one_is_found(is_searching: bool, what: str) -> None:
    (check,) = checks(is_searching=is_searching)
    assert (check.level, check.what) == ("note", what)
    assert "--enable-metrics" in check.remedy
