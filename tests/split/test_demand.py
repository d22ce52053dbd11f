from __future__ import annotations

import copy
import math
import tomllib
from typing import Any

import pytest

from app.errors import DemandError
from app.split.demand import Demand, parse_demand

DEMAND = """
[[class]]
name = "chat"
model = "org/model"
requests_per_s = 5
prompt_tokens = 208
generated_tokens = 209
slo = [{ metric = "ttft", percentile = 99, max_ms = 60 }]
fleets = ["h100"]

[[class]]
name = "batch"
model = "org/model"
requests_per_s = 40
prompt_tokens = 208
generated_tokens = 209

[[fleet]]
name = "h100"
gpu = "NVIDIA H100 PCIe"
usd_per_gpu_hour = 2.0
max_gpus = 8
zone = "EU27"
pue = 1.2

[[fleet]]
name = "rtx4090"
gpu = "RTX 4090"
usd_per_gpu_hour = 0.25

[solve]
carbon_usd_per_t = 100
max_utilisation = 0.7
small_samples = "penalise"
gap = 0
"""

Key = tuple[str | int, ...]


@pytest.fixture
def content() -> dict[str, Any]:
    return tomllib.loads(DEMAND)


def put(content: dict[str, Any], key: Key, value: Any) -> dict[str, Any]:
    """A copy of `content` with `value` at `key`."""
    changed: Any = copy.deepcopy(content)
    inner = changed
    for part in key[:-1]:
        inner = inner[part]
    inner[key[-1]] = value
    return changed  # type: ignore[no-any-return]


def refusal(content: Any) -> str:
    with pytest.raises(DemandError) as caught:
        parse_demand(content, "demand.toml")
    return str(caught.value)


def test_a_demand_is_read_as_written(content: dict[str, Any]) -> None:
    demand = parse_demand(content, "demand.toml")
    chat, batch = demand.classes
    assert chat.tokens_per_s == 2085.0  # 5 * (208 + 209)
    assert batch.tokens_per_s == 16_680.0  # 40 * 417
    assert chat.prompt_share == pytest.approx(208 / 417)
    assert (chat.slo[0].label, chat.fleets, batch.slo, batch.fleets) == ("p99 TTFT <= 60 ms", ("h100",), (), None)
    assert [(fleet.max_gpus, fleet.pue, fleet.zone) for fleet in demand.fleets] == [(8, 1.2, "EU27"), (None, 1.0, None)]
    solve = demand.solve
    assert (solve.carbon_usd_per_t, solve.max_utilisation, solve.small_samples, solve.gap) == (100, 0.7, "penalise", 0)


def test_solve_may_be_left_out_and_has_the_documented_defaults(content: dict[str, Any]) -> None:
    del content["solve"]
    solve = parse_demand(content, "demand.toml").solve
    assert (solve.carbon_usd_per_t, solve.max_utilisation, solve.small_samples, solve.gap) == (0.0, 0.8, "allow", 0.001)


