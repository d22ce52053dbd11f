"""The engine meter with real servers: nothing lost, nothing twice, nobody held up, and words for what is wrong."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collectors.engine import meter as meter_module
from collectors.engine.discovery import Discovery
from collectors.engine.drain import EngineDrain
from collectors.engine.meter import EngineMeter
from collectors.engine.scrape import Bounds
from collectors.engine.targets import EngineTarget
from collectors.samples import Batch, EngineSamples, Gpu, Node, Processes
from tests.collectors.batches import EPOCH
from tests.collectors.engine.pages import Work, vllm_page
from tests.collectors.engine.proctree import ProcTree
from tests.collectors.engine.servers import Server, server
from tests.hub_process import free_port

BOUNDS = Bounds(connect_s=0.2, total_s=0.3)
EVERY_S = 0.03
HOUR_US = 3_600_000_000
STARTED_S = 1_796_151_035.65


class Clock:
    """The node's clock, which a test can set."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.ahead_us


@contextmanager
def metering(*targets: EngineTarget, **given: Any) -> Iterator[EngineMeter]:
    meter = EngineMeter(targets, **{"scrape_every_s": EVERY_S, "bounds": BOUNDS, **given})
    meter.start()
    try:
        yield meter
    finally:
        meter.stop()


def wait_for(done: Callable[[], bool], limit_s: float = 8.0) -> None:
    end = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.005)


def looked_again(*servers: Server) -> None:
    """Wait until each server was asked for its page, and the answer was taken."""
    for one in servers:
        seen = one.paths.count("/metrics")
        wait_for(lambda one=one, seen=seen: one.paths.count("/metrics") >= seen + 2)  # type: ignore[misc]


def total(drains: Sequence[EngineDrain], column: str) -> int:
    tables = [drain.samples for drain in drains if drain.samples is not None]
    return sum(value or 0 for table in tables for value in getattr(table, column))


def check_wire(drain: EngineDrain) -> None:
    """The drain makes a batch, and its state is JSON."""
    node = Node(id="n", agent_version="0", sent_at_us=1)
    Batch(
        agent="n", epoch=EPOCH, sequence=1, node=node, engines=drain.engines, engine_samples=drain.samples,
        missing=drain.missing,
    )  # fmt: skip
    assert json.loads(json.dumps(drain.state)) == drain.state


def work(prompt: int = 0, generated: int = 0, **more: Any) -> Work:
    return Work(prompt_tokens=prompt, generated_tokens=generated, **more)


def test_what_an_engine_does_is_what_its_rows_add_up_to() -> None:
    with server(text=vllm_page("0.32.0", work(1_000, 5_000, ttft=[0.05]))) as here:
        here.bodies["/version"] = json.dumps({"version": "0.32.0"})
        with metering(EngineTarget(url=here.address, labels={"team": "chat"})) as meter:
            looked_again(here)
            drains = [meter.drain()]
            here.bodies["/metrics"] = vllm_page(
                "0.32.0", work(1_300, 5_700, running=2, kv_usage=0.25, ttft=[0.05, 0.07, 0.3], finished={"stop": 2})
            )
            looked_again(here)
            drains.append(meter.drain())
    for drain in drains:
        check_wire(drain)
    # The first look is only a baseline: 1,000 and 5,000 were counted before anybody looked.
    assert (total(drains, "prompt_tokens"), total(drains, "generated_tokens")) == (300, 700)
    assert total(drains, "finished_stop") == 2
    assert total(drains, "ttft_us") == 370_000
    (engine,) = drains[-1].engines
    assert (engine.url, engine.label, engine.model) == (here.url, "0", "tiny-llama")
    assert (engine.kind, engine.version, engine.status) == ("vllm", "0.32.0", "ok")
    assert engine.started_us == 1_796_151_035_650_000
    assert engine.labels == {"team": "chat"}
    samples = drains[-1].samples
    assert isinstance(samples, EngineSamples)
    assert (samples.running[-1], samples.kv_usage_ppm[-1]) == (2, 250_000)
    # 70 ms lie in (60, 80] ms, 300 ms in (250, 500] ms.
    rises = [counts for counts in samples.ttft_buckets if counts is not None and any(counts)]
    assert [engine.ttft_bounds_us[place] for place, count in enumerate(rises[0]) if count] == [80_000, 500_000]
    assert [path for path in here.paths if path != "/metrics"] == ["/version"]


