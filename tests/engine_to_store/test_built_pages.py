"""Built pages of each vLLM version through collector, wire, ingest and rollups: the twin of the captures, anywhere."""

from __future__ import annotations

import copy
import random

import pytest

from app.accounting.latency import merged, quantile
from app.store.database import Store
from tests.collectors.engine.pages import VERSIONS, Version, Work, vllm_page
from tests.engine_to_store.replay import Replay

T0_S = 1_796_151_000.0
COLUMNS = ("prompt_tokens", "generated_tokens", "finished_stop", "finished_length", "preemptions")


class Story:
    """A server that works, restarts and is looked at now and then. truth: what was done and can be seen."""

    def __init__(self, version: Version, seed: int = 7) -> None:
        self.version = version
        self.rng = random.Random(seed)
        self.moment_s = T0_S
        self.started_s = T0_S - 50
        self.work = Work(label="" if version == "0.8.5-v0" else "0")
        self.truth = dict.fromkeys(COLUMNS, 0)
        self.e2e: list[float] = []
        self.pages: list[tuple[float, str | None]] = []

    def serve(self, requests: int) -> None:
        for _ in range(requests):
            prompt, generated = self.rng.randrange(5, 900), self.rng.randrange(1, 300)
            reason = self.rng.choice(("stop", "length"))
            self.work.prompt_tokens += prompt
            self.work.generated_tokens += generated
            self.work.finished[reason] = self.work.finished.get(reason, 0) + 1
            self.work.preemptions += 1
            self.work.e2e.append(self.rng.expovariate(0.4))
            self.work.ttft.append(self.rng.expovariate(4))
            for name, done in zip(COLUMNS[:2], (prompt, generated), strict=True):
                self.truth[name] += done
            self.truth[f"finished_{reason}"] += 1
            self.truth["preemptions"] += 1
            self.e2e.append(self.work.e2e[-1])

    def look(self) -> None:
        self.moment_s += 5
        work = copy.deepcopy(self.work)
        self.pages.append((self.moment_s, vllm_page(self.version, work, started_s=self.started_s)))

    def fail(self) -> None:
        self.moment_s += 5
        self.pages.append((self.moment_s, None))

    def restart(self) -> None:
        """All that was served before was seen: what a process does after its last look nobody knows."""
        self.moment_s += 20
        self.started_s = self.moment_s - 10
        self.work = Work(label=self.work.label)


def tell(version: Version) -> Story:
    story = Story(version)
    story.look()
    for requests in (3, 0, 40):
        story.serve(requests)
        story.look()
    story.fail()
    story.serve(11)
    story.look()
    story.restart()
    story.serve(2)  # fewer than before: the counters fall
    story.look()
    story.fail()
    story.fail()
    story.serve(25)
    story.look()
    return story


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reset_a_missing_scrape_and_a_killed_agent_lose_nothing(store: Store, version: Version) -> None:
    story = tell(version)
    replay = Replay(store)
    replay.show(story.pages, batch_every=3, restart_agent_at=(4, 8))
    assert dict(zip(COLUMNS, replay.sums(*COLUMNS), strict=True)) == story.truth
    assert replay.sums(*COLUMNS, table="engine_hour") == replay.sums(*COLUMNS)
    assert replay.observed("e2e") == replay.observed("ttft") == len(story.e2e)


@pytest.mark.parametrize("percentile", [50, 90, 99])
def test_merged_quantiles_are_the_exact_ones_to_within_their_bucket(store: Store, percentile: int) -> None:
    story = tell("0.32.0")
    replay = Replay(store)
    replay.show(story.pages)
    found = quantile(merged(replay.buckets("e2e")), percentile)
    exact = sorted(story.e2e)[-(-len(story.e2e) * percentile // 100) - 1]
    assert found.lower_s is not None and found.upper_s is not None
    assert found.lower_s < exact <= found.upper_s


def test_a_label_set_that_changes_makes_another_engine_and_counts_once(store: Store) -> None:
    """An upgrade from V0, without engine label, to V1: another engine, from 0; a new model name as well."""
    first, second = Story("0.8.5-v0"), Story("0.32.0", seed=8)
    first.look()
    first.serve(9)
    first.look()
    second.moment_s = first.moment_s + 100
    second.started_s = second.moment_s - 30
    second.serve(4)
    second.look()
    third = Story("0.32.0", seed=9)
    third.work.model = "renamed"
    third.moment_s, third.started_s = second.moment_s + 100, second.moment_s + 50
    third.serve(5)
    third.look()
    replay = Replay(store)
    replay.show([*first.pages, *second.pages, *third.pages])
    truth = [sum(story.truth[name] for story in (first, second, third)) for name in COLUMNS]
    assert list(replay.sums(*COLUMNS)) == truth
    found = store.query("SELECT label, model FROM engine ORDER BY engine_id").rows()
    assert found == [("", "tiny-llama"), ("0", "tiny-llama"), ("0", "renamed")]


def test_data_parallel_engines_are_summed_and_kept_apart(store: Store) -> None:
    engines = [Work(label="0"), Work(label="1")]
    pages: list[tuple[float, str | None]] = []
    for look in range(4):
        for number, work in enumerate(engines):
            work.prompt_tokens += 100 * look
            work.generated_tokens += (number + 1) * 10 * look
        pages.append((T0_S + 5 * look, vllm_page("0.32.0", *copy.deepcopy(engines), started_s=None)))
    replay = Replay(store)
    replay.show(pages)
    # 1 + 2 + 3 = 6 steps of 100 prompt tokens on each, of 10 and of 20 generated
    assert replay.sums("prompt_tokens", "generated_tokens") == (1200, 180)
    assert replay.labels() == ["0", "1"]