# key, a wrong value, the key as a person reads it (tables are counted from 1), what is accepted
WRONG: list[tuple[Key, Any, str, str]] = [
    (("class", 0, "requests_per_s"), -1, "class[1].requests_per_s", "a number >= 0"),
    (("class", 1, "requests_per_s"), "many", "class[2].requests_per_s", "a number"),
    (("class", 0, "prompt_tokens"), -0.5, "class[1].prompt_tokens", "a number >= 0"),
    (("class", 0, "generated_tokens"), [], "class[1].generated_tokens", "a number"),
    (("class", 0, "name"), "", "class[1].name", "at least 1 character"),
    (("class", 0, "name"), 7, "class[1].name", "text"),
    (("class", 0, "model"), "m" * 101, "class[1].model", "at most 100 characters"),
    (("class", 0, "slo", 0, "metric"), "latency", "class[1].slo[1].metric", "'ttft', 'tpot', 'itl' or 'e2e'"),
    (("class", 0, "slo", 0, "percentile"), 0, "class[1].slo[1].percentile", "a number > 0"),
    (("class", 0, "slo", 0, "percentile"), 100.1, "class[1].slo[1].percentile", "a number <= 100"),
    (("class", 0, "slo", 0, "max_ms"), 0, "class[1].slo[1].max_ms", "a number > 0"),
    (("fleet", 0, "usd_per_gpu_hour"), -2, "fleet[1].usd_per_gpu_hour", "a number >= 0"),
    (("fleet", 0, "max_gpus"), -1, "fleet[1].max_gpus", "a number >= 0"),
    (("fleet", 0, "max_gpus"), 2.5, "fleet[1].max_gpus", "a whole number"),
    (("fleet", 0, "max_gpus"), "few", "fleet[1].max_gpus", "a whole number"),
    (("fleet", 1, "pue"), 0.99, "fleet[2].pue", "a number >= 1"),
    (("fleet", 1, "g_per_kwh"), -1, "fleet[2].g_per_kwh", "a number >= 0"),
    (("fleet", 1, "zone"), 49, "fleet[2].zone", "text"),
    (("class", 0, "zones"), "EU27", "class[1].zones", "a list"),
    (("class", 0, "share"), "h100", "class[1].share", "a list"),
    (("class", 0, "deferrable"), "soon", "class[1].deferrable", "true or false"),
    (("fleet", 0, "availability"), 0, "fleet[1].availability", "a number > 0"),
    (("fleet", 0, "availability"), 1.1, "fleet[1].availability", "a number <= 1"),
    (("fleet", 0, "spare_replicas"), 0.5, "fleet[1].spare_replicas", "a whole number"),
    (("fleet", 0, "embodied_g_per_gpu_hour"), -1, "fleet[1].embodied_g_per_gpu_hour", "a number >= 0"),
    (("fleet", 0, "embodied_policy"), "none", "fleet[1].embodied_policy", "'full' or 'sunk'"),
    (("fleet", 0, "marginal_g_per_kwh"), -1, "fleet[1].marginal_g_per_kwh", "a number >= 0"),
    (("solve", "carbon_signal"), "direct", "solve.carbon_signal", "'average' or 'marginal'"),
    (("solve", "max_watts"), -1, "solve.max_watts", "a number >= 0"),
    (("solve", "max_usd_per_hour"), "5", "solve.max_usd_per_hour", "a number"),
    (("solve", "max_g_per_hour"), -0.1, "solve.max_g_per_hour", "a number >= 0"),
    (("solve", "switch_usd_per_replica"), -1, "solve.switch_usd_per_replica", "a number >= 0"),
    (("solve", "switch_hours"), 0, "solve.switch_hours", "a number > 0"),
    (("solve", "carbon_usd_per_t"), -1, "solve.carbon_usd_per_t", "a number >= 0"),
    (("solve", "max_utilisation"), 0, "solve.max_utilisation", "a number > 0"),
    (("solve", "max_utilisation"), 1.01, "solve.max_utilisation", "a number <= 1"),
    (("solve", "small_samples"), "ignore", "solve.small_samples", "'allow', 'penalise' or 'refuse'"),
    (("solve", "gap"), 1, "solve.gap", "a number < 1"),
    (("solve", "gap"), -0.1, "solve.gap", "a number >= 0"),
    (("solve",), "fast", "solve", "a table of keys"),
]


@pytest.mark.parametrize(
    ("key", "value", "shown", "accepted"), WRONG, ids=[f"{row[2]}={row[1]!r:.20}" for row in WRONG]
)
def test_a_wrong_value_is_refused_with_key_value_and_what_is_accepted(
    content: dict[str, Any], key: Key, value: Any, shown: str, accepted: str
) -> None:
    message = refusal(put(content, key, value))
    assert message.startswith(f"demand.toml: `{shown}`: given {repr(value)[:50]}")
    assert accepted in message
    assert "\n" not in message


