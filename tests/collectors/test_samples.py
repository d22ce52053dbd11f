"""The wire: what is encoded comes back; what is hostile is refused in words, cheaply."""

from __future__ import annotations

import gzip
import json
import re
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.samples import (
    ENERGY_METHODS,
    LATENCY_METRICS,
    MAX_ROWS,
    AgentSamples,
    Batch,
    Engine,
    EngineSamples,
    Gpu,
    GpuSamples,
    HostSamples,
    Node,
    Processes,
    WireError,
    decode,
    encode,
)
from tests.collectors.batches import batch

LIMIT = 64 * 2**20
WIRE_PAGE = Path(__file__).resolve().parents[2] / "docs" / "wire.md"

texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)
ids = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30)
count31 = st.none() | st.integers(0, 2**31 - 1)
count63 = st.none() | st.integers(0, 2**63 - 1)
percent = st.none() | st.integers(0, 100)
flag = st.none() | st.booleans()
times = st.integers(0, 4_102_444_800_000_000)
intervals = st.integers(1, 366 * 86_400_000_000)
methods = st.none() | st.sampled_from(ENERGY_METHODS)
gpus = st.lists(
    st.builds(
        Gpu,
        uuid=st.from_regex(r"[0-9a-z.:_\-/]{1,40}", fullmatch=True),
        name=texts,
        index=st.integers(0, 65535),
        pci_bus_id=st.none() | texts,
        power_limit_mw=count31,
        memory_total_bytes=count63,
        energy_method=methods,
        mig_enabled=flag,
        persistence_mode=flag,
        status=texts,
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda gpu: gpu.uuid,
)
nodes = st.builds(
    Node,
    id=ids,
    boot_id=st.none() | texts,
    agent_version=texts,
    sent_at_us=times,
    labels=st.dictionaries(ids, texts, max_size=50),
    simulated=st.booleans(),
)
bounds = st.lists(st.integers(1, 2**53), max_size=5, unique=True).map(sorted)
engines = st.lists(
    st.builds(
        Engine,
        url=ids,
        label=texts,
        model=st.none() | ids,
        kind=st.sampled_from(["vllm", "sglang", "tgi", "llama_cpp", "triton"]),
        version=st.none() | texts,
        started_us=st.none() | times,
        gpus=st.none() | st.lists(st.from_regex(r"[0-9a-z.:_\-/]{1,40}", fullmatch=True), max_size=3),
        gpus_source=st.sampled_from([None, "config", "processes", "environment"]),
        labels=st.dictionaries(ids, texts, max_size=3),
        status=texts,
        **{f"{metric}_bounds_us": bounds for metric in LATENCY_METRICS},
    ),
    max_size=3,
    unique_by=lambda engine: engine.key,
)
_COUNTS_31 = {"finished_stop", "finished_length", "finished_aborted", "finished_failed", "rejected", "preemptions",
              "running", "waiting"}  # fmt: skip


def engine_table(these: list[Engine], rows: int, draw: Any) -> EngineSamples:
    """Rows of these engines, with buckets as many as each one's bounds make."""
    whose = draw(st.lists(st.integers(0, len(these) - 1), min_size=rows, max_size=rows))
    cells: dict[str, Any] = {"t_us": times, "dt_us": intervals, "kv_usage_ppm": st.none() | st.integers(0, 1_000_000)}
    columns: dict[str, list[Any]] = {"engine": whose}
    for name in EngineSamples.model_fields:
        if name.endswith("_buckets"):
            lengths = [len(getattr(these[one], name.replace("_buckets", "_bounds_us"))) + 1 for one in whose]
            columns[name] = [
                draw(st.none() | st.lists(st.integers(0, 2**31 - 1), min_size=n, max_size=n)) for n in lengths
            ]
        elif name != "engine":
            cell = cells.get(name, count31 if name in _COUNTS_31 else count63)
            columns[name] = draw(st.lists(cell, min_size=rows, max_size=rows))
    return EngineSamples(**columns)


def table(kind: type, rows: int, draw: Any, **columns: Any) -> Any:
    return kind(**{name: draw(st.lists(cell, min_size=rows, max_size=rows)) for name, cell in columns.items()})


@st.composite
def batches(draw: Any) -> Batch:
    these = draw(gpus)
    position = st.integers(0, len(these) - 1)
    rows = st.integers(0, 5)
    time_columns = {"t_us": times, "dt_us": intervals}
    node = draw(nodes)
    serving = draw(engines)
    return Batch(
        agent=node.id,
        epoch=draw(st.from_regex(r"[0-9a-f]{32}", fullmatch=True)),
        sequence=draw(st.integers(1, 2**53)),
        node=node,
        gpus=these,
        engines=serving,
        engine_samples=engine_table(serving, draw(rows), draw) if serving else None,
        gpu_samples=draw(st.none()) if draw(st.booleans()) else table(
            GpuSamples, draw(rows), draw, gpu=position, **time_columns, energy_mj=count63, energy_method=methods,
            integral_mj=count63, power_instant_mw=count31, power_average_mw=count31, utilisation_pct=percent,
            memory_utilisation_pct=percent, memory_used_bytes=count63,
            temperature_c=st.none() | st.integers(-50, 200), sm_clock_mhz=count31, memory_clock_mhz=count31,
            power_cap=flag, thermal_slowdown=flag, hardware_slowdown=flag,
        ),
        host_samples=table(
            HostSamples, draw(rows), draw, **time_columns, cpu_energy_mj=count63, dram_energy_mj=count63,
            memory_used_bytes=count63, memory_total_bytes=count63, load_1m_milli=count31,
        ),
        processes=table(
            Processes, draw(rows), draw, gpu=position, t_us=times, pid=count31, memory_used_bytes=count63
        ),
        agent_samples=table(
            AgentSamples, draw(rows), draw, t_us=times, cpu_ms=count63, memory_bytes=count63, tick_p99_us=count63,
            spool_bytes=count63, spool_batches=count31, dropped_batches=count31, rejected_batches=count31,
            rejected_readings=count31, child_restarts=count31,
        ),
        missing=draw(st.dictionaries(ids, texts, max_size=200)),
    )  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(batches())
def test_a_batch_comes_back_as_it_went(given_batch: Batch):
    body = encode(given_batch)
    assert decode(body, max_json_bytes=LIMIT) == given_batch
    assert decode(gzip.decompress(body), max_json_bytes=LIMIT) == given_batch
    assert encode(decode(body, max_json_bytes=LIMIT)) == body


def test_the_wire_page_shows_a_batch_that_decodes_with_nothing_else():
    (example,) = re.findall(r"```json\n(.*?)```", WIRE_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    decoded = decode(example.encode(), max_json_bytes=LIMIT)
    assert (decoded.sequence, decoded.gpus[0].name) == (41, "NVIDIA H100 PCIe")
    assert decoded.gpu_samples is not None
    assert decoded.gpu_samples.energy_mj == [311250, 308900]
    assert decoded.engine_samples is not None
    assert (decoded.engines[0].model, decoded.engine_samples.generated_tokens) == (
        "meta-llama/Llama-3.1-8B-Instruct", [2911],
    )  # fmt: skip
    assert json.loads(decoded.model_dump_json()) == json.loads(example)  # every key is shown, none is invented


def test_the_wire_page_names_every_key():
    page = WIRE_PAGE.read_text(encoding="utf-8")
    for kind in (Batch, Node, Gpu, Engine, GpuSamples, EngineSamples, HostSamples, Processes, AgentSamples):
        for name in kind.model_fields:
            assert f"`{name}`" in page, f"{kind.__name__}.{name} is not in docs/wire.md"


def test_readings_are_the_numbers_that_are_not_null_without_positions_and_times():
    # 10 GPU rows of 13 values less the 3 that are null, 10 host rows of 5 less 1, a process with a pid, an agent's row.
    assert batch().readings == 10 * 10 + 10 * 4 + 1 + 9


def test_a_bucket_s_count_is_a_reading_and_the_engine_s_position_is_none():
    engine = Engine(url="http://a/metrics", kind="vllm", ttft_bounds_us=[1, 2])
    columns: dict[str, list[Any]] = {name: [None, None] for name in EngineSamples.model_fields}
    columns |= {"engine": [0, 0], "t_us": [1, 2], "dt_us": [1, 1], "running": [3, None]}
    columns |= {"ttft_buckets": [[0, 4, 1], None]}
    sent = batch(rows=1).model_copy(update={"engines": [engine], "engine_samples": EngineSamples(**columns)})
    # Three counts of buckets and one gauge beside the 10 + 4 + 1 + 9 of the GPU, the host, the process and the agent.
    assert sent.readings == 4 + 10 + 4 + 1 + 9


def wire(**changes: Any) -> dict[str, Any]:
    return json.loads(batch().model_dump_json()) | changes


def refused(body: bytes, max_json_bytes: int = LIMIT) -> WireError:
    with pytest.raises(WireError) as caught:
        decode(body, max_json_bytes=max_json_bytes)
    return caught.value


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("wire",), 2, "wire"),
        (("agent",), "", "agent"),
        (("agent",), "a\nb", "agent"),
        (("epoch",), "F" * 32, "epoch"),
        (("sequence",), 0, "sequence"),
        (("sequence",), "1", "sequence"),
        (("sequence",), 1.0, "sequence"),
        (("sequence",), True, "sequence"),
        (("sequence",), 10**30, "sequence"),
        (("node", "sent_at_us"), -1, "node.sent_at_us"),
        (("node", "labels"), {"a": 1}, "node.labels.a"),
        (("node", "password"), "x", "node.password"),
        (("gpus", 0, "uuid"), "GPU-5F2B", "gpus.0.uuid"),
        (("gpus", 0, "energy_method"), "guess", "gpus.0.energy_method"),
        (("gpu_samples", "energy_mj", 3), -5, "gpu_samples.energy_mj.3"),
        (("gpu_samples", "energy_mj", 3), 2**63, "gpu_samples.energy_mj.3"),
        (("gpu_samples", "energy_mj", 3), 10**4000, "gpu_samples.energy_mj.3"),
        (("gpu_samples", "utilisation_pct", 0), 101, "gpu_samples.utilisation_pct.0"),
        (("gpu_samples", "dt_us", 0), 0, "gpu_samples.dt_us.0"),
        (("gpu_samples", "t_us", 0), None, "gpu_samples.t_us.0"),
        (("gpu_samples", "power_cap", 0), 1, "gpu_samples.power_cap.0"),
        (("gpu_samples", "extra"), [], "gpu_samples.extra"),
        (("gpu_samples", "energy_mj"), [1], "gpu_samples"),
        (("gpu_samples",), [], "gpu_samples"),
        (("missing",), {"": "x"}, "missing..[key]"),
        (("surprise",), 1, "surprise"),
    ],
)
def test_a_wrong_value_is_named_by_its_field(path: tuple[Any, ...], value: Any, where: str):
    body = wire()
    target: Any = body
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    problem = refused(json.dumps(body).encode())
    assert str(problem).startswith(f"`{where}`: ")
    assert len(str(problem)) < 500
    assert not problem.too_large


