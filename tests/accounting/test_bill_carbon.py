"""Grams by hand: of making cards, by suppliers, of two bases, and per million tokens; what differs is never added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.account import FIGURES, Account
from app.accounting.bill import PARTS, Bill
from app.accounting.carbon import EmbodiedCarbon, GridFactor, MarketFactor, Spread
from app.accounting.carbon_line import carbon_line
from app.accounting.figure import Figure
from app.accounting.terms import GridHours, HourlyPart
from tests.accounting.bills import HOUR_S, account, bill, owned, rented, served, use

# 350.4 kg x 1000 / (4 x 8760 h) = 10 g an hour; 5 g by the least, 20 g by the most
CARD = EmbodiedCarbon(Spread(175.2, 350.4, 700.8), "boavizta", "default")
PCF = EmbodiedCarbon(Spread(175.2, 175.2, 700.8), "pcf", "default")
OWN = EmbodiedCarbon(Spread(35.04, 35.04, 35.04), "user", "user")  # 1 g an hour
SUNK = EmbodiedCarbon(None, "boavizta", "user", policy="sunk")
UNKNOWN = EmbodiedCarbon(None, "boavizta", "default", reason="no boavizta figure of making X")
DIRECT = GridFactor("US-CA", 250.0, "direct", 2023, "default", "a table")
SUPPLIER = MarketFactor(40.0, "disclosure 2025")
EMBODIED = ("embodied_active_g", "embodied_idle_g", "embodied_unallocated_g")


def value(figure: Figure) -> float:
    assert figure.value is not None, figure.reason
    return float(figure.value)


def values(of: Account, *names: str) -> list[float]:
    return [value(of.figure(name)) for name in names]


def test_embodied_grams_fall_on_the_hours_in_which_a_gpu_was_there_busy_or_not() -> None:
    # 3 GPU-hours with an engine, of which 1 used; 2 without: 10 + 20 + 20 g
    of = account(bill((use(3.0, 1.0), rented(embodied=CARD)), (use(2.0, allocated=False), rented(embodied=CARD))))
    assert values(of, *EMBODIED) == pytest.approx([10.0, 20.0, 20.0])
    assert values(of, "embodied_low_g", "embodied_g", "embodied_high_g") == pytest.approx([25.0, 50.0, 100.0])
    assert (of.figure("embodied_g").unit, of.figure("embodied_g").method) == ("gCO2e", "default")
    for view, grams in (("used", 10.0), ("idle", 20.0), ("unallocated", 20.0)):
        seen = account(of.bill, view=view)
        assert values(seen, "embodied_low_g", "embodied_g", "embodied_high_g") == pytest.approx(
            [grams / 2, grams, grams * 2]
        )


def test_owned_gpus_that_are_off_go_on_to_amortise_and_emit_nothing() -> None:
    made = bill((use(6.0, 6.0, used_w=400), owned(0.1, 0.2, embodied=CARD)), share=1.0)
    made.add_off(18 * HOUR_S, owned(0.1, 0.2, embodied=CARD))
    of = account(made)
    # a day of 24 h: 240 g, of which 180 while it was off; 6 h x 0.4 kW x 400 g/kWh = 960 g
    assert values(of, *EMBODIED) == pytest.approx([60.0, 0.0, 180.0])
    assert values(of, "embodied_g", "carbon_g") == pytest.approx([240.0, 960.0])
    off = Bill("it")
    off.add_off(HOUR_S, owned(0.0, None, embodied=CARD))
    assert value(account(off).figure("embodied_g")) == pytest.approx(10.0)  # though it cost nothing to buy
    assert account(off).figure("carbon_g").reason == "no GPU was seen"


def test_before_its_service_and_after_it_a_card_embodies_nothing() -> None:
    made = bill(
        (use(5.0), owned(0.0, 0.2, embodied=CARD, in_service=False)), (use(1.0), owned(0.1, 0.2, embodied=CARD))
    )
    assert value(made.embodied()) == pytest.approx(10.0)
    unknown = bill((use(5.0), owned(0.0, 0.2, in_service=False)), (use(1.0), owned(0.1, 0.2, embodied=CARD)))
    assert value(unknown.embodied()) == pytest.approx(10.0)


def test_what_a_billing_increment_adds_embodies_nothing() -> None:
    made = bill((use(1.0), rented(embodied=CARD)))
    made.add_rounding(HOUR_S / 2, rented(embodied=CARD))
    assert (value(made.embodied()), value(made.usd())) == pytest.approx((10.0, 3.0))


def test_engines_that_share_a_gpu_share_what_it_embodies() -> None:
    one = bill((use(0.75, 0.375, shared=True), rented(embodied=CARD)))
    other = bill((use(0.25, 0.125, shared=True), rented(embodied=CARD)))
    assert (value(one.embodied()), value(other.embodied())) == pytest.approx((7.5, 2.5))
    assert bill((use(1.0, shared=True), rented(embodied=OWN))).embodied().method == "estimated"


def test_a_card_of_which_nothing_is_known_leaves_the_embodied_grams_missing_and_the_rest() -> None:
    of = account(
        bill((use(1.0, 1.0, used_w=500), rented(embodied=UNKNOWN)), (use(1.0), rented(embodied=CARD))), served(9)
    )
    for name in ("embodied_g", "embodied_low_g", "embodied_high_g", "embodied_g_per_mtok", "sci_g_per_mtok"):
        assert (of.figure(name).value, of.figure(name).reason) == (None, "no boavizta figure of making X"), name
    assert value(of.figure("carbon_g")) == pytest.approx(200.0)
    assert value(of.figure("embodied_idle_g")) == pytest.approx(10.0)
    assert bill((use(1.0), rented())).embodied().reason == "no embodied carbon is known"


def test_figures_of_two_tables_are_not_added_and_a_users_go_with_either() -> None:
    mixed = bill((use(1.0), rented(embodied=CARD)), (use(1.0), rented(embodied=PCF)))
    assert mixed.embodied().reason == "embodied figures of boavizta and pcf are not added: choose one method"
    assert mixed.embodied(end="low").value is None
    assert value(bill((use(1.0), rented(embodied=CARD)), (use(2.0), rented(embodied=OWN))).embodied()) == pytest.approx(
        12.0
    )
    assert value(bill((use(1.0), rented(embodied=PCF)), (use(2.0), rented(embodied=SUNK))).embodied()) == pytest.approx(
        5.0
    )


def test_location_and_market_based_grams_stand_side_by_side() -> None:
    # 0.5 kWh x PUE 1.2 = 0.6 kWh: x 400 = 240 g by the grid, x 40 = 24 g by the supplier
    of = account(bill((use(1.0, 1.0, used_w=500), rented(pue=1.2, market=SUPPLIER)), share=1.0), served(500_000))
    assert values(of, "carbon_g", "carbon_market_g") == pytest.approx([240.0, 24.0])
    assert values(of, "g_per_mtok", "g_per_mtok_market") == pytest.approx([480.0, 48.0])
    assert (of.figure("carbon_market_g").method, of.figure("carbon_g").method) == ("user", "default")
    assert value(account(of.bill, view="idle").figure("carbon_market_g")) == 0.0


def test_market_based_grams_need_a_factor_for_every_fleet_with_energy() -> None:
    known = (use(1.0, 1.0, used_w=500), rented(market=SUPPLIER))
    lacks = bill(known, (use(1.0, idle_w=50), rented()))
    assert (lacks.market_grams().value, lacks.market_grams().reason) == (None, "no supplier factor")
    assert value(lacks.market_grams("used")) == pytest.approx(20.0)
    assert value(lacks.grams()) == pytest.approx(220.0)
    assert value(bill(known, (use(1.0), rented())).market_grams()) == pytest.approx(20.0)  # it drew nothing
    assert account(lacks, served(9)).figure("g_per_mtok_market").reason == "no supplier factor"


def test_a_supplier_without_carbon_emits_zero_not_nothing() -> None:
    made = bill((use(1.0, 1.0, used_w=500), rented(market=MarketFactor(0.0, "certificates"))))
    assert value(made.market_grams()) == 0.0
    assert value(made.grams()) == pytest.approx(200.0)


def test_lifecycle_and_direct_grams_are_never_added() -> None:
    lifecycle = (use(1.0, 1.0, used_w=500), rented(embodied=CARD, market=SUPPLIER))
    direct = (use(1.0, idle_w=500), rented(grid=DIRECT, embodied=CARD, market=SUPPLIER))
    of = account(bill(lifecycle, direct, share=1.0), served(9))
    reason = "grams of direct and lifecycle factors are not added: look at fleets of one basis"
    for name in ("carbon_g", "g_per_mtok", "sci_g_per_mtok", "sci_g_per_mtok_high"):
        assert (of.figure(name).value, of.figure(name).reason) == (None, reason), name
    # each part is of one basis; energy, dollars, what cards embody and suppliers' grams are as they were
    assert values(of, "carbon_active_g", "carbon_idle_g") == pytest.approx([200.0, 125.0])
    assert values(of, "energy_kwh", "cost", "embodied_g", "carbon_market_g") == pytest.approx([1.0, 4.0, 20.0, 40.0])
    alike = bill(lifecycle, (use(1.0), rented(grid=DIRECT)))  # without energy nothing is added
    assert value(alike.grams()) == pytest.approx(200.0)


def test_grams_of_told_hours_need_no_yearly_value() -> None:
    """0.5 kWh and 0.1 kWh of a host of 100 W at 200 g/kWh, PUE 1.2: 144 g; of what is not told nothing is known."""
    unknown = rented(grid=GridFactor("XX", None, "", None, "default", "", reason="no zone XX"), pue=1.2, host_w=100)
    told = HourlyPart(1.8e6, HOUR_S, 1.8e6 * 200, HOUR_S * 200, frozenset({"lifecycle"}))
    hours = GridHours(told, HourlyPart(0.0, 0.0, 0.0, 0.0), 0.0, 0.0, ("XX by the hour",))
    all_told = bill((use(1.0, 1.0, used_w=500, grid_hours=hours), unknown))
    assert value(all_told.grams()) == pytest.approx(144.0)
    half_told = bill((use(2.0, 2.0, used_w=500, grid_hours=hours), unknown))
    assert (half_told.grams().value, half_told.grams().reason) == (None, "no zone XX")


def test_sci_is_operational_and_embodied_carbon_per_million_tokens() -> None:
    # 500 W x PUE 1.2 x 400 g/kWh = 240 g; 10 g (5 to 20) of the card; over half a million tokens
    of = account(
        bill((use(1.0, 1.0, used_w=500), rented(pue=1.2, market=SUPPLIER, embodied=CARD))), served(300_000, 200_000)
    )
    assert values(of, "embodied_g_per_mtok_low", "embodied_g_per_mtok", "embodied_g_per_mtok_high") == pytest.approx(
        [10.0, 20.0, 40.0]
    )
    # (240 + 5 | 10 | 20) / 0.5: a supplier's certificates do not lower it
    assert values(of, "sci_g_per_mtok_low", "sci_g_per_mtok", "sci_g_per_mtok_high") == pytest.approx(
        [490.0, 500.0, 520.0]
    )
    assert (of.figure("sci_g_per_mtok").unit, of.figure("sci_g_per_mtok").coverage) == ("gCO2e/Mtok", 1.0)
    # by the basis output 200,000 tokens divide: 250 g / 0.2
    output = account(of.bill, of.served, basis="output")
    assert value(output.figure("sci_g_per_mtok")) == pytest.approx(1250.0)
    # idle alone: nothing; used alone: the same
    assert [value(account(of.bill, of.served, view=view).figure("sci_g_per_mtok")) for view in ("used", "idle")] == (
        pytest.approx([500.0, 0.0])
    )
    assert account(of.bill, served()).figure("sci_g_per_mtok").reason == "no tokens"
    assert account(of.bill).figure("sci_g_per_mtok").reason == "no engine on these GPUs"


def test_the_studys_pair_over_an_hour_with_what_making_the_cards_emitted() -> None:
    """Table 3 of the study through the bill: TDP power, 242 g/kWh, PUE 1; beside it the PCIe card's own 350 W.

    H100 at 16 req/s: 3011.13 tokens/s, 700 W: 169.4 g/h / 10.84 Mtok = 15.63 g/Mtok; at 350 W 7.81.
    Two 4090s at 4 req/s: 1250.59 tokens/s, 900 W: 217.8 g/h / 4.502 Mtok = 48.38 g/Mtok.
    """
    grid = GridFactor("EU27-2023", 242.0, "lifecycle", 2023, "default", "the study")
    h100 = EmbodiedCarbon(Spread(566.7, 566.7, 566.7), "boavizta", "default")
    home = EmbodiedCarbon(Spread(185.1, 185.1, 185.1), "boavizta", "default")

    def line(count: float, watts: float, tokens_per_s: float, embodied: EmbodiedCarbon) -> Account:
        spent = (use(count, count, used_w=watts), rented(grid=grid, embodied=embodied))
        return account(bill(spent), served(round(tokens_per_s * 3600)))

    published, corrected = line(1, 700, 3011.13, h100), line(1, 350, 3011.13, h100)
    pair, given = line(2, 450, 1250.59, home), line(2, 450, 1250.59, SUNK)
    found = [value(one.figure("g_per_mtok")) for one in (published, corrected, pair)]
    assert found == pytest.approx([15.63, 7.81, 48.38], abs=5e-3)
    mtok_per_kwh = [value(one.figure("tokens_per_joule")) * 3.6 for one in (published, corrected, pair)]
    assert mtok_per_kwh == pytest.approx([15.486, 30.972, 5.002], abs=5e-4)
    # 566.7 kg: 16.173 g/h / 10.840 = 1.492 g/Mtok; 2 x 185.1 kg: 10.565 g/h / 4.502 = 2.347; sunk 0
    embodied = [value(one.figure("embodied_g_per_mtok")) for one in (published, corrected, pair, given)]
    assert embodied == pytest.approx([1.492, 1.492, 2.347, 0.0], abs=5e-4)
    sci = [value(one.figure("sci_g_per_mtok")) for one in (published, corrected, pair, given)]
    assert sci == pytest.approx([17.119, 9.305, 50.723, 48.377], abs=2e-3)


def test_the_line_says_all_that_grams_stand_on() -> None:
    assert carbon_line(account(Bill("gpu"))) == (
        "boundary site (GPUs x PUE); power measured, coverage none; location-based: no grid factor; market-based: no "
        "supplier factor; embodied: no embodied carbon is known; idle and unallocated time included; tokens: total"
    )
    partly = use(2.0, idle_w=100, covered_s=HOUR_S, estimated_j=1.8e5)
    made = bill(
        (partly, rented(pue=1.2, host_w=50, embodied=CARD, market=SUPPLIER)),
        (use(1.0), rented(grid=DIRECT, embodied=SUNK)),
    )
    assert carbon_line(account(made, basis="output", view="used")) == (
        "boundary site (GPUs and hosts x PUE); power estimated, coverage 66.7%; location-based: DE 2025 average, 400 "
        "g/kWh lifecycle (default), PUE 1.2 + US-CA 2023 average, 250 g/kWh direct (default), PUE 1; market-based: 40 "
        "g/kWh (disclosure 2025); embodied: boavizta 350.4 kg a GPU (175.2 to 700.8) over 4 years (default) + sunk: "
        "made anyway, counts 0; idle and unallocated time left out; tokens: output"
    )


ROWS = st.lists(
    st.tuples(
        st.floats(0.1, 1e4), st.floats(0, 1), st.booleans(), st.sampled_from([CARD, OWN, SUNK]), st.floats(0, 1e6),
        st.booleans(),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def _bill(rows: Any, **said: Any) -> Bill:
    made = Bill("it")
    for hours, share, allocated, embodied, off_s, is_owned in rows:
        of = said | {"embodied": said.get("embodied", embodied)}
        terms = owned(0.1, 0.2, **of) if is_owned else rented(**of)
        used = hours * share if allocated else 0.0
        made.add(use(hours, used, used_w=400, idle_w=60, allocated=allocated), terms, 0.5)
        made.add_off(off_s, terms) if is_owned else made.add_rounding(off_s, terms)
    return made


@given(ROWS)
def test_embodied_and_market_parts_are_the_whole_over_any_fleet(rows: Any) -> None:
    """Design law 9 for every kind of gram; low <= central <= high in each part."""
    whole = _bill(rows, market=SUPPLIER)
    halves = [_bill(rows[:1], market=SUPPLIER), _bill(rows[1:], market=SUPPLIER)]
    for amount in (
        Bill.grams, Bill.market_grams, Bill.embodied,
        lambda of, view="bill": Bill.embodied(of, view, "low"), lambda of, view="bill": Bill.embodied(of, view, "high"),
    ):  # fmt: skip
        wanted = value(amount(whole))
        assert sum(value(amount(whole, part)) for part in PARTS) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert sum(value(amount(half)) for half in halves) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    for part in PARTS:
        low, central, high = (value(whole.embodied(part, end)) for end in ("low", "central", "high"))
        assert low <= central <= high


@given(ROWS)
def test_sunk_changes_embodied_grams_and_what_they_are_part_of_and_nothing_else(rows: Any) -> None:
    tokens = served(1000, 500)
    full, sunk = (account(_bill(rows, embodied=embodied, market=SUPPLIER), tokens) for embodied in (CARD, SUNK))
    for name in FIGURES:
        if name.startswith("embodied_"):
            assert sunk.figure(name).value == 0.0
        elif not name.startswith("sci_"):
            assert sunk.figure(name) == full.figure(name), name
    assert value(sunk.figure("sci_g_per_mtok")) == pytest.approx(value(full.figure("g_per_mtok")))
