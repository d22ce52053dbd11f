"""The hours of a plan as rows: pools whatever their operating point, what arrives, and CSV."""

from __future__ import annotations

import csv
import io

import pytest

from app.answers.plan_rows import arriving_tokens_per_s, loads, plan_as_csv, plan_pools
from tests.answers.planned import H100, RTX4090, STARTS, a_plan, a_replica, an_hour


def test_a_pool_is_a_fleet_and_a_size_whatever_its_operating_point() -> None:
    answer = a_plan()
    h100, rtx4090 = plan_pools(answer)
    assert (h100.name, rtx4090.name) == ("h100: 1x H100 PCIe 80GB", "rtx4090: 2x RTX 4090")
    assert [h100.count(hour) for hour in answer["hours"]] == [1, 1, 1]
    # three at 16 req/s and one at 3.5 in the last hour
    assert [rtx4090.count(hour) for hour in answer["hours"]] == [0, 2, 4]


def test_replicas_of_several_models_and_sizes_are_pools_of_their_own() -> None:
    hour = an_hour(0, [
        a_replica("rtx4090", RTX4090, 4, 1), a_replica("rtx4090", RTX4090, 2, 3),
        a_replica("rtx4090", RTX4090, 2, 5, model="org/other"), a_replica("h100", H100, 1, 7),
    ])  # fmt: skip
    pools = plan_pools(a_plan(hours=[hour]))
    assert [(pool.name, pool.count(hour)) for pool in pools] == [
        ("h100: 1x H100 PCIe 80GB, DeepSeek-R1-Distill-Qwen-14B", 7),
        ("rtx4090: 2x RTX 4090, DeepSeek-R1-Distill-Qwen-14B", 3),
        ("rtx4090: 2x RTX 4090, other", 5),
        ("rtx4090: 4x RTX 4090, DeepSeek-R1-Distill-Qwen-14B", 1),
    ]


def test_what_arrives_is_what_is_served_and_by_how_much_more_waits() -> None:
    # 1,000 + 3.6e6 / 3600; 1,000 - 1.8e6 / 3600; 2,500 - 1.8e6 / 3600
    assert arriving_tokens_per_s(a_plan()["hours"]) == pytest.approx([2000, 500, 2000])


def test_classes_of_one_load_curve_share_their_load() -> None:
    assert loads(an_hour(0, [])) == [0.5]
    assert loads(an_hour(0, [], load={"chat": 1.0, "batch": 0.25})) == [1.0, 0.25]


def test_the_csv_has_a_row_per_hour_unrounded_and_what_is_missing_is_empty() -> None:
    answer = a_plan()
    answer["hours"][0] |= {"g_per_kwh": {"h100": None, "rtx4090": 80.123456789}}
    answer["hours"][0]["split"] |= {"g_per_hour": None}
    rows = list(csv.DictReader(io.StringIO(plan_as_csv(answer))))
    assert [row["start_utc"] for row in rows] == list(STARTS)
    assert rows[0] == {
        "start_utc": STARTS[0], "replicas h100: 1x H100 PCIe 80GB": "1", "replicas rtx4090: 2x RTX 4090": "0",
        "started": "1", "stopped": "0", "usd": "2.0", "switch_usd": "0.0", "g": "", "embodied_g": "16.0",
        "tokens_per_s": "1000.0", "deferred_tokens batch": "3600000.0", "load chat": "0.5", "load batch": "0.5",
        "g_per_kwh h100": "", "g_per_kwh rtx4090": "80.123456789",
    }  # fmt: skip
    assert rows[2]["replicas rtx4090: 2x RTX 4090"] == "4"
