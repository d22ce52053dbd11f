"""The use of GPUs once more, in plain Python: from rows of samples, by the rules as they are written, no SQL."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tests.batches import HOUR, MINUTE, SECOND, Row

Part = dict[str, Fraction]
# The rollups compute with doubles: so much of a second is nobody's.
LEAST_MISSING_S = Fraction(1, 2 * 10**6)


@dataclass
class World:
    """gpus, engines: their rows. moves: engine -> from when on (us) -> the GPUs that it runs on; None: not known."""

    gpus: Mapping[int, Sequence[Row]]
    engines: Mapping[int, Sequence[Row]]
    moves: Mapping[int, Mapping[int, tuple[int, ...] | None]]


@dataclass
class _Worked:
    busy_s: Fraction = Fraction(0)
    seconds: set[int] = field(default_factory=set)
    tokens: int = 0


@dataclass
class _Minute:
    """What one GPU's rows say of a minute, and who was on it."""

    sums: dict[str, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    residents: dict[int, _Worked] = field(default_factory=dict)

    @property
    def used_s(self) -> Fraction:
        worked = [one for one in self.residents.values() if one.busy_s]
        if not worked:
            return Fraction(0)
        union = Fraction(len(set().union(*(one.seconds for one in worked))))
        busy = [one.busy_s for one in worked]
        return min(max(max(busy), min(sum(busy), union)), self.sums["provisioned_s"])

    @property
    def missing_s(self) -> Fraction:
        lacking = self.sums["provisioned_s"] - self.sums["covered_s"] - self.sums["bridged_s"]
        return lacking if lacking > LEAST_MISSING_S else Fraction(0)

    @property
    def measured_j(self) -> Fraction:
        return self.sums["known_j"] + self.sums["interpolated_j"]


def parts_of(row: Row) -> Iterator[tuple[int, int, int]]:
    """(minute, from, to) of each minute that the row covers, in microseconds."""
    start, end = row["t_us"] - row["dt_us"], row["t_us"]
    for minute in range(start // MINUTE * MINUTE, end, MINUTE):
        yield minute, max(start, minute), min(end, minute + MINUTE)


def recomputed(world: World) -> dict[tuple[int, int | None, int], Part]:
    """(GPU, engine, minute) -> its part of the GPU's minute."""
    parts: dict[tuple[int, int | None, int], Part] = {}
    for gpu, minutes in _minutes(world).items():
        hours = {minute // HOUR * HOUR for minute in minutes}
        powers = {hour: {used: _power(minutes, hour, used) for used in (True, False)} for hour in hours}
        for start, minute in minutes.items():
            for engine, part in _split(minute, powers[start // HOUR * HOUR]).items():
                parts[gpu, engine, start] = part
    return parts


def by_hour(parts: Mapping[tuple[int, int | None, int], Part]) -> dict[tuple[int, int | None, int], Part]:
    sums: dict[tuple[int, int | None, int], Part] = defaultdict(lambda: defaultdict(Fraction))
    for (gpu, engine, minute), part in parts.items():
        for name, value in part.items():
            sums[gpu, engine, minute // HOUR * HOUR][name] += value
    return sums


def _minutes(world: World) -> dict[int, dict[int, _Minute]]:
    worked = {engine: _worked(rows) for engine, rows in world.engines.items()}
    hours = {engine: {minute // HOUR for minute in minutes} for engine, minutes in worked.items()}
    found: dict[int, dict[int, _Minute]] = {gpu: defaultdict(_Minute) for gpu in world.gpus}
    for gpu, rows in world.gpus.items():
        for row in rows:
            for minute, start, end in parts_of(row):
                _add(found[gpu][minute].sums, row, Fraction(end - start, row["dt_us"]), Fraction(end - start, SECOND))
        for minute, one in found[gpu].items():
            for engine, moves in world.moves.items():
                if minute // HOUR in hours[engine] and gpu in (_at(moves, minute) or ()):
                    one.residents[engine] = worked[engine].get(minute, _Worked())
    return found


def _add(sums: dict[str, Fraction], row: Row, share: Fraction, overlap_s: Fraction) -> None:
    sums["provisioned_s"] += overlap_s
    energy = row.get("energy_mj")
    if row.get("energy_method", "counter") == "bridged":
        if energy is not None:
            sums["interpolated_j"] += share * energy / 1000
            sums["bridged_s"] += overlap_s
        return
    if energy is not None:
        sums["known_j"] += share * energy / 1000
        sums["covered_s"] += overlap_s
    if row.get("thermal_slowdown"):
        sums["throttled_s"] += overlap_s


def _worked(rows: Sequence[Row]) -> dict[int, _Worked]:
    found: dict[int, _Worked] = defaultdict(_Worked)
    for row in rows:
        start = row["t_us"] - row["dt_us"]
        busy = any((row.get(name) or 0) > 0 for name in ("running", "prompt_tokens", "generated_tokens"))
        for minute, low, high in parts_of(row):
            one = found[minute]
            for name in ("prompt_tokens", "generated_tokens"):
                count = row.get(name) or 0
                # As the engines' own minutes are split: with doubles, see test_engine_rollup.whole.
                edges = [math.floor(count * ((edge - start) / row["dt_us"])) for edge in (low, high)]
                one.tokens += edges[1] - edges[0]
            if busy:
                one.busy_s += Fraction(high - low, SECOND)
                one.seconds |= {
                    second
                    for second in range(60)
                    if 2 * (min(high - minute, (second + 1) * SECOND) - max(low - minute, second * SECOND)) >= SECOND
                }
    return found


def _at(moves: Mapping[int, tuple[int, ...] | None], minute: int) -> tuple[int, ...] | None:
    """The GPUs in a minute: those of its last change count for all of it."""
    before = [moment for moment in moves if moment < minute + MINUTE]
    return moves[max(before)] if before else None


def _power(minutes: Mapping[int, _Minute], hour: int, used: bool) -> Fraction | None:
    """Mean power in a state: of the hour, else of the 24 hours that end with it."""
    end = hour + HOUR
    for span in (HOUR, 24 * HOUR):
        same = [one for minute, one in minutes.items() if end - span <= minute < end and (one.used_s > 0) == used]
        seconds = sum(one.sums["covered_s"] + one.sums["bridged_s"] for one in same)
        if seconds:
            return sum(one.measured_j for one in same) / seconds
    return None


def _split(minute: _Minute, powers: Mapping[bool, Fraction | None]) -> dict[int | None, Part]:
    sums, used_s = minute.sums, minute.used_s
    idle_s = sums["provisioned_s"] - used_s
    fill_w = powers[used_s > 0]
    estimated_j = minute.missing_s * (fill_w or 0)
    total_j = minute.measured_j + estimated_j
    idle_j = total_j
    if used_s:
        idle_w = powers[False]
        idle_j = min(total_j, idle_s * (total_j / sums["provisioned_s"] if idle_w is None else idle_w))
    tokens = sum(one.tokens for one in minute.residents.values())
    count = len(minute.residents)
    found: dict[int | None, Part] = {}
    for engine, one in minute.residents.items() or {None: _Worked()}.items():
        even = Fraction(1, count or 1)
        mine = Fraction(one.tokens, tokens) if tokens else even
        seconds = used_s * mine + idle_s * even
        time_part = seconds / sums["provisioned_s"]
        joules = (total_j - idle_j) * mine + idle_j * even
        energy_part = joules / total_j if total_j else time_part
        found[engine] = {
            "provisioned_s": seconds,
            "used_s": used_s * mine,
            "known_j": sums["known_j"] * energy_part,
            "interpolated_j": sums["interpolated_j"] * energy_part,
            "estimated_j": estimated_j * energy_part,
            "unknown_s": (minute.missing_s if fill_w is None else 0) * time_part,
            "idle_j": idle_j * even,
            "covered_s": sums["covered_s"] * time_part,
            "bridged_s": sums["bridged_s"] * time_part,
            "throttled_s": sums["throttled_s"] * time_part,
        }
    return found
