"""GPU names: NVML, result files and people spell one card in many ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from app.reference.tables import optional_number, read_table

# A longer name that goes on with one of these is another product, not the same card with a suffix.
_OTHER_PRODUCT = {"super", "ti", "laptop", "mobile", "max", "d", "nvl", "ada", "server", "workstation"}
_MAKER_PREFIXES = ((), ("nvidia",), ("nvidia", "geforce"), ("amd", "instinct"), ("amd",))


@dataclass(frozen=True)
class GpuSpec:
    """One card. tdp_w is the board's power limit in W, a ceiling for planning, never a measurement."""

    name: str
    display: str
    gpu_class: str
    tdp_w: float | None
    embodied_kg: float | None
    source: str

    @property
    def kind(self) -> str:
        """The fleet kind this card implies: consumer, else enterprise."""
        return "consumer" if self.gpu_class == "consumer" else "enterprise"


def words(name: str) -> tuple[str, ...]:
    """A GPU name without its spelling: `NVIDIA-H100-PCIe` and `NVIDIA H100 PCIe` are the same words."""
    return tuple(re.split(r"[\s_\-]+", name.strip().casefold()))


@lru_cache(maxsize=4096)
def find_gpu(name: str) -> GpuSpec | None:
    """The card a name stands for: an exact match first, then the longest whole-word prefix; None when unknown.

    `NVIDIA L4` never matches `NVIDIA L40S`, nor `RTX 4080` its SUPER or Laptop namesakes.
    """
    for maker in _MAKER_PREFIXES:
        spelled = (*maker, *words(name))
        exact = _by_words().get(spelled)
        if exact:
            return exact
    for length in range(len(words(name)) - 1, 1, -1):
        prefix, rest = words(name)[:length], words(name)[length:]
        if prefix in _by_words():
            return None if rest[0] in _OTHER_PRODUCT else _by_words()[prefix]
    return None


def same_gpu(one: str, other: str) -> bool:
    """Whether two names mean the same card."""
    if words(one) == words(other):
        return True
    spec = find_gpu(one)
    return spec is not None and spec == find_gpu(other)


def card_name(name: str) -> str:
    """One spelling for all names of a card; an unknown card keeps its own name."""
    spec = find_gpu(name)
    return spec.name if spec else name


def card_key(name: str) -> str:
    """The same for two names exactly where `same_gpu` holds."""
    return " ".join(words(card_name(name)))


def display_name(name: str) -> str:
    """A short name for people; an unknown card keeps its own."""
    spec = find_gpu(name)
    return spec.display.removeprefix("GeForce ") if spec else name


@cache
def gpu_specs() -> tuple[GpuSpec, ...]:
    return tuple(
        GpuSpec(
            name=row["name_pattern"],
            display=row["display"],
            gpu_class=row["class"],
            tdp_w=optional_number(row["tdp_w"]),
            embodied_kg=optional_number(row["embodied_kg"]),
            source=row["source"],
        )
        for row in read_table("gpu_specs")
    )


@cache
def _by_words() -> dict[tuple[str, ...], GpuSpec]:
    found: dict[tuple[str, ...], GpuSpec] = {}
    for spec, row in zip(gpu_specs(), read_table("gpu_specs"), strict=True):
        for spelling in (spec.name, spec.display, *filter(None, row["aliases"].split(";"))):
            found.setdefault(words(spelling), spec)
    return found
