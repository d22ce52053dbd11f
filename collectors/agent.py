"""The agent of a GPU node: reads GPUs, engines and host, spools a batch every few seconds, pushes to the hub."""

from __future__ import annotations

import logging
import queue
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

from collectors.agent_settings import AgentSettings
from collectors.assembly import HostRows, Measured, assemble
from collectors.engine.drain import EngineDrain
from collectors.host import Host, name_warning, node_id
from collectors.json_logs import log, set_up
from collectors.meter import Drain, EngineMeterMaker, Meter, MeterMaker, engine_meter, gpu_meter
from collectors.once import once
from collectors.outbox import Outbox
from collectors.own_usage import OwnUsage
from collectors.push import Pusher
from collectors.samples import AgentSamples, Batch, Node
from collectors.spool import Spool
from collectors.spool_file import SpoolError
from collectors.timeline import Timeline

__all__ = ["Agent", "AgentSettings", "Meter", "once", "run"]

LAST_PUSH_S = 2.0
Command = Literal["stop", "pause"]


class Agent:
    """One agent. Raises SpoolError (SpoolBusy with the other agent's pid) when its spool cannot be opened."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        make_meter: MeterMaker = gpu_meter,
        make_engine_meter: EngineMeterMaker = engine_meter,
        host: Host | None = None,
        utc_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._settings = settings
        self._utc_us = utc_us
        self._host = host or Host()
        self._boot_id = self._host.boot_id()
        self._spool = Spool(settings.spool_path, max_bytes=settings.spool_max_bytes, max_age_s=settings.spool_max_age_s)
        self._outbox = Outbox(self._spool)
        self._timeline = Timeline(self._spool.state("timeline"))
        self._meter = make_meter(settings, self._spool.state("meter"), self._boot_id)
        self._engines = make_engine_meter(settings, self._spool.state("engines"), utc_us)
        self._pusher = Pusher(self._spool, settings.hub, token_file=settings.token_file)
        self._usage = OwnUsage()
        self._rows = HostRows()
        self._read_at_s = time.monotonic()
        self._paused = False
        # SimpleQueue, because a signal handler may put into it at any moment.
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def stop(self) -> None:
        """End `run`: the last batch is spooled and pushed if the hub answers quickly. Callable from anywhere."""
        self._commands.put("stop")

    def toggle_pause(self) -> None:
        """Let go of NVML, for a driver upgrade, or take it up again. Callable from anywhere."""
        self._commands.put("pause")

    def run(self) -> None:
        """Measure and push until stopped."""
        pushing = threading.Thread(target=self._pusher.run, name="pusher", daemon=True)
        self._say_hello()
        self._guarded("starting the GPU meter", self._meter.start)
        self._guarded("starting the engine meter", self._engines.start)
        pushing.start()
        try:
            self._loop()
        finally:
            self._finish(pushing)

    def _loop(self) -> None:
        interval_s, push_every_s = self._settings.interval_s, self._settings.push_every_s
        self._prime_host()
        next_reading = time.monotonic() + interval_s
        next_push = time.monotonic() + push_every_s
        while self._obey_until(min(next_reading, next_push)):
            self._guarded("polling the GPU meter", lambda: self._meter.poll(0.0))
            now = time.monotonic()
            if now >= next_reading:
                self._guarded("reading the host", self._read_host)
                # Seconds that were slept through are not made up for.
                next_reading = max(next_reading + interval_s, now)
            if now >= next_push:
                self._guarded("spooling a batch", self._spool_batch)
                next_push = max(next_push + push_every_s, now)

    def _obey_until(self, moment_s: float) -> bool:
        """Carry out commands until that moment of the monotonic clock. False when the agent is to stop."""
        while (left_s := moment_s - time.monotonic()) > 0:
            try:
                command = self._commands.get(timeout=left_s)
            except queue.Empty:
                return True
            if command == "stop":
                return False
            self._paused = not self._paused
            log(logging.INFO, "NVML is let go" if self._paused else "NVML is taken up again")
            self._guarded("pausing the GPU meter", self._meter.pause if self._paused else self._meter.resume)
        return True

    def _prime_host(self) -> None:
        """The first look gives no row: energies are differences."""
        self._guarded("reading the host", lambda: self._host.read(0.0))
        self._read_at_s = time.monotonic()

    def _read_host(self) -> None:
        now = time.monotonic()
        pause_s, self._read_at_s = now - self._read_at_s, now
        reading = self._host.read(pause_s)
        dt_us = round(pause_s * 1e6)
        if dt_us > 0:
            self._rows.add(self._utc_us(), dt_us, reading)

    def _spool_batch(self) -> None:
        drain = self._guarded("draining the GPU meter", self._meter.drain)
        gpus, processes = ((), None) if drain is None else (drain.gpus, drain.processes)
        engines = self._guarded("draining the engine meter", lambda: self._engines.drain(gpus, processes))
        state = {"meter": self._guarded("the GPU meter's state", self._meter.state)}
        if engines is not None:
            state["engines"] = engines.state
        batch = self._batch(drain, engines)
        self._outbox.put(batch, {**state, "timeline": self._timeline.state()})
        self._pusher.wake()

    def _batch(self, drain: Drain | None, engines: EngineDrain | None) -> Batch:
        now_us = self._utc_us()
        node = Node(
            id=node_id(self._settings.node_id),
            boot_id=self._boot_id,
            agent_version=self._settings.agent_version,
            sent_at_us=now_us,
            driver_version=None if drain is None else drain.driver_version,
            labels=self._settings.labels,
            status="the GPU meter failed: see the agent's log" if drain is None else drain.status,
        )
        own = self._own(now_us, drain)
        measured = Measured(drain, engines, self._rows.take(), own, self._host.missing)
        return assemble(node, measured, self._timeline)

    def _own(self, now_us: int, drain: Drain | None) -> AgentSamples | None:
        try:
            figures = self._spool.figures()
        except SpoolError:
            # The outbox says so when it spools this batch.
            return None
        return AgentSamples(
            t_us=[now_us],
            cpu_ms=[self._usage.cpu_ms()],
            memory_bytes=[self._usage.memory_bytes()],
            tick_p99_us=[None if drain is None else drain.tick_p99_us],
            spool_bytes=[figures.bytes],
            spool_batches=[figures.batches + self._outbox.waiting],
            dropped_batches=[figures.dropped_batches + self._outbox.lost],
            rejected_batches=[figures.rejected_batches],
            rejected_readings=[None if drain is None else drain.rejected_readings],
            child_restarts=[None if drain is None else drain.restarts],
        )

    def _finish(self, pushing: threading.Thread) -> None:
        self._guarded("polling the GPU meter", lambda: self._meter.poll(0.0))
        self._guarded("reading the host", self._read_host)
        self._guarded("spooling a batch", self._spool_batch)
        self._guarded("stopping the engine meter", self._engines.stop)
        self._guarded("stopping the GPU meter", self._meter.stop)
        self._pusher.stop(LAST_PUSH_S)
        pushing.join(LAST_PUSH_S + 0.5)
        if self._outbox.waiting:
            log(logging.ERROR, "the spool took no batches; these are lost", batches=self._outbox.waiting)
        self._spool.close()
        log(logging.INFO, "the agent has stopped")

    def _say_hello(self) -> None:
        told = {"node": node_id(self._settings.node_id), "hub": self._settings.hub, "spool": str(self._spool.path)}
        log(logging.INFO, "the agent has started", version=self._settings.agent_version, **told)
        warning = name_warning(self._settings.node_id)
        if warning is not None:
            log(logging.WARNING, warning)

    def _guarded(self, what: str, call: Callable[[], Any]) -> Any:
        """The call's result, or None after a fault, which is logged: whatever the GPUs do, the host is measured."""
        try:
            return call()
        except Exception as problem:
            log(logging.ERROR, f"{what} failed; its readings are lost", error=f"{type(problem).__name__}: {problem}")
            return None


def run(settings: AgentSettings) -> int:
    """Run an agent in this process until SIGTERM or SIGINT; SIGUSR1 lets go of NVML and takes it up again.

    Logs JSON lines to stderr. Returns the exit code, 0. Raises SpoolError when the spool cannot be opened.
    """
    set_up()
    agent = Agent(settings)

    def on_stop(_number: int, _frame: FrameType | None) -> None:
        agent.stop()

    def on_pause(_number: int, _frame: FrameType | None) -> None:
        agent.toggle_pause()

    signal.signal(signal.SIGTERM, on_stop)
    signal.signal(signal.SIGINT, on_stop)
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, on_pause)
    agent.run()
    return 0