def test_rows_follow_each_other_without_gap_or_overlap() -> None:
    with server(text=vllm_page("0.32.0", work())) as here, metering(EngineTarget(url=here.address)) as meter:
        for _ in range(4):
            looked_again(here)
        samples = meter.drain().samples
    assert samples is not None
    rows = list(zip(samples.t_us, samples.dt_us, strict=True))
    assert len(rows) >= 4
    assert all(abs(later[0] - later[1] - earlier[0]) < 2_000 for earlier, later in itertools.pairwise(rows))


def test_one_that_hangs_holds_up_no_other_and_is_asked_once_at_a_time() -> None:
    slow = Bounds(connect_s=0.2, total_s=1.5)
    page = vllm_page("0.32.0", work())
    with server("hang") as hung, server("trickle-head") as trickling, server(text=page) as well:
        targets = [EngineTarget(url=one.address) for one in (hung, trickling, well)]
        with metering(*targets, bounds=slow) as meter:
            wait_for(lambda: len(well.requests) >= 8)
            assert (len(hung.requests), len(trickling.requests)) == (1, 1)
            name = f"engine 127.0.0.1:{hung.port}"
            wait_for(lambda: "no answer" in meter.drain().missing.get(name, ""))
            missing = meter.drain().missing
    assert missing[name] == f"down: no answer within 1.5 s; is an engine running on port {hung.port}?"


def test_an_engine_that_is_down_stays_listed_for_an_hour_and_then_says_why_it_is_not() -> None:
    clock, port = Clock(), free_port()
    with metering(EngineTarget(url=f"http://127.0.0.1:{port}"), utc_us=clock) as meter:
        name = f"engine 127.0.0.1:{port}"
        wait_for(lambda: meter.is_settled)
        drain = meter.drain()
        assert drain.engines == []
        assert drain.missing[name] == f"down: connection refused; is an engine running on port {port}?"
        with server(text=vllm_page("0.32.0", work()), port=port) as here:
            looked_again(here)
        wait_for(lambda: meter.drain().engines[0].status != "ok")
        drain = meter.drain()
        assert drain.engines[0].status == f"down: connection refused; is vLLM running on port {port}?"
        assert name not in drain.missing
        clock.ahead_us = HOUR_US - 30_000_000
        assert len(meter.drain().engines) == 1
        clock.ahead_us = HOUR_US + 1
        drain = meter.drain()
        assert drain.engines == []
        assert drain.missing[name].startswith("down: connection refused")
        assert drain.state[f"http://127.0.0.1:{port}/metrics"]["known"]


@pytest.mark.parametrize(
    ("do", "text", "says"),
    [
        ("404", "", "not read: HTTP 404: it has no such page (SGLang shows it with --enable-metrics)"),
        ("html", "", "not read: an HTML page, not metrics: is this the engine's own port?"),
        ("ok", "node_load1 0.5\n", "not read: the page shows no metrics of an engine that is known here"),
        ("ok", "# TYPE vllm:prompt_tokens counter\n", "its page shows no engine yet"),
    ],
)
def test_a_page_without_an_engine_is_told_in_words(do: str, text: str, says: str) -> None:
    with server(do, text) as here, metering(EngineTarget(url=here.address)) as meter:
        looked_again(here)
        drain = meter.drain()
    check_wire(drain)
    assert drain.engines == []
    assert drain.missing[f"engine 127.0.0.1:{here.port}"].startswith(says)


def test_a_meter_goes_on_from_the_state_of_the_last_drain() -> None:
    with server(text=vllm_page("0.32.0", work(100))) as here:
        target = EngineTarget(url=here.address)
        with metering(target) as meter:
            looked_again(here)
            here.bodies["/metrics"] = vllm_page("0.32.0", work(150))
            looked_again(here)
            drains = [meter.drain()]
            # Seen, and never drained: as after kill -9.
            here.bodies["/metrics"] = vllm_page("0.32.0", work(175))
            looked_again(here)
            assert meter.state() == drains[0].state
        here.bodies["/metrics"] = vllm_page("0.32.0", work(200))
        with metering(target, state=json.loads(json.dumps(drains[0].state))) as meter:
            looked_again(here)
            drains.append(meter.drain())
        assert [total([drain], "prompt_tokens") for drain in drains] == [50, 50]
        # An engine that began while no agent ran: everything counts from 0.
        here.bodies["/metrics"] = vllm_page("0.32.0", work(30), started_s=time.time())
        with metering(target, state=drains[-1].state) as meter:
            looked_again(here)
            assert total([meter.drain()], "prompt_tokens") == 30


