"""Batches of made-up nodes with the noise of real ones, for both us and a peer. Nothing here is measured time."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass

from collectors.samples import (
    AgentSamples,
    Batch,
    Engine,
    EngineSamples,
    Gpu,
    GpuSamples,
    HostSamples,
    Node,
    encode,
)

GPUS = ENGINES = 8
SCRAPE_EVERY_S = 5
NOISE = 4096
# Boundaries that vLLM uses, in microseconds.
TTFT_US = [1_000, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 250_000, 500_000, 750_000, 1_000_000,
           2_500_000, 5_000_000, 7_500_000, 10_000_000, 20_000_000, 40_000_000, 80_000_000, 160_000_000,
           640_000_000, 2_560_000_000]  # fmt: skip
ITL_US = [10_000, 25_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 750_000, 1_000_000,
          2_500_000, 5_000_000, 7_500_000, 10_000_000, 20_000_000, 40_000_000, 80_000_000]  # fmt: skip
E2E_US = [300_000, 500_000, 800_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000, 5_000_000, 10_000_000, 15_000_000,
          20_000_000, 30_000_000, 40_000_000, 50_000_000, 60_000_000, 120_000_000, 240_000_000, 480_000_000,
          960_000_000, 1_920_000_000, 7_680_000_000]  # fmt: skip


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
            gpus=_gpus(node), engines=_engines(node), gpu_samples=samples,
            engine_samples=self._engine_samples(begin_us, seconds), host_samples=host, processes=None,
            agent_samples=_agent(moments[-1]), missing={},
        )  # fmt: skip

    def _engine_samples(self, begin_us: int, seconds: int) -> EngineSamples:
        """A scrape of each engine every five seconds: about four requests a second on each."""
        scrapes = seconds // SCRAPE_EVERY_S
        rng, rows = self.rng, scrapes * ENGINES
        requests = [max(0, round(rng.gauss(20, 4))) for _ in range(rows)]
        generated = [count * 209 + rng.randint(-200, 200) for count in requests]
        nothing: list[int | None] = [None] * rows

        def spent(mean_us: int) -> list[int]:
            return [max(0, count * mean_us + rng.randint(-mean_us // 9, mean_us // 9)) for count in requests]

        return EngineSamples.model_construct(
            engine=list(range(ENGINES)) * scrapes,
            t_us=[begin_us + (row // ENGINES + 1) * SCRAPE_EVERY_S * 1_000_000 + rng.randint(0, 900)
                  for row in range(rows)],
            dt_us=[SCRAPE_EVERY_S * 1_000_000 + rng.randint(-900, 900) for _ in range(rows)],
            prompt_tokens=[count * 208 + rng.randint(0, 300) for count in requests],
            cached_tokens=[count * 60 + rng.randint(0, 50) for count in requests], transferred_tokens=[0] * rows,
            prefix_query_tokens=nothing, prefix_hit_tokens=nothing, generated_tokens=generated,
            finished_stop=requests, finished_length=[rng.randint(0, 2) for _ in range(rows)],
            finished_aborted=[0] * rows, finished_failed=[0] * rows, rejected=[0] * rows, preemptions=[0] * rows,
            running=[rng.randint(8, 24) for _ in range(rows)], waiting=[rng.randint(0, 3) for _ in range(rows)],
            kv_usage_ppm=[rng.randint(200_000, 700_000) for _ in range(rows)],
            prefill_us=spent(30_000), decode_us=spent(3_000_000), queue_us=spent(5_000),
            inference_us=spent(3_030_000), ttft_us=spent(45_000), itl_us=spent(2_990_000), e2e_us=spent(3_050_000),
            ttft_buckets=[_spread(rng, count, len(TTFT_US), 5) for count in requests],
            itl_buckets=[_spread(rng, count, len(ITL_US), 1) for count in generated],
            e2e_buckets=[_spread(rng, count, len(E2E_US), 7) for count in requests],
        )  # fmt: skip


def _spread(rng: random.Random, count: int, bounds: int, middle: int) -> list[int]:
    """`count` requests over a few buckets around the middle one."""
    found = [0] * (bounds + 1)
    for share, offset in ((0.7, 0), (0.15, 1), (0.1, -1)):
        found[middle + offset] = round(share * count * rng.uniform(0.9, 1.1))
    found[middle + 2] = max(0, count - sum(found))
    return found


def _engines(node: str) -> list[Engine]:
    return [
        Engine(
            url=f"http://127.0.0.1:{8000 + number}/metrics", label="0", kind="vllm", version="0.32.0",
            model="deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", gpus=[f"{node}-{number}"], gpus_source="processes",
            ttft_bounds_us=TTFT_US, itl_bounds_us=ITL_US, e2e_bounds_us=E2E_US,
        )
        for number in range(ENGINES)
    ]  # fmt: skip


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
    """Prometheus text with timestamps: one line a reading; each bucket's count is a line, as an exporter has it."""
    lines = []
    for table, prefix in ((batch.gpu_samples, "gpu"), (batch.host_samples, "host"), (batch.engine_samples, "engine")):
        if table is None:
            continue
        columns = {name: column for name, column in table.__dict__.items() if name not in _NO_READINGS}
        for row, t_us in enumerate(table.t_us):
            label = f',{prefix}="{getattr(table, prefix)[row]}"' if prefix != "host" else ""
            where = f'node="{batch.agent}"{label}'
            for name, column in columns.items():
                value = column[row]
                if isinstance(value, list):
                    lines += [f'{prefix}_{name}{{{where},le="{position}"}} {count} {t_us // 1000}'
                              for position, count in enumerate(value)]  # fmt: skip
                elif value is not None:
                    lines.append(f"{prefix}_{name}{{{where}}} {int(value)} {t_us // 1000}")
    return "\n".join(lines) + "\n"


_NO_READINGS = ("gpu", "engine", "t_us", "dt_us", "energy_method")