def test_rows_must_point_to_a_gpu_of_the_batch_and_gpus_differ():
    body = wire()
    body["gpu_samples"]["gpu"][0] = 1
    assert "to point into gpus, which has 1" in str(refused(json.dumps(body).encode()))
    body = wire()
    body["gpus"] *= 2
    assert "gpus that differ in uuid" in str(refused(json.dumps(body).encode()))


def with_engine(**changes: Any) -> bytes:
    """A batch with one engine and a row of it; changes: columns of that row."""
    engine = {"url": "http://a/metrics", "kind": "vllm", "ttft_bounds_us": [10, 20]}
    row: dict[str, list[Any]] = {name: [None] for name in EngineSamples.model_fields}
    row |= {"engine": [0], "t_us": [1], "dt_us": [1], **changes}
    return json.dumps(wire(engines=[engine], engine_samples=row)).encode()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"engine": [1]}, "`engine` to point into engines, which has 1"),
        ({"ttft_buckets": [[1, 2]]}, "ttft_buckets with one count more than the engine has ttft_bounds_us"),
        ({"itl_buckets": [[1, 2]]}, "itl_buckets with one count more than the engine has itl_bounds_us"),
        ({"ttft_buckets": [[1, 2, -1]]}, "`engine_samples.ttft_buckets.0.2`"),
        ({"ttft_buckets": [[]]}, "`engine_samples.ttft_buckets.0`"),
        ({"kv_usage_ppm": [1_000_001]}, "`engine_samples.kv_usage_ppm.0`"),
        ({"running": [2**31]}, "`engine_samples.running.0`"),
        ({"running": []}, "columns of one length"),
    ],
)
def test_rows_of_engines_must_fit_their_engine(changes: dict[str, Any], says: str):
    assert decode(with_engine(), max_json_bytes=LIMIT).engines[0].gpus is None
    assert says in str(refused(with_engine(**changes)))


