"""A router plan as the settings of LiteLLM, of the vLLM production stack, and of the Kubernetes Gateway API.

What each of them reads, as of 2026:
LiteLLM's proxy (docs.litellm.ai, "Config.yaml" and "Routing"): `model_list`; deployments of one `model_name` are chosen
at random by `litellm_params.weight` under the strategy `simple-shuffle`. `hosted_vllm/` is an OpenAI-compatible server.
vLLM production stack (its Helm chart's `routerSpec`): `staticBackends` and `staticModels`, one model for each address.
Its `roundrobin` has no weights: it takes the addresses that serve the model in turns, so an address gets more turns by
being there more often.
Gateway API v1 HTTPRoute: weights of backendRefs, at most 16 of them; InferencePool is v1 of
inference.networking.k8s.io. The model's name is in the header that the body-based router of the inference extension
(and llm-d) sets from the request's body.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Literal, get_args

from app.split.router import WHOLE, Route, RouterPlan, RouterPool, dns_label, unique_names, whole_parts
from app.yaml_text import Plain, yaml_text

RouterFormat = Literal["litellm", "production-stack", "gateway-api"]
FORMATS: tuple[str, ...] = get_args(RouterFormat)
MODEL_HEADER = "X-Gateway-Model-Name"
CLASS_HEADER = "X-Wattmix-Class"
# Stands for what only a person can know. `.invalid` resolves nowhere (RFC 2606): who forgets it finds out at once.
FILL_IN = "fill-in"
# Turns of one route at most: an address appears once for each.
_MOST_TURNS = 400
_CLOSE_ENOUGH = 0.002
_MOST_REFS = 16


def router_file(plan: RouterPlan, form: RouterFormat, made_at: datetime, version: str) -> str:
    """The settings as YAML, the comment on top included. Only the date in it differs for the same plan."""
    documents = _WRITERS[form](plan)
    text = [*_comment(plan, form, made_at, version)]
    return "".join(f"# {line}\n" for line in text) + "---\n".join(documents)


def turns(weights: Mapping[str, int], engines: Mapping[str, int]) -> dict[str, int]:
    """How often each address of a pool appears, so that the pool gets its part of the turns.

    engines: addresses of each pool. The fewest turns that are within 0.2 points of the weights, else the closest.
    """
    each = {name: weight / engines[name] for name, weight in weights.items()}
    least = min(each.values())
    best, error = dict.fromkeys(weights, 1), float("inf")
    for scale in range(1, _MOST_TURNS + 1):
        found = {name: max(1, round(part / least * scale)) for name, part in each.items()}
        if _error(found, weights, engines) < error - 1e-12:
            best, error = found, _error(found, weights, engines)
        if error <= _CLOSE_ENOUGH or sum(engines[name] * found[name] for name in found) > _MOST_TURNS:
            break
    divisor = math.gcd(*best.values())
    return {name: count // divisor for name, count in best.items()}


def _error(found: Mapping[str, int], weights: Mapping[str, int], engines: Mapping[str, int]) -> float:
    total = sum(engines[name] * count for name, count in found.items())
    return max(abs(engines[name] * count / total - weights[name] / WHOLE) for name, count in found.items())


def _comment(plan: RouterPlan, form: RouterFormat, made_at: datetime, version: str) -> Iterator[str]:
    yield f"{_TITLES[form]}, made by Wattmix {version} at {made_at.isoformat(timespec='seconds')}"
    yield f"inputs: {plan.digest} (SHA-256 of the demand, the operating points and the engines' addresses)"
    yield "Wattmix advises, it does not route: nothing was applied. Fill in what only you know, and apply it yourself."
    for pool in plan.pools.values():
        sized = f"{pool.replicas} x {pool.gpus} GPU{'' if pool.gpus == 1 else 's'}"
        yield f"pool {pool.name}: {sized} of fleet {json.dumps(pool.fleet)}, at most {pool.load}"
        yield f"  {_to_do(pool, form)}"
    for route in plan.routes:
        parts = ", ".join(f"{weight / WHOLE:.1%} to {name}" for name, weight in route.weights.items())
        yield f"{', '.join(map(json.dumps, route.classes))}: {parts}"
    for name in plan.idle:
        yield f"{json.dumps(name)} asks for nothing, so it has no route"
    yield from _NOTES[form](plan)


def _to_do(pool: RouterPool, form: RouterFormat) -> str:
    if form == "gateway-api":
        return f"replace {FILL_IN}-{pool.name} by the name of its InferencePool"
    if not pool.urls:
        return f"its address is not known here: replace {FILL_IN}-{pool.name}.invalid:8000"
    return f"{len(pool.urls)} of its engines were seen in the last hour"


def _litellm_notes(plan: RouterPlan) -> Iterator[str]:
    if any(route.class_name for route in plan.routes):
        yield "Classes of one model go different ways: callers ask for the model_name of their class."


def _litellm(plan: RouterPlan) -> list[str]:
    deployments: list[Plain] = []
    for route in plan.routes:
        for name, weight in route.weights.items():
            pool = plan.pools[name]
            addresses = pool.urls or (_unknown(pool),)
            for address, part in zip(addresses, whole_parts([1.0] * len(addresses), weight), strict=True):
                if part:  # a weight of 0 is never chosen, and with it alone LiteLLM fails
                    deployments.append(_deployment(route, pool, address, part))
    return [yaml_text({"model_list": deployments, "router_settings": {"routing_strategy": "simple-shuffle"}})]


def _deployment(route: Route, pool: RouterPool, address: str, weight: int) -> Plain:
    return {
        "model_name": route.model if route.class_name is None else f"{route.model}:{route.class_name}",
        "litellm_params": {
            "model": f"hosted_vllm/{pool.model}",
            "api_base": f"{address.rstrip('/')}/v1",
            "weight": weight,
        },
        "model_info": {"fleet": pool.fleet, "pool": pool.name, "replicas": pool.replicas},
    }


def _stack_notes(plan: RouterPlan) -> Iterator[str]:
    yield "The router's round robin has no weights: an address that is there more often gets as many more turns."
    if any(route.class_name for route in plan.routes):
        yield "Classes of one model go different ways: each class has a router of its own, with the values below it."


def _stack(plan: RouterPlan) -> list[str]:
    """One router for all routes that a model's name tells apart, and one for each other class."""
    shared = [route for route in plan.routes if route.class_name is None]
    groups = [shared] if shared else []
    groups += [[route] for route in plan.routes if route.class_name is not None]
    documents = []
    for group in groups:
        classes = ", ".join(json.dumps(name) for route in group for name in route.classes)
        documents.append(f"# router of {classes}\n" + yaml_text({"routerSpec": _router(plan, group)}))
    return documents


