"""One replica's engine, request by request: continuous batching in steps, of which like ones are taken at once.

A step goes on with every sequence whose prompt is read (a token each) and spends what is left of its budget of tokens
on prompts, in order of arrival; a prompt may be read over several steps. The step that reads the last of a prompt gives
the first token at its end. A request is let in, first come, first served, at the beginning of a step, when there are
fewer than `max_sequences` and its whole context still fits into the cache. See hidden.py for what is left out.

Without a prompt to read, steps differ only by their contexts, which grow by a token for each sequence: all steps up to
the next arrival or the next end of a request are one *run*, whose length is a sum in closed form. Times are whole
nanoseconds, so a run's sum is exactly that of its steps (naive.py takes each step by itself, for the comparison).
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, fields
from heapq import heappop, heappush

import numpy as np

from app.simulator.arrays import Ints
from tests.queueing.arrivals import Requests
from tests.queueing.hidden import ReplicaType

FOREVER_NS = 2**62
# An entry of the heap is the step at whose end a request ends, and below these bits which one it is.
_PLACE_BITS = 32
_PLACE = (1 << _PLACE_BITS) - 1


@dataclass(frozen=True, eq=False)
class Runs:
    """Like steps, in order. The i-th step of a run takes first_ns + i x growth_ns.

    decoding: sequences that get a token in each; context: of them together, in the first; prompt_tokens: read in it (a
    run that reads prompts is one step).
    """

    start_ns: Ints
    steps: Ints
    decoding: Ints
    context: Ints
    prompt_tokens: Ints
    first_ns: Ints
    growth_ns: Ints

    def elapsed_ns(self, steps: Ints) -> Ints:
        """What the first `steps` steps of each take together."""
        return steps * self.first_ns + self.growth_ns * (steps * (steps - 1) // 2)

    @property
    def end_ns(self) -> Ints:
        return self.start_ns + self.elapsed_ns(self.steps)

    def part(self, which: slice | Ints) -> Runs:
        return Runs(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class Served:
    """What became of the requests of a replica, and its runs. Of those not there yet the moment is FOREVER_NS.

    scheduled_ns: let in; first_ns: first token; finished_ns: last one.
    """

    kind: ReplicaType
    requests: Requests
    scheduled_ns: Ints
    first_ns: Ints
    finished_ns: Ints
    runs: Runs

    @property
    def ttft_ns(self) -> Ints:
        return self.first_ns - self.requests.arrival_ns

    @property
    def e2e_ns(self) -> Ints:
        return self.finished_ns - self.requests.arrival_ns

    @property
    def tpot_ns(self) -> Ints:
        """Mean time of a request's tokens but the first, rounded down; 0 where there is no other."""
        return (self.finished_ns - self.first_ns) // np.maximum(self.requests.generated_tokens - 1, 1)


