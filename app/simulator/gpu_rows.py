"""GPU samples of the wire from the truth: a row a minute for the past, a row a second for now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Bools, Floats, Ints, generator, wire_table
from app.simulator.days import days_between, gpu_day, replica_day
from app.simulator.fleet import GIB, SimulatedNode, World
from app.simulator.recurring import DAY_MINUTES, DAY_S, MINUTE_S
from app.simulator.within import energy_done_mj
from collectors.samples import GpuSamples

# Assumptions: how a card's sensors go with its power and its work.
AMBIENT_C, C_PER_W = 30.0, 0.12
HOT_C = 87
RESTING_CLOCK_MHZ = 210  # without an engine; with one a card keeps its clock up
BARE_MEMORY_BYTES = GIB // 2
RESERVED_SHARE = 0.9  # of the memory, which an engine takes at its start
MEMORY_UTILISATION = 0.6  # of the utilisation
SENSOR_NOISE = 0.02
INTEGRAL_NOISE = 0.003


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of one GPU and day. minutes: of the day, in which each lies; each covers `spans_s` up to `ends_s`."""

    day: int
    minutes: Ints
    ends_s: Ints
    spans_s: Ints
    energy_mj: Ints


def minute_gpu_rows(world: World, node: SimulatedNode, start_s: int, end_s: int) -> GpuSamples | None:
    """A row per GPU and minute of (start, end], both whole minutes; None where the node was off."""
    return _table(world, node, lambda gpu: _minutes(world, node, gpu, start_s // MINUTE_S, end_s // MINUTE_S))


def second_gpu_rows(world: World, node: SimulatedNode, start_s: int, end_s: int) -> GpuSamples | None:
    """A row per GPU and second of (start, end]; None while the node is off."""
    return _table(world, node, lambda gpu: _seconds(world, node, gpu, start_s, end_s))


def _minutes(world: World, node: SimulatedNode, gpu: int, first: int, last: int) -> Iterator[_Rows]:
    for day, part in days_between(first, last):
        truth = gpu_day(world, node, gpu, day)
        minutes = np.arange(DAY_MINUTES)[part]
        minutes = minutes[truth.absent_s[part] < MINUTE_S]
        ends_s = day * DAY_S + (minutes + 1) * MINUTE_S
        yield _Rows(day, minutes, ends_s, MINUTE_S - truth.absent_s[minutes], truth.energy_mj[minutes])


def _seconds(world: World, node: SimulatedNode, gpu: int, start_s: int, end_s: int) -> Iterator[_Rows]:
    for minute in range(start_s // MINUTE_S, -(-end_s // MINUTE_S)):
        day, at = divmod(minute, DAY_MINUTES)
        absent_s = int(gpu_day(world, node, gpu, day).absent_s[at])
        offsets = np.arange(max(start_s - minute * MINUTE_S, absent_s), min(end_s - minute * MINUTE_S, MINUTE_S))
        energy_mj = np.diff(energy_done_mj(world, node, gpu, minute))[offsets]
        ones = np.ones(len(offsets), np.int64)
        yield _Rows(day, at * ones, minute * MINUTE_S + offsets + 1, ones, energy_mj)


def _table(world: World, node: SimulatedNode, rows_of: Callable[[int], Iterator[_Rows]]) -> GpuSamples | None:
    pieces = [
        _columns(world, node, gpu, rows) for gpu in range(node.gpu_count) for rows in rows_of(gpu) if len(rows.minutes)
    ]
    same = {"energy_method": "counter", "memory_clock_mhz": node.card.memory_clock_mhz, "power_cap": False,
            "hardware_slowdown": False}  # fmt: skip
    return wire_table(GpuSamples, pieces, same)


def _columns(world: World, node: SimulatedNode, gpu: int, rows: _Rows) -> dict[str, Ints | Bools]:
    """What the sensors say beside the energy."""
    count = len(rows.minutes)
    truth, replica = gpu_day(world, node, gpu, rows.day), node.replica_of(gpu)
    hot = truth.hot[rows.minutes] > 0
    noise = generator(world.seed, "sensors", node.uuid(gpu), int(rows.ends_s[0])).standard_normal((3, count))
    mean_mw = rows.energy_mj / rows.spans_s
    if replica is None:
        utilisation, clock_mhz, memory_bytes = np.zeros(count), np.full(count, RESTING_CLOCK_MHZ), BARE_MEMORY_BYTES
    else:
        running = replica_day(world, replica, rows.day).running[rows.minutes]
        utilisation = np.where(truth.busy[rows.minutes] > 0, _utilisation(running, noise[2]), 0.0)
        clock_mhz = np.where(hot, node.card.hot_clock_mhz, node.card.clock_mhz)
        memory_bytes = int(node.card.memory_bytes * RESERVED_SHARE) // GIB * GIB
    return {
        "gpu": np.full(count, gpu),
        "t_us": rows.ends_s * 1_000_000,
        "dt_us": rows.spans_s * 1_000_000,
        "energy_mj": rows.energy_mj,
        "integral_mj": _whole(rows.energy_mj * (1 + INTEGRAL_NOISE * noise[0])),
        "power_instant_mw": _whole(mean_mw * (1 + SENSOR_NOISE * noise[1])),
        "power_average_mw": _whole(mean_mw),
        "utilisation_pct": _whole(utilisation),
        "memory_utilisation_pct": _whole(utilisation * MEMORY_UTILISATION),
        "memory_used_bytes": np.full(count, memory_bytes),
        "temperature_c": np.where(hot, HOT_C, _whole(AMBIENT_C + C_PER_W * truth.power_w[rows.minutes])),
        "sm_clock_mhz": clock_mhz,
        "thermal_slowdown": hot,
    }


def _utilisation(running: Floats, noise: Floats) -> Floats:
    """Percent of the time in which a request was in work, if they come at random."""
    percent: Floats = np.clip(100 * (1 - np.exp(-running)) - 2 * np.abs(noise), 1, 100)
    return percent


def _whole(values: Floats) -> Ints:
    return np.rint(values).astype(np.int64)