def test_an_engine_that_is_down_at_a_restart_is_still_listed() -> None:
    with server(text=vllm_page("0.32.0", work(100))) as here:
        target = EngineTarget(url=here.address)
        with metering(target) as meter:
            looked_again(here)
            state = meter.drain().state
    with metering(target, state=state) as meter:
        wait_for(lambda: meter.is_settled)
        (engine,) = meter.drain().engines
    assert (engine.model, engine.label) == ("tiny-llama", "0")
    assert engine.status.startswith("down: connection refused; is vLLM running")


def test_a_state_of_another_shape_begins_anew() -> None:
    with server(text=vllm_page("0.32.0", work(100))) as here:
        state = {here.url: {"differences": 7}, "http://old:1/metrics": "junk"}
        with metering(EngineTarget(url=here.address), state=state) as meter:
            looked_again(here)
            drain = meter.drain()
    check_wire(drain)
    assert total([drain], "prompt_tokens") == 0
    assert len(drain.engines) == 1
    assert list(drain.state) == [here.url]  # what nobody can read is not kept for a year


TGI = "tgi_request_input_length_sum {0}\ntgi_request_generated_tokens_sum {0}\n"


def test_a_model_is_asked_for_once_where_the_page_has_none() -> None:
    with server(text=TGI.format(10)) as here:
        here.bodies["/v1/models"] = json.dumps({"data": [{"id": "org/model"}]})
        here.bodies["/info"] = json.dumps({"version": "3.3.6", "model_id": "org/model"})
        with metering(EngineTarget(url=here.address)) as meter:
            looked_again(here)
            here.bodies["/metrics"] = TGI.format(25)
            looked_again(here)
            drain = meter.drain()
        assert [(engine.model, engine.version) for engine in drain.engines] == [("org/model", "3.3.6")]
        assert total([drain], "generated_tokens") == 15
        assert sorted(path for path in here.paths if path != "/metrics") == ["/info", "/v1/models"]


def test_a_model_that_becomes_known_later_neither_loses_nor_doubles_a_token() -> None:
    with server(text=TGI.format(1_000_000)) as here:
        target = EngineTarget(url=here.address)
        with metering(target) as meter:
            looked_again(here)
            drains = [meter.drain()]
        here.bodies["/metrics"] = TGI.format(1_000_040)
        here.bodies["/v1/models"] = json.dumps({"data": [{"id": "org/model"}]})
        with metering(target, state=drains[0].state) as meter:
            looked_again(here)
            here.bodies["/metrics"] = TGI.format(1_000_045)
            looked_again(here)
            drains.append(meter.drain())
    check_wire(drains[-1])
    assert [engine.model for engine in drains[0].engines] == [None]
    assert total(drains, "generated_tokens") == 45
    samples = drains[-1].samples
    assert samples is not None
    by_model: dict[str | None, int] = {}
    for place, tokens in zip(samples.engine, samples.generated_tokens, strict=True):
        model = drains[-1].engines[place].model
        by_model[model] = by_model.get(model, 0) + (tokens or 0)
    assert by_model == {None: 40, "org/model": 5}


def test_a_configured_model_names_what_the_page_does_not() -> None:
    with server(text=TGI.format(1)) as here, metering(EngineTarget(url=here.address, model="own")) as meter:
        looked_again(here)
        assert [engine.model for engine in meter.drain().engines] == ["own"]
        assert "/v1/models" not in here.paths


def test_another_model_after_a_restart_is_asked_for_again() -> None:
    port = free_port()
    with metering(EngineTarget(url=f"http://127.0.0.1:{port}")) as meter:
        drains = []
        for model, count in (("a", 50), ("b", 7)):
            with server(text=TGI.format(count), port=port) as here:
                here.bodies["/v1/models"] = json.dumps({"data": [{"id": model}]})
                looked_again(here)
            wait_for(lambda: any(engine.status != "ok" for engine in meter.drain().engines))
            drains.append(meter.drain())
    by_model = {engine.model: engine.status for engine in drains[-1].engines}
    assert set(by_model) == {"a", "b"}