class Engine:
    """now_ns: up to where it is simulated. next_ns: when it changes by itself, or sees what is offered."""

    def __init__(self, kind: ReplicaType) -> None:
        self.kind = kind
        self.now_ns = 0
        self.next_ns = FOREVER_NS
        self.ended = 0
        self._arrival_ns, self._prompt, self._generated = array("q"), array("q"), array("q")
        self._scheduled_ns, self._first_ns, self._finished_ns = array("q"), array("q"), array("q")
        self._starts, self._steps, self._decodings = array("q"), array("q"), array("q")
        self._contexts, self._reads = array("q"), array("q")
        self._step = 0  # how many were taken
        self._let_in = 0  # requests, the first so many
        self._unread = 0  # prompt tokens of the last one that was let in
        self._decoding = 0
        self._context = 0
        self._reserved = 0  # tokens of the cache
        self._ends: list[int] = []

    @property
    def outstanding(self) -> int:
        """Requests that were offered and have not ended: an end within the step under way counts already."""
        return len(self._arrival_ns) - self.ended

    def offer(self, requests: Requests) -> None:
        """Requests that arrive after all before them. Raises ValueError for one that never fits into the cache."""
        context = requests.prompt_tokens + requests.generated_tokens
        if len(requests) and context.max() > self.kind.kv_tokens:
            raise ValueError(f"a request of {context.max()} tokens; the cache holds {self.kind.kv_tokens}")
        for known, more in (
            (self._arrival_ns, requests.arrival_ns),
            (self._prompt, requests.prompt_tokens),
            (self._generated, requests.generated_tokens),
            (self._finished_ns, np.full(len(requests), FOREVER_NS)),
        ):
            known.frombytes(more.astype(np.int64).tobytes())

    def offer_one(self, arrival_ns: int, prompt: int, generated: int) -> None:
        """As `offer`, of one request that is known to fit."""
        self._arrival_ns.append(arrival_ns)
        self._prompt.append(prompt)
        self._generated.append(generated)
        self._finished_ns.append(FOREVER_NS)
        self.next_ns = min(self.next_ns, max(arrival_ns, self.now_ns))

    def advance(self, until_ns: int = FOREVER_NS) -> None:
        """Take the steps that begin before `until_ns`, where all arrivals up to then were offered.

        Of like steps that no arrival and no end cuts before `until_ns` none is taken yet: nothing changes by them.
        """
        while self.now_ns < until_ns:
            if self._unread or self._admissible():
                self._read()
            elif self._decoding:
                if not self._go_on(until_ns):
                    return
            elif self._let_in < len(self._arrival_ns):
                self.now_ns = self._arrival_ns[self._let_in]
            else:
                self.next_ns = FOREVER_NS
                return
        self.next_ns = self.now_ns

    def served(self) -> Served:
        starts, steps, decoding, context, reads = (
            np.array(column, dtype=np.int64)
            for column in (self._starts, self._steps, self._decodings, self._contexts, self._reads)
        )
        kind = self.kind
        first_ns = (
            kind.step_ns
            + kind.prompt_token_ns * reads
            + kind.sequence_ns * decoding
            + kind.context_token_ns * context
        )  # fmt: skip
        offered = (np.array(column, dtype=np.int64) for column in (self._arrival_ns, self._prompt, self._generated))
        return Served(
            kind=kind,
            requests=Requests(*offered),
            scheduled_ns=self._filled(self._scheduled_ns),
            first_ns=self._filled(self._first_ns),
            finished_ns=np.array(self._finished_ns, dtype=np.int64),
            runs=Runs(starts, steps, decoding, context, reads, first_ns, kind.context_token_ns * decoding),
        )

    def _filled(self, moments: array[int]) -> Ints:
        """Of all requests; they come in order of arrival."""
        filled = np.full(len(self._arrival_ns), FOREVER_NS, dtype=np.int64)
        filled[: len(moments)] = moments
        return filled

    def _admissible(self) -> bool:
        """Whether the next request has come and may be let in now. Called while every prompt let in is read."""
        place = self._let_in
        return (
            place < len(self._arrival_ns)
            and self._arrival_ns[place] <= self.now_ns
            and self._decoding < self.kind.max_sequences
            and self._reserved + self._prompt[place] + self._generated[place] <= self.kind.kv_tokens
        )

    def _read(self) -> None:
        """A step that reads prompts."""
        kind = self.kind
        before = self._decoding
        budget = kind.max_batched_tokens - before
        left = budget
        complete = []
        if self._unread:
            taken = min(self._unread, left)
            self._unread -= taken
            left -= taken
            if not self._unread:
                complete.append(self._let_in - 1)
        while left and before + len(complete) < kind.max_sequences and self._admissible():
            place = self._let_in
            self._let_in += 1
            self._scheduled_ns.append(self.now_ns)
            self._reserved += self._prompt[place] + self._generated[place]
            taken = min(self._prompt[place], left)
            left -= taken
            self._unread = self._prompt[place] - taken
            if not self._unread:
                complete.append(place)
        read = budget - left
        duration_ns = (
            kind.step_ns
            + kind.prompt_token_ns * read
            + kind.sequence_ns * before
            + kind.context_token_ns * self._context
        )  # fmt: skip
        self._take(1, duration_ns, read)
        for place in complete:
            self._begin(place)

    def _go_on(self, until_ns: int) -> bool:
        """A run of steps without prompts, up to the next arrival or end; whether it was taken."""
        kind = self.kind
        steps = (self._ends[0] >> _PLACE_BITS) - self._step
        first_ns = kind.step_ns + kind.sequence_ns * self._decoding + kind.context_token_ns * self._context
        growth_ns = kind.context_token_ns * self._decoding
        duration_ns = steps * first_ns + growth_ns * (steps * (steps - 1) // 2)
        place = self._let_in
        gap_ns = self._arrival_ns[place] - self.now_ns if place < len(self._arrival_ns) else 0
        # What came before waits for an end, and so does what comes while the engine is full.
        if 0 < gap_ns < duration_ns and self._decoding < kind.max_sequences:
            steps = steps_over(gap_ns, first_ns, growth_ns)
            duration_ns = steps * first_ns + growth_ns * (steps * (steps - 1) // 2)
        elif self.now_ns + duration_ns > until_ns:
            self.next_ns = self.now_ns + duration_ns
            return False
        self._take(steps, duration_ns, 0)
        return True

    def _take(self, steps: int, duration_ns: int, read: int) -> None:
        """Note a run, go to its end, and let those end that have their last token."""
        self._starts.append(self.now_ns)
        self._steps.append(steps)
        self._decodings.append(self._decoding)
        self._contexts.append(self._context)
        self._reads.append(read)
        self.now_ns += duration_ns
        self._step += steps
        self._context += steps * self._decoding
        ends, now = self._ends, self._step
        while ends and ends[0] >> _PLACE_BITS == now:
            place = heappop(ends) & _PLACE
            self._decoding -= 1
            self._context -= self._prompt[place] + self._generated[place]
            self._end(place)

    def _begin(self, place: int) -> None:
        """The first token of a request."""
        self._first_ns.append(self.now_ns)
        more = self._generated[place] - 1
        if not more:
            self._end(place)
            return
        heappush(self._ends, (self._step + more) << _PLACE_BITS | place)
        self._decoding += 1
        self._context += self._prompt[place] + 1

    def _end(self, place: int) -> None:
        self._finished_ns[place] = self.now_ns
        self._reserved -= self._prompt[place] + self._generated[place]
        self.ended += 1


def steps_over(gap_ns: int, first_ns: int, growth_ns: int) -> int:
    """The fewest steps that take `gap_ns` together or more, where the i-th takes first + i x growth, exactly."""
    half = first_ns - growth_ns / 2
    estimate = 2 * gap_ns / (half + math.sqrt(half * half + 2 * growth_ns * gap_ns))
    steps = max(math.ceil(estimate), 1)
    while steps > 1 and (steps - 1) * first_ns + growth_ns * ((steps - 1) * (steps - 2) // 2) >= gap_ns:
        steps -= 1
    while steps * first_ns + growth_ns * (steps * (steps - 1) // 2) < gap_ns:
        steps += 1
    return steps


def serve(kind: ReplicaType, requests: Requests) -> Served:
    """All of the requests on one replica, to the end of the last."""
    engine = Engine(kind)
    engine.offer(requests)
    engine.advance()
    return engine.served()