def _router(plan: RouterPlan, routes: list[Route]) -> Plain:
    backends: list[tuple[str, str]] = []
    aliases: dict[str, str] = {}
    for route in routes:
        pools = [plan.pools[name] for name in route.weights]
        often = turns(route.weights, {pool.name: len(pool.urls) or 1 for pool in pools})
        for pool in pools:
            backends += [(url, pool.model) for url in (pool.urls or (_unknown(pool),)) for _ in range(often[pool.name])]
            if pool.model != route.model:
                aliases[route.model] = pool.model
    spec: dict[str, Plain] = {
        "enableRouter": True,
        "serviceDiscovery": "static",
        "routingLogic": "roundrobin",
        "staticBackends": ",".join(url for url, _ in backends),
        "staticModels": ",".join(model for _, model in backends),
    }
    if aliases:
        spec["extraArgs"] = ["--static-aliases", ",".join(f"{short}:{full}" for short, full in aliases.items())]
    return spec


def _gateway_notes(plan: RouterPlan) -> Iterator[str]:
    yield f"{MODEL_HEADER} is set from the request's body by a body-based router; callers can set it as well."
    yield "A pool that is a Service and not an InferencePool: leave out group and kind, and name its port."
    for pool in plan.pools.values():
        if pool.urls:
            yield f"engines of {pool.name} are at {', '.join(map(json.dumps, pool.urls))}"
    if any(route.class_name for route in plan.routes):
        yield f"Classes of one model go different ways: callers name theirs in the header {CLASS_HEADER}."
    if any(len(route.weights) > _MOST_REFS for route in plan.routes):
        yield f"More than {_MOST_REFS} pools in one rule: the Gateway API takes {_MOST_REFS} backendRefs at most."


def _gateway(plan: RouterPlan) -> list[str]:
    names = unique_names(dns_label(f"{route.model}-{route.class_name or ''}") for route in plan.routes)
    return [yaml_text(_http_route(route, name)) for route, name in zip(plan.routes, names, strict=True)]


def _http_route(route: Route, name: str) -> Mapping[str, Plain]:
    headers: list[Plain] = [{"type": "Exact", "name": MODEL_HEADER, "value": route.model}]
    if route.class_name is not None:
        headers.append({"type": "Exact", "name": CLASS_HEADER, "value": route.class_name})
    backends: list[Plain] = [
        {
            "group": "inference.networking.k8s.io",
            "kind": "InferencePool",
            "name": f"{FILL_IN}-{pool}",
            "weight": weight,
        }
        for pool, weight in route.weights.items()
    ]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name},
        "spec": {
            "parentRefs": [{"name": f"{FILL_IN}-gateway"}],
            "rules": [{"matches": [{"headers": headers}], "backendRefs": backends}],
        },
    }


def _unknown(pool: RouterPool) -> str:
    return f"http://{FILL_IN}-{pool.name}.invalid:8000"


_TITLES: dict[RouterFormat, str] = {
    "litellm": "Weights for LiteLLM's proxy (config.yaml)",
    "production-stack": "Weights for the router of the vLLM production stack (Helm values)",
    "gateway-api": "Weights for the Kubernetes Gateway API (HTTPRoute)",
}
_WRITERS: dict[RouterFormat, Callable[[RouterPlan], list[str]]] = {
    "litellm": _litellm,
    "production-stack": _stack,
    "gateway-api": _gateway,
}
_NOTES: dict[RouterFormat, Callable[[RouterPlan], Iterator[str]]] = {
    "litellm": _litellm_notes,
    "production-stack": _stack_notes,
    "gateway-api": _gateway_notes,
}
