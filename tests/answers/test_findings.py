"""Each thing that is found of a node or GPU: how bad it is, what it is, and what to do about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.answers.findings import agent_findings, duration, gpu_findings, node_findings, node_level
from tests.batches import T0, at

NOW = at(T0)
WELL: dict[str, Any] = {
    "age_s": 3.0, "skew_s": 0.1, "status": None, "twin_seen": None, "late_rows": 0, "skipped_batches": 0, "missing": {},
}  # fmt: skip
WELL_GPU: dict[str, Any] = {
    "coverage_day": 1.0, "divergence_hour": 0.01, "status": "ok", "energy_method": "counter", "mig_enabled": False,
}  # fmt: skip


def of_node(**values: Any) -> list[tuple[str, str]]:
    found = list(node_findings(WELL | values, NOW))
    assert all(set(one) == {"level", "what", "remedy"} and one["remedy"] for one in found)
    return [(one["level"], one["what"]) for one in found]


def of_gpu(**values: Any) -> list[tuple[str, str]]:
    return [(one["level"], one["what"]) for one in gpu_findings(WELL_GPU | values)]


def test_a_node_and_a_gpu_that_are_well_have_no_findings() -> None:
    assert (of_node(), of_gpu(), list(agent_findings({}))) == ([], [], [])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"age_s": 60.0}, []),
        ({"age_s": 61.0}, [("problem", "no batch for 61 s")]),
        ({"age_s": 10_800.0}, [("problem", "no batch for 3 h")]),
        ({"status": "no driver"}, [("problem", "no driver")]),
        ({"skew_s": 5.0}, []),
        ({"skew_s": 7.4}, [("warning", "its clock is 7 s ahead of the hub's")]),
        ({"skew_s": -240.0}, [("warning", "its clock is 4 min behind the hub's")]),
        ({"skew_s": None, "age_s": None}, []),
        ({"late_rows": 12}, [("warning", "12 rows were refused for their time")]),
        ({"skipped_batches": 3}, [("warning", "3 batches never arrived")]),
        ({"missing": {"dram_energy_mj": "no counter"}}, [("note", "dram_energy_mj is not measured")]),
    ],
    ids=str,
)
def test_what_is_found_of_a_node(values: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert of_node(**values) == found


@pytest.mark.parametrize(("hours", "shown"), [(0, True), (23.9, True), (24, False), (100, False)])
def test_two_machines_under_one_name_are_told_for_a_day(hours: float, shown: bool) -> None:
    seen = (NOW - timedelta(hours=hours)).isoformat()
    assert of_node(twin_seen=seen) == ([("problem", "two machines send under this name")] if shown else [])


def test_why_a_field_is_missing_is_its_remedy() -> None:
    (one,) = node_findings(WELL | {"missing": {"dram_energy_mj": "no counter for it"}}, NOW)
    assert one["remedy"] == "no counter for it"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"status": "lost"}, [("problem", "status: lost")]),
        ({"energy_method": None}, [("problem", "no energy source on this device")]),
        ({"divergence_hour": 0.05}, []),
        ({"divergence_hour": 0.06}, [("warning", "counter and power integral differ by +6.0%")]),
        ({"divergence_hour": -0.5}, [("warning", "counter and power integral differ by -50.0%")]),
        ({"divergence_hour": None}, []),
        ({"coverage_day": 0.95}, []),
        ({"coverage_day": 0.8}, [("warning", "samples cover 80% of the last day")]),
        ({"coverage_day": None}, []),
        ({"mig_enabled": True}, [("note", "MIG is on")]),
        ({"mig_enabled": None}, []),
    ],
    ids=str,
)
def test_what_is_found_of_a_gpu(values: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert of_gpu(**values) == found


@pytest.mark.parametrize(
    ("agent", "found"),
    [
        ({"dropped_batches": 2}, ("warning", "its spool was full: 2 batches were dropped")),
        ({"rejected_batches": 1}, ("warning", "the hub refused 1 batches of it")),
        ({"rejected_readings": 9}, ("note", "9 readings were out of range and left out")),
        ({"child_restarts": 4}, ("note", "its NVML process was restarted 4 times")),
        ({"spool_batches": 7}, ("note", "7 batches wait on the node")),
        ({"spool_batches": 6, "dropped_batches": 0, "rejected_batches": None}, None),
    ],
    ids=str,
)
def test_what_is_found_of_an_agent(agent: dict[str, Any], found: tuple[str, str] | None) -> None:
    assert [(one["level"], one["what"]) for one in agent_findings(agent)] == ([found] if found else [])


@pytest.mark.parametrize(
    ("age_s", "levels", "state"),
    [
        (3, [], "ok"), (3, ["note"], "ok"), (3, ["note", "warning"], "warning"), (3, ["warning", "problem"], "problem"),
        (61, [], "silent"), (61, ["problem"], "silent"), (None, [], "silent"),
    ],
)  # fmt: skip
def test_a_node_s_state_is_its_worst_finding(age_s: float | None, levels: list[str], state: str) -> None:
    assert node_level({"age_s": age_s}, [{"level": level} for level in levels]) == state


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "120 min"), (7_200, "2 h"), (172_800, "2 d")],
)
def test_durations_read_well(seconds: float, words: str) -> None:
    assert duration(seconds) == words