NUMBERS: list[Key] = [
    ("class", 0, "requests_per_s"),
    ("class", 0, "prompt_tokens"),
    ("class", 0, "generated_tokens"),
    ("class", 0, "slo", 0, "percentile"),
    ("class", 0, "slo", 0, "max_ms"),
    ("fleet", 0, "usd_per_gpu_hour"),
    ("fleet", 0, "max_gpus"),
    ("fleet", 0, "g_per_kwh"),
    ("fleet", 0, "pue"),
    ("solve", "carbon_usd_per_t"),
    ("solve", "max_utilisation"),
    ("solve", "gap"),
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: str(key[-1]))
def test_nan_and_infinity_are_refused(content: dict[str, Any], key: Key, value: float) -> None:
    message = refusal(put(content, key, value))
    assert f"{key[-1]}`: given {value!r}" in message
    assert "finite" in message or "whole number" in message


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: str(key[-1]))
def test_true_and_false_are_not_numbers(content: dict[str, Any], key: Key) -> None:
    assert f"{key[-1]}`: given True" in refusal(put(content, key, True))


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (("clas",), "clas"),
        (("class", 1, "slos"), "class[2].slos"),
        (("class", 0, "slo", 0, "max"), "class[1].slo[1].max"),
        (("fleet", 0, "price"), "fleet[1].price"),
        (("solve", "gaps"), "solve.gaps"),
    ],
)
def test_an_unknown_key_is_refused_by_name(content: dict[str, Any], key: Key, shown: str) -> None:
    assert refusal(put(content, key, 1)) == f"demand.toml: `{shown}`: no such key (a misspelling?)"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (("class",), "class"),
        (("fleet",), "fleet"),
        (("class", 0, "model"), "class[1].model"),
        (("class", 0, "slo", 0, "max_ms"), "class[1].slo[1].max_ms"),
        (("fleet", 1, "gpu"), "fleet[2].gpu"),
    ],
)
def test_a_missing_key_is_named(content: dict[str, Any], key: Key, shown: str) -> None:
    inner: Any = content
    for part in key[:-1]:
        inner = inner[part]
    del inner[key[-1]]
    assert refusal(content) == f"demand.toml: `{shown}`: the key is missing"


@pytest.mark.parametrize("key", ["class", "fleet"])
def test_at_least_one_class_and_one_fleet(content: dict[str, Any], key: str) -> None:
    message = refusal(put(content, (key,), []))
    assert f"`{key}`: given []" in message


@pytest.mark.parametrize("key", ["class", "fleet"])
def test_one_table_where_a_list_of_tables_belongs_is_refused(content: dict[str, Any], key: str) -> None:
    message = refusal(put(content, (key,), content[key][0]))
    assert message.startswith(f"demand.toml: `{key}`: given {{")
    assert "list" in message


def test_several_findings_are_all_told(content: dict[str, Any]) -> None:
    message = refusal(put(put(content, ("solve", "gap"), 2), ("fleet", 0, "pue"), 0.5))
    assert len(message.splitlines()) == 2
    assert "fleet[1].pue" in message and "solve.gap" in message


@pytest.mark.parametrize("kind", ["class", "fleet"])
def test_a_name_given_twice_is_refused(content: dict[str, Any], kind: str) -> None:
    doubled = content[kind][0]["name"]
    message = refusal(put(content, (kind, 1, "name"), doubled))
    assert f"{kind} names that differ ({doubled} appears twice)" in message


def test_a_fleet_that_is_not_on_offer_is_refused_with_its_name_and_those_that_are(content: dict[str, Any]) -> None:
    message = refusal(put(content, ("class", 0, "fleets"), ["h100", "h200"]))
    assert "h200" in message
    assert "h100, rtx4090" in message


