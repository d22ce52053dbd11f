"""Which providers there are, and why one is not made."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from collectors.grid.http import Http
from collectors.grid.provider import Absent, ProviderSettings, checked_base_url
from collectors.grid.registry import PROVIDERS, make_provider

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


def test_basis_and_kind_of_each(http: Http) -> None:
    made = [make_provider(settings, http) for settings in COMPLETE.values()]
    assert [(one.name, one.basis, one.kind, one.needs_key) for one in made if not isinstance(one, Absent)] == [
        ("uk_carbon_intensity", "direct", "average", False), ("energy_charts", "provider", "average", False),
        ("electricity_maps", "direct", "average", True), ("watttime", "provider", "marginal", True),
        ("carbon_aware_sdk", "provider", "average", False), ("csv_file", None, None, False),
    ]  # fmt: skip


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
    "url",
    [
        "https://me:planted@host", "https://host/v4?token=planted", "https://host/#planted", "ftp://host", "host", "",
        "http://host:99999", "http://ho st", "http://hö.example",
    ],
)  # fmt: skip
def test_a_base_url_that_could_hold_a_key_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="base_url is http") as raised:
        checked_base_url(url)
    assert "planted" not in str(raised.value)
    assert checked_base_url("http://[::1]:8080/v3/") == "http://[::1]:8080/v3"
