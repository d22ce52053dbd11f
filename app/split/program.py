"""A demand over its admissible options as a mixed-integer program in numbers, ready for a solver.

minimise    sum_r n_r (a_r price_r + c_r a_r idle_r + p e_r) + sum_kr x_kr c_r load_kr w_r + s sum_g |N_g - today_g|
            c_r = (carbon price p x intensity + tariff) x PUE, e_r embodied grams per replica-hour, w_r W above idle
subject to  sum_r x_kr = 1                                every class served in full
            sum_k load_kr x_kr <= u a_r (n_r - spare_r z_r)  pool capacity in replicas, u = highest utilisation
            x_kr <= z_r                                   z_r 0 or 1: a pool in use, where it then has spares
            sum_r gpus_r n_r <= GPUs of the fleet
            min <= sum_r of a fleet x_kr <= max           share limits
            W, $/h and g/h under their caps
with load_kr the class's tokens/s over what the point makes of such tokens, and N_g the replicas of one fleet, model
and size. Source: design section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.errors import DemandError
from app.split.alike import merge_alike
from app.split.columns import Columns, lay_out
from app.split.demand import MOST_REPLICAS, Demand, WorkloadClass
from app.split.dominance import without_dominated
from app.split.mixed import Column, Program
from app.split.options import Admission, Option
from app.split.rows import all_rows
from app.split.weights import Weights, weigh


@dataclass(frozen=True)
class SplitProgram:
    """program: in numbers. columns: what each of its columns means. weights: W, $/h and g/h of each column."""

    program: Program
    columns: Columns
    weights: Weights


def build_programs(demand: Demand, admission: Admission) -> tuple[SplitProgram, SplitProgram]:
    """The program of the classes that have load, over the options that no other one makes superfluous; and the same
    with like classes merged: as many replicas of each option cost as little in either.

    Raises DemandError when a class would take more replicas than can be counted exactly.
    """
    options = admission.options
    loaded = loaded_classes(demand)
    fitting = needed_options(demand, admission)
    whole = program_of(demand, options, loaded, fitting)
    merged, of_merged = merge_alike(loaded, options, fitting)
    return whole, whole if len(merged) == len(loaded) else program_of(demand, options, merged, of_merged)


def build_wide_program(demand: Demand, admission: Admission) -> SplitProgram:
    """The program of the classes that have load over all their options."""
    return program_of(demand, admission.options, loaded_classes(demand), _all_countable(demand, admission))


def loaded_classes(demand: Demand) -> list[WorkloadClass]:
    return [one for one in demand.classes if one.tokens_per_s > 0]


def needed_options(demand: Demand, admission: Admission) -> dict[str, list[int]]:
    """Of each class that has load the options that no other one makes superfluous. Raises DemandError."""
    return without_dominated(loaded_classes(demand), admission.options, _all_countable(demand, admission))


def _all_countable(demand: Demand, admission: Admission) -> dict[str, list[int]]:
    return {one.name: _countable(demand, admission, one) for one in loaded_classes(demand)}


def program_of(
    demand: Demand, options: tuple[Option, ...], loaded: Sequence[WorkloadClass], fitting: Mapping[str, Sequence[int]]
) -> SplitProgram:
    """Of the `loaded` classes. fitting: of these, or of more classes, whose options then have replicas all the same."""
    columns = lay_out(demand, options, loaded, fitting)
    weights = weigh(demand, columns)
    return SplitProgram(
        program=Program(
            columns=_bounds(demand, columns),
            rows=tuple(all_rows(demand, loaded, columns, weights)),
            costs=weights.costs(demand.solve),
            replicas=len(columns.used),
            ranks=_tie_ranks(columns),
            tidy=_tidy(columns, weights),
            constant=demand.solve.switch_usd_per_hour * columns.stopped,
        ),
        columns=columns,
        weights=weights,
    )


def _bounds(demand: Demand, columns: Columns) -> tuple[Column, ...]:
    most = columns.most(demand.solve.max_utilisation)
    return (
        *(Column(0, most[index], whole=True) for index in columns.used),
        *(Column(0, 1) for _ in columns.pairs),
        *(Column(0, 1, whole=True) for _ in columns.spared),
        *(Column() for _ in columns.groups),
    )


def _tie_ranks(columns: Columns) -> tuple[int, ...]:
    """Place of each used option among equals: by fleet name, then the better $/token: one pool is filled first."""

    def order(position: int) -> tuple[str, float, int]:
        option = columns.options[columns.used[position]]
        return (option.fleet.name, option.usd_per_replica_hour / option.usable_tokens_per_s(1.0), position)

    ranks = [0] * len(columns.used)
    for rank, position in enumerate(sorted(range(len(columns.used)), key=order)):
        ranks[position] = rank
    return tuple(ranks)


def _tidy(columns: Columns, weights: Weights) -> tuple[float, ...]:
    """Least power first, then the first of the options; switching, which follows from the replicas, at its least."""
    found = [0.0] * columns.count
    scale = max([*(weights.watts[column] for column, _, _ in columns.shares()), 1.0])
    ranks = dict(zip(columns.used, _tie_ranks(columns), strict=True))
    tokens_per_s = sum({one.name: one.tokens_per_s for one, _ in columns.pairs}.values())
    for column, one, index in columns.shares():
        found[column] = weights.watts[column] / scale + 1e-6 * ranks[index] * one.tokens_per_s / tokens_per_s
    for column, _ in columns.switches():
        found[column] = 1.0
    return tuple(found)


def _countable(demand: Demand, admission: Admission, one: WorkloadClass) -> list[int]:
    """The class's options but those so small that it would take more than MOST_REPLICAS of them."""
    options: Mapping[int, Option] = {index: admission.options[index] for index in admission.admissible[one.name]}
    full = demand.solve.max_utilisation
    fitting = [
        index
        for index, option in options.items()
        if (load := option.load_of(one)) <= MOST_REPLICAS * option.usable_replicas(full) and math.isfinite(load)
    ]
    if options and not fitting:
        raise DemandError(
            f"class {one.name}: {one.tokens_per_s:g} tokens/s would take more than {MOST_REPLICAS:,} replicas of any "
            "option; accepted: a smaller rate, or fewer tokens a request"
        )
    return fitting
