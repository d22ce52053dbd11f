"""Design law 9 and its kin over the whole path: samples, rollups, facts, accounts, pages and reports reconcile."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from app.accounting.account import FIGURES, Account
from app.accounting.bill import PARTS
from app.accounting.periods import Period
from app.answers.account import account_lines, accounts_of
from app.answers.query import GROUPS, AccountQuery
from app.answers.summary import series, summary
from app.facts.carbon import Embodied
from app.reports.report import build_report
from app.reports.request import Request, days_window
from app.store.facts import append_facts, read_facts
from tests.invariants.worlds import CONFIG, World, add_late_samples, later_facts, world

ZONES = ("UTC", "Asia/Kathmandu", "America/Los_Angeles")
CLOSE = {"rel": 1e-9, "abs": 1e-9}
BY = (*GROUPS, "label:team")
COUNTS = ("prompt_tokens", "generated_tokens", "finished", "failed")
AMOUNTS = (
    "usd", "gpu_j", "it_j", "site_j", "grams", "market_g", "embodied_low_g", "embodied_g", "embodied_high_g",
)  # fmt: skip
SECONDS = ("provisioned_s", "used_s", "off_s", "added_s", "covered_s", "bridged_s", "throttled_s", "unknown_s")
JOULES = ("known_j", "estimated_j")

# A seed does not shrink to a simpler world: the first one that fails is told.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_CHECKS = [HealthCheck.function_scoped_fixture]
by_chance = settings(max_examples=4, phases=_PHASES, suppress_health_check=_CHECKS)
long_form = settings(max_examples=60, phases=_PHASES, suppress_health_check=_CHECKS)
seeds = st.integers(0, 2**32)


def whole(made: World, **asked: Any) -> AccountQuery:
    """A range somewhat longer than there are samples."""
    hour = timedelta(hours=1)
    return AccountQuery(**{"start": made.start - hour, "end": made.end + hour, "boundary": "site"} | asked)


def accounts(made: World, query: AccountQuery) -> Any:
    periods = query.periods() if query.step else [Period(query.start, query.end, "whole")]
    return accounts_of(made.store, CONFIG, query, periods, made.now)


def amounts(of: Iterable[Account]) -> dict[str, float]:
    """Sums over accounts: dollars, joules and grams of each part, seconds, and tokens."""
    sums: dict[str, float] = {}
    for account in of:
        for part in PARTS:
            amount = getattr(account.bill, part)
            for name in AMOUNTS:
                sums[f"{part}_{name}"] = sums.get(f"{part}_{name}", 0.0) + getattr(amount, name)
        for name in (*SECONDS, *JOULES):
            sums[name] = sums.get(name, 0.0) + getattr(account.bill, name)
        for counts in account.served.models.values():
            for name in COUNTS:
                sums[name] = sums.get(name, 0) + (counts.values[name] or 0)
    return sums


def test_everything_reconciles(tmp_path: Path) -> None:
    assert_worlds_reconcile(tmp_path)


@pytest.mark.slow
def test_everything_reconciles_in_many_worlds(tmp_path: Path) -> None:
    assert_many_worlds_reconcile(tmp_path)


@by_chance
@example(seed=165253, hours=4)  # a node's later fleet once changed the order, and the last bit, of sums before it
@given(seed=seeds, hours=st.integers(1, 4))
def assert_worlds_reconcile(tmp_path: Path, seed: int, hours: int) -> None:
    assert_reconciles(world(tmp_path, seed, hours))


@long_form
@given(seed=seeds, hours=st.integers(1, 30))
def assert_many_worlds_reconcile(tmp_path: Path, seed: int, hours: int) -> None:
    assert_reconciles(world(tmp_path, seed, hours, thorough=True))


def assert_reconciles(made: World) -> None:
    try:
        parts_sum_to_the_bill(made)
        lines_sum_to_the_total(made)
        steps_sum_to_the_range(made)
        later_facts_change_nothing_before(made)
        what_was_known_stays(made)
        sunk_changes_embodied_grams_only(made)
    finally:
        made.store.close()


def parts_sum_to_the_bill(made: World) -> None:
    for by in made.some(BY, 2):
        answer = summary(made.store, CONFIG, whole(made, by=by), made.now)
        for line in (answer["total"], answer["previous"], *answer["lines"]):
            for parts in (
                ("cost", "cost_used", "cost_idle", "cost_unallocated"),
                ("cost_used", "cost_working", "cost_slack"),
                ("cost", "cost_input", "cost_output"),
                ("energy_kwh", "energy_active_kwh", "energy_idle_kwh", "energy_unallocated_kwh"),
                ("carbon_g", "carbon_active_g", "carbon_idle_g", "carbon_unallocated_g"),
                ("embodied_g", "embodied_active_g", "embodied_idle_g", "embodied_unallocated_g"),
                ("sci_g_per_mtok", "g_per_mtok", "embodied_g_per_mtok"),
            ):
                assert_sums(line["figures"], *parts)
            assert_low_to_high(line["figures"])
        for figure in (figure for line in answer["lines"] for figure in line["figures"].values()):
            assert (figure["value"] is None) == (figure["reason"] is not None)


def assert_sums(figures: Mapping[str, Any], name: str, *parts: str) -> None:
    value = {name: figure["value"] for name, figure in figures.items()}
    found = [value[part] for part in parts]
    known = [part for part in found if part is not None]
    if value[name] is None and "are not added" in figures[name]["reason"]:
        # Factors of two bases: each part may have its own, or the whole has none in any view.
        assert "direct and lifecycle" in figures[name]["reason"]
    elif len(known) == len(found):
        assert value[name] == pytest.approx(sum(known), rel=1e-9, abs=1e-12), (name, parts)
    elif value[name] is not None:
        # Only what divides a known bill may lack: tokens, or a best rate.
        assert name in ("cost", "cost_used")
        assert parts[0] in ("cost_working", "cost_input")


def assert_low_to_high(figures: Mapping[str, Any]) -> None:
    names = (
        ("embodied_low_g", "embodied_g", "embodied_high_g"),
        ("sci_g_per_mtok_low", "sci_g_per_mtok", "sci_g_per_mtok_high"),
    )
    for low, central, high in names:
        values = [figures[name]["value"] for name in (low, central, high)]
        assert values[0] is None or all(one <= other + 1e-9 * abs(other) for one, other in pairwise(values)), values


def lines_sum_to_the_total(made: World) -> None:
    """Whatever lines are grouped by: they sum to the total, and it is the same one."""
    wanted = amounts([accounts(made, whole(made)).total()])
    for by in made.some(BY, 3):
        found = accounts(made, whole(made, by=by))
        assert amounts([found.total()]) == pytest.approx(wanted, **CLOSE)
        assert amounts(found.lines.values()) == pytest.approx(wanted, **CLOSE), by
    for name in made.some(("fleet", "model"), 1):
        lines = accounts(made, whole(made, by=name))
        for ((_, value),) in lines.keys:
            if value is not None:
                alone = accounts(made, whole(made, **{name: value})).total()
                assert_part_of(lines.line(0, ((name, value),)), alone)


def assert_part_of(line: Account, alone: Account) -> None:
    """A filter gives what grouping gives."""
    assert amounts([alone]) == pytest.approx(amounts([line]), **CLOSE)
    assert alone.observed() == line.observed()


def steps_sum_to_the_range(made: World) -> None:
    """Minutes, hours and local days of any zone partition the range, in time and in amounts."""
    wanted = amounts([accounts(made, whole(made)).total()])
    for tz in made.some(ZONES, 2):
        for step in made.some(("15min", "hour", "day"), 1):
            query = whole(made, by="fleet_model", tz=tz, step=step)
            found = accounts(made, query)
            assert_partition(query, found.periods)
            assert amounts(found.lines.values()) == pytest.approx(wanted, **CLOSE), (tz, step)
            assert amounts(found.totals.values()) == pytest.approx(wanted, **CLOSE), (tz, step)


def assert_partition(query: AccountQuery, periods: Any) -> None:
    assert (periods[0].start, periods[-1].end) == (query.start, query.end)
    assert all(before.end == after.start for before, after in pairwise(periods))
    assert all(period.start < period.end for period in periods)


def later_facts_change_nothing_before(made: World) -> None:
    """Facts valid from T, whenever they are known: no figure of a period that ends by T differs in a bit."""
    valid_from = made.moment()
    until = valid_from.replace(second=0)
    queries = [replace(whole(made, by=by), end=until) for by in made.some(("fleet_model", "gpu", "node"), 1)]
    steps = whole(made, by="fleet", step="hour")
    before = [_said(summary(made.store, CONFIG, query, made.now)) for query in queries]
    hours = _until(series(made.store, CONFIG, steps, made.now), until)
    known = made.now - timedelta(hours=1)
    append_facts(made.store, later_facts(made, valid_from, known), only_news=False)
    assert [_said(summary(made.store, CONFIG, query, made.now)) for query in queries] == before
    assert _until(series(made.store, CONFIG, steps, made.now), until) == hours


def what_was_known_stays(made: World) -> None:
    """A report and a page of an earlier knowledge are the same to the byte, whatever was learnt since."""
    known_at = made.now - timedelta(minutes=30)
    asked = whole(made, by="fleet_model", known_at=known_at)
    before = [_report(made, known_at), _said(summary(made.store, CONFIG, asked, made.now))]
    now_before = _report(made, None)
    news = later_facts(made, made.start - timedelta(days=30), known_at + timedelta(minutes=1))
    append_facts(made.store, news, only_news=False)
    assert [_report(made, known_at), _said(summary(made.store, CONFIG, asked, made.now))] == before
    if now_before.count("\n") > 1:  # a world in which no GPU was seen has nothing that could change
        assert _report(made, None) != now_before


def sunk_changes_embodied_grams_only(made: World) -> None:
    """Cards that were made anyway: their embodied grams are 0, and but for the SCI nothing else differs."""
    asked = whole(made, by="fleet_model", step="hour")
    before = accounts(made, asked)
    said = [fact for fact in read_facts(made.store) if isinstance(fact.value, Embodied)]
    known = made.now - timedelta(minutes=1)
    sunk = [replace(fact, known_at=known, value=fact.value.model_copy(update={"policy": "sunk"})) for fact in said]
    append_facts(made.store, sunk, only_news=False)
    after = accounts(made, asked)
    assert after.lines.keys() == before.lines.keys()
    for key, account in after.lines.items():
        for name in FIGURES:
            found, earlier = account.figure(name), before.lines[key].figure(name)
            if name.startswith("embodied_") and found.value is not None:
                assert found.value == 0.0
            elif not name.startswith(("embodied_", "sci_")):
                assert found.value == (earlier.value and pytest.approx(earlier.value, **CLOSE)), name
                assert found.reason == earlier.reason


def _report(made: World, known_at: datetime | None) -> str:
    first, last = made.start.date(), made.end.date()
    window = days_window(first, last + timedelta(days=1), whole(made, tz="Asia/Kathmandu").zone)
    request = Request("hourly", window, "Asia/Kathmandu", "it", "total", known_at)

    def lines(periods: Any, **asked: Any) -> Any:
        return account_lines(made.store, CONFIG, periods, **asked)

    return build_report(request, lines, made.now).csv


def _said(answer: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in answer.items() if name != "notes"})


def _until(answer: Mapping[str, Any], until: datetime) -> dict[str, Any]:
    """Values of the periods that are over by then, by line; a line of nothing may come and go."""
    count = sum(datetime.fromisoformat(period["end"]) <= until for period in answer["periods"])
    values = {
        json.dumps(line["key"]): {name: found["values"][:count] for name, found in line["figures"].items()}
        for line in answer["lines"]
    }
    return {key: found for key, found in values.items() if any(map(any, found.values()))}


def test_a_re_run_shows_samples_that_came_late(tmp_path: Path) -> None:
    """Knowledge is of facts: samples that come late, while their minutes can be built, are in a re-run, too.

    So a report that was written stays as it is, and its manifest's digest tells it from the re-run.
    """
    made = world(tmp_path, 7, 3)
    known_at = made.now - timedelta(minutes=30)
    before = _report(made, known_at)
    add_late_samples(made)
    after = _report(made, known_at)
    assert after != before
    news = set(after.splitlines()) - set(before.splitlines())
    # the late node belongs to no fleet: what was there keeps every byte
    assert set(before.splitlines()) <= set(after.splitlines())
    assert news and all(",no fleet" in row or "no fleet claims" in row for row in news)
    made.store.close()


@given(
    tz=st.sampled_from((*ZONES, "Europe/Madrid", "Australia/Lord_Howe")),
    first=st.dates(date(2026, 1, 1), date(2026, 12, 31)),
    stretch=st.one_of(
        st.tuples(st.just("hour"), st.integers(1, 40 * 1440)), st.tuples(st.just("day"), st.integers(1, 366 * 1440))
    ),
    offset=st.integers(0, 1439),
)
def test_days_and_hours_partition_any_stretch_of_the_year(
    tz: str, first: date, stretch: tuple[Any, int], offset: int
) -> None:
    step, minutes = stretch
    start = datetime(first.year, first.month, first.day, tzinfo=UTC) + timedelta(minutes=offset)
    query = AccountQuery(start, start + timedelta(minutes=minutes), tz=tz, step=step)
    periods = query.periods()
    assert_partition(query, periods)
    assert len({period.label for period in periods}) == len(periods)
    longest = timedelta(hours=1) if step == "hour" else timedelta(hours=25)
    assert all(period.end - period.start <= longest for period in periods)
    local = [period.start.astimezone(query.zone) for period in periods[1:]]
    assert all(moment.minute == 0 or tz == "Australia/Lord_Howe" for moment in local)
    if step == "day":
        assert all((moment.hour, moment.minute) == (0, 0) for moment in local)
