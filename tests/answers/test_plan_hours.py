"""The hours of a plan as rows and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from app.answers.plan_hours import plan_as_csv, planned_hours, planned_pools, saving_said, standing_on


def a_pool(fleet: str, count: int, gpus: int = 1, **changes: Any) -> dict[str, Any]:
    told = {"fleet": fleet, "model": "org/m", "gpu": "NVIDIA H100 PCIe", "gpu_label": "H100 PCIe 80GB"}
    return told | {"gpus_per_replica": gpus, "count": count} | changes


def an_hour(hour: int, *pools: dict[str, Any], **changes: Any) -> dict[str, Any]:
    split = {"usd_per_hour": 2.5, "g_per_hour": 100.25, "embodied_g_per_hour": None, "watts": 700.0,
             "tokens_per_s": 500.0, "replicas": list(pools)}  # fmt: skip
    told = {"start": f"2026-02-03T{hour:02}:00:00+00:00", "started": 1, "stopped": 0, "switch_usd": 0.2,
            "deferred_tokens": {"a": 1e6, "b": 5e5}, "split": split}  # fmt: skip
    return told | changes


def a_plan(*hours: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "hours": list(hours), "saving": {"usd": 6.0, "g": 950.0},
        "static": {"reason": None, "totals": {"usd": 48.0, "g": 9000.0}},
        "load": {"chat": {"source": "tokens of 96 hours of the last 28 days", "reason": None}},
        "grid": {"f": {"zone": "DE", "source": "Electricity Maps"}},
        "assumptions": {"min_up_hours": 2, "deferrable": []},
    } | changes  # fmt: skip


def test_pools_of_a_fleet_and_size_are_one_at_whatever_point() -> None:
    plan = a_plan(
        an_hour(4, a_pool("f", 3), a_pool("f", 2, gpu="NVIDIA-H100-PCIe"), a_pool("e", 1, gpus=2)), an_hour(5)
    )
    assert [(pool.title, pool.counts) for pool in planned_pools(plan)] == [
        ("e: 2x H100 PCIe 80GB", (1, 0)), ("f: 1x H100 PCIe 80GB", (5, 0)),
    ]  # fmt: skip


def test_two_models_are_told_apart() -> None:
    plan = a_plan(an_hour(4, a_pool("f", 3), a_pool("f", 2, model="org/n")))
    assert [pool.title for pool in planned_pools(plan)] == [
        "f: 1x H100 PCIe 80GB, org/m", "f: 1x H100 PCIe 80GB, org/n",
    ]  # fmt: skip


def test_an_hour_has_its_tokens_and_all_that_waits() -> None:
    [hour] = planned_hours(a_plan(an_hour(4)))
    assert (hour.tokens, hour.deferred_tokens, hour.usd) == (500 * 3600, 1.5e6, 2.5)


def test_csv_is_unrounded_and_what_is_unknown_is_empty() -> None:
    text = plan_as_csv(a_plan(an_hour(4, a_pool("=f", 3)), an_hour(5)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0] == {
        "start_utc": "2026-02-03T04:00:00Z", "replicas of =f: 1x H100 PCIe 80GB": "3", "started": "1", "stopped": "0",
        "usd": "2.5", "switch_usd": "0.2", "g": "100.25", "embodied_g": "", "watts": "700.0", "tokens": "1800000.0",
        "deferred_tokens": "1500000.0",
    }  # fmt: skip
    assert rows[1]["replicas of =f: 1x H100 PCIe 80GB"] == "0"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "-6.00 USD (-12.5%) and -950 gCO2e against the replicas of the busiest hour held in all hours"),
        ({"saving": {"usd": 6.0, "g": None}}, "-6.00 USD (-12.5%) against the replicas"),
        ({"static": {"reason": None, "totals": {"usd": 0.0}}, "saving": {"usd": 0.0, "g": 5.0}},
         "±0.00 USD and -5 gCO2e against"),
        ({"static": {"reason": "a cap breaks", "totals": None}, "saving": None},
         "There is nothing to compare it with: a cap breaks"),
    ],
)  # fmt: skip
def test_what_is_spared_is_said(changes: dict[str, Any], said: str) -> None:
    assert saving_said(a_plan(**changes)).startswith(said)


def test_where_load_and_grid_come_from_is_said() -> None:
    flat = {"source": "flat", "reason": "the model was seen in 3 h of the last 28 days, 24 h are needed"}
    told = standing_on(a_plan(load={"chat": flat}, assumptions={"min_up_hours": 2, "deferrable": ["batch", "night"]}))
    assert told == [
        "The demand's rates are those of the busiest hour of the week.",
        "Load of chat: the same in every hour, as the model was seen in 3 h of the last 28 days, 24 h are needed.",
        "Grid of f: Electricity Maps.",
        "May wait: batch, night.",
        "What is started runs for 2 hours at least.",
    ]