def test_what_happened_since_a_refused_look_counts_from_zero() -> None:
    port = free_port()
    with metering(EngineTarget(url=f"http://127.0.0.1:{port}", model="m")) as meter:
        wait_for(lambda: meter.is_settled)
        with server(text=TGI.format(42), port=port) as here:
            looked_again(here)
        assert total([meter.drain()], "generated_tokens") == 42


def test_two_engines_of_one_page_and_one_that_goes() -> None:
    both = vllm_page("0.32.0", work(10, label="0"), work(20, label="1"), started_s=None)
    with server(text=both) as here, metering(EngineTarget(url=here.address, gpus=("aa-0", "aa-1"))) as meter:
        looked_again(here)
        assert [(engine.label, engine.gpus) for engine in meter.drain().engines] == [("0", ["aa-0"]), ("1", ["aa-1"])]
        here.bodies["/metrics"] = vllm_page("0.32.0", work(11, label="0"), started_s=None)
        looked_again(here)
        drain = meter.drain()
    assert [(engine.label, engine.status, engine.gpus) for engine in drain.engines] == [
        ("0", "ok", ["aa-0", "aa-1"]),
        ("1", "its page no longer shows it", None),
    ]
    assert total([drain], "prompt_tokens") == 1


def test_other_buckets_within_one_batch_are_not_mixed() -> None:
    def page(bounds: Sequence[float], count: int) -> str:
        own = 'vllm:time_to_first_token_seconds_{}{{engine="0",model_name="m"{}}} {}\n'
        lines = [own.format("bucket", f',le="{bound}"', count) for bound in (*bounds, "+Inf")]
        return "".join([*lines, own.format("sum", "", count)])

    with server(text=page([1.0], 0)) as here, metering(EngineTarget(url=here.address)) as meter:
        looked_again(here)
        here.bodies["/metrics"] = page([1.0], 3)
        looked_again(here)
        here.bodies["/metrics"] = page([2.0, 3.0], 4)
        looked_again(here)
        here.bodies["/metrics"] = page([2.0, 3.0], 6)
        looked_again(here)
        drain = meter.drain()
    check_wire(drain)
    assert drain.engines[0].ttft_bounds_us == [2_000_000, 3_000_000]
    assert drain.samples is not None
    rises = [counts for counts in drain.samples.ttft_buckets if counts is not None and any(counts)]
    assert rises == [[2, 0, 0]]  # of the others nothing is known that these bounds could tell


def test_a_clock_that_is_set_does_not_change_how_long_an_interval_is() -> None:
    clock = Clock()
    page = vllm_page("0.32.0", work())
    with server(text=page) as here, metering(EngineTarget(url=here.address), utc_us=clock) as meter:
        looked_again(here)
        looked_again(here)
        clock.ahead_us = HOUR_US
        looked_again(here)
        samples = meter.drain().samples
    assert samples is not None
    assert samples.t_us[-1] - samples.t_us[0] > HOUR_US * 0.99
    assert max(samples.dt_us) < 2_000_000


def test_rows_that_nobody_fetches_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter_module, "MOST_ROWS", 3)
    with server(text=vllm_page("0.32.0", work())) as here, metering(EngineTarget(url=here.address)) as meter:
        for _ in range(4):
            looked_again(here)
        drain = meter.drain()
    assert drain.samples is not None
    assert len(drain.samples) == 3
    assert "rows waited too long for a batch and were dropped" in drain.missing["engine_samples"]


def test_a_drain_of_some_pages_leaves_the_others_whole() -> None:
    pages = [vllm_page("0.32.0", work(tokens)) for tokens in (5, 6)]
    with (
        server(text=pages[0]) as one,
        server(text=pages[1]) as other,
        metering(EngineTarget(url=one.address), EngineTarget(url=other.address)) as meter,
    ):
        looked_again(one, other)
        for here, tokens in ((one, 50), (other, 60)):
            here.bodies["/metrics"] = vllm_page("0.32.0", work(tokens))
        looked_again(one, other)
        first = meter.drain(urls=[one.url])
        second = meter.drain(urls=[other.url])
    assert [total([drain], "prompt_tokens") for drain in (first, second)] == [45, 54]
    assert [list(drain.state) for drain in (first, second)] == [[one.url], [other.url]]
    assert [[engine.url for engine in drain.engines] for drain in (first, second)] == [[one.url], [other.url]]