def test_limits_of_every_kind_are_read_as_written(content: dict[str, Any]) -> None:
    running = {"model": "org/model", "gpus_per_replica": 2, "replicas": 3}
    changed = put(content, ("class", 0, "share"), [{"fleet": "h100", "min": 0.25}, {"fleet": "rtx4090", "max": 0.5}])
    changed = put(changed, ("class", 0, "zones"), ["EU27"])
    changed = put(changed, ("fleet", 0, "today"), [running])
    changed = put(changed, ("fleet", 1, "availability"), 0.9)
    changed = put(changed, ("solve", "switch_usd_per_replica"), 12)
    demand = parse_demand(changed, "demand.toml")
    chat, (h100, rtx4090) = demand.classes[0], demand.fleets
    assert [(limit.fleet, limit.min, limit.max) for limit in chat.share] == [("h100", 0.25, 1.0), ("rtx4090", 0.0, 0.5)]
    assert (chat.zones, chat.deferrable, demand.classes[1].zones) == (("EU27",), False, None)
    assert (h100.availability, h100.spare_replicas, rtx4090.availability) == (1.0, 0, 0.9)
    assert (h100.embodied_g_per_gpu_hour, h100.embodied_policy, h100.marginal_g_per_kwh) == (None, "full", None)
    assert [one.model_dump() for one in h100.today] == [running]
    solve = demand.solve
    assert (solve.carbon_signal, solve.max_watts, solve.max_usd_per_hour, solve.max_g_per_hour) == (
        "average", None, None, None,
    )  # fmt: skip
    assert (solve.switch_hours, solve.switch_usd_per_hour) == (24.0, 0.5)  # $12 a replica over 24 h


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        (("class", 0, "share"), [{"fleet": "h100", "min": 0.6, "max": 0.5}], "min <= max (not 0.6 and 0.5)"),
        (
            ("class", 0, "share"),
            [{"fleet": "h100"}, {"fleet": "h100"}],
            "one share limit per fleet (h100 appears twice)",
        ),
        (
            ("class", 0, "share"),
            [{"fleet": "h100", "min": 0.6}, {"fleet": "rtx4090", "min": 0.5}],
            "share minima that sum to at most 1 (not 1.1)",
        ),
        (
            ("class", 0, "share"),
            [{"fleet": "h100", "max": 1.5}],
            "`class[1].share[1].max`: given 1.5; accepted: a number <= 1",
        ),
        (("class", 0, "share"), [{"fleet": "b200"}], "to list shares among h100, rtx4090 (not b200)"),
        (("fleet", 0, "spare_replicas"), 1, "availability < 1 or spare_replicas > 0, not both"),
        (
            ("fleet", 0, "today"),
            [{"model": "m", "gpus_per_replica": 1, "replicas": n} for n in (1, 2)],
            "one entry of `today` per model and size (m on 1 GPUs appears twice)",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(content: dict[str, Any], key: Key, value: Any, accepted: str) -> None:
    message = refusal(put(put(content, ("fleet", 0, "availability"), 0.9), key, value))
    assert accepted in message


def test_requests_without_tokens_are_refused(content: dict[str, Any]) -> None:
    empty = put(put(content, ("class", 1, "prompt_tokens"), 0), ("class", 1, "generated_tokens"), 0)
    message = refusal(empty)
    assert "class[2]" in message
    assert "prompt_tokens + generated_tokens > 0" in message


def test_a_class_may_have_no_load(content: dict[str, Any]) -> None:
    assert parse_demand(put(content, ("class", 1, "requests_per_s"), 0), "x").classes[1].tokens_per_s == 0


def test_text_is_not_a_number(content: dict[str, Any]) -> None:
    assert "given '7.5'; accepted: a number" in refusal(put(content, ("class", 0, "requests_per_s"), "7.5"))


def test_a_demand_cannot_be_changed_in_place(content: dict[str, Any]) -> None:
    demand = parse_demand(content, "x")
    with pytest.raises(ValueError, match="frozen"):
        demand.solve.gap = 0.5  # type: ignore[misc]


def test_a_demand_survives_a_round_trip(content: dict[str, Any]) -> None:
    demand = parse_demand(content, "x")
    assert Demand.model_validate_json(demand.model_dump_json(by_alias=True)) == demand
