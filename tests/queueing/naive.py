"""The engine of engine.py once more, each step and each sequence by itself: slow, and plain enough to be believed."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.queueing.arrivals import Requests
from tests.queueing.hidden import ReplicaType


@dataclass
class Traced:
    """A request. tokens_ns: when each of its tokens came; context: tokens of it that a step goes through."""

    arrival_ns: int
    prompt: int
    generated: int
    scheduled_ns: int = -1
    read: int = 0
    tokens_ns: list[int] = field(default_factory=list)

    @property
    def decodes(self) -> bool:
        return self.read == self.prompt

    @property
    def context(self) -> int:
        return self.prompt + len(self.tokens_ns)


@dataclass(frozen=True)
class Step:
    start_ns: int
    end_ns: int
    decoding: int
    prompt_tokens: int


def serve_by_steps(kind: ReplicaType, requests: Requests) -> tuple[list[Traced], list[Step]]:
    """Every request to its end, and every step that was taken."""
    everyone = [Traced(*row) for row in requests.rows()]
    waiting = list(everyone)
    running: list[Traced] = []
    steps: list[Step] = []
    now_ns = 0
    while waiting or running:
        if not running:
            now_ns = max(now_ns, waiting[0].arrival_ns)
        step = _step(kind, now_ns, waiting, running)
        steps.append(step)
        now_ns = step.end_ns
        running = [one for one in running if len(one.tokens_ns) < one.generated]
    return everyone, steps


def _step(kind: ReplicaType, now_ns: int, waiting: list[Traced], running: list[Traced]) -> Step:
    decoding = [one for one in running if one.decodes]
    contexts = sum(one.context for one in decoding)
    left = budget = kind.max_batched_tokens - len(decoding)
    reading = [one for one in running if not one.decodes]
    for one in reading:
        left -= _read(one, left)
    while left and waiting and _fits(kind, now_ns, waiting[0], running):
        one = waiting.pop(0)
        one.scheduled_ns = now_ns
        running.append(one)
        reading.append(one)
        left -= _read(one, left)
    end_ns = now_ns + kind.step_ns + kind.prompt_token_ns * (budget - left)
    end_ns += sum(kind.sequence_ns for _ in decoding) + kind.context_token_ns * contexts
    for one in (*decoding, *(one for one in reading if one.decodes)):
        one.tokens_ns.append(end_ns)
    return Step(now_ns, end_ns, len(decoding), budget - left)


def _read(one: Traced, left: int) -> int:
    taken = min(one.prompt - one.read, left)
    one.read += taken
    return taken


def _fits(kind: ReplicaType, now_ns: int, one: Traced, running: list[Traced]) -> bool:
    reserved = sum(other.prompt + other.generated for other in running)
    return (
        one.arrival_ns <= now_ns
        and len(running) < kind.max_sequences
        and reserved + one.prompt + one.generated <= kind.kv_tokens
    )
