"""Which engines to read, as a person names them: the address of a metrics page and what the page does not tell."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from collectors.samples import EngineKind, Id, Text

DEFAULT_PATH = "/metrics"
_ADDRESS = "an engine's address such as http://127.0.0.1:8000 or http://node7:8000/metrics"
_GPUS = 'GPU UUIDs such as GPU-5f2b3c1d-..., or numbers of nvidia-smi as text such as "0"'
_MIG = "whole GPUs: energy is metered per GPU, so name the GPU of a MIG instance"
_UUID = re.compile(r"[0-9a-f]+(-[0-9a-f]+)+")
_MAX_URL, _MAX_UUID = 200, 80


class EngineTarget(BaseModel):
    """One metrics page to read.

    url: http(s)://host[:port][/path], the path /metrics when left out. kind: recognised by the page when None. model:
    for an engine whose page does not name it. gpus: UUIDs (lower case, without `GPU-`) or NVML indexes, as text; found
    by its processes when None. labels: free words about the engine.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    kind: EngineKind | None = None
    model: Id | None = None
    gpus: Annotated[tuple[str, ...], Field(max_length=1024)] | None = None
    labels: Annotated[dict[Id, Text], Field(max_length=50)] = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def _is_a_page(cls, url: str) -> str:
        parts = _split(url)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            # Such an address would end up in logs and in the store.
            raise ValueError("an engine's address without user, password or query")
        page = f"{parts.scheme}://{_place(parts)}{parts.path.rstrip('/') or DEFAULT_PATH}"
        if len(page) > _MAX_URL or not page.isascii() or not page.isprintable() or " " in page:
            raise ValueError(f"{_ADDRESS}, of at most {_MAX_URL} characters in ASCII")
        return page

    @field_validator("gpus")
    @classmethod
    def _are_gpus(cls, gpus: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if gpus is None:
            return None
        plain = tuple(gpu.strip().lower().removeprefix("gpu-") for gpu in gpus)
        for gpu in plain:
            if gpu.startswith("mig"):
                raise ValueError(_MIG)
            if not is_index(gpu) and not (_UUID.fullmatch(gpu) and len(gpu) <= _MAX_UUID):
                raise ValueError(_GPUS)
        if len(set(plain)) < len(plain):
            raise ValueError("GPUs that differ; one is named twice")
        return plain

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)


TargetT = TypeVar("TargetT", bound=EngineTarget)


def urls_that_differ(targets: tuple[TargetT, ...]) -> tuple[TargetT, ...]:
    """`targets`. Raises ValueError when one page is named twice: its tokens would count twice."""
    urls = [target.url for target in targets]
    twice = sorted({url for url in urls if urls.count(url) > 1})
    if twice:
        raise ValueError(f"engines that differ in url ({twice[0]} appears twice)")
    return targets


def is_index(gpu: str) -> bool:
    """Whether a GPU is named by its NVML index, and not by its UUID."""
    return gpu.isascii() and gpu.isdecimal() and len(gpu) <= 4


def _place(parts: SplitResult) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port is None else f"{host}:{parts.port}"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(f"{_ADDRESS}; the port is 1 to 65535") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(_ADDRESS)
    return parts
