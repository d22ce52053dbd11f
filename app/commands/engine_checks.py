"""What `wattmix doctor` says of engines: which are read, on which GPUs, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.commands.checks import Check

_SOURCES = {"config": "as configured", "processes": "by its processes", "environment": "by its environment"}
_NONE_FOUND = (
    "vLLM and TGI show metrics by themselves, SGLang with --enable-metrics, llama-server with --metrics; an engine "
    "elsewhere, or behind TLS, is named in [[agent.engine]] of wattmix.toml"
)


def engine_checks(reading: Mapping[str, Any], *, is_searching: bool) -> Iterator[Check]:
    """reading: of `wattmix agent --once`. is_searching: whether engines are looked for, and not only configured."""
    numbers = {gpu["uuid"]: gpu["index"] for gpu in reading["gpus"]}
    for engine in reading["engines"]:
        yield _engine(engine, numbers)
    silent = {name: why for name, why in reading["missing"].items() if name.startswith("engine")}
    for name, why in silent.items():
        if name.endswith(".gpus"):
            yield Check("note", f"the GPUs of {name.removesuffix('.gpus')} are not known", why)
        elif name.startswith("engine "):
            yield Check("note" if name.startswith("engine at ") else "problem", f"{name}: {why}")
        else:
            yield Check("note", why)
    if not reading["engines"] and not silent:
        what = "no engine was found on this node's ports" if is_searching else "no engine is configured"
        yield Check("note", what, _NONE_FOUND)


def _engine(engine: Mapping[str, Any], numbers: Mapping[str, int]) -> Check:
    version = f" {engine['version']}" if engine["version"] else ""
    label = f", engine {engine['label']}" if engine["label"] else ""
    name = f"{engine['kind']}{version} at {engine['url']}{label}"
    if engine["status"] != "ok":
        return Check("problem", f"{name}: {engine['status']}")
    model = engine["model"] or "model unknown (set `model` in [[agent.engine]])"
    return Check("ok", f"{name}: {model}, {_place(engine, numbers)}")


def _place(engine: Mapping[str, Any], numbers: Mapping[str, int]) -> str:
    if engine["gpus"] is None:
        return "GPUs unknown"
    if not engine["gpus"]:
        return f"on no GPU ({_SOURCES[engine['gpus_source']]})"
    shown = ", ".join(str(numbers.get(uuid, uuid)) for uuid in engine["gpus"])
    return f"on GPU {shown} ({_SOURCES[engine['gpus_source']]})"
