"""The hours of a plan as one mixed-integer program: each hour's own (see program.py), joined by what passes from hour
to hour.

replicas    N_gh of a group (fleet, model, GPUs) start and stop: t_gh >= |N_gh - N_g,h-1|, paid per replica
up-time     s_gh >= N_gh - N_g,h-1,  sum of s_g over the last m hours <= N_gh: what was started in them still runs
deferred    b_kh = b_k,h-1 + arrived_kh - served_kh >= 0, and 0 at the end
shares      limits of a deferrable class hold over all hours together, those of any other in each hour
Before the first hour runs what the demand says of today. Source: design section 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.split.columns import Group, groups_of, lay_out
from app.split.demand import Demand, WorkloadClass
from app.split.mixed import Column, Program, Row
from app.split.program import SplitProgram, loaded_classes, needed_options, program_of
from app.split.timeline import Timeline

Terms = tuple[tuple[int, float], ...]
_OF_A_CLASS = ("served", "share_min", "share_max")


@dataclass(frozen=True)
class Horizon:
    """program: the columns of the hours one after the other, then those that join them; it has no replicas of its own,
    as their ties are not settled. first: of each hour its first column.
    """

    hours: tuple[SplitProgram, ...]
    first: tuple[int, ...]
    groups: tuple[Group, ...]
    program: Program

    def whole_of(self, replicas: Mapping[int, int]) -> dict[int, float]:
        """The whole columns where every hour has so many replicas of each option index."""
        found: dict[int, float] = {}
        for hour, first in zip(self.hours, self.first, strict=True):
            for column, index, _ in hour.columns.replicas():
                found[first + column] = replicas.get(index, 0)
            for index, column in hour.columns.in_use().items():
                found[first + column] = float(replicas.get(index, 0) > 0)
        return found

    def counts(self, values: np.ndarray, number: int) -> dict[int, int]:
        """Option index -> replicas in an hour."""
        hour, first = self.hours[number], self.first[number]
        return {index: round(float(values[first + column])) for column, index, _ in hour.columns.replicas()}


@dataclass
class _Join:
    """Columns and rows that are added to those of the hours."""

    columns: list[Column]
    rows: list[Row] = field(default_factory=list)

    def column(self, high: float) -> int:
        self.columns.append(Column(0.0, high))
        return len(self.columns) - 1


def build_horizon(timeline: Timeline, min_up_hours: int) -> Horizon:
    """Every class that has load in some hour has an option. Raises DemandError, see program.py."""
    demand, count = timeline.demand, len(timeline.hours)
    needed = needed_options(timeline.at_most(), timeline.admission)
    hours = tuple(_hour(timeline, number, needed) for number in range(count))
    first = tuple(int(n) for n in np.cumsum([0, *(len(hour.program.columns) for hour in hours)]))
    groups = tuple(groups_of(demand, timeline.admission.options, hours[0].columns.used)[0])
    join = _Join(_joint_columns(timeline, hours, needed))
    positions = [
        {index: start + column for column, index, _ in hour.columns.replicas()}
        for hour, start in zip(hours, first[:-1], strict=True)
    ]
    running = [[_running(group, position) for position in positions] for group in groups]
    join.rows += _rows_of_hours(timeline, hours, first)
    join.rows += _switched(hours, first, running)
    if min_up_hours > 1:
        for group, by_hour in zip(groups, running, strict=True):
            _keep_up(join, group, by_hour, min_up_hours)
    for one in loaded_classes(timeline.at_most()):
        if one.deferrable:
            _defer(join, timeline, one, hours, first)
    own = [cost for number, hour in enumerate(hours) for cost in _costs(demand, hour, number, count)]
    tidy = [weight for hour in hours for weight in hour.program.tidy]
    joint = [0.0] * (len(join.columns) - len(own))
    program = Program(
        columns=tuple(join.columns),
        rows=tuple(join.rows),
        costs=(*own, *joint),
        replicas=0,
        ranks=(),
        tidy=(*tidy, *joint),
        constant=switch_usd(demand, 0, count) * hours[0].columns.stopped,
    )
    return Horizon(hours, first[:-1], groups, program)


def switch_usd(demand: Demand, number: int, hours: int) -> float:
    """$ for each replica that is started or stopped in an hour. Against today's, what of it is paid within the plan."""
    solve = demand.solve
    return solve.switch_usd_per_replica * (min(1.0, hours / solve.switch_hours) if number == 0 else 1.0)


def _hour(timeline: Timeline, number: int, needed: Mapping[str, list[int]]) -> SplitProgram:
    demand = timeline.within_reach(number)
    return program_of(demand, timeline.admission_of(number).options, loaded_classes(demand), needed)


