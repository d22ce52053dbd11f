"""Reads what GPUs were used for and engines did, segment by segment, and adds it to the accounts it belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from app import units
from app.accounting.account import FIGURES, Account
from app.accounting.latency import Bucket, Held, held
from app.accounting.plans import rounded_s
from app.accounting.segments import Segment
from app.accounting.served import COUNTS
from app.accounting.terms import GpuUse, GridHours, Terms
from app.answers.accounts import Accounts
from app.answers.intensity import Intensity
from app.answers.terms import DatedTerms
from app.answers.working import BestRates, WorkingShares
from app.facts.kinds import OwnedPrice
from app.store import accounts as rows_of
from app.store.owned import member_rows
from app.store.reader import Reader
from app.store.stretches import provisioned_stretches
from collectors.samples import LATENCY_METRICS, LatencyMetric

Row = Mapping[str, Any]
# Rollups and pushes are behind by less; what is not there yet is neither off nor gone.
_SETTLED = timedelta(minutes=3)
# Past such a silence nobody knows whether a GPU is still there (design section 4, Provisioned).
_GAP_TOLERANCE = timedelta(minutes=10)
_USE = (
    "provisioned_s", "used_s", "known_j", "interpolated_j", "estimated_j", "unknown_s", "idle_j", "covered_s",
    "bridged_s", "throttled_s",
)  # fmt: skip
_WORKING = {"cost_working", "cost_slack"}
_OF_REQUESTS = ("slo_", "requests", "failed_requests")


@dataclass(frozen=True)
class Slots:
    """Segments, each with its slot: those of one period and state share one, so that their rows are summed as read.

    places: period and state of each slot.
    """

    places: Sequence[tuple[int, int]]
    segments: Sequence[tuple[int, Segment]]

    @classmethod
    def of(cls, segments: Iterable[Segment], dated: DatedTerms) -> Slots:
        numbers: dict[tuple[int, int], int] = {}
        placed = [(numbers.setdefault((one.period, dated.state_of(one)), len(numbers)), one) for one in segments]
        return cls(list(numbers), placed)

    def bounds_us(self, until: datetime | None = None) -> list[tuple[int, int, int]]:
        """(slot, start, end) up to a moment."""
        last = math.inf if until is None else units.us_of_moment(until)
        bounds = [(slot, *segment.bounds_us) for slot, segment in self.segments]
        return [(slot, start, int(min(end, last))) for slot, start, end in bounds if start < last]

    def at(self, moment: datetime) -> tuple[int, int] | None:
        """Period and state of a moment; None outside of all segments."""
        found = next((slot for slot, segment in self.segments if segment.start <= moment < segment.end), None)
        return None if found is None else self.places[found]


class Reading:
    """Adds to `into` what the store holds of its periods."""

    def __init__(
        self,
        reader: Reader,
        into: Accounts,
        dated: DatedTerms,
        slots: Slots,
        oldest_minute_us: int,
        intensity: Intensity | None,
    ) -> None:
        query = into.query
        self._reader = reader
        self._into = into
        self._dated = dated
        self._slots = slots
        self._intensity = intensity
        self._used: Sequence[Row] = []
        self._asked: dict[str, Any] = {"by": query.by, "known_at": query.known_at or into.now}
        self._only: dict[str, Any] = {"fleet": query.fleet, "model": query.model, "oldest_minute_us": oldest_minute_us}

    def add_use(self, *, engines: bool = True) -> None:
        """Use of GPUs and, if asked for, what engines did in it."""
        bounds, asked = self._slots.bounds_us(), self._asked | self._only
        grid = self._intensity.grid if self._intensity else None
        used = self._used = rows_of.use_rows(self._reader, bounds, **asked, grid=grid) if self._needs_gpus else []
        served = rows_of.engine_rows(self._reader, bounds, **asked) if engines else []
        shares = WorkingShares(self._best_rates(), used, served)
        for row in used:
            period, terms = self._priced(row)
            hours = self._intensity.hours_of(row) if self._intensity else None
            whole = _gpu_use(row, hours, shared=bool(row["shared"]) and self._into.query.model is not None)
            line = replace(whole, shared=True) if row["shared"] and self._into.is_split_by_engine else whole
            share, reason = shares.of(row)
            for account, use in zip(self._into.of(period, row), (line, whole), strict=False):
                account.bill.add(use, terms, share, reason)
        for row in served:
            self._add_served(row)

    def add_off(self, fleets: Iterable[str | None]) -> None:
        """Hours in which owned GPUs were paid and not there; they served no model."""
        query = self._into.query
        if query.model is not None or not self._needs_gpus:
            return
        named = [fleet for fleet in fleets if fleet is not None]
        plans = {fleet: [one for one in self._dated.plans(fleet) if isinstance(one, OwnedPrice)] for fleet in named}
        owned = [fleet for fleet, found in plans.items() if found]
        if not owned:
            return
        there_s = self._there_s()
        for is_dated in sorted({plan.in_service is not None for found in plans.values() for plan in found}):
            self._add_off(owned, there_s, is_dated=is_dated)

    def _add_off(self, owned: Sequence[str], there_s: Mapping[tuple[Any, ...], float], *, is_dated: bool) -> None:
        """Those whose plan of the time says since when it serves, or those that count from their first sample."""
        bounds = self._slots.bounds_us(self._into.now - _SETTLED)
        asked = self._asked | {"owned": owned, "dated": owned if is_dated else []}
        for row in member_rows(self._reader, bounds, **asked, oldest_minute_us=self._only["oldest_minute_us"]):
            plan = self._dated.plan(self._slots.places[row["position"]][1], row["fleet"])
            if not isinstance(plan, OwnedPrice) or (plan.in_service is not None) != is_dated:
                continue
            period, terms = self._priced(row)
            off_s = row["member_s"] - there_s.get(self._place(row), 0.0)
            # Also where it is negative: samples reach over the edges of periods, and periods must sum to their range.
            if off_s and terms.is_owned and terms.in_service:
                for account in self._into.of(period, row):
                    account.bill.add_off(off_s, terms)

    def _there_s(self) -> dict[tuple[Any, ...], float]:
        """Seconds for which GPUs were there, whatever ran on them; for labels by node: engines have their own."""
        used = self._used
        if self._into.query.label is not None:
            asked = self._asked | self._only | {"by": "node"}
            used = rows_of.use_rows(self._reader, self._slots.bounds_us(), **asked)
        found: dict[tuple[Any, ...], float] = {}
        for row in used:
            place = self._place(row)
            found[place] = found.get(place, 0.0) + row["provisioned_s"]
        return found

    def _place(self, row: Row) -> tuple[Any, ...]:
        """Which GPUs a row is of, as finely as owned ones are told apart."""
        by_node = self._into.query.by in ("node", "gpu") or self._into.query.label is not None
        names = ("position", "fleet", "gpu_name", *(("node", "gpu") if by_node else ()))
        return tuple(row.get(name) for name in names)

    def add_rounding(self, fleets: Iterable[str | None]) -> None:
        """What billing increments add to stretches that end in the periods; no model was served meanwhile."""
        if self._into.query.model is not None or not self._needs_gpus:
            return
        start, end = self._into.periods[0].start, self._into.periods[-1].end
        for fleet in fleets:
            if fleet is None or not any(getattr(one, "billing_increment_s", 0) for one in self._dated.plans(fleet)):
                continue
            # One that ends with `start` belongs here, and is only given when it reaches into what is asked for.
            stretches = provisioned_stretches(
                self._reader, fleet, start - timedelta(minutes=1), end, known_at=self._asked["known_at"]
            )
            for row in stretches:
                self._add_end(row | {"fleet": fleet})

    def add_latencies(self) -> None:
        """Latencies of the metrics that are asked for, and how many requests kept their model's SLO."""
        segments = self._dated.cut_by_slo(self._into.periods)
        bounds = [(number, *segment.bounds_us) for number, segment in enumerate(segments)]
        is_by_gpu = self._into.query.by == "gpu"
        for metric in self._metrics():
            for row, buckets in _histograms(self._latency_rows(metric, bounds)):
                segment = segments[row["position"]]
                accounts = self._into.of(segment.period, row)
                self._add_latency(metric, row, segment, buckets, accounts[:1] if is_by_gpu else accounts)
            # A request that went through several GPUs is in the line of each, and in the whole once.
            for row, buckets in _histograms(self._latency_rows(metric, bounds, by="none")) if is_by_gpu else ():
                segment = segments[row["position"]]
                self._add_latency(metric, row, segment, buckets, [self._into.whole(segment.period)])

    def _latency_rows(
        self, metric: LatencyMetric, bounds: Sequence[tuple[int, int, int]], **said: Any
    ) -> Sequence[Row]:
        return rows_of.latency_rows(self._reader, bounds, metric, **self._asked | said, **self._only)

    def _add_latency(
        self, metric: LatencyMetric, row: Row, segment: Segment, buckets: list[Bucket], accounts: Iterable[Account]
    ) -> None:
        slo = self._dated.slo(row["model"], segment.start)
        for account in accounts:
            account.latency.setdefault(metric, []).extend(buckets)
            if slo is not None and slo.metric == metric:
                account.hold(held(buckets, units.seconds(slo.max_ms)))

    def _priced(self, row: Row) -> tuple[int, Terms]:
        period, state = self._slots.places[row["position"]]
        return period, self._dated.of(state, row["fleet"], row["gpu_name"])

    def _add_served(self, row: Row) -> None:
        period, state = self._slots.places[row["position"]]
        counts = {name: row[name] for name in COUNTS}
        slo = self._dated.slo(row["model"], self._dated.moment_of(state))
        for account in self._into.of(period, row):
            account.served.add(
                row["model"], counts, gap_s=row["gap_s"], unplaced=row["unplaced"], simulated=row["simulated"]
            )
            if slo is not None and row["failed"]:
                account.hold(Held(n=row["failed"]))

    def _add_end(self, row: Row) -> None:
        ended = units.moment_of_us(row["end_us"])
        place = self._slots.at(ended)
        if not row["has_ended"] or place is None or ended > self._into.now - _GAP_TOLERANCE:
            return
        period, state = place
        terms = self._dated.of(state, row["fleet"], row["gpu_name"])
        there_s = row["provisioned_s"]
        added_s = rounded_s([there_s], terms.billing_increment_s) - there_s
        for account in self._into.of(period, row) if added_s > 0 else ():
            account.bill.add_rounding(added_s, terms)

    @property
    def _needs_gpus(self) -> bool:
        """Whether anything else than requests and latencies is asked for."""
        wanted = self._into.query.figures
        return wanted is None or any(not name.startswith((*LATENCY_METRICS, *_OF_REQUESTS)) for name in wanted)

    def _best_rates(self) -> BestRates | None:
        wanted = self._into.query.figures
        if wanted is not None and not _WORKING & set(wanted):
            return None
        return BestRates(self._reader, self._into.periods[-1].end)

    def _metrics(self) -> list[LatencyMetric]:
        wanted = self._into.query.figures or tuple(FIGURES)
        of_slos = self._dated.slo_metrics if any(name.startswith("slo_") for name in wanted) else set()
        named = {name.split("_")[0] for name in wanted}
        return [metric for metric in LATENCY_METRICS if metric in named | of_slos]


def _gpu_use(row: Row, hours: GridHours | None, *, shared: bool) -> GpuUse:
    sums = {name: row[name] for name in _USE}
    return GpuUse(allocated=row["allocated"], **sums, shared=shared, simulated=row["simulated"], grid_hours=hours)


def _histograms(rows: Sequence[Row]) -> Iterator[tuple[Row, list[Bucket]]]:
    """The buckets of rows that differ in nothing else, which follow each other, with the first of these rows."""
    names = [name for name in (rows[0] if rows else ()) if name not in ("lower_us", "upper_us", "n")]
    for _, alike in groupby(rows, lambda row: [row[name] for name in names]):
        found = list(alike)
        yield found[0], [_bucket(row) for row in found]


def _bucket(row: Row) -> Bucket:
    upper_s = math.inf if row["upper_us"] is None else units.seconds_of_us(row["upper_us"])
    return Bucket(units.seconds_of_us(row["lower_us"]), upper_s, row["n"])
