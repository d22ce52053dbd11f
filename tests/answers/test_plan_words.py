"""A plan in words: what it saves or does not, how good it is, where its load and grams are from."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers.plan_words import saved, solved, sources
from tests.answers.planned import a_plan

BEST = "Against the best split of the busiest hours, run in all hours ($12.00, 900 gCO2e): "


@pytest.mark.parametrize(
    ("saving", "told"),
    [
        ({"usd": 5.0, "g": 300.0}, "$5.00 (41.7%) less, 300 gCO2e less."),
        # a carbon price may make the dearer plan the better one
        ({"usd": -3.0, "g": 300.0}, "$3.00 (25.0%) more, 300 gCO2e less."),
        ({"usd": 5.0, "g": -20.0}, "$5.00 (41.7%) less, 20 gCO2e more."),
        ({"usd": 5.0, "g": None}, "$5.00 (41.7%) less, grams are not known in every hour."),
    ],
)
def test_what_a_plan_saves(saving: dict[str, Any], told: str) -> None:
    assert saved(a_plan(saving=saving)) == BEST + told


def test_without_a_split_that_could_be_held_there_is_nothing_to_compare_with() -> None:
    static = {"reason": "no split of the busiest hour holds the limits in every hour", "totals": None, "split": None}
    answer = a_plan(saving=None, static=static)
    assert saved(answer) == f"Nothing to compare with: {static['reason']}."


def test_a_plan_says_how_near_the_optimum_it_is_and_whether_time_was_up() -> None:
    near = (
        "At most 2.00% from the optimum: no plan is below $7.06 of the $7.20 that are minimised (with the carbon price "
        "and switching)."
    )
    assert solved(a_plan(status="optimal")) == near
    assert solved(a_plan()) == f"{near} 10 s were up before it was within 1%."


def test_what_a_plan_stands_on() -> None:
    assert sources(a_plan()) == [
        "Load of chat, batch: the requests/s asked for in the busiest hour of the week, in the others less, by the "
        "tokens of 650 hours of the last 28 days.",
        "Grid of h100: DE, without a forecast: the yearly value in 3 of 3 hours.",
        "Grid of rtx4090: FR, forecast by Electricity Maps.",
        "What may wait for a better hour: batch.",
        "A started replica runs at least 2 hours; before the first hour runs what the fleets' `today` says.",
    ]


def test_without_a_measured_load_every_hour_is_alike() -> None:
    reason = "the model was seen in 1 h of the last 28 days, 24 h are needed"
    answer = a_plan(load={"chat": {"source": "flat", "reason": reason, "hours": 1}})
    assert sources(answer)[0] == f"Load of chat: the requests/s asked for, in every hour alike; {reason}."


@pytest.mark.parametrize(
    ("known", "g_per_kwh", "told"),
    [
        ({"zone": "DE", "hours_told": 0, "source": "100 g/kWh (user) in every hour"}, 100.0,
         "DE, 100 g/kWh (user) in every hour"),
        ({"zone": "DE", "hours_told": 2, "source": "Electricity Maps + the yearly value in 1 of 3 hours"}, 100.0,
         "DE, forecast by Electricity Maps + the yearly value in 1 of 3 hours"),
        ({"zone": None, "hours_told": 0, "source": "no zone is set"}, 100.0,
         "no zone is set; 100 g/kWh in every hour"),
        ({"zone": None, "hours_told": 0, "source": "no zone is set"}, None,
         "no zone is set; its grams are not known"),
    ],
)  # fmt: skip
def test_where_the_grams_of_a_fleet_are_from(known: dict[str, Any], g_per_kwh: float | None, told: str) -> None:
    answer = a_plan(grid={"h100": known})
    for hour in answer["hours"]:
        hour["g_per_kwh"] = {"h100": g_per_kwh}
    assert sources(answer)[1] == f"Grid of h100: {told}."
    assert sources(a_plan(hours=[], grid={"h100": known}))[1].startswith("Grid of h100: ")


def test_nothing_may_wait_where_no_class_is_deferrable() -> None:
    assumed = a_plan()["assumptions"] | {"deferrable": []}
    assert "What may wait for a better hour: nothing (no class is deferrable)." in sources(a_plan(assumptions=assumed))
