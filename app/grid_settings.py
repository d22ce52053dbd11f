"""`[[grid]]` of wattmix.toml: who is asked about the carbon intensity of which zones, and with which key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, model_validator

from app.validation import BaseUrl, Number, Strict, known_in
from collectors.grid import watttime
from collectors.grid.point import Basis, Kind
from collectors.grid.provider import Absent, Provider, ProviderSettings
from collectors.grid.registry import PROVIDERS, make_provider
from collectors.http.client import Http

DEFAULT_POLL_S = 900.0
_MOST_KEY_BYTES = 4096
_NeverEmpty = Annotated[str, Field(min_length=1)]


class GridSettings(Strict):
    """provider: of collectors.grid. The key is in the environment (key_env), in a file (key_file), or here.

    zones: a zone as it is named here -> as the provider spells it. path: of the provider `csv_file`. backfill_days: how
    far back hours are read that an outage left out.
    """

    provider: Annotated[str, known_in(PROVIDERS)]
    zones: Annotated[dict[_NeverEmpty, _NeverEmpty], Field(min_length=1, max_length=200)]
    key_env: _NeverEmpty | None = None
    key_file: _NeverEmpty | None = None
    key: SecretStr | None = None
    user: _NeverEmpty | None = None
    base_url: BaseUrl | None = None
    basis: Basis | None = None
    kind: Kind | None = None
    path: _NeverEmpty | None = None
    poll_s: Annotated[Number, Field(ge=60, le=86_400)] = DEFAULT_POLL_S
    backfill_days: Annotated[Number, Field(ge=2, le=366)] = 31.0

    @model_validator(mode="after")
    def _one_key(self) -> GridSettings:
        if sum(one is not None for one in (self.key_env, self.key_file, self.key)) > 1:
            raise ValueError("one of key_env, key_file and key")
        return self

    @property
    def is_marginal(self) -> bool:
        """Whether all that it gives is of the next kWh, which counts in no total."""
        return self.provider == watttime.NAME or self.kind == "marginal"

    def make(self, http: Http) -> Provider | Absent:
        """The provider, or why there is none: it lacks what it needs, or what it was given cannot be."""
        key = self._key()
        if isinstance(key, Absent):
            return key
        settings = ProviderSettings(
            self.provider, base_url=self.base_url, key=key, user=self.user, zones=self.zones, basis=self.basis,
            kind=self.kind, path=None if self.path is None else Path(self.path),
        )  # fmt: skip
        try:
            return make_provider(settings, http)
        except ValueError as problem:
            return Absent(self.provider, f"its settings are not usable: {problem}")

    def _key(self) -> SecretStr | Absent | None:
        if self.key_env is not None:
            found = os.environ.get(self.key_env, "").strip()
            return SecretStr(found) if found else Absent(self.provider, f"${self.key_env} is not set (key_env)")
        if self.key_file is not None:
            return self._key_of_file(Path(self.key_file))
        return self.key

    def _key_of_file(self, path: Path) -> SecretStr | Absent:
        try:
            with path.open(encoding="utf-8") as file:
                found = file.read(_MOST_KEY_BYTES).strip()
        except OSError as problem:
            return Absent(self.provider, f"{path} cannot be read (key_file): {problem.strerror}")
        except UnicodeDecodeError:
            return Absent(self.provider, f"{path} is not UTF-8 text (key_file)")
        return SecretStr(found) if found else Absent(self.provider, f"{path} is empty (key_file)")


def zones_that_differ(grids: tuple[GridSettings, ...]) -> tuple[GridSettings, ...]:
    """Of a provider each zone is asked once, whichever of its entries it stands in."""
    seen: set[tuple[str, str]] = set()
    for grid in grids:
        for zone in grid.zones:
            if (grid.provider, zone.casefold()) in seen:
                raise ValueError(f"zones that differ ({zone} appears twice for {grid.provider})")
            seen.add((grid.provider, zone.casefold()))
    return grids
