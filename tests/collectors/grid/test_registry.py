"""Which providers there are, and why one is not made."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pydantic import SecretStr

from collectors.grid.provider import Absent, Provider, ProviderSettings
from collectors.grid.registry import PROVIDERS, make_provider, provider_said
from collectors.http.client import Http
from tests.collectors.grid.shapes import em_row
from tests.collectors.http.playing import Player, as_json

KEY = SecretStr("planted-key")
COMPLETE = {
    "uk_carbon_intensity": ProviderSettings("uk_carbon_intensity"),
    "energy_charts": ProviderSettings("energy_charts"),
    "electricity_maps": ProviderSettings("electricity_maps", key=KEY, basis="direct"),
    "watttime": ProviderSettings("watttime", user="someone", key=KEY),
    "carbon_aware_sdk": ProviderSettings("carbon_aware_sdk", base_url="http://10.0.0.9:8090", kind="average"),
    "csv_file": ProviderSettings("csv_file", path=Path("grid.csv")),
}


@pytest.mark.parametrize("name", list(PROVIDERS))
def test_every_provider_is_made_of_complete_settings(http: Http, name: str) -> None:
    provider = make_provider(COMPLETE[name], http)
    assert not isinstance(provider, Absent)
    assert provider.name == name
    assert {"latest", "history"} <= provider.capabilities
    assert "planted" not in f"{provider!r} {vars(provider)} {COMPLETE[name]!r}"


def made(http: Http, settings: ProviderSettings, played: Player) -> Provider:
    provider = make_provider(dataclasses.replace(settings, base_url=played.url), http)
    assert not isinstance(provider, Absent)
    return provider


def test_basis_and_kind_reach_what_is_asked(http: Http, played: Player) -> None:
    played.always(as_json(em_row("10:00", emissionFactorType="absent")))
    (point,) = made(http, COMPLETE["electricity_maps"], played).latest("DE").points
    assert (point.basis, point.kind) == ("direct", "average")
    assert played.asked[0].query["emissionFactorType"] == "direct"
    row = {"location": "DE", "time": "2026-11-30T10:00Z", "rating": 412, "duration": 10}
    played.always(as_json([row]))
    (point,) = made(http, COMPLETE["carbon_aware_sdk"], played).latest("DE").points
    assert (point.basis, point.kind) == ("provider", "average")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ProviderSettings("electricity_maps"), "needs a `key`"),
        (ProviderSettings("electricity_maps", key=SecretStr("")), "needs a `key`"),
        (ProviderSettings("watttime", key=KEY), "needs `user` and `key`"),
        (ProviderSettings("watttime", user="someone"), "needs `user` and `key`"),
        (ProviderSettings("carbon_aware_sdk", kind="average"), "needs `base_url`"),
        (ProviderSettings("carbon_aware_sdk", base_url="http://10.0.0.9"), "needs `kind`: average"),
        (ProviderSettings("csv_file"), "needs `path`"),
    ],
)
def test_a_provider_without_what_it_needs_is_absent_with_the_reason(
    http: Http, settings: ProviderSettings, words: str
) -> None:
    absent = make_provider(settings, http)
    assert isinstance(absent, Absent)
    assert words in absent.reason


def test_an_unknown_name_names_the_known_ones(http: Http) -> None:
    with pytest.raises(ValueError, match="known are uk_carbon_intensity, energy_charts"):
        make_provider(ProviderSettings("co2signal"), http)


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("energy_charts", "Energy-Charts"),
        ("csv_file: our meter: hall 2", "CSV file: our meter: hall 2"),
        ("one of before", "one of before"),
    ],
)
def test_a_provider_is_told_by_its_title(stored: str, said: str) -> None:
    assert provider_said(stored) == said
