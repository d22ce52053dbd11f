"""Grams of making cards, of suppliers and of two bases over the whole path: samples, facts, accounts, reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.answers.account import account_lines
from app.answers.query import AccountQuery
from app.config import Config
from app.facts.carbon import Embodied, MarketFactor
from app.facts.kinds import OwnedPrice, ZoneFact
from app.reports.report import build_report
from app.reports.request import Request, days_window
from app.store.database import Store
from tests.answers.accounting import (
    EU27_G_PER_KWH,
    NOW,
    SETTINGS,
    START,
    know,
    minutes_of,
    served,
    stepped,
    summed,
    take,
    value,
    values,
)
from tests.answers.test_summary import home
from tests.batches import MODEL, batch

H100_G = 566.7e3 / (4 * 8760)  # an hour of the PCIe card by boavizta: 16.173 g
HOME_G = 185.1e3 / (4 * 8760)  # of the RTX 4090: 5.282 g
EMBODIED = ("embodied_active_g", "embodied_idle_g", "embodied_unallocated_g")


def test_an_hour_by_hand(store: Store) -> None:
    """300 W for an hour, 36 minutes of work: 0.36 kWh of site energy, 5,400 tokens."""
    rows = [*served(36), *served(24, first=36, prompt_tokens=0, generated_tokens=0, finished_stop=0, running=0)]
    take(store, batch(1, rows=minutes_of(300), engine_rows=rows))
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=45.0))
    total = summed(store)["total"]
    assert values(total, ["carbon_g", "carbon_market_g"]) == pytest.approx([0.36 * EU27_G_PER_KWH, 0.36 * 45])
    assert values(total, ["embodied_g", *EMBODIED]) == pytest.approx([H100_G, 0.6 * H100_G, 0.4 * H100_G, 0.0])
    mtok = 36 * 150 / 1e6
    assert values(total, ["sci_g_per_mtok", "embodied_g_per_mtok", "g_per_mtok_market"]) == pytest.approx(
        [(0.36 * EU27_G_PER_KWH + H100_G) / mtok, H100_G / mtok, 0.36 * 45 / mtok]
    )
    assert total["figures"]["embodied_g"]["method"] == "default"


def test_a_life_that_changes_splits_the_hour(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    know(store, "embodied", "h100", Embodied(life_years=8), minute=37)
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=45.0))
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=0.0), minute=37)
    # 37 minutes over 4 years, 23 over 8; the supplier's grams of the first 37 minutes only
    expected = H100_G * (37 / 60 + 23 / 120)
    total = summed(store)["total"]
    assert values(total, ["embodied_g", "carbon_market_g"]) == pytest.approx([expected, 0.36 * 45 * 37 / 60])
    [line] = stepped(store, step="minute", figures=("embodied_g",))["lines"]
    assert line["figures"]["embodied_g"]["values"] == pytest.approx([H100_G / 60] * 37 + [H100_G / 120] * 23)


def test_an_owned_gpu_embodies_every_hour_from_its_service_to_its_retirement(store: Store) -> None:
    """On for the first 20 minutes of an hour, off for the rest; in service from a day before, retired an hour after."""
    take(store, home(rows=minutes_of(400, 20), engine_rows=served(20)))
    plan = OwnedPrice(purchase=0, life_years=2, in_service=START - timedelta(days=1),
                      retired=START + timedelta(hours=2))  # fmt: skip
    know(store, "price", "home", plan, minute=-3 * 24 * 60)
    total = summed(store)["total"]
    assert values(total, ["embodied_g", *EMBODIED]) == pytest.approx([HOME_G, HOME_G / 3, 0.0, HOME_G * 2 / 3])
    assert value(total, "cost") == pytest.approx(0.4 / 3 * 0.2)  # it cost nothing to buy
    assert value(summed(store, -600, 60)["total"], "embodied_g") == pytest.approx(HOME_G)
    assert summed(store, -600, 60)["total"]["figures"]["carbon_g"]["reason"] == "no GPU was seen"
    for first in (-24 * 60 - 60, 120):  # not yet, no longer
        assert summed(store, first, 60)["total"]["figures"]["embodied_g"]["reason"] == "no GPU was seen"


def test_sunk_cards_count_0_and_the_assumption_is_named(store: Store) -> None:
    take(store, home(rows=minutes_of(400), engine_rows=served()))
    before = summed(store)
    know(store, "embodied", "home", Embodied(policy="sunk"))
    after = summed(store)
    changed = {name for name, figure in after["total"]["figures"].items() if figure != before["total"]["figures"][name]}
    assert {name.split("_")[0] for name in changed} == {"embodied", "sci"}
    assert value(after["total"], "embodied_g") == 0.0
    assert value(after["total"], "sci_g_per_mtok") == pytest.approx(value(after["total"], "g_per_mtok"))
    assert "embodied: sunk: made anyway, counts 0" in after["quality"]["carbon_basis"]
    note = "cards of a fleet count as made anyway (sunk): their embodied carbon is 0 by assumption"
    assert (note in before["notes"], note in after["notes"]) == (False, True)


def both(store: Store) -> None:
    """An hour of an H100 at 300 W and of an RTX 4090 at 400 W."""
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()), home(rows=minutes_of(400), engine_rows=served()))


def test_fleets_of_two_bases_have_their_own_grams_and_none_together(store: Store) -> None:
    both(store)
    together = summed(store)["total"]
    assert value(together, "carbon_g") == pytest.approx((0.36 + 0.4) * EU27_G_PER_KWH)
    know(store, "zone", "home", ZoneFact(zone="US-CA"))
    answer = summed(store, by="fleet")
    for name in ("carbon_g", "g_per_mtok", "sci_g_per_mtok"):
        figure = answer["total"]["figures"][name]
        assert (figure["value"], figure["reason"]) == (
            None, "grams of direct and lifecycle factors are not added: look at fleets of one basis",
        )  # fmt: skip
    h100, desk = answer["lines"]
    assert value(h100, "carbon_g") == pytest.approx(0.36 * EU27_G_PER_KWH)
    assert value(desk, "carbon_g") > 0
    assert value(answer["total"], "embodied_g") == pytest.approx(H100_G + HOME_G)
    assert value(answer["total"], "cost") == pytest.approx(value(together, "cost"))


def test_grams_of_another_basis_are_not_held_against_those_before(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300, 120), engine_rows=served(120)))
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=45.0))
    assert summed(store, 60)["change"]["carbon_g"]["value"] == pytest.approx(0.0)
    know(store, "zone", "h100", ZoneFact(zone="US-CA"), minute=60)
    answer = summed(store, 60)
    for name in ("carbon_g", "g_per_mtok", "sci_g_per_mtok"):
        assert answer["change"][name]["reason"] == "its factors are direct and lifecycle: not comparable", name
        assert value(answer["total"], name) > 0
    unchanged = ("embodied_g", "carbon_market_g", "g_per_mtok_market", "cost")
    assert [answer["change"][name]["value"] for name in unchanged] == pytest.approx([0.0] * 4)


def test_market_based_grams_need_a_factor_of_each_fleet(store: Store) -> None:
    both(store)
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=45.0))
    answer = summed(store, by="fleet")
    assert answer["total"]["figures"]["carbon_market_g"]["reason"] == "no supplier factor"
    assert [line["figures"]["carbon_market_g"]["value"] for line in answer["lines"]] == [pytest.approx(16.2), None]
    know(store, "market_factor", "home", MarketFactor(g_per_kwh=100.0))
    total = summed(store)["total"]
    assert values(total, ["carbon_market_g", "carbon_g"]) == pytest.approx([56.2, 0.76 * EU27_G_PER_KWH])


def test_cards_by_two_tables_are_not_added(store: Store) -> None:
    both(store)
    know(store, "embodied", "h100", Embodied(method="pcf", kg_per_gpu=164))
    answer = summed(store, by="fleet")
    figure = answer["total"]["figures"]["embodied_g"]
    assert figure["reason"] == "embodied figures of boavizta and pcf are not added: choose one method"
    assert [value(line, "embodied_g") for line in answer["lines"]] == pytest.approx([164e3 / 35040, HOME_G])


def test_the_settings_choose_the_method_of_all_cards(store: Store) -> None:
    config = Config.model_validate(SETTINGS | {"defaults": {"embodied_method": "pcf"}})
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()), config=config)
    figure = summed(store, config=config)["total"]["figures"]["embodied_g"]
    assert figure["reason"] == "no pcf figure of making H100 PCIe 80GB; boavizta has one"


def test_a_report_and_a_page_say_the_same_line_and_a_re_run_is_the_same_to_the_byte(store: Store) -> None:
    take(store, batch(1, rows=minutes_of(300), engine_rows=served()))
    known_at = NOW - timedelta(seconds=1)

    def lines(periods: Any, **asked: Any) -> Any:
        return account_lines(store, Config.model_validate(SETTINGS), periods, **asked)

    def report(known: Any) -> Any:
        window = days_window(START.date(), START.date() + timedelta(days=1), AccountQuery(START, NOW).zone)
        return build_report(Request("fleet-day", window, "UTC", "it", "total", known), lines, NOW)

    before = report(known_at)
    [row] = before.rows
    assert row["carbon_basis"] == summed(store)["quality"]["carbon_basis"]
    assert row["carbon_basis"] == (
        "boundary site (GPUs x PUE); power measured, coverage 100.0%; location-based: EU27 2024 average, 213.02 g/kWh "
        "lifecycle (default), PUE 1.2; market-based: no supplier factor; embodied: boavizta 566.7 kg a GPU over 4 "
        "years (default); idle and unallocated time included; tokens: total"
    )
    assert (row["embodied_g"], row["embodied_low_g"], row["carbon_market_g"]) == (
        pytest.approx(H100_G), pytest.approx(H100_G), None,
    )  # fmt: skip
    assert row["sci_g_per_mtok"] == pytest.approx((0.36 * EU27_G_PER_KWH + H100_G) / 0.009)
    assert "carbon_market_g: no supplier factor" in row["missing"].split("; ")
    assert row["model"] == MODEL
    know(store, "embodied", "h100", Embodied(policy="sunk"))
    know(store, "market_factor", "h100", MarketFactor(g_per_kwh=45.0))
    assert report(known_at).csv == before.csv
    [now] = report(None).rows
    assert (now["embodied_g"], now["carbon_market_g"]) == (0.0, pytest.approx(16.2))
