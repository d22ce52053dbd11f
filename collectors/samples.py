"""What an agent measures and how it travels: the types and the wire format that agent and hub share.

A batch is one JSON object, gzip-compressed, columnar: each kind of sample is a table of equally long columns, in which
null means "not measured". docs/wire.md describes it for other languages; version 1.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

WIRE_VERSION = 1
MAX_ROWS = 200_000
_MAX_COLONS = 100_000  # each JSON key has one; the fullest batch has a fifth of it

EnergyMethod = Literal["counter", "integral_instant", "integral_average", "bridged"]
ENERGY_METHODS: tuple[EnergyMethod, ...] = ("counter", "integral_instant", "integral_average", "bridged")

Micros = Annotated[int, Field(ge=0, le=4_102_444_800_000_000)]  # UTC microseconds since 1970, up to the year 2100
Text = Annotated[str, Field(max_length=500)]
Id = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Uuid = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[0-9a-z.:_\-/]+$")]

_U31 = Field(ge=0, le=2**31 - 1)
_U63 = Field(ge=0, le=2**63 - 1)
_Ratio100 = Field(ge=0, le=100)

ItemT = TypeVar("ItemT")
# The first wrong value ends the reading of a column: a hostile one of millions would cost gigabytes of findings.
Column = Annotated[list[ItemT], Field(max_length=MAX_ROWS), FailFast()]
Counts31 = Column[Annotated[int, _U31] | None]
Counts63 = Column[Annotated[int, _U63] | None]
Percents = Column[Annotated[int, _Ratio100] | None]
Flags = Column[bool | None]
Positions = Column[Annotated[int, Field(ge=0, le=65535)]]
Times = Column[Micros]
# An interval is at most a year long: a longer gap is not bridged.
Intervals = Column[Annotated[int, Field(gt=0, le=366 * 86_400_000_000)]]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Table(_Wire):
    """Columns of one length."""

    @model_validator(mode="after")
    def _columns_are_of_one_length(self) -> _Table:
        lengths = {name: len(getattr(self, name)) for name in type(self).model_fields}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of one length; these have {lengths}")
        return self

    def __len__(self) -> int:
        return len(next(iter(self.__dict__.values()), ()))


class Node(_Wire):
    """The machine. id: stable name of the node; boot_id: changes at each boot; sent_at_us: the agent's clock."""

    id: Id
    boot_id: Text | None = None
    agent_version: Text
    sent_at_us: Micros
    driver_version: Text | None = None
    labels: dict[Id, Text] = Field(default_factory=dict, max_length=50)
    # Why there are no GPU samples at all, and what to do: None when all is well.
    status: Text | None = None


class Gpu(_Wire):
    """A physical GPU of the batch. uuid: lower case, without `GPU-`. energy_scope: gpu, or module on a superchip.

    status: ok, lost, or in words why it is not read. memory_total_bytes is None where the driver has no figure.
    """

    uuid: Uuid
    name: Text
    index: Annotated[int, Field(ge=0, le=65535)]
    pci_bus_id: Text | None = None
    power_limit_mw: Annotated[int, _U31] | None = None
    memory_total_bytes: Annotated[int, _U63] | None = None
    energy_method: EnergyMethod | None = None
    energy_scope: Literal["gpu", "module", "unknown"] = "gpu"
    mig_enabled: bool | None = None
    persistence_mode: bool | None = None
    status: Text = "ok"


class GpuSamples(_Table):
    """One row per GPU and second. `gpu` points into the batch's list of GPUs; the row covers (t - dt, t].

    energy_mj: energy of the interval in millijoules, by energy_method; integral_mj: the power integral of the same
    interval, for the cross-check. A row of method `bridged` stands for a gap: energy_mj is the counter's difference
    across it, or null when the GPU was there but its energy is unknown.
    """

    gpu: Positions
    t_us: Times
    dt_us: Intervals
    energy_mj: Counts63
    energy_method: Column[EnergyMethod | None]
    integral_mj: Counts63
    power_instant_mw: Counts31
    power_average_mw: Counts31
    utilisation_pct: Percents
    memory_utilisation_pct: Percents
    memory_used_bytes: Counts63
    temperature_c: Column[Annotated[int, Field(ge=-50, le=200)] | None]
    sm_clock_mhz: Counts31
    memory_clock_mhz: Counts31
    power_cap: Flags
    thermal_slowdown: Flags
    hardware_slowdown: Flags


