"""Tokens of groups of engines: sums by model, bases, and the share of a cost that prompts have."""

from __future__ import annotations

import pytest

from app.accounting.served import Served
from tests.accounting.bills import served


def add(to: Served, model: str, **counts: int | None) -> None:
    to.add(model, counts, gap_s=0.0, unplaced=0, simulated=False)  # type: ignore[arg-type]


def test_the_three_bases() -> None:
    made = served(6000, 3000, cached_tokens=2400)
    assert [made.tokens(basis).value for basis in ("total", "computed", "output")] == [9000, 6600, 3000]
    assert [made.input_tokens(basis).value for basis in ("total", "computed", "output")] == [6000, 3600, 6000]


def test_sums_go_on_where_an_interval_does_not_tell() -> None:
    made = served(100, 50)
    add(made, "m", prompt_tokens=None, generated_tokens=None)
    add(made, "m", prompt_tokens=10, generated_tokens=5)
    assert (made.count("prompt_tokens").value, made.tokens("total").value) == (110, 165)


def test_a_model_that_never_tells_leaves_no_sum_that_looks_whole() -> None:
    made = served(100, 50)
    add(made, "other", prompt_tokens=7, generated_tokens=None)
    assert made.count("generated_tokens").reason == "not told by the engine of other"
    assert made.tokens("total").reason == "not told by the engine of other"
    assert made.count("prompt_tokens").value == 107


def test_without_any_engine_there_is_none() -> None:
    assert Served().tokens("total").reason == "no engine"


def test_cached_tokens_are_looked_up_where_engines_only_count_that() -> None:
    known = served(1000, 10, prefix_query_tokens=1000, prefix_hit_tokens=300)
    assert (known.cached_tokens().value, known.cached_tokens().method) == (300, "measured")
    # twice as many looked up as prompts have: half of what was found
    again = served(1000, 10, prefix_query_tokens=2000, prefix_hit_tokens=600)
    assert (again.cached_tokens().value, again.cached_tokens().method) == (300, "estimated")
    assert (again.tokens("computed").value, again.tokens("computed").method) == (710, "estimated")
    assert served(1000, 10).tokens("computed").reason == "cached prompt tokens are not told by the engine"


def test_the_input_share_is_that_of_the_engines_time() -> None:
    # 2 s of prefill and 6 s of decode
    timed = served(1000, 100, prefill_us=2_000_000, decode_us=6_000_000)
    assert (timed.input_share().value, timed.input_share().method) == (0.25, "measured")


def test_without_timings_an_output_token_weighs_two_and_a_half_input_tokens() -> None:
    # 1000 / (1000 + 2.5 x 400) = 0.5
    assert (served(1000, 400).input_share().value, served(1000, 400).input_share().method) == (0.5, "estimated")
    # times of requests that have not finished are not there yet
    assert served(1000, 400, prefill_us=0, decode_us=0).input_share().value == 0.5
    assert served(0, 0).input_share().reason == "no tokens"


def test_times_of_some_models_stand_for_all_and_say_so() -> None:
    made = served(1000, 100, prefill_us=1, decode_us=3)
    add(made, "other", prompt_tokens=10, generated_tokens=10)
    assert (made.input_share().value, made.input_share().method) == (0.25, "estimated")


@pytest.mark.parametrize(("said", "method"), [({"gap_s": 70.0}, "interpolated"), ({"simulated": True}, "simulated")])
def test_gaps_and_simulated_engines_keep_their_label(said: dict[str, float], method: str) -> None:
    made = served(10, 5, **said)
    assert {made.count("prompt_tokens").method, made.tokens("total").method} == {method}


def test_engines_without_known_gpus_are_counted_once_and_not_once_a_segment() -> None:
    made = served(10, 5, unplaced=2)
    made.add("m", {"prompt_tokens": 1, "generated_tokens": 1}, gap_s=0.0, unplaced=1, simulated=False)
    made.add("other", {"prompt_tokens": 1, "generated_tokens": 1}, gap_s=0.0, unplaced=1, simulated=False)
    assert made.unplaced == 3
