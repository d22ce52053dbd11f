"""What wattmix.toml says becomes facts once, changes from when it changes, and does not fight what others say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.config import Config
from app.facts.book import FactBook
from app.facts.carbon import Embodied, MarketFactor
from app.facts.fact import Fact
from app.facts.kinds import FlatTariff, OwnedPrice, RentedPrice, TimeOfUseTariff
from app.facts.settings import SOURCE, changes
from tests.facts.builders import EVER, fact, rented, t


def config(*fleets: dict[str, Any], **said: Any) -> Config:
    return Config.model_validate({"fleet": [{"gpu": "*", **fleet} for fleet in fleets], **said})


def priced(per_gpu_hour: float, **said: Any) -> Config:
    return config({"name": "h100", "price": rented(per_gpu_hour, **said)})


def after(facts: list[Fact], *told: tuple[Config, datetime]) -> list[Fact]:
    """All facts once the hub started with each of the settings, one after another."""
    known = list(facts)
    for settings, now in told:
        known += changes(known, settings.facts(), now)
    return known


def prices(facts: list[Fact], *moments: datetime) -> list[float | None]:
    book = FactBook(facts)
    values = [book.value("price", "h100", moment) for moment in moments]
    return [value.per_gpu_hour if isinstance(value, RentedPrice) else None for value in values]


def test_the_first_word_is_valid_since_1970_and_what_is_unchanged_is_no_news() -> None:
    first = after([], (priced(2.0), t(3)))
    assert {(one.kind, one.subject): (one.valid_from, one.known_at, one.source) for one in first} == {
        key: (EVER, t(3), SOURCE)
        for key in (("pue", "*"), ("zone", "*"), ("embodied", "*"), ("pue", "h100"), ("price", "h100"))
    }
    assert after(first, (priced(2.0), t(4))) == first


def test_a_change_is_valid_from_when_it_was_seen() -> None:
    known = after([], (priced(2.0), t(3)), (priced(2.5), t(5)))
    assert prices(known, t(1), t(4), t(5)) == [2.0, 2.0, 2.5]
    assert len(known) == 6


def test_a_change_with_a_date_is_valid_from_that_date() -> None:
    known = after([], (priced(2.0), t(3)), (priced(2.5, valid_from="2026-04-01T13:37Z"), t(5)))
    assert prices(known, t(4, 1, 13, 36), t(4, 1, 13, 37)) == [2.0, 2.5]


def test_a_first_word_with_a_date_leaves_the_time_before_without_a_price() -> None:
    known = after([], (priced(2.5, valid_from="2026-04-01"), t(5)))
    assert prices(known, t(3), t(4)) == [None, 2.5]


def test_a_date_that_is_moved_back_reaches_back() -> None:
    known = after([], (priced(2.5, valid_from="2026-04-01"), t(5)), (priced(2.5, valid_from="2026-02-01"), t(6)))
    assert prices(known, t(1), t(3), t(5)) == [None, 2.5, 2.5]
    assert len(after(known, (priced(2.5, valid_from="2026-02-01"), t(7)))) == len(known)


def test_a_word_of_the_future_that_is_taken_back_does_not_come_into_force() -> None:
    known = after([], (priced(2.0), t(3)), (priced(3.0, valid_from="2026-12-01"), t(4)), (priced(2.2), t(5)))
    assert prices(known, t(4), t(5), t(12, 2)) == [2.0, 2.2, 2.2]


def test_what_is_no_longer_in_the_settings_ends() -> None:
    known = after([], (priced(2.0), t(3)), (config({"name": "h100"}), t(5)))
    assert prices(known, t(4), t(5)) == [2.0, None]
    assert after(known, (config({"name": "h100"}), t(6))) == known
    again = after(known, (priced(2.0), t(7)))
    assert prices(again, t(4), t(6), t(7)) == [2.0, None, 2.0]


def test_settings_that_are_not_there_end_nothing() -> None:
    known = after([], (priced(2.0), t(3)))
    assert after(known, (Config(), t(5))) == known


def test_what_others_say_is_not_fought_at_every_start() -> None:
    imported = fact("price", "h100", rented(2.5), t(4), t(4), "contract 17")
    known = after([*after([], (priced(2.0), t(3))), imported], (priced(2.0), t(5)), (priced(2.0), t(6)))
    assert prices(known, t(3), t(4), t(12)) == [2.0, 2.5, 2.5]
    changed = after(known, (priced(2.2), t(7)))  # the settings' own word changes: it is the newest
    assert prices(changed, t(6), t(7)) == [2.5, 2.2]


def test_an_import_before_the_first_word_is_kept() -> None:
    imported = fact("price", "h100", rented(2.5), t(2), t(2), "contract 17")
    assert prices(after([imported], (priced(2.0), t(3))), t(1), t(3)) == [2.0, 2.5]


def test_a_price_that_moved_from_the_settings_to_an_import_does_not_end_with_them() -> None:
    imported = fact("price", "h100", rented(2.5), t(4), t(4), "contract 17")
    known = after([*after([], (priced(2.0), t(3))), imported], (config({"name": "h100"}), t(5)))
    assert prices(known, t(3), t(6)) == [2.0, 2.5]


def test_an_import_that_says_the_same_of_the_same_moment_does_not_silence_the_settings() -> None:
    dated = priced(2.0, valid_from="2026-02-01")
    imported = fact("price", "h100", rented(2.0), t(2), t(2), "contract 17")
    known = after([imported], (dated, t(3)))
    assert sum(one.kind == "price" for one in known) == 2
    assert prices(after(known, (priced(2.2), t(5))), t(4), t(5)) == [2.0, 2.2]


def test_every_part_of_the_settings_becomes_a_fact() -> None:
    rules = [{"days": "all", "from": "23:00", "to": "07:00", "per_kwh": 0.09}]
    tariff = {"per_kwh": 0.2, "tz": "Europe/Madrid", "rules": rules}
    home = {"plan": "owned", "currency": "EUR", "purchase": 900, "life_years": 3, "tariff": tariff}
    said = config(
        {"name": "home", "pue": 1.1, "zone": "FR", "price": home | {"valid_from": "2026-02-01"}},
        {
            "name": "rack",
            "price": {"plan": "owned", "purchase_usd": 1, "life_years": 1, "tariff_usd_per_kwh": -0.1},
            "embodied": {"method": "user", "kg_per_gpu": 185, "kg_high": 250, "lifetime_years": 5, "source": "a study"},
            "market_factor": {"g_per_kwh": 45, "source": "its bill", "valid_from": "2026-02-01"},
        },
        {"name": "desk", "embodied": {"policy": "sunk", "valid_from": "2026-02-01"}},
        defaults={"embodied_method": "pcf"},
        exchange_rate=[{"currency": "EUR", "usd_per_unit": 1.1, "source": "ECB"}],
        hosted_price=[{"model": "a/b", "input_usd_per_mtok": 1, "output_usd_per_mtok": 2}],
        slo=[{"model": "m", "max_ms": 100, "valid_from": "2026-02-01"}],
    )
    wanted = {(one.kind, one.subject): one for one in said.facts()}
    assert sorted(wanted) == [
        ("embodied", "*"), ("embodied", "desk"), ("embodied", "rack"), ("exchange_rate", "EUR"),
        ("hosted_price", "a/b"), ("market_factor", "rack"), ("price", "home"), ("price", "rack"), ("pue", "*"),
        ("pue", "desk"), ("pue", "home"), ("pue", "rack"), ("slo", "m"), ("tariff", "home"), ("tariff", "rack"),
        ("zone", "*"), ("zone", "home"),
    ]  # fmt: skip
    assert wanted["price", "home"].value == OwnedPrice(currency="EUR", purchase=900.0, life_years=3.0)
    assert wanted["price", "home"].valid_from == wanted["tariff", "home"].valid_from == t(2)
    assert wanted["tariff", "home"].value == TimeOfUseTariff(
        currency="EUR",
        tz="Europe/Madrid",
        per_kwh=0.2,
        rules=said.fleet[0].price.tariff.rules,  # type: ignore
    )
    assert wanted["tariff", "rack"].value == FlatTariff(per_kwh=-0.1)
    assert wanted["embodied", "*"].value == Embodied(method="pcf")
    assert wanted["embodied", "desk"].value == Embodied(method="pcf", policy="sunk")
    assert wanted["embodied", "desk"].valid_from == wanted["market_factor", "rack"].valid_from == t(2)
    assert wanted["embodied", "rack"].value == Embodied(method="user", kg_per_gpu=185, kg_high=250, life_years=5)
    assert wanted["embodied", "rack"].source == "wattmix.toml: a study"
    assert (wanted["market_factor", "rack"].value, wanted["market_factor", "rack"].source) == (
        MarketFactor(g_per_kwh=45),
        "wattmix.toml: its bill",
    )
    assert wanted["exchange_rate", "EUR"].source == "wattmix.toml: ECB"
    assert after(after([], (said, t(3))), (said, t(4))) == after([], (said, t(3)))
