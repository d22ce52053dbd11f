"""Real vLLM captures through collector, wire, ingest and rollups, against what the client of the same run saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.accounting.latency import merged, quantile
from app.accounting.tokens import cached_from_lookups
from app.store.database import Store
from collectors.engine.page import read_page
from tests.collectors.engine.test_vllm import CAPTURES, FINISHED, FULL_RUNS, TOKENS, V0, V1_OLD, Client
from tests.engine_to_store.replay import Replay

QUIET = ("s1_basic", "s2_prefix", "s3_rejected", "s4_parallel")
LOAD = ("load_mid", "load_mid2", "load_end")
RESTART = ("restarted", "restarted_s1")
# What the engines counted beyond the client, by the captures' README: four streams that were aborted (278 prompt
# tokens) and one in the load (204); the tokens they made until they stopped; V0's repeats of preempted work.
ABORTED_PROMPTS = 278 + 204
MORE_GENERATED = {V0: 61, V1_OLD: 60, "0.10.2.post2": 61, "0.12.0.post2": 62, "0.32.0": 60}
V0_REPEATS, V0_FIRST_TOKENS_AGAIN = 5701 - 4121, 3


def folder_of(name: str) -> Path:
    if not (CAPTURES / name).is_dir():
        pytest.skip("the captures of real vLLM servers are not beside this checkout")
    return CAPTURES / name


def page(name: str, snapshot: str) -> str:
    return (folder_of(name) / f"{snapshot}.prom").read_text(encoding="utf-8")


def at_times(name: str, snapshots: Sequence[str | None]) -> list[tuple[float, str | None]]:
    """The pages with the times at which they were captured; a look that fails comes a second after the one before."""
    timeline = json.loads((folder_of(name) / "timeline.json").read_text(encoding="utf-8"))
    moments = {one["name"]: one["t_unix"] for one in timeline["snapshots"]}
    pages: list[tuple[float, str | None]] = []
    for snapshot in snapshots:
        if snapshot is None:
            pages.append((pages[-1][0] + 0.1, None))
        else:
            pages.append((moments[snapshot], page(name, snapshot)))
    return pages


def client_of(name: str, *phases: str) -> Client:
    seen = Client()
    for line in (folder_of(name) / "requests.jsonl").read_text(encoding="utf-8").splitlines():
        request = json.loads(line)
        if request["phase"] in phases:
            seen.add(request)
    return seen


def replayed(store: Store, name: str, snapshots: Sequence[str | None], **how: object) -> Replay:
    replay = Replay(store)
    replay.show(at_times(name, snapshots), **how)
    return replay


@pytest.mark.parametrize("name", FULL_RUNS)
def test_what_agrees_with_the_client_agrees_to_the_token(store: Store, name: str) -> None:
    """No abort, no pressure: prompts, generated tokens, outcomes and latencies' counts are the client's."""
    replay = replayed(store, name, ("idle", *QUIET))
    client = client_of(name, *QUIET)
    assert replay.sums(*TOKENS) == (client.prompt_tokens, client.completion_tokens)
    assert replay.sums(*FINISHED) == (client.reasons["stop"], client.reasons["length"])
    assert replay.observed("ttft") == replay.observed("e2e") == client.finished
    assert replay.observed("itl") == client.completion_tokens - client.finished
    assert replay.sums(*TOKENS, table="engine_hour") == replay.sums(*TOKENS)
    if client.cached_told:
        prompt, queried, hit = replay.sums("prompt_tokens", "prefix_query_tokens", "prefix_hit_tokens")
        assert prompt is not None and queried is not None and hit is not None
        assert cached_from_lookups(prompt, queried, hit) == (client.cached_tokens, "measured")


@pytest.mark.parametrize("name", FULL_RUNS)
def test_a_whole_run_with_aborts_pressure_and_a_restart(store: Store, name: str) -> None:
    replay = replayed(store, name, ("idle", *QUIET, "s5_aborted", *LOAD, *RESTART))
    client = client_of(name, *QUIET, "load", "restarted_s1")
    repeats = V0_REPEATS if name == V0 else 0
    prompt, generated = replay.sums(*TOKENS)
    assert prompt == client.prompt_tokens + ABORTED_PROMPTS + repeats
    made_in_s5 = generated_by_aborted(name)
    assert generated == client.completion_tokens + made_in_s5 + MORE_GENERATED[name]
    assert replay.sums(*FINISHED) == (client.reasons["stop"], client.reasons["length"])
    assert replay.observed("e2e") == client.finished
    # Four aborted in s5 and one in the load had their first token.
    assert replay.observed("ttft") == client.finished + 5 + (V0_FIRST_TOKENS_AGAIN if name == V0 else 0)
    assert replay.labels() == [""] if name == V0 else ["0"]


def generated_by_aborted(name: str) -> int:
    """Tokens that the server made for the four aborted requests; only its own counter knows."""

    after, before = (
        read_page(page(name, one))[0].counters["generated_tokens"] for one in ("s5_aborted", "s4_parallel")
    )
    assert after - before > 53  # 3 + 10 + 40 reached the client
    return after - before


@pytest.mark.parametrize("name", FULL_RUNS)
def test_scrapes_that_are_missing_lose_nothing(store: Store, name: str) -> None:
    """Only a few looks, failed ones between them, an agent killed in the middle: the sums are the same."""
    snapshots = ("idle", None, "s2_prefix", None, None, "load_mid", "load_end", None, "restarted_s1")
    few = replayed(store, name, snapshots, batch_every=2, restart_agent_at=(3, 6))
    client = client_of(name, *QUIET, "load", "restarted_s1")
    repeats = V0_REPEATS if name == V0 else 0
    assert few.sums("prompt_tokens") == (client.prompt_tokens + ABORTED_PROMPTS + repeats,)
    assert few.sums(*FINISHED) == (client.reasons["stop"], client.reasons["length"])
    assert few.observed("e2e") == client.finished


def test_two_engines_of_one_server_are_summed_and_kept_apart(store: Store) -> None:
    replay = replayed(store, "0.32.0-dp2", ("idle", "load_mid", "load_end"))
    client = client_of("0.32.0-dp2", "load")
    assert replay.labels() == ["0", "1"]
    assert replay.sums(*TOKENS) == (client.prompt_tokens, client.completion_tokens) == (827, 1800)
    each = store.query("SELECT engine_id, sum(generated_tokens) AS n FROM engine_minute GROUP BY ALL")["n"].to_list()
    assert len(each) == 2 and all(0 < n < 1800 for n in each)


def test_an_upgrade_that_renames_metrics_and_adds_a_label_starts_another_engine_and_loses_nothing(store: Store) -> None:
    """V0 without an engine label gives way to 0.32 with one, at the same address."""
    replay = Replay(store)
    new = at_times("0.32.0", ("restarted", None, "restarted_s1"))
    old = [(new[0][0] - 300 + second, page(V0, one)) for second, one in enumerate(("idle", "s1_basic", "s4_parallel"))]
    replay.show([*old, *new])
    client = client_of(V0, *QUIET)
    later = client_of("0.32.0", "restarted_s1")
    assert replay.labels() == ["", "0"]
    assert replay.sums(*TOKENS) == (
        client.prompt_tokens + later.prompt_tokens, client.completion_tokens + later.completion_tokens
    )  # fmt: skip


@pytest.mark.parametrize("name", FULL_RUNS)
@pytest.mark.parametrize("percentile", [50, 90, 99])
def test_merged_quantiles_are_those_of_the_raw_requests_to_within_their_bucket(
    store: Store, name: str, percentile: float
) -> None:
    """By the end-to-end times, of which the client knows each."""
    replay = replayed(store, name, ("idle", *QUIET))
    found = quantile(merged(replay.buckets("e2e")), percentile)
    exact = sorted(
        request["e2e_s"]
        for line in (folder_of(name) / "requests.jsonl").read_text(encoding="utf-8").splitlines()
        if (request := json.loads(line))["phase"] in QUIET and request["finish_reasons"]
        for _ in request["finish_reasons"]
    )
    truth = exact[-(-len(exact) * int(percentile) // 100) - 1]
    assert found.n == len(exact)
    assert found.lower_s is not None and found.upper_s is not None
    # The server's own time is up to 20 ms below what its client saw (README, trap 15).
    assert found.lower_s < truth and truth - 0.020 <= found.upper_s
