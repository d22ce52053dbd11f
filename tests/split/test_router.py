"""Weights for routers: whole, summing to 1000, the split's own shares; and files that the routers can read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DemandError
from app.split.options import Option
from app.split.recommend import best_split
from app.split.router import (
    WHOLE,
    RouterPlan,
    Shape,
    dns_label,
    inputs_digest,
    router_plan,
    unique_names,
    whole_parts,
)
from app.split.router_files import FORMATS, router_file, turns
from tests.split.builders import MODEL, a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
LATER = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
DEAR_URLS = {("dear", MODEL, 1): ["http://node7:8000", "http://node8:8000"]}


def plan_of(
    classes: Sequence[Any], *, engines: Mapping[Shape, Sequence[str]] | None = None, dear_gpus: int | None = None
) -> RouterPlan:
    """dear: $2, p99 TTFT 50 ms; cheap: $0.50, p99 TTFT 300 ms; 800 tokens/s each; exact, filled to 100%."""
    dear = a_fleet("dear", usd_per_gpu_hour=2.0)
    cheap = a_fleet("cheap", usd_per_gpu_hour=0.5, max_gpus=dear_gpus)
    options: list[Option] = [an_option(dear, a_run(latency=ttft(50.0))), an_option(cheap, a_run(latency=ttft(300.0)))]
    demand = a_demand(list(classes), [dear, cheap])
    return router_plan(demand, best_split(demand, options), options, engines or {})


def both() -> RouterPlan:
    """8 req/s = 1,600 tokens/s of a class without a limit; one cheap GPU takes 800 of them, so each fleet has half."""
    return plan_of([a_class("batch", requests_per_s=8.0)], dear_gpus=1)


def strict_and_loose() -> RouterPlan:
    """Of one model: chat must have 60 ms, which only dear holds; batch goes to cheap, 4 req/s = 800 tokens/s each."""
    chat = a_class("chat", requests_per_s=4.0, slo=(a_slo(60.0),))
    return plan_of([chat, a_class("batch", requests_per_s=4.0)])


def parsed(plan: RouterPlan, form: Any) -> list[Any]:
    return list(yaml.safe_load_all(router_file(plan, form, NOW, "1.2")))


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20).filter(lambda parts: sum(parts) > 1e-3))
def test_whole_parts_sum_to_the_whole_and_are_within_one_of_the_exact_part(parts: list[float]) -> None:
    found = whole_parts(parts, WHOLE)
    assert sum(found) == WHOLE
    assert all(abs(one - part / sum(parts) * WHOLE) < 1 + 1e-6 for one, part in zip(found, parts, strict=True))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([1.0], [1000]),
        ([0.98, 0.02], [980, 20]),
        # 333.3 each: the first of equal remainders gets the one that is left
        ([1.0, 1.0, 1.0], [334, 333, 333]),
        # 142.86, 285.71, 571.43: two are left, for the remainders .86 and .71
        ([1.0, 2.0, 4.0], [143, 286, 571]),
        # 0.29 x 1000 is 289.99999999999994
        ([0.29, 0.71], [290, 710]),
        ([1e-9, 1.0], [0, 1000]),
    ],
)
def test_whole_parts_by_hand(parts: list[float], expected: list[int]) -> None:
    assert whole_parts(parts, 1000) == expected


@pytest.mark.parametrize(
    ("weights", "engines", "expected"),
    [
        ({"a": 500, "b": 500}, {"a": 1, "b": 1}, {"a": 1, "b": 1}),
        ({"a": 980, "b": 20}, {"a": 1, "b": 1}, {"a": 49, "b": 1}),
        ({"a": 1000}, {"a": 7}, {"a": 1}),
        # 2 addresses of a share 2/3: as often as the one of b
        ({"a": 667, "b": 333}, {"a": 2, "b": 1}, {"a": 1, "b": 1}),
        ({"a": 600, "b": 400}, {"a": 1, "b": 1}, {"a": 3, "b": 2}),
    ],
)
def test_an_address_gets_as_many_turns_as_its_pool_has_to_have(
    weights: dict[str, int], engines: dict[str, int], expected: dict[str, int]
) -> None:
    assert turns(weights, engines) == expected


@given(st.integers(20, 980), st.integers(1, 9), st.integers(1, 9))
def test_turns_are_near_the_weights(weight: int, a: int, b: int) -> None:
    found = turns({"a": weight, "b": WHOLE - weight}, {"a": a, "b": b})
    total = a * found["a"] + b * found["b"]
    assert a * found["a"] / total == pytest.approx(weight / WHOLE, abs=0.01)
    assert total <= 1000


def test_a_model_whose_classes_go_the_same_way_is_one_route() -> None:
    plan = plan_of([a_class("batch", requests_per_s=2.0), a_class("more", requests_per_s=2.0)])
    assert [(one.model, one.class_name, one.classes, dict(one.weights)) for one in plan.routes] == [
        (MODEL, None, ("batch", "more"), {"cheap-1gpu": 1000})
    ]


def test_classes_of_a_model_that_go_different_ways_are_routes_of_their_own() -> None:
    plan = strict_and_loose()
    assert [(one.class_name, dict(one.weights)) for one in plan.routes] == [
        ("chat", {"dear-1gpu": 1000}),
        ("batch", {"cheap-1gpu": 1000}),
    ]


def test_a_class_that_asks_for_nothing_has_no_route_and_is_named() -> None:
    plan = plan_of([a_class("batch", requests_per_s=2.0), a_class("none", requests_per_s=0.0)])
    assert [one.classes for one in plan.routes] == [("batch",)]
    assert plan.idle == ("none",)
    assert '# "none" asks for nothing, so it has no route\n' in router_file(plan, "litellm", NOW, "1.2")


def test_where_no_mix_carries_the_demand_there_are_no_weights() -> None:
    with pytest.raises(DemandError, match=r"no mix carries this demand, so there are no weights: .* fits nowhere"):
        plan_of([a_class("chat", slo=(a_slo(40.0),))])


def test_litellm_chooses_by_weight_among_deployments_of_a_name() -> None:
    [document] = parsed(both(), "litellm")
    assert document == {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"hosted_vllm/{MODEL}",
                    "api_base": f"http://fill-in-{fleet}-1gpu.invalid:8000/v1",
                    "weight": 500,
                },
                "model_info": {"fleet": fleet, "pool": f"{fleet}-1gpu", "replicas": 1},
            }
            for fleet in ("cheap", "dear")
        ],
        "router_settings": {"routing_strategy": "simple-shuffle"},
    }


def test_engines_that_are_known_share_the_weight_of_their_pool() -> None:
    plan = plan_of([a_class("chat", requests_per_s=4.0, slo=(a_slo(60.0),))], engines=DEAR_URLS)
    [document] = parsed(plan, "litellm")
    params = [one["litellm_params"] for one in document["model_list"]]
    assert [(one["api_base"], one["weight"]) for one in params] == [
        ("http://node7:8000/v1", 500),
        ("http://node8:8000/v1", 500),
    ]
    assert "fill-in" not in router_file(plan, "litellm", NOW, "1.2").split("\nmodel_list:")[1]


def test_litellm_has_a_name_for_each_class_that_goes_its_own_way() -> None:
    [document] = parsed(strict_and_loose(), "litellm")
    named = {one["model_name"]: one["model_info"]["fleet"] for one in document["model_list"]}
    assert named == {f"{MODEL}:chat": "dear", f"{MODEL}:batch": "cheap"}


def test_the_production_stack_gets_one_model_for_each_address() -> None:
    [document] = parsed(both(), "production-stack")
    spec = document["routerSpec"]
    backends, models = spec["staticBackends"].split(","), spec["staticModels"].split(",")
    assert backends == ["http://fill-in-cheap-1gpu.invalid:8000", "http://fill-in-dear-1gpu.invalid:8000"]
    assert models == [MODEL, MODEL]
    assert {name: spec[name] for name in ("enableRouter", "serviceDiscovery", "routingLogic")} == {
        "enableRouter": True, "serviceDiscovery": "static", "routingLogic": "roundrobin",
    }  # fmt: skip
    assert "extraArgs" not in spec


def test_a_short_name_of_a_model_is_an_alias_of_the_one_that_is_served() -> None:
    plan = plan_of([a_class("batch", model="model", requests_per_s=2.0)])
    [stack], [litellm] = parsed(plan, "production-stack"), parsed(plan, "litellm")
    assert stack["routerSpec"]["extraArgs"] == ["--static-aliases", f"model:{MODEL}"]
    assert stack["routerSpec"]["staticModels"] == MODEL
    assert litellm["model_list"][0]["model_name"] == "model"
    assert litellm["model_list"][0]["litellm_params"]["model"] == f"hosted_vllm/{MODEL}"


def test_the_production_stack_has_a_router_for_each_class_that_goes_its_own_way() -> None:
    documents = parsed(strict_and_loose(), "production-stack")
    assert [one["routerSpec"]["staticBackends"] for one in documents] == [
        "http://fill-in-dear-1gpu.invalid:8000",
        "http://fill-in-cheap-1gpu.invalid:8000",
    ]


def test_an_http_route_has_weights_of_inference_pools_for_the_header_of_the_model() -> None:
    [document] = parsed(both(), "gateway-api")
    assert (document["apiVersion"], document["kind"]) == ("gateway.networking.k8s.io/v1", "HTTPRoute")
    assert document["metadata"]["name"] == "org-model"
    assert document["spec"]["parentRefs"] == [{"name": "fill-in-gateway"}]
    [rule] = document["spec"]["rules"]
    assert rule["matches"] == [{"headers": [{"type": "Exact", "name": "X-Gateway-Model-Name", "value": MODEL}]}]
    assert rule["backendRefs"] == [
        {
            "group": "inference.networking.k8s.io",
            "kind": "InferencePool",
            "name": f"fill-in-{fleet}-1gpu",
            "weight": 500,
        }
        for fleet in ("cheap", "dear")
    ]


def test_http_routes_of_classes_match_a_header_of_the_class_as_well() -> None:
    documents = parsed(strict_and_loose(), "gateway-api")
    assert [one["metadata"]["name"] for one in documents] == ["org-model-chat", "org-model-batch"]
    headers = [one["spec"]["rules"][0]["matches"][0]["headers"][1] for one in documents]
    assert headers == [{"type": "Exact", "name": "X-Wattmix-Class", "value": name} for name in ("chat", "batch")]


@pytest.mark.parametrize("form", FORMATS)
def test_only_the_date_differs_for_the_same_inputs(form: Any) -> None:
    first, again = router_file(both(), form, NOW, "1.2"), router_file(both(), form, LATER, "1.2")
    assert first != again
    assert first.replace("2026-02-03T04:05:06+00:00", "X") == again.replace("2026-05-06T07:08:09+00:00", "X")
    head = first.splitlines()
    assert head[0].endswith(", made by Wattmix 1.2 at 2026-02-03T04:05:06+00:00")
    assert re.fullmatch(r"# inputs: [0-9a-f]{16} \(SHA-256 of .*\)", head[1])
    assert head[2].startswith("# Wattmix advises, it does not route")


def test_the_hash_changes_with_demand_options_and_addresses() -> None:
    plans = [
        both(),
        plan_of([a_class("batch", requests_per_s=8.5)], dear_gpus=1),
        plan_of([a_class("batch", requests_per_s=8.0)]),
        plan_of([a_class("batch", requests_per_s=8.0)], dear_gpus=1, engines=DEAR_URLS),
    ]
    assert len({plan.digest for plan in plans}) == 4
    assert both().digest == both().digest


def test_the_hash_changes_with_what_was_measured_at_an_operating_point() -> None:
    """The id of a live point is that of its load: another hour measures other tokens/s there."""
    fleet = a_fleet("one")
    demand = a_demand([a_class("batch", requests_per_s=1.0)], [fleet])
    one = an_option(fleet, a_run())
    faster = replace(one, point=replace(one.point, tokens_per_s=2 * one.point.tokens_per_s))
    assert faster.point.point_id == one.point.point_id
    assert inputs_digest(demand, [one], {}) != inputs_digest(demand, [faster], {})


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ['x"\n- y: {a', "# no\r\n---", "ünï\u2028code", "yes", "%TAG ! x", "\t'"])
def test_no_name_breaks_the_yaml(form: Any, name: str) -> None:
    fleet = a_fleet(name)
    options = [an_option(fleet, a_run(model=name))]
    demand = a_demand([a_class(name, model=name, requests_per_s=1.0)], [fleet])
    plan = router_plan(demand, best_split(demand, options), options, {})
    [document] = parsed(plan, form)
    [pool] = plan.pools
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", pool)
    if form == "litellm":
        assert document["model_list"][0]["model_name"] == name
        assert document["model_list"][0]["model_info"]["fleet"] == name
    if form == "gateway-api":
        assert document["spec"]["rules"][0]["matches"][0]["headers"][0]["value"] == name


def test_pools_of_one_shape_keep_names_of_their_own_and_no_address() -> None:
    fleet = a_fleet("one", max_gpus=2)
    # 40 and 80 req/s points of one fleet: chat may only use the slower, 400 tokens/s of it; batch the faster
    slow = an_option(fleet, a_run(latency=ttft(50.0), duration_s=500.0))
    fast = an_option(fleet, a_run(latency=ttft(300.0), offered_requests_per_s=8.0))
    demand = a_demand(
        [a_class("chat", requests_per_s=2.0, slo=(a_slo(60.0),)), a_class("batch", requests_per_s=4.0)], [fleet]
    )
    plan = router_plan(demand, best_split(demand, [slow, fast]), [slow, fast], {("one", MODEL, 1): ["http://n:1"]})
    assert sorted(plan.pools) == ["one-1gpu", "one-1gpu-2"]
    assert all(pool.urls == () for pool in plan.pools.values())


def test_names_for_kubernetes() -> None:
    assert dns_label("Org/Model 14B!") == "org-model-14b"
    assert dns_label("***") == "pool"
    assert len(dns_label("x" * 80)) == 50
    assert unique_names(["a", "a", "a-2", "a"]) == ["a", "a-2", "a-2-2", "a-3"]