def _joint_columns(
    timeline: Timeline, hours: tuple[SplitProgram, ...], needed: Mapping[str, list[int]]
) -> list[Column]:
    """Replicas may be kept in an hour that does not need them, up to the most that any hours may need together."""
    demand = timeline.at_most()
    most = lay_out(demand, timeline.admission.options, loaded_classes(demand), needed).most(
        demand.solve.max_utilisation
    )
    used = hours[0].columns.used
    kept = [Column(0.0, most[index], whole=True) for index in used]
    return [column for hour in hours for column in (*kept, *hour.program.columns[len(used) :])]


def _running(group: Group, position: Mapping[int, int]) -> Terms:
    return tuple((position[index], 1.0) for index in group.members)


def _costs(demand: Demand, hour: SplitProgram, number: int, count: int) -> list[float]:
    costs = list(hour.program.costs)
    for column, _ in hour.columns.switches():
        costs[column] = switch_usd(demand, number, count)
    return costs


def _rows_of_hours(timeline: Timeline, hours: tuple[SplitProgram, ...], first: tuple[int, ...]) -> Iterator[Row]:
    """All but those that hold over the hours together: of deferrable classes, and of switching after the first."""
    deferrable = {one.name for one in timeline.demand.classes if one.deferrable}
    for number, hour in enumerate(hours):
        for row in hour.program.rows:
            is_joint = row.kind in _OF_A_CLASS and row.subject[0] in deferrable
            if is_joint or (row.kind == "switch" and number > 0):
                continue
            terms = tuple((first[number] + column, weight) for column, weight in row.terms)
            yield Row(row.kind, row.subject, terms, row.low, row.high, row.scale)


def _minus(terms: Terms) -> Terms:
    return tuple((column, -weight) for column, weight in terms)


def _switched(hours: tuple[SplitProgram, ...], first: tuple[int, ...], running: list[list[Terms]]) -> Iterator[Row]:
    """The first hour has its own rows, against today. Groups of an hour's columns have the order of `running`."""
    for number in range(1, len(hours)):
        for (column, group), by_hour in zip(hours[number].columns.switches(), running, strict=False):
            now, before = by_hour[number], by_hour[number - 1]
            for up, down in ((now, before), (before, now)):
                terms = (*up, *_minus(down), (first[number] + column, -1.0))
                yield Row("switch", (group.fleet,), terms, high=0.0)


def _keep_up(join: _Join, group: Group, by_hour: list[Terms], min_up_hours: int) -> None:
    started: list[int] = []
    for number, now in enumerate(by_hour):
        started.append(join.column(np.inf))
        before = _minus(by_hour[number - 1]) if number else ()
        known = group.today if number == 0 else 0
        join.rows.append(Row("other", (group.fleet, "started"), (*now, *before, (started[-1], -1.0)), high=known))
        recent = tuple((column, 1.0) for column in started[-min_up_hours:])
        join.rows.append(Row("other", (group.fleet, "up-time"), (*recent, *_minus(now)), high=0.0))


def _defer(
    join: _Join, timeline: Timeline, one: WorkloadClass, hours: tuple[SplitProgram, ...], first: tuple[int, ...]
) -> None:
    """In units of all that arrives of the class. A share of an hour is one of what has arrived by then."""
    given = next(known for known in timeline.demand.classes if known.name == one.name)
    total = timeline.arrived(given, len(hours) - 1)
    by_fleet: dict[str, list[tuple[int, float]]] = {}
    waiting: int | None = None
    for number, hour in enumerate(hours):
        reach = timeline.arrived(given, number) / total
        served = []
        for column, whose, index in hour.columns.shares():
            if whose.name == one.name:
                served.append((first[number] + column, reach))
                by_fleet.setdefault(hour.columns.options[index].fleet.name, []).append(served[-1])
        before = () if waiting is None else ((waiting, -1.0),)
        waiting = join.column(0.0 if number == len(hours) - 1 else np.inf)
        arrived = timeline.factor(given, number) / total
        terms = (*served, *before, (waiting, 1.0))
        join.rows.append(Row("served", (one.name,), terms, low=arrived, high=arrived))
    for limit in one.share:
        parts = tuple(by_fleet.get(limit.fleet, ()))
        if limit.min > 0:
            join.rows.append(Row("share_min", (one.name, limit.fleet), parts, low=limit.min))
        if limit.max < 1 and parts:
            join.rows.append(Row("share_max", (one.name, limit.fleet), parts, high=limit.max))
