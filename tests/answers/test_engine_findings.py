"""Each thing that is found of an engine: how bad it is, what it is, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers.engine_findings import engine_findings, engine_gpus, engine_level
from app.answers.findings import place

WELL: dict[str, Any] = {
    "node": "rack1", "engine": "rack1:8000", "url": "http://127.0.0.1:8000/metrics", "status": "ok", "age_s": 3.0,
    "node_age_s": 3.0, "gpus": ["a"], "gpus_source": "processes", "gpus_not_measured": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "level", "found"),
    [
        ({}, "ok", []),
        ({"gpus": []}, "ok", []),
        ({"status": "HTTP 503"}, "down", [("problem", "engine down: HTTP 503")]),
        ({"status": "HTTP 503", "gpus": None, "age_s": 900.0}, "down", [("problem", "engine down: HTTP 503")]),
        ({"age_s": 60.0}, "ok", []),
        ({"age_s": 180.0}, "silent", [("warning", "not read for 3 min")]),
        ({"age_s": 180.0, "node_age_s": 180.0}, "silent", []),
        ({"age_s": 180.0, "node_age_s": None}, "silent", []),
        ({"gpus": None, "gpus_not_measured": None}, "warning", [("warning", "GPUs unknown")]),
        ({"gpus_not_measured": ["a", "b"]}, "warning", [("warning", "GPUs not measured: a, b")]),
    ],
    ids=str,
)
def test_what_is_found_of_an_engine(values: dict[str, Any], level: str, found: list[tuple[str, str]]) -> None:
    findings = engine_findings(WELL | values)
    assert all(set(one) == {"level", "what", "remedy"} and one["remedy"] for one in findings)
    assert [(one["level"], one["what"]) for one in findings] == found
    assert engine_level(WELL | values) == level


def test_how_its_gpus_become_known_is_the_remedy() -> None:
    (one,) = engine_findings(WELL | {"gpus": None, "gpus_not_measured": None})
    assert one["remedy"].startswith("set gpus in [[agent.engine]]")


@pytest.mark.parametrize(
    ("values", "words"),
    [({}, "1 (processes)"), ({"gpus_source": None}, "1"), ({"gpus": None}, "not known"),
     ({"gpus": [], "gpus_source": "config"}, "0 (config)")],
)  # fmt: skip
def test_its_gpus_in_words(values: dict[str, Any], words: str) -> None:
    assert engine_gpus(WELL | values) == words


def test_places_of_the_health_answer() -> None:
    assert [place(one) for one in (WELL, {"node": "rack1", "gpu": 3}, {"node": "rack1", "state": "ok", "gpus": 8})] == [
        "rack1:8000", "rack1 GPU 3", "rack1",
    ]  # fmt: skip