class HostSamples(_Table):
    """One row per node and second. RAPL energies are null where they cannot be read."""

    t_us: Times
    dt_us: Intervals
    cpu_energy_mj: Counts63
    dram_energy_mj: Counts63
    memory_used_bytes: Counts63
    memory_total_bytes: Counts63
    load_1m_milli: Counts31


class Processes(_Table):
    """One row per process seen on a GPU. memory_used_bytes is null where the driver does not tell."""

    gpu: Positions
    t_us: Times
    pid: Counts31
    memory_used_bytes: Counts63


class AgentSamples(_Table):
    """One row per push: what the agent itself costs and holds back."""

    t_us: Times
    cpu_ms: Counts63
    memory_bytes: Counts63
    tick_p99_us: Counts63
    spool_bytes: Counts63
    spool_batches: Counts31
    dropped_batches: Counts31
    rejected_batches: Counts31
    rejected_readings: Counts31
    child_restarts: Counts31


class Batch(_Wire):
    """What one push carries. (agent, epoch, sequence) names it: sequence counts from 1 within an epoch of the spool."""

    wire: Literal[1] = 1
    agent: Id
    epoch: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    sequence: Annotated[int, Field(ge=1, le=2**53)]
    node: Node
    gpus: Annotated[list[Gpu], Field(max_length=1024)] = Field(default_factory=list)
    gpu_samples: GpuSamples | None = None
    host_samples: HostSamples | None = None
    processes: Processes | None = None
    agent_samples: AgentSamples | None = None
    # Field -> why it is missing on this node, in words; shown on the Health page.
    missing: dict[Id, Text] = Field(default_factory=dict, max_length=200)

    @model_validator(mode="after")
    def _gpus_are_listed_once(self) -> Batch:
        if len({gpu.uuid for gpu in self.gpus}) < len(self.gpus):
            raise ValueError("gpus that differ in uuid")
        for table in (self.gpu_samples, self.processes):
            if table is not None and table.gpu and max(table.gpu) >= len(self.gpus):
                raise ValueError(f"`gpu` to point into gpus, which has {len(self.gpus)}")
        return self

    @property
    def readings(self) -> int:
        """Non-null numbers of the samples, without their positions and times."""
        tables = (self.gpu_samples, self.host_samples, self.processes, self.agent_samples)
        return sum(
            sum(value is not None for value in column)
            for table in tables
            if table is not None
            for name, column in table.__dict__.items()
            if name not in ("gpu", "t_us", "dt_us", "energy_method")
        )


class WireError(ValueError):
    """A batch that cannot be accepted. `too_large`: for its size; else the message names the field."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


def encode(batch: Batch) -> bytes:
    """The bytes of a batch: gzip of its JSON."""
    return gzip.compress(batch.model_dump_json(exclude_none=False).encode(), compresslevel=3, mtime=0)


def decode(body: bytes, *, max_json_bytes: int) -> Batch:
    """The batch of `body`, gzip or plain JSON. Raises WireError; never expands more than `max_json_bytes`."""
    text = _expand(body, max_json_bytes) if body[:2] == b"\x1f\x8b" else body
    if len(text) > max_json_bytes:
        raise WireError(f"the batch has more than {max_json_bytes} bytes of JSON", too_large=True)
    if text.count(b":") > _MAX_COLONS:
        raise WireError(f"more than {_MAX_COLONS} keys in one batch")
    try:
        return Batch.model_validate_json(text)
    except ValidationError as problem:
        raise WireError(_first_finding(problem)) from None


def _expand(body: bytes, max_bytes: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(body, max_bytes + 1)
    except zlib.error as problem:
        raise WireError(f"the body is no valid gzip: {problem}") from None
    if len(text) > max_bytes:
        raise WireError(f"the batch expands to more than {max_bytes} bytes", too_large=True)
    if not stream.eof:
        raise WireError("the gzip body is cut short")
    return text


def _first_finding(problem: ValidationError) -> str:
    finding = problem.errors(include_url=False)[0]
    where = ".".join(str(part) for part in finding["loc"]) or "batch"
    given = finding["input"]
    shown = type(given).__name__ if isinstance(given, dict | list | bytes | BaseModel) else repr(given)[:60]
    return f"`{where}`: {finding['msg']} (given {shown})"
