"""The GPUs that a process may use by its environment: CUDA_VISIBLE_DEVICES, as CUDA reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collectors.engine.targets import is_index
from collectors.samples import Gpu


class NotTold(Exception):
    """The environment does not say which GPUs; str(error) is why, in words."""


def visible_gpus(environment: Mapping[str, str], gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """UUIDs of the GPUs that a process with this environment sees, in its order. Raises NotTold."""
    within = _container_gpus(environment, gpus)
    given = environment.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        if within is None:
            raise NotTold("CUDA_VISIBLE_DEVICES is not set, so it may use any GPU")
        return within
    if "mig-" in given.lower():
        raise NotTold("it runs on a MIG instance, and energy is metered per GPU")
    found: list[str] = []
    for entry in given.split(","):
        entry = entry.strip()
        if entry in ("", "-1"):
            break  # CUDA ignores this entry and all after it
        found.append(_by_index(int(entry), environment, gpus, within) if is_index(entry) else _by_uuid(entry, gpus))
    return tuple(dict.fromkeys(found))


def _container_gpus(environment: Mapping[str, str], gpus: Sequence[Gpu]) -> tuple[str, ...] | None:
    """The GPUs that a container was given; None when it was given all, or this is none."""
    given = environment.get("NVIDIA_VISIBLE_DEVICES", "all").strip()
    if given in ("all", ""):
        return None
    if given in ("void", "none"):
        return ()
    # Numbers mean a container's GPUs only inside one; a UUID is the same everywhere.
    if not all(entry.strip().lower().startswith("gpu-") for entry in given.split(",")):
        raise NotTold("NVIDIA_VISIBLE_DEVICES is set without UUIDs, so its GPU numbers may be a container's own")
    return tuple(_by_uuid(entry, gpus) for entry in given.split(","))


def _by_index(index: int, environment: Mapping[str, str], gpus: Sequence[Gpu], within: tuple[str, ...] | None) -> str:
    if within is not None:
        if index >= len(within):
            raise NotTold(f"CUDA_VISIBLE_DEVICES names GPU {index}, and its container has {len(within)}")
        return within[index]
    # CUDA numbers by speed unless told otherwise, which is the driver's order only among GPUs of one kind.
    if len({gpu.name for gpu in gpus}) > 1 and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise NotTold("the node's GPUs differ and CUDA_DEVICE_ORDER is not PCI_BUS_ID, so GPU numbers are CUDA's own")
    found = [gpu.uuid for gpu in gpus if gpu.index == index]
    if len(found) != 1:
        raise NotTold(f"CUDA_VISIBLE_DEVICES names GPU {index}, which this node does not have")
    return found[0]


def _by_uuid(entry: str, gpus: Sequence[Gpu]) -> str:
    """CUDA takes the beginning of a UUID where that is unambiguous."""
    plain = entry.strip().lower().removeprefix("gpu-")
    found = [gpu.uuid for gpu in gpus if plain and gpu.uuid.startswith(plain)]
    if len(found) != 1:
        raise NotTold(f"its environment names a GPU that this node does not have: {entry.strip()[:60]}")
    return found[0]
