"""Nodes and GPUs: their short ids in the store, and what their last batch said of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl

from app.store.database import Store
from app.store.engines import EngineRegistry
from collectors.samples import Batch, Gpu

# Two machines under one name take turns in sending; a machine whose spool is new changes its epoch once.
TWIN_WINDOW_S = 600.0

_NODE_STATE: dict[str, Any] = {
    "node_id": pl.Int32, "last_seen": pl.Datetime("us", "UTC"), "last_sample_us": pl.Int64, "skew_s": pl.Float64,
    "agent_version": pl.String, "driver_version": pl.String, "boot_id": pl.String, "epoch": pl.String,
    "sequence": pl.Int64, "status": pl.String, "twin_seen": pl.Datetime("us", "UTC"), "late_rows": pl.Int64,
    "skipped_batches": pl.Int64, "labels": pl.String, "missing": pl.String, "agent": pl.String,
}  # fmt: skip
_GPU: dict[str, Any] = {
    "gpu_id": pl.Int32, "uuid": pl.String, "node_id": pl.Int32, "first_seen": pl.Datetime("us", "UTC"),
    "name": pl.String, "gpu_index": pl.Int32, "pci_bus_id": pl.String, "power_limit_mw": pl.Int32,
    "memory_total_bytes": pl.Int64, "energy_method": pl.String, "energy_scope": pl.String, "mig_enabled": pl.Boolean,
    "persistence_mode": pl.Boolean, "status": pl.String,
}  # fmt: skip


def _upsert(table: str, key: str, columns: dict[str, Any]) -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in (key, "first_seen"))
    return f"INSERT INTO {table} BY NAME SELECT * FROM incoming_{table} ON CONFLICT ({key}) DO UPDATE SET {sets}"


_UPSERT_STATE = _upsert("node_state", "node_id", _NODE_STATE)
_UPSERT_GPU = _upsert("gpu", "gpu_id", _GPU)


@dataclass
class NodeState:
    """What is known of a node now; the store holds a copy at most a few seconds old."""

    node_id: int
    row: dict[str, Any]
    machines: dict[tuple[str, str | None], datetime] = field(default_factory=dict)


class Registry:
    """Ids and last states, in memory while the hub runs and in the store across its restarts.

    Used by the one writer thread; `commit` after a committed transaction, `forget` after one that was rolled back.
    """

    def __init__(self, store: Store) -> None:
        self._nodes: dict[str, int] = dict(store.query("SELECT name, node_id FROM node").iter_rows())
        self._simulated: set[str] = set(store.query("SELECT name FROM node WHERE simulated")["name"])
        self._new_simulated: set[str] = set()
        self.engines = EngineRegistry(store)
        self._gpus: dict[str, dict[str, Any]] = {
            row["uuid"]: row for row in store.query("SELECT * FROM gpu").iter_rows(named=True)
        }
        states = store.query("SELECT * FROM node_state").iter_rows(named=True)
        self._states = {row["node_id"]: NodeState(row["node_id"], row) for row in states}
        self._new_nodes: dict[str, tuple[int, datetime]] = {}
        self._changed_gpus: dict[str, dict[str, Any]] = {}
        self._said: dict[str, tuple[Gpu, int, int]] = {}
        self._dirty_states: set[int] = set()
        self._written_states: set[int] = set()

    def node_id(self, batch: Batch, now: datetime) -> int:
        """The id of the batch's node, a new one at first sight. One that ever sent simulated numbers stays marked."""
        name = batch.node.id
        if batch.node.simulated and name not in self._simulated:
            self._new_simulated.add(name)
        if name in self._nodes:
            return self._nodes[name]
        number = len(self._nodes) + len(self._new_nodes) + 1
        return self._new_nodes.setdefault(name, (number, _began(batch, now)))[0]

    def gpu_ids(self, batch: Batch, node_id: int, now: datetime) -> list[int]:
        """The ids of the batch's GPUs in its order; a new or changed GPU is noted for the store."""
        return [self._gpu_id(gpu, node_id, now) for gpu in batch.gpus]

    def _gpu_id(self, gpu: Gpu, node_id: int, now: datetime) -> int:
        said = self._said.get(gpu.uuid)
        if said is not None and said[0] == gpu and said[1] == node_id:
            return said[2]
        known = self._changed_gpus.get(gpu.uuid) or self._gpus.get(gpu.uuid)
        row = gpu.model_dump()
        row["gpu_index"] = row.pop("index")
        row |= {
            "node_id": node_id,
            "gpu_id": known["gpu_id"] if known else self._next_gpu_id(),
            "first_seen": known["first_seen"] if known else now,
        }
        if known != row:
            self._changed_gpus[gpu.uuid] = row
        self._said[gpu.uuid] = (gpu, node_id, row["gpu_id"])
        return int(row["gpu_id"])

    def _next_gpu_id(self) -> int:
        return len(self._gpus) + sum(uuid not in self._gpus for uuid in self._changed_gpus) + 1

    def note(self, batch: Batch, node_id: int, now: datetime, *, late_rows: int, skipped_batches: int) -> None:
        """Take over what an accepted batch says of its node. Call it after the batch is committed."""
        state = self._states.get(node_id) or NodeState(
            node_id, {"late_rows": 0, "skipped_batches": 0, "twin_seen": None}
        )
        measured = (batch.gpu_samples, batch.engine_samples, batch.host_samples)
        last = next((table.t_us for table in measured if table is not None and len(table)), [])
        agent = batch.agent_samples.model_dump() if batch.agent_samples and len(batch.agent_samples) else {}
        state.row |= {
            "node_id": node_id,
            "last_seen": now,
            "last_sample_us": max(last, default=state.row.get("last_sample_us")),
            "skew_s": batch.node.sent_at_us / 1e6 - now.timestamp(),
            "agent_version": batch.node.agent_version,
            "driver_version": batch.node.driver_version,
            "status": batch.node.status,
            "twin_seen": self._twin_seen(state, batch, now),
            "boot_id": batch.node.boot_id,
            "epoch": batch.epoch,
            "sequence": batch.sequence,
            "late_rows": state.row["late_rows"] + late_rows,
            "skipped_batches": state.row["skipped_batches"] + skipped_batches,
            "labels": json.dumps(batch.node.labels),
            "missing": json.dumps(batch.missing),
            "agent": json.dumps({name: column[-1] for name, column in agent.items()}),
        }
        self._states[node_id] = state
        self._dirty_states.add(node_id)
        self.engines.note(batch, node_id, now)

    def _twin_seen(self, state: NodeState, batch: Batch, now: datetime) -> datetime | None:
        """Now, if a machine comes back that another one had replaced not long ago: two take turns under one name.

        A machine is known by spool and boot, so that two copies of one disk image are told apart, too.
        """
        machine = (batch.epoch, batch.node.boot_id)
        before = state.machines.get(machine)
        returned = before is not None and (state.row.get("epoch"), state.row.get("boot_id")) != machine
        state.machines[machine] = now
        if returned and before is not None and (now - before).total_seconds() < TWIN_WINDOW_S:
            return now
        seen: datetime | None = state.row.get("twin_seen")
        return seen

    def write(self, connection: duckdb.DuckDBPyConnection, *, states: bool) -> None:
        """Put new nodes and changed GPUs into the open transaction; with `states` the nodes' states, too."""
        for name, (node_id, began) in self._new_nodes.items():  # once in a node's life
            connection.execute("INSERT INTO node VALUES ($1, $2, $3, false)", [node_id, name, began])
        for name in self._new_simulated:
            connection.execute("UPDATE node SET simulated = true WHERE name = $1", [name])
        if self._changed_gpus:
            _write(connection, "gpu", _UPSERT_GPU, _GPU, list(self._changed_gpus.values()))
        if states and self._dirty_states:
            rows = [self._states[node_id].row for node_id in self._dirty_states]
            _write(connection, "node_state", _UPSERT_STATE, _NODE_STATE, rows)
            self._written_states = set(self._dirty_states)
        self.engines.write(connection, states=states)

    @property
    def has_news(self) -> bool:
        """Whether a node's or an engine's state is newer here than in the store."""
        return bool(self._dirty_states) or self.engines.has_news

    def commit(self) -> None:
        self.engines.commit()
        self._simulated |= self._new_simulated
        self._dirty_states -= self._written_states
        self._nodes |= {name: node_id for name, (node_id, _) in self._new_nodes.items()}
        self._gpus |= self._changed_gpus
        self._clear()

    def forget(self) -> None:
        for uuid in self._changed_gpus:
            self._said.pop(uuid, None)
        self.engines.forget()
        self._clear()

    def _clear(self) -> None:
        self._written_states, self._new_simulated = set(), set()
        self._new_nodes, self._changed_gpus = {}, {}


def node_names(store: Store) -> set[str]:
    """Every node that was ever seen."""
    return set(store.query("SELECT name FROM node")["name"])


def _began(batch: Batch, now: datetime) -> datetime:
    """When a new node was first there: its oldest sample may have waited long in a spool."""
    tables = (batch.gpu_samples, batch.engine_samples, batch.host_samples)
    starts = [
        t_us - dt_us for table in tables if table is not None
        for t_us, dt_us in zip(table.t_us, table.dt_us, strict=True)
    ]  # fmt: skip
    return min(now, datetime.fromtimestamp(min(starts) / 1e6, UTC)) if starts else now


def _write(
    connection: duckdb.DuckDBPyConnection, table: str, sql: str, columns: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    frame = pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=columns)
    connection.register(f"incoming_{table}", frame)
    connection.execute(sql)
    connection.unregister(f"incoming_{table}")
