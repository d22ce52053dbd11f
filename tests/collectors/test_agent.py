"""The agent as a whole: readings become batches, batches reach the hub once, and it goes when told to."""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from collectors.agent import Agent, AgentSettings, once
from collectors.engine.drain import EngineDrain
from collectors.engine.meter import EngineMeter
from collectors.json_logs import JsonFormatter
from collectors.meter import engine_meter
from collectors.samples import Batch, Engine, decode
from collectors.spool import Spool
from collectors.spool_file import SpoolBusy
from tests.collectors.engine.pages import Work, vllm_page
from tests.collectors.engine.servers import Server, server
from tests.collectors.hubs import hub
from tests.collectors.meters import FakeMeter, fake_meter

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def short_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most hubs here are not there: one try, no second one after a back-off."""
    monkeypatch.setattr("collectors.agent.LAST_PUSH_S", 0.5)


def settings_for(tmp_path: Path, address: str = NOWHERE, **changes: Any) -> AgentSettings:
    given = {
        "hub": address,
        "node_id": "node-7",
        "labels": {"rack": "b2"},
        "spool_path": tmp_path / "spool.db",
        "interval_s": 0.1,
        "push_every_s": 0.5,
        "agent_version": "1.2.3",
        "discover_engines": False,
    }
    return AgentSettings(**(given | changes))


def run_until(agent: Agent, done: Callable[[], bool], limit_s: float = 10.0) -> None:
    thread = threading.Thread(target=agent.run)
    thread.start()
    end = time.monotonic() + limit_s
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    agent.stop()
    thread.join(10)
    assert not thread.is_alive()


def spooled(path: Path) -> list[Batch]:
    spool, batches = Spool(path), []
    while (entry := spool.oldest()) is not None:
        batches.append(decode(entry.body, max_json_bytes=2**26))
        spool.acknowledge(entry)
    spool.close()
    return batches


def test_what_was_measured_reaches_the_hub_in_order_and_the_last_batch_on_stopping(tmp_path: Path):
    meter = FakeMeter()
    with hub() as here:
        agent = Agent(settings_for(tmp_path, here.address), make_meter=lambda *_: meter)
        run_until(agent, lambda: len(here.taken) >= 2)
        assert here.taken == list(range(1, len(here.taken) + 1))
        assert len(here.taken) >= 3
    assert meter.calls[0] == "start"
    assert meter.calls[-1] == "stop"
    assert spooled(tmp_path / "spool.db") == []


def test_a_batch_holds_gpus_host_and_the_agents_own_cost(tmp_path: Path):
    agent = Agent(settings_for(tmp_path), make_meter=fake_meter)
    run_until(agent, lambda: agent._spool.figures().batches >= 2)
    batches = spooled(tmp_path / "spool.db")
    assert [batch.sequence for batch in batches] == list(range(1, len(batches) + 1))
    first, second = batches[:2]
    assert (first.agent, first.node.id, first.node.labels) == ("node-7", "node-7", {"rack": "b2"})
    assert (first.node.agent_version, first.node.driver_version) == ("1.2.3", "580.95.05")
    assert first.gpu_samples is not None
    assert first.host_samples is not None
    assert 1 <= len(first.gpu_samples) <= 7
    assert 1 <= len(first.host_samples) <= 7
    assert second.host_samples is not None
    # Each row covers the time since the one before it, however late a busy machine makes it.
    assert sum(second.host_samples.dt_us) == pytest.approx(
        second.host_samples.t_us[-1] - first.host_samples.t_us[-1], abs=500_000
    )
    own = second.agent_samples
    assert own is not None
    assert own.spool_batches == [1]
    assert own.rejected_readings == [2]
    assert (own.memory_bytes[0] or 0) > 10_000_000
    assert 0 <= (own.cpu_ms[0] or 0) < 500
    assert abs(first.node.sent_at_us / 1e6 - time.time()) < 60


def test_a_restart_goes_on_from_the_meters_state_and_the_next_sequence(tmp_path: Path):
    first = Agent(settings_for(tmp_path), make_meter=fake_meter)
    run_until(first, lambda: first._spool.figures().batches >= 1)
    made: list[FakeMeter] = []

    def make(_settings: AgentSettings, state: dict[str, Any] | None, _boot: str | None) -> FakeMeter:
        made.append(FakeMeter(state))
        return made[-1]

    second = Agent(settings_for(tmp_path), make_meter=make)
    before = second._spool.figures().batches
    run_until(second, lambda: second._spool.figures().batches > before)
    batches = spooled(tmp_path / "spool.db")
    assert [batch.sequence for batch in batches] == list(range(1, len(batches) + 1))
    rows = [len(batch.gpu_samples) if batch.gpu_samples is not None else 0 for batch in batches]
    assert made[0].state_given == {"rows": sum(rows[:before])}


@pytest.mark.parametrize("broken", ["start", "poll", "drain", "state", "stop"])
def test_a_broken_meter_does_not_stop_the_host_readings(tmp_path: Path, broken: str):
    agent = Agent(settings_for(tmp_path), make_meter=lambda *_: FakeMeter(fails=frozenset([broken])))
    run_until(agent, lambda: agent._spool.figures().batches >= 2)
    batches = spooled(tmp_path / "spool.db")
    assert batches[0].host_samples is not None
    assert (batches[0].node.status is not None) is (broken == "drain")


def test_gpu_rows_that_do_not_fit_the_wire_are_left_out_with_a_reason(tmp_path: Path):
    meter = FakeMeter()
    meter.extra_rows = 7  # rows point to a GPU that is not listed
    agent = Agent(settings_for(tmp_path), make_meter=lambda *_: meter)
    run_until(agent, lambda: agent._spool.figures().batches >= 1)
    batch = spooled(tmp_path / "spool.db")[0]
    assert batch.gpu_samples is None
    assert batch.host_samples is not None
    assert "to point into gpus" in str(batch.node.status)


def test_a_clock_that_is_set_back_makes_no_overlapping_rows(tmp_path: Path):
    began, step_s = time.monotonic(), 5

    def utc_us() -> int:
        stepped = time.monotonic() - began > 0.8
        return time.time_ns() // 1000 - (step_s * 1_000_000 if stepped else 0)

    agent = Agent(settings_for(tmp_path), make_meter=fake_meter, utc_us=utc_us)
    run_until(agent, lambda: agent._spool.figures().batches >= 3)
    rows = [
        row
        for batch in spooled(tmp_path / "spool.db")
        if batch.host_samples is not None
        for row in zip(batch.host_samples.t_us, batch.host_samples.dt_us, strict=True)
    ]
    assert len(rows) > 10
    assert all(later[0] - later[1] >= earlier[0] for earlier, later in itertools.pairwise(rows))


def test_two_agents_do_not_share_a_spool(tmp_path: Path):
    agent = Agent(settings_for(tmp_path), make_meter=fake_meter)
    with pytest.raises(SpoolBusy, match=f"pid {os.getpid()}"):
        Agent(settings_for(tmp_path), make_meter=fake_meter)
    run_until(agent, lambda: True)


_PROGRAM = """
import json, sys
from pathlib import Path
import collectors.agent as agent
from tests.collectors.meters import fake_meter
make = agent.Agent
if sys.argv[2] == "fake":
    agent.Agent = lambda settings: make(settings, make_meter=fake_meter)
