"""What an agent measures and how it travels: the types and the wire format that agent and hub share.

A batch is one JSON object, gzip-compressed, columnar: each kind of sample is a table of equally long columns, in which
null means "not measured". docs/wire.md describes it for other languages; version 1.
"""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

WIRE_VERSION = 1
MAX_ROWS = 200_000
_MAX_COLONS = 100_000  # each JSON key has one; the fullest batch has a fifth of it

EnergyMethod = Literal["counter", "integral_instant", "integral_average", "bridged"]
ENERGY_METHODS: tuple[EnergyMethod, ...] = ("counter", "integral_instant", "integral_average", "bridged")
EngineKind = Literal["vllm", "sglang", "tgi", "llama_cpp", "triton"]
LatencyMetric = Literal["ttft", "itl", "e2e"]
LATENCY_METRICS: tuple[LatencyMetric, ...] = ("ttft", "itl", "e2e")
MAX_BUCKETS = 128

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
Shares = Column[Annotated[int, Field(ge=0, le=1_000_000)] | None]  # parts per million
# Counts of one row by latency bucket: (0, b1], (b1, b2], ... (bn, infinity).
Buckets = Annotated[list[Annotated[int, _U31]], Field(min_length=1, max_length=MAX_BUCKETS)]
BucketCounts = Column[Buckets | None]
Bounds = Annotated[list[Annotated[int, Field(gt=0, le=2**53)]], Field(max_length=MAX_BUCKETS - 1)]
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
    # Whether its numbers are made up: they are labelled so wherever they appear.
    simulated: bool = False


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


class Engine(_Wire):
    """A serving engine of the batch, known on its node by (url, label, model).

    url: of its metrics, without user or query. label: its own among the engines of that URL (data parallel), "" where
    there is but one. model: None while unknown. started_us: start of its process, None where it does not tell.
    gpus: UUIDs of the GPUs it runs on, by gpus_source; None when unknown. status: ok, or in words why it is not read.
    *_bounds_us: upper bounds of its latency buckets but the last, which has none.
    """

    url: Id
    label: Text = ""
    model: Id | None = None
    kind: EngineKind
    version: Text | None = None
    started_us: Micros | None = None
    gpus: Annotated[list[Uuid], Field(max_length=1024)] | None = None
    gpus_source: Literal["config", "processes", "environment"] | None = None
    labels: dict[Id, Text] = Field(default_factory=dict, max_length=50)
    status: Text = "ok"
    ttft_bounds_us: Bounds = Field(default_factory=list)
    itl_bounds_us: Bounds = Field(default_factory=list)
    e2e_bounds_us: Bounds = Field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str | None]:
        return self.url, self.label, self.model

    @model_validator(mode="after")
    def _bounds_ascend(self) -> Engine:
        for name in LATENCY_METRICS:
            bounds = getattr(self, f"{name}_bounds_us")
            if any(low >= high for low, high in pairwise(bounds)):
                raise ValueError(f"{name}_bounds_us that ascend")
        return self


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


class EngineSamples(_Table):
    """One row per engine and scrape. `engine` points into the batch's list of engines; the row covers (t - dt, t].

    Counts and times (microseconds) are those of the interval, null where the engine does not have them; running,
    waiting and kv_usage_ppm are of the moment t. prompt_tokens holds all of a prompt, cached_tokens the part that a
    cache served (transferred_tokens: of it, from another engine), as the engine counts it; prefix_query_tokens and
    prefix_hit_tokens are what an older engine tells instead. ttft_us, itl_us and e2e_us are sums behind the buckets.
    """

    engine: Positions
    t_us: Times
    dt_us: Intervals
    prompt_tokens: Counts63
    cached_tokens: Counts63
    transferred_tokens: Counts63
    prefix_query_tokens: Counts63
    prefix_hit_tokens: Counts63
    generated_tokens: Counts63
    finished_stop: Counts31
    finished_length: Counts31
    finished_aborted: Counts31
    finished_failed: Counts31
    rejected: Counts31
    preemptions: Counts31
    running: Counts31
    waiting: Counts31
    kv_usage_ppm: Shares
    prefill_us: Counts63
    decode_us: Counts63
    queue_us: Counts63
    inference_us: Counts63
    ttft_us: Counts63
    itl_us: Counts63
    e2e_us: Counts63
    ttft_buckets: BucketCounts
    itl_buckets: BucketCounts
    e2e_buckets: BucketCounts


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


Table = GpuSamples | EngineSamples | HostSamples | Processes | AgentSamples


class Batch(_Wire):
    """What one push carries. (agent, epoch, sequence) names it: sequence counts from 1 within an epoch of the spool."""

    wire: Literal[1] = 1
    agent: Id
    epoch: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    sequence: Annotated[int, Field(ge=1, le=2**53)]
    node: Node
    gpus: Annotated[list[Gpu], Field(max_length=1024)] = Field(default_factory=list)
    engines: Annotated[list[Engine], Field(max_length=1024)] = Field(default_factory=list)
    gpu_samples: GpuSamples | None = None
    engine_samples: EngineSamples | None = None
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

    @model_validator(mode="after")
    def _engines_are_listed_once(self) -> Batch:
        if len({engine.key for engine in self.engines}) < len(self.engines):
            raise ValueError("engines that differ in url, label or model")
        if self.engine_samples is not None:
            self._check_rows(self.engine_samples)
        return self

    def _check_rows(self, table: EngineSamples) -> None:
        if table.engine and max(table.engine) >= len(self.engines):
            raise ValueError(f"`engine` to point into engines, which has {len(self.engines)}")
        for name in LATENCY_METRICS:
            lengths = [len(getattr(engine, f"{name}_bounds_us")) + 1 for engine in self.engines]
            rows = zip(table.engine, getattr(table, f"{name}_buckets"), strict=True)
            if any(counts is not None and len(counts) != lengths[engine] for engine, counts in rows):
                raise ValueError(f"{name}_buckets with one count more than the engine has {name}_bounds_us")

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of samples that the batch has."""
        tables = (self.gpu_samples, self.engine_samples, self.host_samples, self.processes, self.agent_samples)
        return tuple(table for table in tables if table is not None)

    @property
    def readings(self) -> int:
        """Non-null numbers of the samples, without their positions and times; a bucket's count is one."""
        return sum(
            sum(map(len, filter(None, column)))
            if name in _BUCKET_COLUMNS
            else sum(value is not None for value in column)
            for table in self.tables
            for name, column in table.__dict__.items()
            if name not in _NO_READINGS
        )


_BUCKET_COLUMNS = frozenset(f"{name}_buckets" for name in LATENCY_METRICS)
_NO_READINGS = frozenset({"gpu", "engine", "t_us", "dt_us", "energy_method"})


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
