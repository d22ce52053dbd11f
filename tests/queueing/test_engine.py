"""The simulator itself: against one step at a time, against closed forms, and nothing lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.queueing.arrivals import SECOND_NS, Lengths, Requests, steadily
from tests.queueing.engine import FOREVER_NS, Engine, Served, serve, steps_over
from tests.queueing.hidden import H100, L40S, RTX_4090, ReplicaType
from tests.queueing.naive import serve_by_steps
from tests.queueing.truth import capacity

CHAT = Lengths(1200, 400)


def small(**given: int) -> ReplicaType:
    known = {"step_ns": 1_000, "prompt_token_ns": 30, "sequence_ns": 7, "context_token_ns": 2, "max_sequences": 3,
             "max_batched_tokens": 16, "kv_tokens": 200}  # fmt: skip
    return ReplicaType(card="small", gpus=1, memory_bytes=1, **{**known, **given})


def requests_of(*rows: tuple[int, int, int]) -> Requests:
    """(arrival_ns, prompt tokens, generated tokens)"""
    return Requests(*(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)))


@st.composite
def kinds(draw: st.DrawFn) -> ReplicaType:
    most = draw(st.integers(1, 5))
    return small(
        step_ns=draw(st.integers(1, 2_000)),
        prompt_token_ns=draw(st.integers(0, 60)),
        sequence_ns=draw(st.integers(0, 40)),
        context_token_ns=draw(st.sampled_from([0, 1, 5, 300])),
        max_sequences=most,
        max_batched_tokens=most + draw(st.integers(1, 40)),
        kv_tokens=draw(st.integers(60, 200)),
    )


ROWS = st.lists(
    st.tuples(st.integers(0, 4_000), st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=14
)  # fmt: skip


def arriving(rows: list[tuple[int, int, int]]) -> Requests:
    """Each row's gap to the one before, its prompt and its output."""
    gaps, prompts, generated = zip(*rows, strict=True)
    return requests_of(*zip(np.cumsum(gaps).tolist(), prompts, generated, strict=True))


def test_two_requests_by_hand() -> None:
    """Steps take 1000 ns, 30 per prompt token, 7 per sequence, 2 per token of context.

    The first (5 + 3 tokens) at 0: a step that reads 5 tokens ends at 1150 with its first token. The second (20 + 2)
    comes at 1200. The first goes on with 6 tokens of context: 1000 + 7 + 12 ends at 2169. Then it goes on with 7, and
    15 of the second's 20 tokens are read (16 a step, of which one is the first's): 1000 + 450 + 7 + 14 ends at 3640,
    and the first with it. The other 5: 1150, at 4790 its first token; then 21 of context: 1000 + 7 + 42 ends at 5839.
    """
    served = serve(small(), requests_of((0, 5, 3), (1200, 20, 2)))
    assert served.scheduled_ns.tolist() == [0, 2169]
    assert served.first_ns.tolist() == [1150, 4790]
    assert served.finished_ns.tolist() == [3640, 5839]


@given(kinds(), ROWS)
@example(small(), [(0, 5, 3), (1200, 20, 2)])
def test_runs_are_the_steps_one_by_one(kind: ReplicaType, rows: list[tuple[int, int, int]]) -> None:
    requests = arriving(rows)
    served = serve(kind, requests)
    sequences, steps = serve_by_steps(kind, requests)
    assert served.scheduled_ns.tolist() == [one.scheduled_ns for one in sequences]
    assert served.first_ns.tolist() == [one.tokens_ns[0] for one in sequences]
    assert served.finished_ns.tolist() == [one.tokens_ns[-1] for one in sequences]
    expected = [(step.start_ns, step.end_ns, step.decoding, step.prompt_tokens) for step in steps]
    assert list(_steps(served)) == expected


def _steps(served: Served) -> Iterator[tuple[int, int, int, int]]:
    runs = served.runs
    columns = (runs.start_ns, runs.steps, runs.decoding, runs.prompt_tokens, runs.first_ns, runs.growth_ns)
    for now_ns, count, decoding, read, first_ns, growth_ns in zip(*(part.tolist() for part in columns), strict=True):
        for step in range(count):
            taken_ns = first_ns + step * growth_ns
            yield now_ns, now_ns + taken_ns, decoding, read
            now_ns += taken_ns


@given(kinds(), ROWS, st.lists(st.integers(0, 60_000), max_size=8))
def test_offering_as_time_passes_changes_nothing(
    kind: ReplicaType, rows: list[tuple[int, int, int]], looks: list[int]
) -> None:
    requests = arriving(rows)
    engine = Engine(kind)
    offers = [(row[0], row) for row in requests.rows()]
    for moment_ns, row in sorted([*offers, *((look, None) for look in looks)], key=lambda item: item[0]):
        if engine.next_ns <= moment_ns:
            engine.advance(moment_ns)
        if row is not None:
            engine.offer_one(*row)
    engine.advance()
    at_once, as_it_comes = serve(kind, requests), engine.served()
    assert as_it_comes.first_ns.tolist() == at_once.first_ns.tolist()
    assert as_it_comes.finished_ns.tolist() == at_once.finished_ns.tolist()
    assert list(_steps(as_it_comes)) == list(_steps(at_once))