def test_engines_differ_and_their_bounds_ascend():
    engine = {"url": "http://a/metrics", "kind": "vllm"}
    twice = json.dumps(wire(engines=[engine, {**engine, "version": "2"}])).encode()
    assert "engines that differ in url, label or model" in str(refused(twice))
    falling = json.dumps(wire(engines=[{**engine, "e2e_bounds_us": [2, 2]}])).encode()
    assert "e2e_bounds_us that ascend" in str(refused(falling))


@pytest.mark.parametrize("cut", [1, 5, 50, -1, -8])
def test_a_truncated_body_is_refused(cut: int):
    assert "gzip" in str(refused(encode(batch())[: cut if cut > 2 else cut + 2] if cut > 0 else encode(batch())[:cut]))


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"7", b"{", b'"x"', b"\x1f\x8b", b"\xff\xfe\x00", b"{}", b'{"wire": NaN}']
)
def test_what_is_no_batch_is_refused(body: bytes):
    assert str(refused(body))


def test_a_flipped_bit_in_the_gzip_is_refused():
    body = bytearray(encode(batch()))
    body[len(body) // 2] ^= 0x10
    assert str(refused(bytes(body)))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_crash_the_decoder(noise: bytes, packed: bool):
    assert str(refused(gzip.compress(noise) if packed else noise))


def test_a_bomb_is_refused_before_it_expands():
    bomb = gzip.compress(b" " * 200_000_000, compresslevel=9)
    tracemalloc.start()
    problem = refused(bomb, max_json_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.too_large
    assert peak < 20_000_000


def test_too_much_plain_json_is_refused():
    assert refused(b" " * 1001, max_json_bytes=1000).too_large


N = 1_000_000


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"pid":[4711]', '"pid":[' + '"x",' * N + "1]", "`processes.pid.0`"),
        ('"pid":[4711]', '"pid":[' + "1," * N + "1]", f"at most {MAX_ROWS} items"),
        ('"gpus":[', '"gpus":[' + "1," * N, "at most 1024 items"),
        ('"missing":{', '"missing":{' + "".join(f'"a{n}":1,' for n in range(N // 4)), "more than 100000 keys"),
        ('"wire":1', "".join(f'"a{n}":1,' for n in range(N // 4)) + '"wire":1', "more than 100000 keys"),
        ('"wire":1', '"wire":' + "[" * N, "recursion limit"),
        ('"sequence":1', '"sequence":' + "9" * N, "number out of range"),
    ],
    ids=["wrong", "rows", "gpus", "missing", "keys", "deep", "digits"],
)
def test_millions_of_faults_cost_no_more_than_one(old: str, new: str, says: str):
    body = batch().model_dump_json().replace(old, new, 1).encode()
    began = time.process_time()
    assert says in str(refused(body))
    # Without its limits pydantic takes gigabytes and many seconds to list such findings.
    assert time.process_time() - began < 2.0
