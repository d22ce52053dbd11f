"""The rows of a split's program, each named by what it limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.split.columns import Columns
from app.split.demand import Demand, WorkloadClass
from app.split.mixed import Row, RowKind
from app.split.weights import Weights

Terms = tuple[tuple[int, float], ...]


def all_rows(demand: Demand, loaded: Sequence[WorkloadClass], columns: Columns, weights: Weights) -> Iterator[Row]:
    for one in loaded:
        yield Row("served", (one.name,), _of_class(columns, one), low=1.0, high=1.0)
    yield from _pools(demand, columns)
    yield from _gpus(demand, columns)
    for one in loaded:
        yield from _share_limits(one, columns)
    yield from _caps(demand, weights)
    yield from _switched(columns)


def _of_class(columns: Columns, one: WorkloadClass, fleet: str | None = None) -> Terms:
    """The class's shares, all or those of a fleet."""
    return tuple(
        (column, 1.0)
        for column, whose, index in columns.shares()
        if whose.name == one.name and fleet in (None, columns.options[index].fleet.name)
    )


def _pools(demand: Demand, columns: Columns) -> Iterator[Row]:
    """No pool above the capacity of its replicas but the spares, and no share on one that has none to spare."""
    full = demand.solve.max_utilisation
    in_use = columns.in_use()
    by_option: dict[int, list[tuple[int, float]]] = {index: [] for index in columns.used}
    for column, one, index in columns.shares():
        option = columns.options[index]
        by_option[index].append((column, option.load_of(one) / option.usable_replicas(full)))
    for column, index, option in columns.replicas():
        subject = (option.fleet.name, option.point.point_id)
        loads = by_option[index]
        if index not in in_use:
            yield Row("pool", subject, (*loads, (column, -1.0)), high=0.0)
            continue
        opened = in_use[index]
        yield Row("pool", subject, (*loads, (column, -1.0), (opened, float(columns.spares(index)))), high=0.0)
        for share, _ in loads:
            yield Row("opened", subject, ((share, 1.0), (opened, -1.0)), high=0.0)


def _gpus(demand: Demand, columns: Columns) -> Iterator[Row]:
    for fleet in demand.fleets:
        gpus = tuple(
            (column, float(option.point.gpus))
            for column, _, option in columns.replicas()
            if option.fleet.name == fleet.name
        )
        if fleet.max_gpus is not None and gpus:
            yield Row("gpus", (fleet.name,), gpus, high=float(fleet.max_gpus))


def _share_limits(one: WorkloadClass, columns: Columns) -> Iterator[Row]:
    for limit in one.share:
        terms = _of_class(columns, one, limit.fleet)
        if limit.min > 0:
            yield Row("share_min", (one.name, limit.fleet), terms, low=limit.min)
        if limit.max < 1 and terms:
            yield Row("share_max", (one.name, limit.fleet), terms, high=limit.max)


def _caps(demand: Demand, weights: Weights) -> Iterator[Row]:
    """Divided by the cap, so that coefficients stay near 1."""
    solve = demand.solve
    caps: tuple[tuple[RowKind, float | None, tuple[float, ...]], ...] = (
        ("watts", solve.max_watts, weights.watts),
        ("usd", solve.max_usd_per_hour, weights.usd),
        ("grams", solve.max_g_per_hour, weights.grams),
    )
    for kind, cap, found in caps:
        if cap is None:
            continue
        scale = cap or 1.0
        terms = tuple((column, weight / scale) for column, weight in enumerate(found) if weight)
        yield Row(kind, (), terms, high=cap / scale, scale=scale)


def _switched(columns: Columns) -> Iterator[Row]:
    """The switch column is at least the difference from today, whichever its sign."""
    position = {index: column for column, index, _ in columns.replicas()}
    for column, group in columns.switches():
        replicas = [position[index] for index in group.members]
        for sign in (1.0, -1.0):
            terms = (*((replica, sign) for replica in replicas), (column, -1.0))
            yield Row("switch", (group.fleet,), terms, high=sign * group.today)
