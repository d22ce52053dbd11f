"""wattmix.toml: fleets, nodes, zones, store and hub. Every key is in wattmix.example.toml (a test holds them equal)."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from app.accounting.carbon import COMPARABLE_METHOD, GridFactor
from app.errors import ConfigError, UnknownName
from app.facts.carbon import Embodied
from app.facts.carbon_settings import EmbodiedSettings, MarketFactorSettings
from app.facts.kinds import ANY_FLEET, ZoneFact
from app.facts.kinds import Pue as PueFact
from app.facts.settings import (
    ExchangeRateSettings,
    HostedPriceSettings,
    OwnedPrice,
    RentedPrice,
    SloSettings,
    Wanted,
)
from app.grid_settings import GridSettings, zones_that_differ
from app.price_settings import PriceSettings
from app.reference.gpus import find_gpu, words
from app.reference.grid import grid_factor
from app.reference.tables import checkout_folder, in_checkout
from app.report_settings import ReportSchedule, ReportSettings
from app.validation import GramsPerKwh, Number, Pue, Strict, Whole, describe
from collectors.engine.targets import EngineTarget, is_index, urls_that_differ
from collectors.samples import Id

NonNegative = Annotated[Number, Field(ge=0)]
Port = Annotated[Whole, Field(ge=1, le=65535)]


class Fleet(Strict):
    name: Annotated[str, Field(min_length=1)]
    kind: Annotated[str, Field(min_length=1)] | None = None
    gpu: Annotated[str, Field(min_length=1)]
    zone: str | None = None
    pue: Pue = 1.0
    host_w_per_gpu: NonNegative | None = None
    price: Annotated[RentedPrice | OwnedPrice, Field(discriminator="plan")] | None = None
    embodied: EmbodiedSettings | None = None
    market_factor: MarketFactorSettings | None = None

    def facts(self, defaults: Defaults) -> Iterator[Wanted]:
        """The dated facts that this fleet's settings make."""
        yield Wanted("pue", self.name, PueFact(pue=self.pue))
        if self.zone is not None:
            yield Wanted("zone", self.name, ZoneFact(zone=self.zone))
        if self.price is not None:
            yield from self.price.facts(self.name)
        if self.embodied is not None:
            yield self.embodied.fact(self.name, defaults.embodied_method)
        if self.market_factor is not None:
            yield self.market_factor.fact(self.name)

    def matches_gpu(self, gpu_name: str) -> bool:
        """`gpu` is a name or a glob; separators and case do not count."""
        return matches_gpu_pattern(self.gpu, gpu_name)


def matches_gpu_pattern(pattern: str, gpu_name: str) -> bool:
    if fnmatchcase(" ".join(words(gpu_name)), " ".join(words(pattern))):
        return True
    spec = find_gpu(pattern)
    return spec is not None and spec == find_gpu(gpu_name)


class Zone(Strict):
    """A zone of the user's own, or another figure for a known one."""

    name: Annotated[str, Field(min_length=1)]
    g_per_kwh: GramsPerKwh
    basis: Literal["lifecycle", "direct"]
    year: Whole | None = None
    source: Annotated[str, Field(min_length=1)]


class Node(Strict):
    """Nodes whose id matches the glob belong to the fleet; the first match counts."""

    match: Annotated[str, Field(min_length=1)]
    fleet: str


class StoreSettings(Strict):
    """raw_days, minute_days: how long raw samples and minutes are kept; hours are kept for ever.

    raw_max_gb: past this size of the file fewer days of raw samples are kept. forecast_days: how long superseded
    forecasts of grid intensity are kept.
    """

    path: str | None = None
    raw_days: Annotated[Number, Field(ge=1, le=3660)] = 7.0
    raw_max_gb: Annotated[Number, Field(gt=0)] | None = None
    minute_days: Annotated[Number, Field(ge=1, le=36600)] = 90.0
    forecast_days: Annotated[Number, Field(ge=1, le=36600)] = 14.0

    @model_validator(mode="after")
    def _minutes_outlive_raw(self) -> StoreSettings:
        if self.minute_days < self.raw_days:
            raise ValueError(
                f"minute_days at or above raw_days ({self.raw_days:g}): late rows rebuild minutes and hours"
            )
        return self


class HubSettings(Strict):
    host: str = "127.0.0.1"
    port: Port = 8501


