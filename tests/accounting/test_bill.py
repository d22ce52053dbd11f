"""Bills by hand: where prices change, GPUs are off, shared or without work; and the parts are always the whole."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.bill import PARTS, Bill
from app.accounting.carbon import GridFactor
from app.accounting.figure import Figure
from app.accounting.periods import Period, local_days
from app.accounting.plans import Tariff, TariffRule, rounded_s
from app.accounting.segments import cut
from app.accounting.terms import GpuUse, Terms
from tests.accounting.bills import GRID, HOUR_S, account, bill, owned, rented, served, use

KWH = 3.6e6
START = datetime(2026, 2, 3, tzinfo=UTC)


def value(figure: Figure) -> float:
    assert figure.value is not None, figure.reason
    return float(figure.value)


def parts_of(of: Bill) -> list[float]:
    return [value(of.usd(part)) for part in PARTS]


def test_a_rate_change_at_13_37_splits_the_hour() -> None:
    change = START + timedelta(hours=13, minutes=37)
    hours = cut([Period(START + timedelta(hours=13), START + timedelta(hours=14), "13")], [change])
    made = bill(
        *(
            (use((one.end - one.start) / timedelta(hours=1)), rented(2.0 if one.start < change else 2.5))
            for one in hours
        )
    )
    # 37 minutes at $2.00 and 23 at $2.50: 1.23333 + 0.95833
    assert value(made.usd()) == pytest.approx(2.0 * 37 / 60 + 2.5 * 23 / 60, rel=1e-12)
    assert value(made.usd()) == pytest.approx(2.191667, abs=1e-6)


def test_an_owned_4090_at_home_over_a_day_and_a_night_off_for_half_of_it() -> None:
    """$1752 over two years; 0.30 $/kWh, at night (23:00 to 07:00 in Madrid) 0.10; on from 18:00 to 06:00 local."""
    zone = ZoneInfo("Europe/Madrid")
    tariff = Tariff("USD", 0.30, "Europe/Madrid", (TariffRule(frozenset(range(7)), 23 * 60, 7 * 60, 0.10),))
    [day] = local_days(date(2026, 2, 3), date(2026, 2, 4), zone)
    noon = Period(day.start + timedelta(hours=12), day.end + timedelta(hours=12), "noon to noon")
    on, off = noon.start + timedelta(hours=6), noon.start + timedelta(hours=18)
    made = Bill("it")
    for one in cut([noon], [*tariff.edges(noon.start, noon.end), on, off]):
        terms = owned(1752 / (2 * 8760), tariff.price_at(one.start))
        hours = (one.end - one.start) / timedelta(hours=1)
        if on <= one.start < off:
            made.add(use(hours, hours, used_w=400), terms, 0.5)
        else:
            made.add_off(hours * HOUR_S, terms)
    # $0.10 x 24 h; 18:00 to 23:00: 5 h x 0.4 kW x 0.30 = 0.60, 23:00 to 06:00: 7 h x 0.4 kW x 0.10 = 0.28
    assert value(made.usd()) == pytest.approx(2.40 + 0.60 + 0.28)
    assert value(made.usd("used")) == pytest.approx(1.20 + 0.88)
    assert value(made.usd("unallocated")) == pytest.approx(1.20)  # twelve hours off
    assert value(made.usd("idle")) == 0.0
    assert value(made.joules()) == pytest.approx(4.8 * KWH)
    assert value(made.working()) == pytest.approx(1.04)


@pytest.mark.parametrize(
    ("stretches_min", "increment_min", "billed_h"),
    [
        ([100, 60], 0, 160 / 60),  # there for 100 minutes, away for 20, back for 60
        ([100, 60], 60, 3.0),  # by the hour: 2 h and 1 h
        ([100], 60, 2.0),  # gone for good
        ([100, 60], 1, 160 / 60),
    ],
)
def test_a_spot_node_that_leaves(stretches_min: list[int], increment_min: int, billed_h: float) -> None:
    made = bill(*((use(minutes / 60, minutes / 60, used_w=300), rented(1.5)) for minutes in stretches_min))
    seconds = [60.0 * minutes for minutes in stretches_min]
    made.add_rounding(rounded_s(seconds, 60.0 * increment_min) - sum(seconds), rented(1.5))
    assert value(made.usd()) == pytest.approx(1.5 * billed_h)
    assert value(made.usd("idle")) == pytest.approx(1.5 * (billed_h - sum(stretches_min) / 60))
    assert value(made.joules()) == pytest.approx(300 * sum(seconds))  # what was not there drew nothing


def test_an_engine_over_four_gpus_uses_all_of_them_alike() -> None:
    # 4 GPUs x 1 h, busy for 15 minutes: 1 of 4 GPU-hours used
    made = bill((use(4.0, 1.0, used_w=600, idle_w=100), rented(2.0)), share=1.0)
    assert parts_of(made) == pytest.approx([2.0, 6.0, 0.0])
    assert value(account(made).figure("utilisation")) == pytest.approx(0.25)
    assert value(made.joules("used")) == pytest.approx(600 * HOUR_S)
    assert value(made.joules("idle")) == pytest.approx(3 * 100 * HOUR_S)


def test_two_engines_on_one_gpu_are_split_and_said_to_be_estimated_and_sum_to_the_gpu() -> None:
    # Of one GPU-hour at $2: 30 minutes used, split 3 : 1 by tokens; the idle half in equal parts
    one = bill((use(0.375 + 0.25, 0.375, used_w=400, idle_w=80, shared=True), rented()), share=1.0)
    other = bill((use(0.125 + 0.25, 0.125, used_w=400, idle_w=80, shared=True), rented()), share=1.0)
    assert parts_of(one) == pytest.approx([0.75, 0.5, 0.0])
    assert parts_of(other) == pytest.approx([0.25, 0.5, 0.0])
    assert value(one.usd()) + value(other.usd()) == pytest.approx(2.0, rel=1e-12)
    assert value(one.joules()) + value(other.joules()) == pytest.approx((400 + 80) / 2 * HOUR_S, rel=1e-12)
    for figure in (one.usd(), one.usd("used"), one.joules(), account(one).figure("gpu_hours")):
        assert figure.method == "estimated"


def test_a_gpu_with_no_engine_is_unallocated_and_nothing_is_made_up_for_it() -> None:
    lone = account(bill((use(1.0, idle_w=50, allocated=False), rented())))
    assert [value(lone.figure(f"cost_{part}")) for part in PARTS] == [0.0, 0.0, 2.0]
    assert value(lone.figure("energy_unallocated_kwh")) == pytest.approx(0.05)
    assert lone.figure("usd_per_mtok").reason == "no engine on these GPUs"
    assert lone.figure("generated_tokens").reason == "no engine"
    assert value(lone.figure("cost_working")) == 0.0


def test_a_day_of_25_hours_is_paid_for_25_hours() -> None:
    [day] = local_days(date(2026, 10, 25), date(2026, 10, 26), ZoneInfo("Europe/Madrid"))
    made = bill(*((use((one.end - one.start) / timedelta(hours=1)), rented(2.0)) for one in cut([day], [])))
    assert value(made.usd()) == pytest.approx(50.0)


def test_a_change_of_pue_counts_for_the_site_and_its_grams_from_then_on() -> None:
    uses = [(use(1.0, 1.0, used_w=500), rented(pue=pue)) for pue in (1.2, 1.5)]
    # 0.5 kWh x 1.2 + 0.5 kWh x 1.5 = 1.35 kWh; x 400 g/kWh = 540 g
    assert value(bill(*uses, share=1.0, boundary="site").joules()) == pytest.approx(1.35 * KWH)
    for boundary in ("gpu", "it"):
        made = bill(*uses, share=1.0, boundary=boundary)
        assert value(made.joules()) == pytest.approx(1.0 * KWH)
        assert value(made.grams()) == pytest.approx(540.0)
    assert made.grids == {"DE 2025 average, 400 g/kWh lifecycle (default), PUE 1.2",
                          "DE 2025 average, 400 g/kWh lifecycle (default), PUE 1.5"}  # fmt: skip


def test_the_hosts_watts_count_from_the_it_boundary_on() -> None:
    uses = (use(1.0, 0.5, used_w=500, idle_w=100), rented(host_w=60, pue=1.5))
    energies = {
        boundary: value(bill(uses, share=1.0, boundary=boundary).joules()) / KWH for boundary in ("gpu", "it", "site")
    }
    # 0.25 + 0.05 kWh of the GPU; 0.06 of the host; x 1.5
    assert energies == pytest.approx({"gpu": 0.30, "it": 0.36, "site": 0.54})
    host = bill(uses, share=1.0)
    assert (host.joules().method, bill(uses, share=1.0, boundary="gpu").joules().method) == ("user", "measured")


@pytest.mark.parametrize("boundary", ["gpu", "it", "site"])
def test_the_energy_within_each_boundary_is_told_whichever_is_asked_for(boundary: Any) -> None:
    one = account(bill((use(1.0, 0.5, used_w=500, idle_w=100), rented(host_w=60, pue=1.5)), boundary=boundary))
    told = {name: one.figure(f"energy_{name}_kwh") for name in ("gpu", "it", "site")}
    assert {name: value(figure) for name, figure in told.items()} == pytest.approx(
        {"gpu": 0.3, "it": 0.36, "site": 0.54}
    )
    assert [figure.method for figure in told.values()] == ["measured", "user", "user"]
    assert told[boundary] == one.figure("energy_kwh")


def test_joules_per_token_are_told_on_each_basis_whichever_is_asked_for() -> None:
    # 0.5 kWh = 1.8 MJ; 9,000 prompt tokens of which 3,000 were cached, and 1,000 generated
    tokens = served(9000, 1000, cached_tokens=3000)
    one = account(bill((use(1.0, 1.0, used_w=500), rented())), tokens, basis="output")
    told = {basis: value(one.figure(f"joules_per_token_{basis}")) for basis in ("total", "computed", "output")}
    assert told == pytest.approx({"total": 180.0, "computed": 1.8e6 / 7000, "output": 1800.0})
    assert value(one.figure("tokens_per_joule_computed")) == pytest.approx(7000 / 1.8e6)
    assert one.figure("joules_per_token") == one.figure("joules_per_token_output")


def test_what_is_simulated_is_known_as_nothing_else() -> None:
    real = use(1.0, 1.0, used_w=500, covered_s=HOUR_S / 2, bridged_s=HOUR_S / 4, unknown_s=HOUR_S / 8)
    made = bill((real, rented()), (use(1.0, 1.0, used_w=300, simulated=True), rented()))
    assert made.energy_s == {
        "measured": 1800.0, "interpolated": 900.0, "estimated": 450.0, "missing": 450.0, "simulated": 3600.0,
    }  # fmt: skip
    assert made.energy_j == {"measured": 1.8e6, "interpolated": 0.0, "estimated": 0.0, "simulated": 1.08e6}


def test_fleets_in_euros_and_dollars_add_up_in_dollars() -> None:
    # 1 h at 1.50 EUR x 1.08 USD/EUR, 1 h at 2.00 USD
    made = bill((use(1.0), rented(1.50 * 1.08)), (use(1.0), rented(2.0)))
    assert value(made.usd()) == pytest.approx(3.62)
    unknown = bill((use(1.0), rented(None, reason="no exchange rate for EUR on 2026-02-03")), (use(1.0), rented(2.0)))
    assert (unknown.usd().value, unknown.usd().reason) == (None, "no exchange rate for EUR on 2026-02-03")


def test_zero_tokens_leave_the_cost_and_no_ratio() -> None:
    idle = account(bill((use(1.0, idle_w=60), rented())), served())
    assert value(idle.figure("cost")) == pytest.approx(2.0)
    for name in ("usd_per_mtok", "joules_per_token", "g_per_mtok", "cost_input", "usd_per_mtok_output"):
        assert (idle.figure(name).value, idle.figure(name).reason) == (None, "no tokens"), name
    assert value(idle.figure("tokens_per_joule")) == 0.0


def test_the_h100_at_one_request_a_second_is_mostly_slack() -> None:
    """Table 2 of the study: 434 tokens/s at QPS 1 and 3,098 at QPS 32, the best it sustains."""
    made = bill((use(1.0, 1.0, used_w=350), rented(2.0)), share=434 / 3098)
    # used $2.00; working 2.00 x 434 / 3098 = 0.2802, slack 1.7198
    assert value(made.usd("used")) == pytest.approx(2.0)
    assert value(made.working()) == pytest.approx(0.28018, abs=1e-5)
    assert value(made.slack()) == pytest.approx(1.71982, abs=1e-5)
    assert made.working().method == "estimated"
    # $/Mtok 2.00 / (434 x 3600) x 1e6 = 1.28, the study's figure
    tokens = 434 * 3600
    assert value(account(made, served(tokens // 2, tokens // 2)).figure("usd_per_mtok")) == pytest.approx(
        1.280, abs=5e-4
    )


def test_without_a_best_rate_working_is_not_known_and_the_bill_is() -> None:
    made = bill((use(1.0, 1.0, used_w=350), rented()))
    assert (made.working().value, made.working().reason) == (None, "no best rate is known")
    assert made.slack().value is None
    assert value(made.usd()) == pytest.approx(2.0)


def test_owned_gpus_without_a_tariff_or_without_joules_have_no_cost_and_say_so() -> None:
    lacks = owned(0.1, None, no_tariff="no tariff of fleet home")
    assert bill((use(1.0, idle_w=50), lacks)).usd().reason == "no tariff of fleet home"
    off = Bill("it")
    off.add_off(HOUR_S, lacks)
    assert value(off.usd()) == pytest.approx(0.1)  # off, it needs none
    dark = bill((use(1.0, known_j=0.0, idle_j=0.0, covered_s=0.0, unknown_s=HOUR_S), owned(0.1, 0.2)))
    assert dark.usd().reason == "electricity not known: no energy was measured"


@pytest.mark.parametrize(("measured", "known"), [(0.5, True), (0.49, False)])
def test_below_half_coverage_there_are_no_joules_and_no_grams_and_the_cost_stays(measured: float, known: bool) -> None:
    partly = use(1.0, idle_w=100, covered_s=measured * HOUR_S, known_j=100 * measured * HOUR_S,
                 estimated_j=100 * (1 - measured) * HOUR_S, idle_j=100 * HOUR_S)  # fmt: skip
    made = bill((partly, rented()))
    assert (made.joules().value is not None, made.grams().value is not None) == (known, known)
    assert value(made.usd()) == pytest.approx(2.0)
    if known:
        assert (made.joules().method, made.joules().coverage) == ("estimated", 0.5)
    else:
        assert made.joules().reason == "energy was measured 49% of the time, below 50%"


@pytest.mark.parametrize(
    ("seconds", "method"),
    [
        ({"covered_s": 3600}, "measured"),
        ({"covered_s": 3000, "bridged_s": 600, "interpolated_j": 60_000.0}, "interpolated"),
        ({"covered_s": 3000, "bridged_s": 300, "estimated_j": 30_000.0}, "estimated"),
    ],
)
def test_joules_say_how_the_weakest_of_them_were_got(seconds: dict[str, float], method: str) -> None:
    assert bill((use(1.0, idle_w=100, **seconds), rented())).joules().method == method


def test_energy_that_could_not_be_filled_in_is_missing_with_its_hours() -> None:
    made = bill((use(24.0, idle_w=50), rented()), (use(2.0, covered_s=0.0, unknown_s=2 * HOUR_S), rented()))
    assert made.joules().reason == "no energy was measured for 2 of 26 GPU-hours"
    assert value(made.usd()) == pytest.approx(52.0)


def test_a_zone_without_a_factor_has_no_grams_and_keeps_its_joules() -> None:
    nowhere = GridFactor("XX", None, "", None, "default", "", reason="no grid intensity for zone 'XX'")
    made = bill((use(1.0, idle_w=50), rented(grid=nowhere)), (use(1.0, idle_w=50), rented()))
    assert made.grams().reason == "no grid intensity for zone 'XX'"
    assert value(made.joules()) == pytest.approx(0.1 * KWH)


def test_views_divide_their_own_part_by_the_same_tokens() -> None:
    made = bill((use(1.0, 0.25, used_w=400, idle_w=80), rented()), share=1.0)
    tokens = served(500_000, 500_000)
    for view, usd, kwh in (("bill", 2.0, 0.16), ("used", 0.5, 0.1), ("idle", 1.5, 0.06), ("unallocated", 0.0, 0.0)):
        line = account(made, tokens, view=view)
        assert value(line.figure("usd_per_mtok")) == pytest.approx(usd)
        assert value(line.figure("joules_per_token")) == pytest.approx(kwh * KWH / 1e6)
        assert value(line.figure("g_per_mtok")) == pytest.approx(kwh * 400)


def test_list_prices_and_simulated_gpus_keep_their_labels() -> None:
    listed = Terms(2.0, "default", "list price", GRID)
    assert bill((use(1.0), rented()), (use(1.0), listed)).usd().method == "default"
    simulated = bill((use(1.0, simulated=True), rented()))
    assert {simulated.usd().method, simulated.joules().method, simulated.grams().method} == {"simulated"}


quantities = st.floats(0, 1e7, allow_nan=False)
shares = st.floats(0, 1)


@st.composite
def uses(draw: st.DrawFn) -> GpuUse:
    provisioned = draw(st.floats(1, 1e7))
    allocated = draw(st.booleans())
    used = provisioned * draw(shares) if allocated else 0.0
    known, interpolated, estimated = draw(quantities), draw(quantities), draw(quantities)
    idle = (known + interpolated + estimated) * (draw(shares) if used else 1.0)
    return GpuUse(allocated, provisioned, used, known, interpolated, estimated, 0.0, idle, provisioned)


@st.composite
def all_terms(draw: st.DrawFn) -> Any:
    said = {"pue": draw(st.floats(1, 3)), "host_w": draw(st.floats(0, 500))}
    if draw(st.booleans()):
        return owned(draw(st.floats(0, 10)), draw(st.floats(-1, 1)), **said)
    return rented(draw(st.floats(0, 10)), **said)


@given(
    st.lists(st.tuples(uses(), all_terms(), shares, quantities), min_size=1, max_size=20),
    st.sampled_from(["gpu", "it", "site"]),
)
def test_parts_are_the_bill_the_joules_and_the_grams_over_any_fleet(rows: list[Any], boundary: Any) -> None:
    """Design law 9, of a group and of any way to put its rows into two."""
    whole, halves = Bill(boundary), (Bill(boundary), Bill(boundary))
    for number, (one, terms, share, seconds) in enumerate(rows):
        for made in (whole, halves[number % 2]):
            made.add(one, terms, share)
            made.add_off(seconds, terms) if terms.is_owned else made.add_rounding(seconds, terms)
    for amount in (Bill.usd, Bill.joules, Bill.grams):
        total = value(amount(whole))
        largest = sum(abs(value(amount(whole, part))) for part in PARTS)
        assert sum(value(amount(whole, part)) for part in PARTS) == pytest.approx(total, rel=1e-9, abs=1e-9 * largest)
        of_halves = [value(amount(half)) for half in halves if half.provisioned_s]
        assert sum(of_halves) == pytest.approx(total, rel=1e-9, abs=1e-9 * largest)
    used = value(whole.usd("used"))
    assert value(whole.working()) + value(whole.slack()) == pytest.approx(used, rel=1e-9, abs=1e-9)
