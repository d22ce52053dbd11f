"""wattmix.toml: every key documented, every mistake told with file, key, value and what is accepted."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from app import config as config_module
from app.accounting.cost import Rate
from app.answers.terms import planned_rate
from app.commands.agent import agent_settings
from app.config import Config, Fleet, OwnedPrice, RentedPrice, load_config, store_path
from app.errors import ConfigError, UnknownName, WattmixError
from app.facts.book import FactBook
from app.facts.settings import changes
from app.reference.tables import checkout_folder, data_folder, in_checkout
from tests.conftest import ROOT

EXAMPLE = ROOT / "wattmix.example.toml"


def written(folder: Path, text: str) -> Path:
    path = folder / "wattmix.toml"
    path.write_text(text, encoding="utf-8")
    return path


def fleet(name: str, gpu: str, *lines: str) -> str:
    return "\n".join(["[[fleet]]", f"name = {name!r}", f"gpu = {gpu!r}", *lines, ""])


def rate_of(config: Config, fleet_name: str) -> Rate:
    """What the price of a fleet of this file is, once it is a fact."""
    now = datetime(2026, 12, 1, tzinfo=UTC)
    rate = planned_rate(FactBook(changes([], config.facts(), now)), fleet_name, now)
    assert rate is not None
    return rate


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The pydantic models inside an annotation: X | None, tuple[X, ...], Annotated[X | Y, ...]."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def keys_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every key the code knows, e.g. `fleet.price(OwnedPrice).life_years`."""
    for name, field in model.model_fields.items():
        name = field.alias or name
        yield f"{path}{name}"
        inner = models_in(field.annotation)
        for one in inner:
            yield from keys_of(one, f"{path}{name}({one.__name__})." if len(inner) > 1 else f"{path}{name}.")


