"""What an agent is told: where the hub is, who the node is, where the spool lies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from platformdirs import user_state_path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from collectors.engine.targets import EngineTarget, urls_that_differ
from collectors.samples import Id, Text
from collectors.spool import DEFAULT_MAX_AGE_S, DEFAULT_MAX_BYTES

_DAY_S = 86_400.0


class AgentSettings(BaseModel):
    """Settings of one agent. A wrong value raises pydantic's ValidationError (a ValueError) that names it.

    hub: http(s)://host[:port][/prefix]. node_id: stable name of the node, the host name if None. labels: free words
    about the node. token_file: holds the node token. spool_max_bytes, spool_max_age_s: bounds of the spool.
    nvml_library: path of libnvidia-ml, the system's if None. interval_s: seconds between readings. push_every_s:
    seconds of readings that make a batch. engines: metrics pages to read, beside those that discover_engines finds
    on this node; each every scrape_every_s.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str
    node_id: Id | None = None
    labels: Annotated[dict[Id, Text], Field(max_length=50)] = Field(default_factory=dict)
    token_file: Path | None = None
    spool_path: Path = Field(default_factory=lambda: user_state_path("wattmix") / "spool.db")
    spool_max_bytes: Annotated[int, Field(ge=1_000_000)] = DEFAULT_MAX_BYTES
    spool_max_age_s: Annotated[float, Field(ge=60, le=6.9 * _DAY_S)] = DEFAULT_MAX_AGE_S
    nvml_library: str | None = None
    interval_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    push_every_s: Annotated[float, Field(ge=0.5, le=3600)] = 10.0
    engines: Annotated[tuple[EngineTarget, ...], Field(max_length=200), AfterValidator(urls_that_differ)] = ()
    discover_engines: bool = True
    scrape_every_s: Annotated[float, Field(ge=0.5, le=300)] = 5.0
    agent_version: Text = "0"

    @field_validator("hub")
    @classmethod
    def _is_a_hub_address(cls, hub: str) -> str:
        try:
            parts = urlsplit(hub)
            port = parts.port
        except ValueError:
            raise ValueError("a hub address such as http://hub:8501; the port is 1 to 65535") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise ValueError("a hub address such as http://hub:8501 or https://hub.example")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            # Such an address would end up in logs.
            raise ValueError("a hub address without user, password or query; put the token into token_file")
        return hub.rstrip("/")
