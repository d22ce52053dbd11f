"""Batches of made-up nodes with the noise of real ones, for both us and a peer. Nothing here is measured time."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass

from collectors.samples import AgentSamples, Batch, Gpu, GpuSamples, HostSamples, Node, encode

GPUS = 8
NOISE = 4096


class Noise:
    """Long columns of noise; a batch takes a slice of each, so that making one is cheap and no two are alike."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = rng = random.Random(seed)

        def column(mean: float, spread: float, low: int = 0, high: int = 2**31 - 1) -> list[int]:
            return [min(high, max(low, round(rng.gauss(mean, spread)))) for _ in range(NOISE * 2)]

        self.energy_mj = column(600_000, 9_000)
        self.integral_mj = column(600_000, 8_000)
        self.instant_mw = column(600_000, 15_000)
        self.average_mw = column(600_000, 6_000)
        self.utilisation = column(95, 4, 0, 100)
        self.memory_utilisation = column(40, 6, 0, 100)
        self.memory_bytes = [64_424_509_440 + 2_097_152 * rng.randint(0, 400) for _ in range(NOISE * 2)]
        self.temperature = column(62, 2, -50, 200)
        self.sm_clock = [1980 - 15 * rng.randint(0, 5) for _ in range(NOISE * 2)]
        self.jitter_us = column(0, 400, -900, 900)
        self.power_cap = [rng.random() < 0.1 for _ in range(NOISE * 2)]
        self.cpu_mj = column(210_000, 5_000)
        self.dram_mj = column(30_000, 900)

    def batch(self, node: str, sequence: int, begin_us: int, seconds: int) -> Batch:
        """`seconds` of 1 Hz samples of a node with 8 GPUs, from `begin_us` on."""
        rows = GPUS * seconds
        at = self.rng.randrange(NOISE) if rows < NOISE else 0
        take = _taker(at, rows)
        moments = [begin_us + (second + 1) * 1_000_000 for second in range(seconds)]
        jitter = take(self.jitter_us)
        never = [False] * rows
        samples = GpuSamples.model_construct(
            gpu=list(range(GPUS)) * seconds,
            t_us=[moments[row // GPUS] + jitter[row] for row in range(rows)],
            dt_us=[1_000_000 + jitter[row] - jitter[row - GPUS] for row in range(rows)],
            energy_mj=take(self.energy_mj),
            energy_method=["counter"] * rows,
            integral_mj=take(self.integral_mj),
            power_instant_mw=take(self.instant_mw),
            power_average_mw=take(self.average_mw),
            utilisation_pct=take(self.utilisation),
            memory_utilisation_pct=take(self.memory_utilisation),
            memory_used_bytes=take(self.memory_bytes),
            temperature_c=take(self.temperature),
            sm_clock_mhz=take(self.sm_clock),
            memory_clock_mhz=[2619] * rows,
            power_cap=take(self.power_cap),
            thermal_slowdown=never,
            hardware_slowdown=never,
        )
        take_host = _taker(at, seconds)
        host = HostSamples.model_construct(
            t_us=moments, dt_us=[1_000_000] * seconds, cpu_energy_mj=take_host(self.cpu_mj),
            dram_energy_mj=take_host(self.dram_mj), memory_used_bytes=take_host(self.memory_bytes),
            memory_total_bytes=[2_164_663_517_184] * seconds, load_1m_milli=take_host(self.sm_clock),
        )  # fmt: skip
        return Batch.model_construct(
            wire=1, agent=node, epoch="0" * 32, sequence=sequence,
            node=Node(id=node, boot_id="boot", agent_version="bench", sent_at_us=moments[-1]),
            gpus=_gpus(node), gpu_samples=samples, host_samples=host, processes=None,
            agent_samples=_agent(moments[-1]), missing={},
        )  # fmt: skip


def _taker(at: int, rows: int):
    def take(column: list) -> list:
        if rows <= NOISE:
            return column[at : at + rows]
        return (column * (rows // len(column) + 1))[:rows]

    return take


def _gpus(node: str) -> list[Gpu]:
    return [
        Gpu(uuid=f"{node}-{index}", name="NVIDIA H100 80GB HBM3", index=index, power_limit_mw=700_000,
            memory_total_bytes=85_520_809_984, energy_method="counter", mig_enabled=False, persistence_mode=True)
        for index in range(GPUS)
    ]  # fmt: skip


def _agent(t_us: int) -> AgentSamples:
    return AgentSamples(
        t_us=[t_us], cpu_ms=[70], memory_bytes=[61_000_000], tick_p99_us=[9_000], spool_bytes=[3_000],
        spool_batches=[1],
        dropped_batches=[0], rejected_batches=[0], rejected_readings=[0], child_restarts=[0],
    )  # fmt: skip


@dataclass(frozen=True)
class Body:
    """The same readings as we take them and as VictoriaMetrics imports them."""

    ours: bytes
    theirs: bytes
    readings: int


def body(batch: Batch, *, with_peer: bool) -> Body:
    return Body(encode(batch), gzip.compress(_lines(batch).encode(), 3) if with_peer else b"", batch.readings)


def _lines(batch: Batch) -> str:
    """Prometheus text with timestamps: one line a reading."""
    lines = []
    for table, prefix in ((batch.gpu_samples, "gpu"), (batch.host_samples, "host")):
        columns = {name: column for name, column in table.__dict__.items()
                   if name not in ("gpu", "t_us", "dt_us", "energy_method")}  # fmt: skip
        for row, t_us in enumerate(table.t_us):
            label = f',gpu="{table.gpu[row]}"' if prefix == "gpu" else ""
            for name, column in columns.items():
                if column[row] is not None:
                    lines.append(f'{prefix}_{name}{{node="{batch.agent}"{label}}} {int(column[row])} {t_us // 1000}')
    return "\n".join(lines) + "\n"
