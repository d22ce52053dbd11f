"""The known providers by name, and how settings make one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collectors.grid import carbon_aware_sdk, csv_file, electricity_maps, energy_charts, uk_carbon_intensity, watttime
from collectors.grid.provider import Absent, Provider, ProviderSettings
from collectors.http.client import Http


@dataclass(frozen=True)
class KnownProvider:
    """title, attribution: for a person."""

    name: str
    title: str
    attribution: str
    make: Callable[[ProviderSettings, Http], Provider | Absent]


def provider_said(provider: str) -> str:
    """The name of a provider of the store for people; a CSV file's points name their source behind it."""
    name, _, source = provider.partition(": ")
    title = PROVIDERS[name].title if name in PROVIDERS else name
    return f"{title}: {source}" if source else title


def make_provider(settings: ProviderSettings, http: Http) -> Provider | Absent:
    """The provider of `settings`, or why there is none. Raises ValueError for a value that no provider takes."""
    known = PROVIDERS.get(settings.name)
    if known is None:
        raise ValueError(f"no grid provider is called {settings.name[:40]!r}; known are {', '.join(PROVIDERS)}")
    return known.make(settings, http)


def _without_key(
    provider: Callable[..., Provider], default: str
) -> Callable[[ProviderSettings, Http], Provider | Absent]:
    return lambda settings, http: provider(http, base_url=settings.base_url or default, zones=settings.zones)


def _electricity_maps(settings: ProviderSettings, http: Http) -> Provider | Absent:
    key = _secret(settings)
    if key is None:
        return Absent(settings.name, "it needs a `key` (a token of Electricity Maps)")
    return electricity_maps.ElectricityMaps(
        http, key, base_url=settings.base_url or electricity_maps.BASE_URL, zones=settings.zones,
        basis=settings.basis or "lifecycle",
    )  # fmt: skip


def _watttime(settings: ProviderSettings, http: Http) -> Provider | Absent:
    password = _secret(settings)
    if password is None or not settings.user:
        return Absent(settings.name, "it needs `user` and `key` (user and password of a WattTime account)")
    base_url = settings.base_url or watttime.BASE_URL
    return watttime.WattTime(http, settings.user, password, base_url=base_url, zones=settings.zones)


def _carbon_aware_sdk(settings: ProviderSettings, http: Http) -> Provider | Absent:
    if settings.base_url is None:
        return Absent(settings.name, "it needs `base_url`, the address of your own Carbon Aware SDK WebAPI")
    if settings.kind is None:
        return Absent(settings.name, "it needs `kind`: average (Electricity Maps behind it) or marginal (WattTime)")
    return carbon_aware_sdk.CarbonAwareSdk(
        http, base_url=settings.base_url, kind=settings.kind, basis=settings.basis or "provider", zones=settings.zones
    )


def _csv_file(settings: ProviderSettings, http: Http) -> Provider | Absent:
    if settings.path is None:
        return Absent(settings.name, "it needs `path`, a CSV file of intensities")
    return csv_file.CsvFile(settings.path, zones=settings.zones, utc_now=http.utc_now)


def _secret(settings: ProviderSettings) -> str | None:
    return (settings.key.get_secret_value() if settings.key is not None else "") or None


PROVIDERS: Mapping[str, KnownProvider] = {
    known.name: known
    for known in (
        KnownProvider(
            uk_carbon_intensity.NAME, "UK Carbon Intensity", "NESO Carbon Intensity API, CC BY 4.0",
            _without_key(uk_carbon_intensity.UkCarbonIntensity, uk_carbon_intensity.BASE_URL),
        ),
        KnownProvider(
            energy_charts.NAME, "Energy-Charts", "Energy-Charts, Fraunhofer ISE",
            _without_key(energy_charts.EnergyCharts, energy_charts.BASE_URL),
        ),
        KnownProvider(
            electricity_maps.ElectricityMaps.name, "Electricity Maps",
            "Electricity Maps; its free plan is for non-commercial use",
            _electricity_maps,
        ),
        KnownProvider(watttime.NAME, "WattTime", "WattTime, by the terms of the account", _watttime),
        KnownProvider(
            carbon_aware_sdk.NAME, "Carbon Aware SDK", "your own Carbon Aware SDK, and the source behind it",
            _carbon_aware_sdk,
        ),
        KnownProvider(csv_file.NAME, "CSV file", "your own file", _csv_file),
    )
}  # fmt: skip
