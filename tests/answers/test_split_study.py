"""Front, shadow prices, robustness and interval of the worked example, as page and API get them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.answers.split_interval import price_ranges
from app.backend.local import LocalBackend
from app.errors import DemandError


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """What JSON makes of it: the same."""
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    return answer


def test_the_front_starts_at_the_recommendation_and_opens_every_split(backend: LocalBackend) -> None:
    front = plain(backend.split_front())
    points, recommended = front["points"], backend.split()
    assert (front["against"], front["reason"]) == ("carbon", None)
    # $8.50 for the mix; all h100s at $16, the fewest grams
    assert (points[0]["usd_per_hour"], points[-1]["usd_per_hour"]) == (8.5, 16.0)
    assert (points[0]["kind"], points[-1]["kind"]) == ("cheapest", "greenest")
    assert points[0]["g_per_hour"] == pytest.approx(recommended["g_per_hour"] + recommended["embodied_g_per_hour"])
    assert [number for number, point in enumerate(points) if point["is_knee"]] == [front["knee"]]
    assert {pool["fleet"] for pool in points[-1]["split"]["replicas"]} == {"h100"}
    for point in points:
        assert point["split"]["usd_per_hour"] == point["usd_per_hour"]
        assert set(point["split"]) <= set(recommended)


def test_the_cost_against_chat_s_slo_has_the_recommendation_at_its_limit(backend: LocalBackend) -> None:
    curve = plain(backend.split_front(against="slo.chat"))
    assert (curve["class"], curve["slo"]["label"]) == ("chat", "p99 TTFT <= 60 ms")
    held = [point["usd_per_hour"] for point in curve["points"] if point["max_ms"] <= curve["slo"]["max_ms"]]
    assert held[-1] == 8.5
    costs = [point["usd_per_hour"] for point in curve["points"]]
    assert costs == sorted(costs, reverse=True)


def test_an_slo_that_is_not_there_is_told_with_those_that_are(backend: LocalBackend) -> None:
    with pytest.raises(DemandError, match=r"`against`: given 'slo\.batch'; accepted: carbon, slo\.chat"):
        backend.split_front(against="slo.batch")


def test_shadow_prices_come_with_their_sentences(backend: LocalBackend) -> None:
    shadow = plain(backend.split_shadow())
    assert (shadow["reason"], shadow["usd_per_hour"], shadow["objective_usd_per_hour"]) == (None, 8.5, 8.5)
    by_name = {(price["kind"], price["name"]): price for price in shadow["prices"]}
    # a sixth request/s of chat fills the h100 that batch had room on: three more pairs of 4090s, $1.50
    assert by_name["load", "chat"]["text"] == "One more request/s of chat costs $1.50/h."
    assert by_name["slo", "p99 TTFT"]["class"] == "chat"


def test_robustness_is_asked_for_by_name(backend: LocalBackend) -> None:
    names = plain(backend.split_robustness(inputs=[]))
    assert names["inputs"] == [] and names["fleets"] == ["h100", "rtx4090"]
    assert {"rps.chat", "slo.chat", "usd.rtx4090", "carbon", "util"} <= set(names["names"])
    found = plain(backend.split_robustness(inputs=["usd.rtx4090", "rps.chat"]))
    rate, price = found["inputs"]
    assert (rate["name"], price["name"]) == ("rps.chat", "usd.rtx4090")
    assert rate["low"] < 5 < rate["high"] and rate["low_factor"] == pytest.approx(rate["low"] / 5)
    # 26 cards at $0.25 +- 20% and 25%, beside an h100 at $2
    assert price["tornado"]["low"]["usd_per_hour"] == pytest.approx(2 + 26 * 0.2)
    assert price["tornado"]["high"]["usd_per_hour"] == pytest.approx(2 + 26 * 0.3125)
    assert found["break_even"] == []
    [pair] = names["break_even"]
    # 13 pairs of 4090s carry batch alone for $6.50, 7 h100s for $14: as much at $6.50 / 7
    assert (pair["class"], pair["cheaper"], pair["dearer"]) == ("batch", "rtx4090", "h100")
    assert pair["price"]["value"] == pytest.approx(6.5 / 7)


def test_an_input_that_is_not_there_is_told_with_those_that_are(backend: LocalBackend) -> None:
    with pytest.raises(DemandError, match=r"`inputs`: given 'usd\.a100'; accepted: rps\.chat, "):
        backend.split_robustness(inputs=["usd.a100"])


def test_an_infeasible_demand_has_reasons_instead_of_figures(backend: LocalBackend) -> None:
    demand = backend.default_demand()
    [chat, batch] = demand.classes
    impossible = chat.model_copy(update={"slo": (chat.slo[0].model_copy(update={"max_ms": 0.5}),)})
    demand = demand.model_copy(update={"classes": (impossible, batch)})
    front, shadow, robust = (
        backend.split_front(demand), backend.split_shadow(demand), backend.split_robustness(demand),
    )  # fmt: skip
    assert (front["points"], shadow["prices"], robust["inputs"]) == ([], [], [])
    assert all("chat" in answer["reason"] for answer in (front, shadow, robust))


def test_the_saving_has_an_interval_around_it(backend: LocalBackend) -> None:
    baselines = plain(backend.split())["baselines"]
    enterprise = baselines["all_enterprise"]
    interval = enterprise["saving_interval"]
    assert interval["low"] <= enterprise["saving_usd_per_hour"] <= interval["high"]
    assert interval["fits"] is True
    assert "sampling error" in interval["includes"][0] and "list prices" in interval["includes"][1]
    assert baselines["all_consumer"]["saving_interval"] is None


def test_a_price_s_range_is_that_of_the_newest_list_prices_of_the_card(backend: LocalBackend) -> None:
    ranges = price_ranges(backend.default_demand())
    low, high = ranges["rtx4090"]
    assert low <= 0.25 <= high
    owned = backend.default_demand()
    fleets = tuple(fleet.model_copy(update={"usd_per_kwh": 0.2}) for fleet in owned.fleets)
    assert price_ranges(owned.model_copy(update={"fleets": fleets})) == {}
