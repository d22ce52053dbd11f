"""Batches for tests."""

from __future__ import annotations

from collectors.samples import AgentSamples, Batch, Gpu, GpuSamples, HostSamples, Node, Processes

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND  # 2026-09-21, in UTC microseconds
EPOCH = "0123456789abcdef" * 2
UUID = "5f2b3c1d-0000-1111-2222-333344445555"


def node(node_id: str = "node-7", sent_at_us: int = T0) -> Node:
    return Node(id=node_id, agent_version="0.1.0", sent_at_us=sent_at_us)


def gpu_rows(t_us: list[int], dt_us: int = SECOND, energy_mj: int | None = 300_000, gpu: int = 0) -> GpuSamples:
    """Rows of one GPU at these times, all alike."""
    n = len(t_us)
    return GpuSamples(
        gpu=[gpu] * n,
        t_us=t_us,
        dt_us=[dt_us] * n,
        energy_mj=[energy_mj] * n,
        energy_method=["counter"] * n,
        integral_mj=[energy_mj] * n,
        power_instant_mw=[300_000] * n,
        power_average_mw=[None] * n,
        utilisation_pct=[97] * n,
        memory_utilisation_pct=[None] * n,
        memory_used_bytes=[2**34] * n,
        temperature_c=[61] * n,
        sm_clock_mhz=[1980] * n,
        memory_clock_mhz=[2619] * n,
        power_cap=[False] * n,
        thermal_slowdown=[False] * n,
        hardware_slowdown=[None] * n,
    )


def batch(
    *, sequence: int = 1, epoch: str = EPOCH, first_t_us: int = T0, rows: int = 10, node_id: str = "node-7"
) -> Batch:
    """A batch of one GPU with a row a second."""
    times = [first_t_us + row * SECOND for row in range(rows)]
    return Batch(
        agent=node_id,
        epoch=epoch,
        sequence=sequence,
        node=node(node_id, first_t_us + rows * SECOND),
        gpus=[Gpu(uuid=UUID, name="NVIDIA H100 PCIe", index=0)],
        gpu_samples=gpu_rows(times),
        host_samples=HostSamples(
            t_us=times,
            dt_us=[SECOND] * rows,
            cpu_energy_mj=[120_000] * rows,
            dram_energy_mj=[None] * rows,
            memory_used_bytes=[2**33] * rows,
            memory_total_bytes=[2**38] * rows,
            load_1m_milli=[1250] * rows,
        ),
        processes=Processes(gpu=[0], t_us=times[:1], pid=[4711], memory_used_bytes=[None]),
        agent_samples=AgentSamples(
            t_us=times[-1:],
            cpu_ms=[90],
            memory_bytes=[60_000_000],
            tick_p99_us=[2100],
            spool_bytes=[0],
            spool_batches=[0],
            dropped_batches=[0],
            rejected_batches=[0],
            rejected_readings=[0],
            child_restarts=[0],
        ),
        missing={"dram_energy_mj": "this processor has no counter for its memory's energy"},
    )
