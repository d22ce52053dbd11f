"""What must hold of any fleet: engines that come and go, gaps, prices and memberships that change at any minute."""

from __future__ import annotations

import random
import uuid
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.accounting.periods import Period, local_days
from app.answers.account import accounts_of
from app.answers.query import AccountQuery
from app.facts.fact import Fact
from app.facts.kinds import Membership, OwnedPrice, Pue, RentedPrice
from app.store.database import Store
from app.store.facts import append_facts
from tests.answers.accounting import CONFIG, HOME_CARD, NOW, START, asked, know, minutes_of, served, take
from tests.batches import MINUTE, T0, batch, engine, gpu, uuid_of

PARTS = ("cost_used", "cost_idle", "cost_unallocated")
JOULES = ("energy_active_kwh", "energy_idle_kwh", "energy_unallocated_kwh")
GRAMS = ("carbon_active_g", "carbon_idle_g", "carbon_unallocated_g")
HOURS = 3

placements = st.lists(st.sampled_from([None, (0,), (1,), (0, 1)]), min_size=1, max_size=4)
minutes = st.integers(1, HOURS * 60 - 1)


def filled(store: Store, first: list[Any], second: list[Any], seed: int) -> tuple[float, int, float]:
    """Two engines move over two GPUs every ten minutes, with gaps; joules, tokens and seconds that were sent."""
    rng = random.Random(seed)
    cards, sent = [gpu(), gpu(index=1)], []
    joules, tokens, seconds = 0.0, 0, 0.0
    for step in range(HOURS * 6):
        engines, rows, samples = [], [], []
        for number, moves in enumerate((first, second)):
            place = moves[step % len(moves)]
            uuids = None if place is None else [uuid_of("node-7", index) for index in place]
            engines.append(engine(url=f"http://h:{8000 + number}/metrics", model=f"m{number}", gpus=uuids))
            made = rng.choice([0, rng.randrange(1000)])
            tokens += made
            t_us = T0 + (step + 1) * 10 * MINUTE
            counts = {"prompt_tokens": made, "generated_tokens": made, "running": 0}
            rows.append({"engine": number, "t_us": t_us, "dt_us": 10 * MINUTE, **counts})
        for index in range(2):
            for minute in range(10):
                if rng.random() < 0.1:
                    continue  # a gap
                energy = rng.randrange(10**7)
                joules += energy / 1e3
                seconds += 60
                moment = T0 + (step * 10 + minute + 1) * MINUTE
                samples.append({"gpu": index, "t_us": moment, "dt_us": MINUTE, "energy_mj": energy})
        sent.append(batch(step + 1, gpus=cards, engines=engines, rows=samples, engine_rows=rows))
    take(store, *sent)
    return joules, tokens, seconds


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=placements, second=placements, seed=st.integers(0, 2**16), price=minutes, pue=minutes, moved=minutes,
    by=st.sampled_from(["none", "fleet", "model", "fleet_model", "node", "gpu"]),
    zone=st.sampled_from(["UTC", "Asia/Kathmandu"]),
)  # fmt: skip
def test_every_joule_token_and_dollar_is_in_one_line_and_in_one_part(
    tmp_path: Path, first: list[Any], second: list[Any], seed: int, price: int, pue: int, moved: int, by: str, zone: str
) -> None:
    """Design law 9: per step and line bill = used + idle + unallocated, the same for joules and grams; lines and steps
    sum to the whole; and the whole is what was measured."""
    store = Store.open(tmp_path / f"{uuid.uuid4().hex}.duckdb")
    joules, tokens, seconds = filled(store, first, second, seed)
    know(store, "price", "h100", RentedPrice(per_gpu_hour=3.5), minute=price)
    know(store, "pue", "h100", Pue(pue=1.7), minute=pue)
    valid_from = START + timedelta(minutes=moved, seconds=seed % 60)
    append_facts(store, [Fact("membership", "node-7", valid_from, NOW, "a move", Membership(fleet="other"))])
    query = asked(0, HOURS * 60, by=by, tz=zone, step="hour")
    steps = accounts_of(store, CONFIG, query, query.periods(), NOW)
    for line in (*steps.lines.values(), *steps.totals.values()):
        for whole, parts in (("cost", PARTS), ("energy_kwh", JOULES), ("carbon_g", GRAMS)):
            if (value := line.figure(whole).value) is not None:
                found = [line.figure(part).value or 0.0 for part in parts]
                assert sum(found) == pytest.approx(value, rel=1e-9, abs=1e-12)
    known_j = sum(line.bill.known_j for line in steps.lines.values())
    assert known_j == pytest.approx(joules, rel=1e-9)
    assert sum(line.bill.provisioned_s for line in steps.lines.values()) == pytest.approx(seconds, rel=1e-9)
    counted = [line.served.count("generated_tokens").value for line in steps.lines.values() if line.served.models]
    assert sum(value or 0 for value in counted) == tokens
    usd = sum(line.bill.usd().value or 0.0 for line in steps.lines.values())
    whole = accounts_of(store, CONFIG, asked(0, HOURS * 60), [Period(query.start, query.end, "whole")], NOW)
    assert whole.total().bill.usd().value == pytest.approx(usd, rel=1e-9)
    store.close()


@pytest.mark.parametrize(("tz", "days"), [("UTC", 2), ("Asia/Kathmandu", 1), ("America/Los_Angeles", 1)])
def test_days_of_any_zone_hold_every_minute_once(store: Store, tz: str, days: int) -> None:
    """From 22:00 to 03:00 UTC: 5 GPU-hours at $2 and 300 W, whichever days they fall on."""
    late = 18 * 60  # minutes after 04:00 UTC
    take(store, batch(1, rows=minutes_of(300, 300, first=late), engine_rows=served(300, first=late)))
    week = local_days(date(2026, 2, 1), date(2026, 2, 8), ZoneInfo(tz))
    query = AccountQuery(week[0].start, week[-1].end, tz, "day")
    found = accounts_of(store, CONFIG, query, week, NOW)
    for name, whole in (("gpu_hours", 5.0), ("cost", 10.0), ("energy_kwh", 1.5), ("generated_tokens", 15_000)):
        known = [found.line(number, ()).figure(name).value for number in range(len(week))]
        values = [value for value in known if value is not None]
        assert (len(values), sum(values)) == (days, pytest.approx(whole)), name


def test_the_25_hour_day_is_paid_for_25_hours(store: Store) -> None:
    """An owned GPU, off all of 2026-10-25 in Madrid: 25 x $0.10."""
    cards = [gpu("desk-1", name=HOME_CARD)]
    take(store, batch(1, node="desk-1", gpus=cards, rows=minutes_of(400, 1)))
    plan = OwnedPrice(purchase=1752, life_years=2, in_service=START - timedelta(days=1))
    know(store, "price", "home", plan, minute=-3 * 24 * 60)
    [day] = local_days(date(2026, 10, 25), date(2026, 10, 26), ZoneInfo("Europe/Madrid"))
    query = AccountQuery(day.start, day.end, "Europe/Madrid")
    later = datetime(2026, 11, 1, tzinfo=NOW.tzinfo)
    found = accounts_of(store, CONFIG, query, [day], later)
    assert found.total().figure("cost").value == pytest.approx(2.5)
