"""The shapes that `input_config` has had: which model, and which load."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.benchmark.aiperf_setup import Setup, setup_of
from collectors.benchmark.fields import FieldError, Fields
from tests.collectors.benchmark.profiles import CONFIG, OPTIONS_CONFIG, PHASES_CONFIG, STIMULUS_CONFIG

BY_RATE = Setup("Qwen/Qwen3-8B", "chat", True, 2.5, 1.0, 64)
IN_FLIGHT = Setup("Qwen/Qwen3-8B", "chat", True, None, None, 8)


def read(config: dict[str, Any]) -> Setup:
    return setup_of(Fields(config, "input_config."))


def loadgen(**options: Any) -> dict[str, Any]:
    return CONFIG | {"loadgen": options}


def phase(**options: Any) -> dict[str, Any]:
    return PHASES_CONFIG | {"phases": [PHASES_CONFIG["phases"][0], {"name": "profiling"} | options]}


def stimulus(**options: Any) -> dict[str, Any]:
    return STIMULUS_CONFIG | {"perf_analyzer": {"stimulus": options}}


@pytest.mark.parametrize(
    ("config", "setup"),
    [(CONFIG, BY_RATE), (PHASES_CONFIG, BY_RATE), (STIMULUS_CONFIG, IN_FLIGHT), (OPTIONS_CONFIG, IN_FLIGHT)],
    ids=["loadgen", "phases", "stimulus", "options"],
)
def test_each_shape_says_model_streaming_and_load(config: dict[str, Any], setup: Setup) -> None:
    assert read(config) == setup


@pytest.mark.parametrize(
    ("config", "load"),
    [
        (loadgen(request_rate=4.0, arrival_pattern="constant"), (4.0, None, None)),
        (loadgen(request_rate=4.0, arrival_pattern="gamma", arrival_smoothness=0.5), (4.0, 0.5, None)),
        (loadgen(request_rate=4.0, request_rate_mode="poisson"), (4.0, 1.0, None)),
        (loadgen(request_rate=4.0), (4.0, None, None)),
        (loadgen(concurrency=100, request_rate_mode="concurrency_burst"), (None, None, 100)),
        (phase(type="constant", rate=4.0), (4.0, None, None)),
        (phase(type="gamma", rate=4.0, smoothness=3.0, concurrency=9), (4.0, 3.0, 9)),
        (phase(type="concurrency", concurrency=16), (None, None, 16)),
        (stimulus(request_rate=10), (10.0, None, None)),
        (OPTIONS_CONFIG | {"concurrency": None, "request_rate": 3.5}, (3.5, None, None)),
    ],
)
def test_a_load_is_a_rate_with_its_burstiness_or_a_number_in_flight(
    config: dict[str, Any], load: tuple[float | None, float | None, int | None]
) -> None:
    setup = read(config)
    assert (setup.requests_per_s, setup.burstiness, setup.max_concurrency) == load


@pytest.mark.parametrize("models", ["m", ["m"], [{"name": "m"}], {"items": ["m"]}, {"items": [{"name": "m"}]}])
def test_a_model_is_a_name_or_an_object_with_one(models: Any) -> None:
    assert read(PHASES_CONFIG | {"models": models}).model == "m"


def test_a_model_may_stand_in_either_key_of_the_older_shapes() -> None:
    flat = {key: value for key, value in OPTIONS_CONFIG.items() if key != "model"}
    assert read(flat | {"model_names": ["m"]}).model == "m"
    nested = {key: value for key, value in STIMULUS_CONFIG.items() if key != "model_names"}
    assert read(nested | {"model": "m"}).model == "m"


def test_streaming_that_is_not_told_is_unknown() -> None:
    assert read(CONFIG | {"endpoint": {"model_names": ["m"]}}).streaming is None


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "`input_config.model_names`: given None; accepted: one model (the key is missing)"),
        (CONFIG | {"endpoint": {"model_names": ["a", "b"]}}, "`input_config.endpoint.model_names`: given ['a', 'b']"),
        (CONFIG | {"endpoint": {"model_names": [""]}}, "`input_config.endpoint.model_names`: given ''"),
        (CONFIG | {"endpoint": CONFIG["endpoint"] | {"streaming": "yes"}}, "`input_config.endpoint.streaming`: given"),
        (CONFIG | {"input": {"fixed_schedule": True}}, "`input_config.input.fixed_schedule`: given True; accepted"),
        (loadgen(), "`input_config.loadgen.concurrency`: given None; accepted: a whole number >= 1, or a request_rate"),
        (loadgen(concurrency=[1, 2]), "`input_config.loadgen.concurrency`: given [1, 2]"),
        (loadgen(user_centric_rate=3.0), "`input_config.loadgen.concurrency`: given None"),
        (loadgen(request_rate=-1), "`input_config.loadgen.request_rate`: given -1; accepted: a number > 0"),
        (loadgen(request_rate=1, arrival_pattern="gamma", arrival_smoothness=0),
         "`input_config.loadgen.arrival_smoothness`: given 0"),
        (CONFIG | {"loadgen": 3}, "`input_config.loadgen`: given 3; accepted: an object"),
        (stimulus(session_concurrency=4), "`input_config.perf_analyzer.stimulus.concurrency`: given None"),
        (phase(type="fixed_schedule"), "`input_config.phases[1].type`: given 'fixed_schedule'; accepted: concurrency"),
        (phase(type="user_centric", rate=1.0), "`input_config.phases[1].type`: given 'user_centric'"),
        (phase(type="poisson", rate_series=[1, 2]), "`input_config.phases[1].rate`: given None; accepted: requests"),
        (phase(type="concurrency"), "`input_config.phases[1].concurrency`: given None"),
        (phase(type="concurrency", exclude_from_results=True), "`input_config.phases`: given [{"),
        (PHASES_CONFIG | {"phases": PHASES_CONFIG["phases"][1:] * 2}, "`input_config.phases`: given [{"),
        (PHASES_CONFIG | {"phases": {"profiling": {}}}, "`input_config.phases`: given {'profiling': {}}; accepted"),
        (PHASES_CONFIG | {"models": [{"name": "a"}, {"name": "b"}]}, "`input_config.models`: given [{'name': 'a'}, {"),
        (PHASES_CONFIG | {"models": {"items": [{}]}}, "`input_config.models.items[0].name`: given None"),
    ],
)  # fmt: skip
def test_what_is_no_one_load_of_one_model_is_refused_with_its_key(config: dict[str, Any], told: str) -> None:
    with pytest.raises(FieldError) as problem:
        read(config)
    assert str(problem.value).startswith(told)