class AgentSettings(Strict):
    """The agent of a GPU node. spool: batches wait there while the hub is away, at most so large and so old."""

    hub: str = "http://127.0.0.1:8501"
    token_file: str | None = None
    node: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    spool: str | None = None
    spool_max_mb: Annotated[Whole, Field(ge=1)] = 512
    spool_max_days: Annotated[Number, Field(gt=0, le=3660)] = 6.0
    nvml_library: str | None = None
    interval_s: Annotated[Number, Field(ge=0.1, le=10)] = 1.0
    push_every_s: Annotated[Number, Field(ge=1, le=300)] = 10.0
    discover_engines: bool = True
    scrape_every_s: Annotated[Number, Field(ge=0.5, le=300)] = 5.0
    engine: Annotated[tuple[EngineTarget, ...], Field(max_length=200), AfterValidator(urls_that_differ)] = ()


class ScrapedEngine(EngineTarget):
    """An engine that the hub reads itself, without an agent. node: under which it appears; the URL's host if None."""

    node: Id | None = None

    @property
    def node_name(self) -> str:
        return self.node or self.host

    @field_validator("gpus")
    @classmethod
    def _are_uuids(cls, gpus: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if any(is_index(gpu) for gpu in gpus or ()):
            raise ValueError("GPU UUIDs such as GPU-5f2b3c1d-...: the hub does not know the numbers of another machine")
        return gpus


class Defaults(Strict):
    """What counts for GPUs that no fleet claims. host_w_per_gpu, embodied_method: also for fleets without their own."""

    zone: str = "EU27"
    pue: Pue = 1.0
    host_w_per_gpu: NonNegative = 0.0
    embodied_method: Literal["pcf", "boavizta"] = COMPARABLE_METHOD

    def facts(self) -> Iterator[Wanted]:
        yield Wanted("pue", ANY_FLEET, PueFact(pue=self.pue))
        yield Wanted("zone", ANY_FLEET, ZoneFact(zone=self.zone))
        yield Wanted("embodied", ANY_FLEET, Embodied(method=self.embodied_method))


class SplitSettings(Strict):
    demand: str | None = None


class Config(Strict):
    store: StoreSettings = StoreSettings()
    hub: HubSettings = HubSettings()
    defaults: Defaults = Defaults()
    split: SplitSettings = SplitSettings()
    prices: PriceSettings = PriceSettings()
    agent: AgentSettings = AgentSettings()
    reports: ReportSettings = ReportSettings()
    report: tuple[ReportSchedule, ...] = ()
    zone: tuple[Zone, ...] = ()
    fleet: tuple[Fleet, ...] = ()
    node: tuple[Node, ...] = ()
    engine: Annotated[tuple[ScrapedEngine, ...], AfterValidator(urls_that_differ)] = ()
    exchange_rate: tuple[ExchangeRateSettings, ...] = ()
    hosted_price: tuple[HostedPriceSettings, ...] = ()
    slo: tuple[SloSettings, ...] = ()
    grid: Annotated[tuple[GridSettings, ...], AfterValidator(zones_that_differ)] = ()

    def facts(self) -> list[Wanted]:
        """The dated facts that this file wants in force; none where there is no file: then nothing is said or ended."""
        if self == Config():
            return []
        dated: tuple[ExchangeRateSettings | HostedPriceSettings | SloSettings, ...] = (
            *self.exchange_rate, *self.hosted_price, *self.slo,
        )  # fmt: skip
        of_fleets = (fact for fleet in self.fleet for fact in fleet.facts(self.defaults))
        return [*self.defaults.facts(), *of_fleets, *(one.fact() for one in dated)]

    def host_w_per_gpu(self, fleet: str | None) -> float:
        """Power of a host for each of its GPUs."""
        own = next((one.host_w_per_gpu for one in self.fleet if one.name == fleet), None)
        return self.defaults.host_w_per_gpu if own is None else own

    def fleet_of_gpu(self, gpu_name: str) -> Fleet | None:
        """The first fleet whose `gpu` pattern matches."""
        return next((fleet for fleet in self.fleet if fleet.matches_gpu(gpu_name)), None)

    def fleet_of_node(self, node_id: str) -> Fleet | None:
        """The fleet of the first `[[node]]` whose glob matches."""
        name = next((node.fleet for node in self.node if fnmatchcase(node_id, node.match)), None)
        return next((fleet for fleet in self.fleet if fleet.name == name), None)

    def grid_factor(self, zone: str) -> GridFactor:
        """The user's zone of that name, else the shipped table's. Raises UnknownName."""
        for own in self.zone:
            if own.name.casefold() == zone.casefold():
                return GridFactor(own.name, own.g_per_kwh, own.basis, own.year, "user", own.source)
        return grid_factor(zone)

    def grid_providers(self) -> dict[str, list[str]]:
        """Zone -> the providers that are asked about it, the one that counts first first."""
        found: dict[str, list[str]] = {}
        for grid in self.grid:
            for zone in grid.zones:
                found.setdefault(zone, []).append(grid.provider)
        return found

    @model_validator(mode="after")
    def _names_agree(self) -> Config:
        names = [fleet.name for fleet in self.fleet]
        named = {
            "fleet names": names,
            "zone names": [zone.name.casefold() for zone in self.zone],
            "report names": [report.name.casefold() for report in self.report],
            "exchange rates": [rate.currency for rate in self.exchange_rate],
            "hosted prices": [price.model for price in self.hosted_price],
            "SLOs": [slo.model for slo in self.slo],
        }
        for what, given in named.items():
            doubled = {name for name in given if given.count(name) > 1}
            if doubled:
                raise ValueError(f"{what} that differ ({', '.join(sorted(doubled))} appears twice)")
        for node in self.node:
            if node.fleet not in names:
                raise ValueError(f"node {node.match!r} to name a fleet of this file: {', '.join(names) or 'none yet'}")
        return self


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises ConfigError that names the file and the line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    except (RecursionError, ValueError) as problem:
        raise ConfigError(f"{path}: not TOML: {problem}") from None


def load_config(path: Path | None = None) -> Config:
    """`path`, else $WATTMIX_CONFIG, else ./wattmix.toml if it exists, else the defaults."""
    named = path or (Path(os.environ["WATTMIX_CONFIG"]) if os.environ.get("WATTMIX_CONFIG") else None)
    if named is None and not Path("wattmix.toml").is_file():
        return Config()
    file = named or Path("wattmix.toml")
    try:
        config = Config.model_validate(read_toml(file))
    except ValidationError as problem:
        raise ConfigError(describe(problem, str(file))) from None
    _check_zones(config, str(file))
    return _from_its_folder(_with_zone_names(config, str(file)), file.parent)


def _from_its_folder(config: Config, folder: Path) -> Config:
    """`config` with its relative paths taken from the folder of its file, wherever the command runs."""

    def placed(path: str | None) -> str | None:
        return None if path is None else str(folder / Path(path).expanduser())

    store = config.store.model_copy(update={"path": placed(config.store.path)})
    split = config.split.model_copy(update={"demand": placed(config.split.demand)})
    files = {"token_file": placed(config.agent.token_file), "spool": placed(config.agent.spool)}
    agent = config.agent.model_copy(update=files)
    reports = config.reports.model_copy(update={"folder": placed(config.reports.folder)})
    report = tuple(one.model_copy(update={"out": placed(one.out)}) for one in config.report)
    grid = tuple(
        one.model_copy(update={"key_file": placed(one.key_file), "path": placed(one.path)}) for one in config.grid
    )
    return config.model_copy(
        update={"store": store, "split": split, "agent": agent, "reports": reports, "report": report, "grid": grid}
    )


def _check_zones(config: Config, where: str) -> None:
    """Every zone named is known. Raises ConfigError that names the key."""
    named = {f"fleet[{number}].zone": fleet.zone for number, fleet in enumerate(config.fleet, 1)}
    asked = {f"grid[{number}].zones.{zone}": zone for number, grid in enumerate(config.grid, 1) for zone in grid.zones}
    for key, zone in {"defaults.zone": config.defaults.zone, **named, **asked}.items():
        try:
            if zone is not None:
                config.grid_factor(zone)
        except UnknownName as problem:
            raise ConfigError(f"{where}: `{key}`: {problem}") from None


def _with_zone_names(config: Config, where: str) -> Config:
    """`config` whose providers are asked about zones by the names that fleets' factors have, also for cloud regions.

    Raises ConfigError where two names of one entry, or of one provider, mean the same zone.
    """
    named: list[GridSettings] = []
    for number, grid in enumerate(config.grid, 1):
        zones = {config.grid_factor(zone).zone: theirs for zone, theirs in grid.zones.items()}
        if len(zones) < len(grid.zones):
            raise ConfigError(f"{where}: `grid[{number}].zones`: two of {', '.join(grid.zones)} are the same zone")
        named.append(grid.model_copy(update={"zones": zones}))
    try:
        return config.model_copy(update={"grid": zones_that_differ(tuple(named))})
    except ValueError as problem:
        raise ConfigError(f"{where}: `grid`: accepted: {problem}") from None


def store_path(option: Path | None, config: Config) -> Path:
    """--db, else $WATTMIX_DB, else [store] path, else data/wattmix.duckdb in a checkout or the user's data folder."""
    named = option or os.environ.get("WATTMIX_DB") or config.store.path
    if named:
        return Path(named).expanduser()
    if in_checkout():
        return checkout_folder() / "data" / "wattmix.duckdb"
    return Path(platformdirs.user_data_dir("wattmix")) / "wattmix.duckdb"