def keys_in(content: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every key of a file, in the same spelling."""
    for name, value in content.items():
        yield f"{path}{name}"
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, dict) and name not in ("labels", "zones"):  # whose keys are the user's own words
                plan = {"rented": "(RentedPrice)", "owned": "(OwnedPrice)"}.get(table.get("plan", ""), "")
                yield from keys_in(table, f"{path}{name}{plan}.")


def test_the_example_has_every_key_of_the_code_and_no_other() -> None:
    assert set(keys_in(tomllib.loads(EXAMPLE.read_text(encoding="utf-8")))) == set(keys_of(Config))


def test_the_walk_over_the_code_sees_both_price_plans() -> None:
    known = set(keys_of(Config))
    assert {"fleet.price(OwnedPrice).life_years", "fleet.price(RentedPrice).per_gpu_hour", "node.match"} <= known
    assert len(known) == 142


def test_the_example_loads_with_what_it_says() -> None:
    config = load_config(EXAMPLE)
    owned = config.fleet[1]
    rates = {fleet.name: rate_of(config, fleet.name) for fleet in config.fleet}
    assert rates["h100"] == Rate(2.0, "user", "wattmix.toml, fleet h100")
    # (2200 - 400) USD / (4 x 8760 h) + 0.02 USD/h = 0.07137 USD/h, electricity on top
    assert rates["rtx4090"].usd_per_gpu_hour == pytest.approx(0.071370, abs=5e-7)
    assert rates["rtx4090"].tariff_usd_per_kwh == 0.16
    # 900 EUR / (3 x 8760 h) x 1.08 USD/EUR = 0.036986 USD/h
    assert rates["home"].usd_per_gpu_hour == pytest.approx(0.036986, abs=5e-7)
    # a week's hours: 5 x 4 at 0.32, 7 x 8 at 0.09, the other 92 at 0.18: 28.00 / 168 = 0.166667 EUR, x 1.08 = 0.18 USD
    assert rates["home"].tariff_usd_per_kwh == pytest.approx(0.18, rel=1e-12)
    assert config.grid_factor("ES-solar-contract").g_per_kwh == 45.0
    assert config.fleet_of_gpu("NVIDIA GeForce RTX 4090") is owned
    assert config.fleet_of_node("gamer-7") is owned


def test_every_key_of_the_example_has_a_comment_before_its_first_use() -> None:
    seen: set[str] = set()
    above = ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        key = line.partition("=")[0].strip()
        if "=" in line and not line.startswith("#") and key not in seen:
            assert above.startswith("#"), f"{key} has no comment above it"
            seen.add(key)
        above = line


def test_the_shipped_settings_load() -> None:
    assert [one.name for one in load_config(data_folder() / "demo.toml").fleet] == ["h100", "rtx4090"]


# Where the settings come from


def test_without_a_file_the_defaults_count() -> None:
    assert load_config() == Config()
    assert (Config().hub.host, Config().hub.port) == ("127.0.0.1", 8501)
    assert (Config().defaults.zone, Config().defaults.pue) == ("EU27", 1.0)


def test_the_option_goes_before_the_environment_and_that_before_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for port, name in ((1, "wattmix.toml"), (2, "environment.toml"), (3, "option.toml")):
        (tmp_path / name).write_text(f"[hub]\nport = {port}\n")
    assert load_config().hub.port == 1
    monkeypatch.setenv("WATTMIX_CONFIG", "environment.toml")
    assert load_config().hub.port == 2
    assert load_config(Path("option.toml")).hub.port == 3
    monkeypatch.setenv("WATTMIX_CONFIG", "")
    assert load_config().hub.port == 1


def test_a_store_is_the_option_else_the_environment_else_the_config_else_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = Config.model_validate({"store": {"path": "config.duckdb"}})
    monkeypatch.setenv("WATTMIX_DB", "environment.duckdb")
    assert store_path(Path("option.duckdb"), config) == Path("option.duckdb")
    assert store_path(None, config) == Path("environment.duckdb")
    monkeypatch.setenv("WATTMIX_DB", "")
    assert store_path(None, config) == Path("config.duckdb")
    monkeypatch.delenv("WATTMIX_DB")
    if in_checkout():
        assert store_path(None, Config()) == checkout_folder() / "data" / "wattmix.duckdb"
    monkeypatch.setattr(config_module, "in_checkout", lambda: False)
    monkeypatch.setattr(config_module.platformdirs, "user_data_dir", lambda name: str(tmp_path / name))
    assert store_path(None, Config()) == tmp_path / "wattmix" / "wattmix.duckdb"


@pytest.mark.parametrize("where", ["option", "environment", "config"])
def test_a_tilde_in_the_store_s_path_is_the_home_folder(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if where == "environment":
        monkeypatch.setenv("WATTMIX_DB", "~/s.duckdb")
    config = Config.model_validate({"store": {"path": "~/s.duckdb"} if where == "config" else {}})
    assert store_path(Path("~/s.duckdb") if where == "option" else None, config) == tmp_path / "s.duckdb"


# What is refused


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[hub]\nport = 70000", "`hub.port`: given 70000; accepted: a number <= 65535"),
        ("[hub]\nport = 'http'", "`hub.port`: given 'http'; accepted: a whole number"),
        ("[hub]\nport = '8501'", "`hub.port`: given '8501'; accepted: a whole number"),
        ("[hub]\nport = true", "`hub.port`: given True; accepted: a whole number"),
        ("[defaults]\npue = true", "`defaults.pue`: given True; accepted: a number"),
        ("[defaults]\npue = '1.2'", "`defaults.pue`: given '1.2'; accepted: a number"),
        ("fleet = 3", "`fleet`: given 3; accepted: a list"),
        ("[fleet]\nname = 'a'\ngpu = 'L4'", "`fleet`: given {'name': 'a', 'gpu': 'L4'}; accepted: a list"),
        ("[hub]\nprot = 1", "`hub.prot`: no such key (a misspelling?)"),
        ("hub = 3", "`hub`: given 3; accepted: a table of keys"),
        ("[fleets]\nx = 1", "`fleets`: no such key (a misspelling?)"),
        ("[defaults]\npue = 0.9", "`defaults.pue`: given 0.9; accepted: a number >= 1"),
        ("[defaults]\npue = inf", "`defaults.pue`: given inf; accepted: a finite number"),
        ("[[fleet]]\nname = 'a'", "`fleet[1].gpu`: the key is missing"),
        (fleet("a", "H100 PCIe", "pue = nan"), "`fleet[1].pue`: given nan; accepted: a finite number"),
        (fleet("a", "L4") + fleet("b", "L4", "pue = 'low'"), "`fleet[2].pue`: given 'low'; accepted: a number"),
        (fleet("a", "L4", "colour = 'red'"), "`fleet[1].colour`: no such key"),
        (fleet("a", "L4", "zone = 7"), "`fleet[1].zone`: given 7; accepted: text"),
        (fleet("a", "L4", "price = 3"), "`fleet[1].price`: given 3; accepted: a table of keys"),
        (fleet("a", "L4", "price = {plan = 'leased'}"),
         "`fleet[1].price`: given {'plan': 'leased'}; accepted: 'rented', 'owned'"),
        (fleet("a", "L4", "price = {usd_per_gpu_hour = 1}"),
         "`fleet[1].price`: given {'usd_per_gpu_hour': 1}; accepted: "),
        (fleet("a", "L4", "embodied = {method = 'guess'}"),
         "`fleet[1].embodied.method`: given 'guess'; accepted: 'pcf', 'boavizta' or 'user'"),
        (fleet("a", "L4", "embodied = {method = 'user'}"),
         "`fleet[1].embodied`: given {'method': 'user'}; accepted: kg_per_gpu beside method = \"user\""),
        (fleet("a", "L4", "embodied = {kg_low = 5, kg_per_gpu = 4}"), "accepted: kg_low <= kg_per_gpu <= kg_high"),
        (fleet("a", "L4", "embodied = {kg_high = 5}"), "accepted: kg_per_gpu beside kg_low and kg_high"),
        (fleet("a", "L4", "market_factor = {g_per_kwh = 5}"), "`fleet[1].market_factor.source`: the key is missing"),
        (fleet("a", "L4", "market_factor = {g_per_kwh = -5, source = 'x'}"),
         "`fleet[1].market_factor.g_per_kwh`: given -5; accepted: a number >= 0"),
        ("[defaults]\nembodied_method = 'user'\n",
         "`defaults.embodied_method`: given 'user'; accepted: 'pcf' or 'boavizta'"),
        (fleet("a", "L4", "embodied = {lifetime_years = 0}"),
         "`fleet[1].embodied.lifetime_years`: given 0; accepted: a number > 0"),
        ("[[zone]]\nname = 'z'\ng_per_kwh = -1\nbasis = 'direct'\nsource = 's'",
         "`zone[1].g_per_kwh`: given -1; accepted: a number >= 0"),
        ("[[zone]]\nname = 'z'\ng_per_kwh = 1\nbasis = 'both'\nsource = 's'",
         "`zone[1].basis`: given 'both'; accepted: 'lifecycle' or 'direct'"),
        ("[[zone]]\nname = 'z'\ng_per_kwh = 1\nbasis = 'direct'", "`zone[1].source`: the key is missing"),
        (fleet("a", "L4") + fleet("a", "L40"), "fleet names that differ (a appears twice)"),
        (fleet("a", "L4") + "[[node]]\nmatch = '*'\nfleet = 'b'", "node '*' to name a fleet of this file: a"),
        ("[[node]]\nmatch = '*'\nfleet = 'b'", "node '*' to name a fleet of this file: none yet"),
        ("[[agent.engine]]\nurl = 'vllm:8000'",
         "`agent.engine[1].url`: given 'vllm:8000'; accepted: an engine's address such as http://127.0.0.1:8000"),
        ("[[agent.engine]]\nurl = 'http://a'\nkind = 'ollama'",
         "`agent.engine[1].kind`: given 'ollama'; accepted: 'vllm', 'sglang', 'tgi', 'llama_cpp' or 'triton'"),
        ("[[agent.engine]]\nurl = 'http://a'\ngpus = ['A100']", "accepted: GPU UUIDs such as"),
        ("[[agent.engine]]\nurl = 'http://a'\n[[agent.engine]]\nurl = 'http://A/metrics'",
         "`agent.engine`: given [{'url': 'http://a'}, {'url': 'http://A/metrics'}]; accepted: engines that differ in "
         "url (http://a/metrics appears twice)"),
        ("[[agent.engine]]\nurl = 'http://me:hush@a:1?key=hush'",
         "`agent.engine[1].url`: given 'http://...@a:1?...'; accepted: an engine's address without user, password"),
        ("[agent]\nscrape_every_s = 0", "`agent.scrape_every_s`: given 0; accepted: a number >= 0.5"),
        ("[agent]\ndiscover_engines = 'sometimes'", "`agent.discover_engines`: given 'sometimes'; accepted: true or"),
        ("[[engine]]\nurl = 'http://a'\ngpus = ['0']", "`engine[1].gpus`: given ['0']; accepted: GPU UUIDs"),
        ("[[engine]]\nmodel = 'm'", "`engine[1].url`: the key is missing"),
        ("[[engine]]\nurl = 'http://a'\nnodes = 'b'", "`engine[1].nodes`: no such key"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_key_value_and_what_is_accepted(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(refused.value).startswith(f"{path}: `")
    assert told in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("price", "key"),
    [
        ("plan = 'rented', usd_per_gpu_hour = -1", "usd_per_gpu_hour`: given -1; accepted: a number >= 0"),
        ("plan = 'rented', per_gpu_hour = -1", "per_gpu_hour`: given -1; accepted: a number >= 0"),
        ("plan = 'rented'", "per_gpu_hour`: the key is missing"),
        ("plan = 'rented', usd_per_gpu_hour = 1, life_years = 4", "life_years`: no such key"),
        ("plan = 'owned', purchase_usd = 1, tariff_usd_per_kwh = 1, life_years = 0", "life_years`: given 0; accepted"),
        ("plan = 'owned', purchase_usd = 1, life_years = 4", "tariff`: the key is missing"),
        ("plan = 'owned', purchase = 1, life_years = 4, tariff = 'low'",
         "tariff`: given 'low'; accepted: a price per kWh, or a table with per_kwh, tz and rules"),
        ("plan = 'owned', purchase = 1, life_years = 4, tariff = true",
         "tariff.per_kwh`: given True; accepted: a number"),
        ("plan = 'owned', purchase = 1, life_years = 4, tariff = {per_kwh = 1, tz = 'Madrid'}",
         "tariff.tz`: given 'Madrid'; accepted: an IANA time zone such as Europe/Madrid"),
        ("plan = 'owned', purchase = 1, life_years = 4, tariff = {per_kwh = 1, rules = [{from = '7', to = '8:00'}]}",
         "tariff.rules[1].from`: given '7'; accepted: a local clock time from 00:00 to 24:00, such as 07:30"),
        ("plan = 'rented', per_gpu_hour = 1, currency = 'euro'",
         "currency`: given 'euro'; accepted: a currency's code (ISO 4217), such as USD, EUR or CNY"),
        ("plan = 'rented', per_gpu_hour = 1, valid_from = 2026-01-01T00:00:00",
         "valid_from`: given datetime.datetime(2026, 1, 1, 0, 0); accepted: a date (midnight in UTC) or a moment with"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_price_is_told_with_the_key_as_the_file_has_it(tmp_path: Path, price: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, fleet("a", "L4", f"price = {{ {price} }}")))
    assert f"`fleet[1].price.{key}" in str(refused.value)


def test_every_mistake_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "[hub]\nport = 0\n[defaults]\npue = 0\n" + fleet("", "L4"))
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    lines = str(refused.value).splitlines()
    assert [line.split("`")[1] for line in lines] == ["hub.port", "defaults.pue", "fleet[1].name"]
    assert all(line.startswith(f"{path}: ") for line in lines)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[defaults]\nzone = 'EU28'", "defaults.zone"),
        (fleet("a", "L4") + fleet("b", "L40", "zone = 'EU28'"), "fleet[2].zone"),
    ],
)  # fmt: skip
def test_an_unknown_zone_is_told_with_file_key_and_neighbours(tmp_path: Path, text: str, key: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(WattmixError) as refused:
        load_config(path)
    assert "'EU28'" in str(refused.value)
    assert "EU27" in str(refused.value)
    assert str(path) in str(refused.value)
    assert f"`{key}`" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[hub\n", "not TOML: "),
        (b"[hub]\nport = 1\nport = 2\n", "line 3"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"x = " + b"[" * 5000 + b"]" * 5000, ""),
        (b"[hub]\nport = " + b"9" * 5000, ""),
        (b"\x00", "not TOML: "),
    ],
    ids=["syntax", "key twice", "not UTF-8", "nested deeply", "huge number", "NUL"],
)
def test_what_is_no_toml_is_told_with_the_file(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "wattmix.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert told in str(refused.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    monkeypatch.setenv("WATTMIX_CONFIG", "gone.toml")
    with pytest.raises(ConfigError, match=r"gone\.toml: no such file"):
        load_config()


_WORD = st.text("az09 *?[]'\"{}é", max_size=5)
_TOML = st.recursive(
    st.booleans() | st.integers() | st.floats() | _WORD | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORD, inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from(sorted({key.rpartition(".")[2] for key in keys_of(Config)}))
_TABLE = st.dictionaries(_NAMES, _TOML | st.dictionaries(_NAMES, _TOML))


@given(content=st.dictionaries(_NAMES, _TOML | st.lists(_TABLE, max_size=2), max_size=3))
def test_any_content_is_a_config_or_a_config_error(content: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(config_module, "read_toml", lambda path: content)
        try:
            load_config(Path("fuzzed.toml"))
        except ConfigError as refused:
            assert all(line.startswith("fuzzed.toml: ") for line in str(refused).splitlines())
        except UnknownName as refused:
            assert "zone" in str(refused)


# What the settings mean


@pytest.mark.parametrize(
    ("pattern", "gpu", "matches"),
    [
        ("NVIDIA H100 PCIe", "NVIDIA-H100-PCIe", True),
        ("h100 pcie", "NVIDIA-H100-PCIe", True),
        ("*4090", "NVIDIA-GeForce-RTX-4090", True),
        ("NVIDIA*", "NVIDIA L40S", True),
        ("*", "anything", True),
        ("RTX 4090", "NVIDIA GeForce RTX 4090", True),
        ("NVIDIA L4", "NVIDIA L40S", False),
        ("NVIDIA L4*", "NVIDIA L40S", True),
        ("*RTX 4080", "NVIDIA GeForce RTX 4080 SUPER", False),
        ("NVIDIA H200", "NVIDIA H200 NVL", False),
        ("Home-made card", "home made CARD", True),
    ],
)
def test_a_fleet_matches_gpus_by_name_or_glob(pattern: str, gpu: str, matches: bool) -> None:
    assert Fleet(name="a", gpu=pattern).matches_gpu(gpu) is matches


def test_the_first_fleet_that_matches_a_gpu_counts() -> None:
    config = Config(fleet=(Fleet(name="cards", gpu="*RTX*"), Fleet(name="rest", gpu="*")))
    assert [getattr(config.fleet_of_gpu(gpu), "name", None) for gpu in ("RTX 4090", "L4")] == ["cards", "rest"]
    assert Config().fleet_of_gpu("L4") is None


@pytest.mark.parametrize(
    ("node", "name"),
    [("gamer-7", "cards"), ("gamer-lab-1", "cards"), ("rack1-n7", "racks"), ("rack12-n7", None), ("Gamer-7", None)],
)
def test_a_node_belongs_to_the_fleet_of_the_first_glob_that_matches(
    tmp_path: Path, node: str, name: str | None
) -> None:
    nodes = [("gamer-*", "cards"), ("rack?-n[0-9]", "racks"), ("gamer-lab-*", "racks")]
    text = fleet("cards", "RTX 4090") + fleet("racks", "H100 PCIe")
    text += "".join(f"[[node]]\nmatch = {match!r}\nfleet = {fleet_name!r}\n" for match, fleet_name in nodes)
    assert getattr(load_config(written(tmp_path, text)).fleet_of_node(node), "name", None) == name


def test_a_zone_of_the_user_wins_over_the_table_and_is_labelled_so() -> None:
    zone = {"name": "fr", "g_per_kwh": 12.5, "basis": "direct", "year": 2025, "source": "contract"}
    factor = Config.model_validate({"zone": [zone]}).grid_factor("FR")
    assert (factor.g_per_kwh, factor.basis, factor.method, factor.source) == (12.5, "direct", "user", "contract")
    assert Config().grid_factor("FR").g_per_kwh == 41.44


def test_engines_of_the_hub_appear_under_their_node_and_those_of_the_agent_reach_it(tmp_path: Path) -> None:
    text = "[[engine]]\nurl = 'http://Node8:8000'\n[[engine]]\nurl = 'http://b:1'\nnode = 'rack'\n"
    text += "[agent]\ndiscover_engines = false\n[[agent.engine]]\nurl = 'http://c:1'\ngpus = ['0']\n"
    config = load_config(written(tmp_path, text))
    assert [(engine.url, engine.node_name) for engine in config.engine] == [
        ("http://node8:8000/metrics", "node8"),
        ("http://b:1/metrics", "rack"),
    ]
    settings = agent_settings(config)
    assert [(engine.url, engine.gpus) for engine in settings.engines] == [("http://c:1/metrics", ("0",))]
    assert (settings.discover_engines, settings.scrape_every_s) == (False, 5.0)


def test_a_rented_price_has_no_tariff_and_an_owned_one_has() -> None:
    prices = (
        RentedPrice(plan="rented", per_gpu_hour=0),
        OwnedPrice(plan="owned", purchase=8760, life_years=1, tariff={"per_kwh": 0.2}),
    )
    config = Config(fleet=tuple(Fleet(name=price.plan, gpu="L4", price=price) for price in prices))
    rented, owned = rate_of(config, "rented"), rate_of(config, "owned")
    assert (rented.usd_per_gpu_hour, rented.tariff_usd_per_kwh, rented.method) == (0.0, None, "user")
    assert (owned.usd_per_gpu_hour, owned.tariff_usd_per_kwh, owned.method) == (1.0, 0.2, "user")
    assert owned.source == "wattmix.toml, fleet owned (owned)"


def test_relative_paths_are_taken_from_the_folder_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "w.toml").write_text("[store]\npath = 'here.duckdb'\n[split]\ndemand = 'd.toml'\n")
    config = load_config(folder / "w.toml")
    assert (config.store.path, config.split.demand) == (str(folder / "here.duckdb"), str(folder / "d.toml"))


def test_a_zone_named_twice_is_refused(tmp_path: Path) -> None:
    zone = "[[zone]]\nname = '{}'\ng_per_kwh = 1\nbasis = 'direct'\nsource = 's'\n"
    (tmp_path / "w.toml").write_text(zone.format("home") + zone.format("HOME"))
    with pytest.raises(ConfigError, match="zone names that differ"):
        load_config(tmp_path / "w.toml")


def test_a_price_named_in_dollars_is_not_in_another_currency(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(
            written(tmp_path, fleet("a", "L4", "price = {plan = 'rented', currency = 'EUR', usd_per_gpu_hour = 1}"))
        )
    said = "accepted: per_gpu_hour beside another currency; usd_per_gpu_hour would be in USD"
    assert "`fleet[1].price`: given {" in str(refused.value) and said in str(refused.value)


def test_a_price_in_a_currency_without_a_rate_is_not_known_in_dollars(tmp_path: Path) -> None:
    euros = fleet("a", "L4", "price = {plan = 'rented', currency = 'EUR', per_gpu_hour = 2}")
    config = load_config(written(tmp_path, euros))
    rate = rate_of(config, "a")
    assert (rate.usd_per_gpu_hour, rate.reason) == (None, "no exchange rate for EUR on 2026-12-01")
    config = load_config(written(tmp_path, euros + "[[exchange_rate]]\ncurrency = 'EUR'\nusd_per_unit = 1.1\n"))
    assert rate_of(config, "a").usd_per_gpu_hour == pytest.approx(2.2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[exchange_rate]]\ncurrency = 'USD'\nusd_per_unit = 1",
         "`exchange_rate[1].currency`: given 'USD'; accepted: the code (ISO 4217) of a currency other than USD"),
        ("[[exchange_rate]]\ncurrency = 'EUR'\nusd_per_unit = 0",
         "`exchange_rate[1].usd_per_unit`: given 0; accepted: a number > 0"),
        (2 * "[[exchange_rate]]\ncurrency = 'EUR'\nusd_per_unit = 1\n",
         "exchange rates that differ (EUR appears twice)"),
        ("[[hosted_price]]\nmodel = 'llama'\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 1",
         "`hosted_price[1].model`: given 'llama'; accepted: provider/model, such as example-ai/llama-3.1-8b"),
        ("[[slo]]\nmodel = 'm'\nmetric = 'ttl'\nmax_ms = 1",
         "`slo[1].metric`: given 'ttl'; accepted: 'ttft', 'itl' or 'e2e'"),
        (2 * "[[slo]]\nmodel = 'm'\nmax_ms = 1\n", "SLOs that differ (m appears twice)"),
    ],
)  # fmt: skip
def test_a_mistake_in_what_fleets_share_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, text))
    assert told in str(refused.value)