@given(st.integers(1, 10**12), st.integers(1, 10**8), st.integers(0, 10**4))
def test_steps_over_a_gap(gap_ns: int, first_ns: int, growth_ns: int) -> None:
    first_ns += growth_ns

    def taken(steps: int) -> int:
        return steps * first_ns + growth_ns * (steps * (steps - 1) // 2)

    steps = steps_over(gap_ns, first_ns, growth_ns)
    assert taken(steps) >= gap_ns
    assert steps == 1 or taken(steps - 1) < gap_ns


@pytest.mark.parametrize("kind", [H100, L40S, RTX_4090], ids=lambda kind: kind.card)
def test_every_request_ends_with_its_tokens(kind: ReplicaType) -> None:
    rng = np.random.default_rng(5)
    requests = steadily(rng, 0.8, CHAT, 4_000)
    served = serve(kind, requests)
    runs = served.runs
    assert (requests.arrival_ns <= served.scheduled_ns).all()
    assert (served.scheduled_ns < served.first_ns).all()
    assert (served.first_ns <= served.finished_ns).all()
    assert served.finished_ns.max() < FOREVER_NS
    # the first token of each comes of reading its prompt
    assert (runs.steps * runs.decoding).sum() + len(requests) == requests.generated_tokens.sum()
    assert runs.prompt_tokens.sum() == requests.prompt_tokens.sum()
    assert runs.decoding.max() <= kind.max_sequences
    assert (runs.prompt_tokens + runs.decoding).max() <= kind.max_batched_tokens
    assert runs.context.max() <= kind.kv_tokens
    assert (runs.end_ns[:-1] <= runs.start_ns[1:]).all()


def test_first_come_first_served() -> None:
    served = serve(RTX_4090, steadily(np.random.default_rng(6), 1.0, CHAT, 3_000))
    assert (np.diff(served.scheduled_ns) >= 0).all()
    assert (np.diff(served.first_ns) >= 0).all()


def test_a_request_that_never_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="201 tokens; the cache holds 200"):
        serve(small(), requests_of((0, 200, 1)))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_at_a_time_it_is_a_queue_with_fixed_service_times(load: float) -> None:
    """M/D/1: with one sequence of 100 + 4 tokens, read in one step, service takes

    1 ms + 100 x 20 us, then 1 ms + 10 us + 1 us x (101, 102, 103): 3 + 3.03 + 0.306 = 6.336 ms; the mean wait is
    load / (2 (1 - load)) of it (Pollaczek 1930, Khinchin 1932).
    """
    kind = small(
        step_ns=1_000_000, prompt_token_ns=20_000, sequence_ns=10_000, context_token_ns=1_000, max_sequences=1,
        max_batched_tokens=200,
    )  # fmt: skip
    service_s = 6.336e-3
    alike = Lengths(100, 4, prompt_sigma=0.0, generated_sigma=0.0)
    served = serve(kind, steadily(np.random.default_rng(11), load / service_s, alike, 125_000))
    assert (served.finished_ns - served.scheduled_ns == 6_336_000).all()
    waits_s = (served.scheduled_ns - served.requests.arrival_ns)[5_000:] / SECOND_NS
    # stretches of 5,000 requests hardly depend on each other: their spread tells the error of the mean
    stretches = waits_s.reshape(24, 5_000).mean(axis=1)
    error_s = float(stretches.std(ddof=1)) / np.sqrt(24)
    expected_s = load / (2 * (1 - load)) * service_s
    assert waits_s.mean() == pytest.approx(expected_s, abs=4 * error_s)
    assert error_s < 0.03 * expected_s


def test_throughput_saturates_at_its_bound() -> None:
    """With N like requests at a time, p + n tokens each, a request takes of the engine's time

    b p for its prompt, c (n - 1) + d (sum of p + 1 ... p + n - 1) for going on with it, and n / N of the steps' fixed
    time a. H100's parameters, 24 sequences of 500 + 200 tokens, in ms: 0.193 x 500 + 0.031 x 199 + 0.000043 x
    (199 x 500 + 199 x 200 / 2 = 119,400) + 16.3 x 200 / 24 = 96.5 + 6.169 + 5.1342 + 135.8333 = 243.6365.
    So 700 / 0.2436365 = 2873.13 tokens/s.
    """
    kind = replace(H100, max_sequences=24, max_batched_tokens=24 * 501)
    alike = Lengths(500, 200, prompt_sigma=0.0, generated_sigma=0.0)
    assert capacity(kind, alike, count=24 * 400) == pytest.approx(2873.13, rel=0.005)


def test_throughput_of_random_lengths_saturates_at_its_bound() -> None:
    """The same bound by the means of what is drawn; a slot is empty, or in a prompt read in parts, for little time."""
    kind = replace(H100, max_batched_tokens=8192, kv_tokens=10**7)
    prompt, generated = CHAT.draw(np.random.default_rng(3), 200_000)
    contexts = (generated - 1) * prompt + generated * (generated - 1) / 2
    each_ns = (
        kind.prompt_token_ns * prompt.mean()
        + kind.sequence_ns * (generated - 1).mean()
        + kind.context_token_ns * contexts.mean()
        + kind.step_ns * generated.mean() / kind.max_sequences
    )
    bound = (prompt + generated).mean() / each_ns * SECOND_NS
    assert capacity(kind, CHAT) == pytest.approx(bound, rel=0.02)
    assert capacity(kind, CHAT) < 1.01 * bound


def test_above_its_capacity_a_replica_gives_its_capacity() -> None:
    best = capacity(L40S, CHAT)
    served = serve(L40S, steadily(np.random.default_rng(4), 2.0 * best / 1600, CHAT, 12_000))
    last_s = served.requests.arrival_ns[-1] / SECOND_NS
    ended = served.finished_ns <= served.requests.arrival_ns[-1]
    tokens = (served.requests.prompt_tokens + served.requests.generated_tokens)[ended].sum()
    assert tokens / last_s == pytest.approx(best, rel=0.02)