def test_a_hostile_page_is_bounded() -> None:
    many = "".join(f'vllm:num_requests_running{{engine="{n}",model_name="m"}} 1\n' for n in range(5_000))
    with server(text=many) as here, metering(EngineTarget(url=here.address)) as meter:
        looked_again(here)
        drain = meter.drain()
    check_wire(drain)
    assert drain.engines == []
    assert "more than 256 engines" in drain.missing[f"engine 127.0.0.1:{here.port}"]


# Where engines run


GPUS = [Gpu(uuid=f"0000{n}-aaaa", name="NVIDIA L40S", index=n) for n in range(2)]


def processes(*rows: tuple[int, int]) -> Processes:
    """rows: (GPU, pid)."""
    return Processes(
        gpu=[gpu for gpu, _ in rows], t_us=[1] * len(rows), pid=[pid for _, pid in rows],
        memory_used_bytes=[None] * len(rows),
    )  # fmt: skip


def test_a_found_engine_has_the_gpus_of_its_processes(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    with server(text=vllm_page("0.32.0", work(5))) as here:
        tree.socket(here.port, inode=77)
        tree.process(100, 1, sockets=[77])
        tree.process(101, 100)
        with metering(discovery=Discovery(proc=tree.path), proc=tree.path) as meter:
            wait_for(lambda: meter.is_settled and here.paths.count("/metrics") >= 3)
            first = meter.drain(GPUS, processes((1, 101)))
            # The processes are listed every ten seconds; a batch between has none.
            second = meter.drain(GPUS, None)
    for drain in (first, second):
        (engine,) = drain.engines
        assert (engine.url, engine.gpus, engine.gpus_source) == (here.url, ["00001-aaaa"], "processes")
        assert drain.missing == {}


def test_unknown_gpus_have_a_reason(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    with server(text=vllm_page("0.32.0", work(5))) as here:
        tree.socket(here.port, inode=77)
        tree.process(100, 1, sockets=[77], environment={})
        with metering(discovery=Discovery(proc=tree.path), proc=tree.path) as meter:
            wait_for(lambda: meter.is_settled and here.paths.count("/metrics") >= 3)
            drain = meter.drain(GPUS, None)
    assert (drain.engines[0].gpus, drain.engines[0].gpus_source) == (None, None)
    assert "CUDA_VISIBLE_DEVICES is not set" in drain.missing[f"engine 127.0.0.1:{here.port} 0.gpus"]


def test_a_proxy_that_passes_the_page_on_does_not_count_twice(tmp_path: Path) -> None:
    tree = ProcTree(tmp_path)
    (tree.path / "stat").write_text("cpu 1 2 3\nbtime 1796151000\n")
    page = vllm_page("0.32.0", work(5), started_s=STARTED_S)
    with server(text=page) as engine, server(text=page) as proxy, server(text=page) as twin:
        for number, (here, began_s) in enumerate(((engine, 35.65), (proxy, 12.0), (twin, 35.65))):
            tree.socket(here.port, inode=70 + number)
            tree.process(100 + number, 1, sockets=[70 + number], began_s=began_s)
        with metering(discovery=Discovery(proc=tree.path), proc=tree.path) as meter:
            wait_for(lambda: meter.is_settled and f"engine at {proxy.url}" in meter.drain().missing)
            looked_again(engine, twin)
            drain = meter.drain()
    # A second engine that began in the same hundredth of a second is no proxy.
    assert {one.url for one in drain.engines} == {engine.url, twin.url}
    assert drain.missing[f"engine at {proxy.url}"].startswith("not counted: it passes on the page of")


def test_a_node_that_does_not_tell_its_ports_says_so(tmp_path: Path) -> None:
    with metering(discovery=Discovery(proc=tmp_path)) as meter:
        wait_for(lambda: meter.is_settled)
        assert "does not tell here which ports are listened on" in meter.drain().missing["engines"]


def test_a_search_that_fails_is_told_and_the_rest_goes_on() -> None:
    class Broken(Discovery):
        def look(self, now_s: float) -> Any:
            raise RuntimeError("out of luck")

    page = vllm_page("0.32.0", work(5))
    with server(text=page) as here, metering(EngineTarget(url=here.address), discovery=Broken()) as meter:
        looked_again(here)
        drain = meter.drain()
    assert drain.missing["engines"] == "looking for engines failed: RuntimeError: out of luck"
    assert len(drain.engines) == 1