raise SystemExit(agent.run(agent.AgentSettings(**json.loads(sys.argv[1]))))
"""


def start_agent(settings: AgentSettings, meter: str = "fake") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, settings.model_dump_json(), meter]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def wait_for(done: Callable[[], bool], limit_s: float = 15.0) -> None:
    end = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sends_the_last_batch_and_exits_0(tmp_path: Path, number: signal.Signals):
    (tmp_path / "token").write_text("wm_node_secret")
    with hub() as here:
        settings = settings_for(tmp_path, here.address, token_file=tmp_path / "token")
        process = start_agent(settings)
        wait_for(lambda: len(here.taken) >= 1)
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.7)
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)  # signals that wait together are not handled in the order in which they came
        before = len(here.taken)
        began = time.monotonic()
        process.send_signal(number)
        _, log = process.communicate(timeout=10)
        assert process.returncode == 0
        assert time.monotonic() - began < 4
        assert len(here.taken) > before
        assert here.headers[-1]["Authorization"] == "Bearer wm_node_secret"
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"time", "level", "message"} <= set(lines[0])
    messages = [line["message"] for line in lines]
    assert messages[0] == "the agent has started"
    assert messages[-1] == "the agent has stopped"
    assert messages.index("NVML is let go") < messages.index("NVML is taken up again")
    assert "secret" not in log
    assert spooled(tmp_path / "spool.db") == []


def test_with_no_hub_a_signal_still_ends_it_soon_and_nothing_is_lost(tmp_path: Path):
    process = start_agent(settings_for(tmp_path))
    wait_for((tmp_path / "spool.db").exists)  # a busy machine takes seconds to start it
    time.sleep(2.0)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == 0
    assert time.monotonic() - began < 4
    assert len(spooled(tmp_path / "spool.db")) >= 2


def test_kill_9_in_the_middle_loses_nothing_that_was_spooled_and_doubles_nothing(tmp_path: Path):
    with hub() as here:
        settings = settings_for(tmp_path, here.address)
        for delay_s in (0.9, 1.3, 0.7):
            here.script = ["commit-then-cut", "500"]
            process = start_agent(settings)
            time.sleep(delay_s)
            process.kill()
            process.communicate()
        here.script = []
        process = start_agent(settings)
        count = len(here.taken)
        wait_for(lambda: len(here.taken) >= count + 3)
        process.terminate()
        process.communicate(timeout=10)
        assert here.taken == list(range(1, len(here.taken) + 1))
    assert spooled(tmp_path / "spool.db") == []


# Engines


def counted(tokens: int) -> str:
    return vllm_page("0.32.0", Work(prompt_tokens=tokens, running=1))


def prompt_tokens(batches: list[Batch]) -> int:
    tables = [batch.engine_samples for batch in batches if batch.engine_samples is not None]
    return sum(tokens or 0 for table in tables for tokens in table.prompt_tokens)


def read_again(here: Server, times: int = 2) -> None:
    count = len(here.requests)
    wait_for(lambda: len(here.requests) >= count + times)


def test_engines_and_what_they_did_are_in_the_batch(tmp_path: Path):
    with server(text=counted(100)) as here:
        settings = settings_for(tmp_path, engines=[{"url": here.address, "gpus": ["0"]}], scrape_every_s=0.5)
        agent = Agent(settings, make_meter=fake_meter)

        def done() -> bool:
            if agent._spool.figures().batches == 1:
                here.bodies["/metrics"] = counted(142)
            return agent._spool.figures().batches >= 4

        run_until(agent, done)
    batches = spooled(tmp_path / "spool.db")
    (engine,) = batches[-1].engines
    assert (engine.url, engine.label, engine.model, engine.kind) == (here.url, "0", "tiny-llama", "vllm")
    # By index 0 of the batch's own GPUs.
    assert (engine.gpus, engine.gpus_source) == ([batches[-1].gpus[0].uuid], "config")
    assert prompt_tokens(batches) == 42
    rows = [
        row
        for batch in batches
        if batch.engine_samples is not None
        for row in zip(batch.engine_samples.t_us, batch.engine_samples.dt_us, strict=True)
    ]
    assert all(later[0] - later[1] >= earlier[0] for earlier, later in itertools.pairwise(rows))


def test_a_hung_engine_holds_up_neither_batches_nor_another_engine(tmp_path: Path):
    with server("hang") as hung, server(text=counted(1)) as here:
        engines = [{"url": hung.address}, {"url": here.address}]
        agent = Agent(settings_for(tmp_path, engines=engines, scrape_every_s=0.5), make_meter=fake_meter)
        began = time.monotonic()
        run_until(agent, lambda: agent._spool.figures().batches >= 4)
        assert time.monotonic() - began < 5.0
    assert len(hung.requests) == 1
    assert len(here.requests) >= 3
    assert [engine.status for engine in spooled(tmp_path / "spool.db")[-1].engines] == ["ok"]


@pytest.mark.parametrize("broken", ["start", "drain", "stop"])
def test_a_broken_engine_meter_stops_no_other_reading(tmp_path: Path, broken: str):
    def make(settings: AgentSettings, state: dict[str, Any] | None, utc_us: Callable[[], int]) -> EngineMeter:
        meter = engine_meter(settings, state, utc_us)
        setattr(meter, broken, lambda *_: 1 / 0)
        return meter

    agent = Agent(settings_for(tmp_path), make_meter=fake_meter, make_engine_meter=make)
    run_until(agent, lambda: agent._spool.figures().batches >= 2)
    batch = spooled(tmp_path / "spool.db")[0]
    assert batch.gpu_samples is not None
    assert batch.host_samples is not None


def test_engine_rows_that_do_not_fit_the_wire_are_left_out_with_a_reason(tmp_path: Path):
    class Wrong(EngineMeter):
        def drain(self, *_: Any, **__: Any) -> EngineDrain:
            engine = Engine(url="http://a/metrics", kind="vllm")
            return EngineDrain(engines=[engine, engine])

    agent = Agent(settings_for(tmp_path), make_meter=fake_meter, make_engine_meter=lambda *_: Wrong([]))
    run_until(agent, lambda: agent._spool.figures().batches >= 1)
    batch = spooled(tmp_path / "spool.db")[0]
    assert (batch.engines, batch.node.status) == ([], None)
    assert batch.gpu_samples is not None
    assert "engines that differ in url" in batch.missing["engines"]


def test_kill_9_between_scrapes_loses_and_doubles_no_token(tmp_path: Path):
    with hub() as here, server(text=counted(1_000)) as engine:
        engines = [{"url": engine.address}]
        settings = settings_for(tmp_path, here.address, engines=engines, scrape_every_s=0.5, push_every_s=0.7)
        for number, delay_s in enumerate((1.3, 0.8, 1.6), 1):
            here.script = ["commit-then-cut", "500"]
            process = start_agent(settings)
            read_again(engine)
            # From the first look that is in the spool on, every token counts.
            wait_for(lambda: any(batch.engines for batch in here.batches))
            engine.bodies["/metrics"] = counted(1_000 + number * 10)
            time.sleep(delay_s)
            process.kill()
            process.communicate()
            # Done while no agent looked.
            engine.bodies["/metrics"] = counted(1_000 + number * 10 + 5)
        here.script = []
        process = start_agent(settings)
        count = len(here.taken)
        wait_for(lambda: len(here.taken) >= count + 3)
        process.terminate()
        process.communicate(timeout=10)
        assert here.taken == list(range(1, len(here.taken) + 1))
        assert prompt_tokens(here.batches) == 35
    assert spooled(tmp_path / "spool.db") == []


def test_a_full_reading_has_the_engines(tmp_path: Path):
    with server(text=counted(5)) as here:
        settings = settings_for(tmp_path, engines=[{"url": here.address, "gpus": ["0"]}], interval_s=0.5)
        reading = json.loads(json.dumps(once(settings, make_meter=fake_meter)))
    (engine,) = reading["engines"]
    assert (engine["kind"], engine["model"], engine["status"]) == ("vllm", "tiny-llama", "ok")
    assert engine["sample"]["running"] == 1
    assert engine["gpus"] == [reading["gpus"][0]["uuid"]]


def test_a_node_without_a_driver_is_told_with_its_reason(tmp_path: Path):
    with hub() as here:
        settings = settings_for(tmp_path, here.address, nvml_library=str(tmp_path / "no-such-library.so"))
        process = start_agent(settings, meter="real")
        wait_for(lambda: len(here.taken) >= 3)
        process.terminate()
        _, log = process.communicate(timeout=10)
        assert process.returncode == 0, log
        assert "Traceback" not in log


def test_a_full_reading_is_json(tmp_path: Path):
    reading = once(settings_for(tmp_path), make_meter=fake_meter)
    reading = json.loads(json.dumps(reading))
    assert reading["node"]["id"] == "node-7"
    assert reading["gpus"][0]["sample"]["power_instant_mw"] == 300_000
    assert reading["gpus"][0]["processes"] == []
    assert reading["host"].keys() >= {"cpu_energy_mj", "memory_used_bytes", "load_1m_milli"}
    assert not (tmp_path / "spool.db").exists()


def test_a_full_reading_without_a_driver_says_why(tmp_path: Path):
    settings = settings_for(tmp_path, nvml_library=str(tmp_path / "no-such-library.so"))
    reading = once(settings)
    assert reading["gpus"] == []
    assert reading["node"]["status"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hub": "hub:8501"}, "http://hub:8501"),
        ({"hub": "http://"}, "http://hub:8501"),
        ({"hub": "http://hub:99999"}, "1 to 65535"),
        ({"hub": "http://user:hush@hub"}, "token_file"),
        ({"hub": "http://hub/?token=hush"}, "token_file"),
        ({"node_id": ""}, "node_id"),
        ({"node_id": "a\nb"}, "node_id"),
        ({"interval_s": 0}, "interval_s"),
        ({"push_every_s": 99999}, "push_every_s"),
        ({"spool_max_age_s": 8 * 86400}, "spool_max_age_s"),
        ({"labels": {"a": "x" * 501}}, "labels"),
        ({"colour": "red"}, "colour"),
        ({"engines": [{"url": "http://a:1"}, {"url": "http://A:1/metrics"}]}, "appears twice"),
        ({"engines": [{"url": "http://user:hush@a"}]}, "without user"),
        ({"scrape_every_s": 0}, "scrape_every_s"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, changes: dict[str, Any], says: str):
    with pytest.raises(ValidationError, match=says) as caught:
        settings_for(tmp_path, **changes)
    assert all("hush" not in finding["msg"] for finding in caught.value.errors())


def test_a_log_line_is_one_json_object_whatever_is_in_it():
    record = logging.makeLogRecord({"msg": "two\nlines", "levelname": "INFO", "created": 0.0})
    record.fields = {"message": "not replaced", "path": Path("/x"), "long": "x" * 5000}
    line = JsonFormatter().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert (told["time"], told["message"], told["path"]) == ("1970-01-01T00:00:00.000+00:00", "two\nlines", "/x")
    assert len(told["long"]) == 1000
