"""[prices] of wattmix.toml: the limit of age, and the markets that are asked."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from app.config import Config, load_config
from app.errors import ConfigError
from app.price_settings import PriceSettings
from collectors.http.client import Http
from collectors.price.registry import PROVIDERS

SECURE = '[[prices.source]]\nprovider = "runpod"\nmarket = "secure"\n'


def test_no_market_is_asked_unless_it_is_said() -> None:
    assert (Config().prices.source, Config().prices.max_age_days) == ((), 365)


def test_sources_have_an_order(tmp_path: Path) -> None:
    path = tmp_path / "wattmix.toml"
    path.write_text(SECURE + '[[prices.source]]\nprovider = "vast"\nmarket = "spot"\npoll_s = 3600\n', encoding="utf-8")
    found = load_config(path).prices
    assert [found.rank(key) for key in (("runpod", "secure"), ("vast", "spot"), ("vast", "on_demand"))] == [0, 1, 2]
    assert [source.poll_s for source in found.source] == [21_600, 3_600]
    assert [source.make(Http()).name for source in found.source] == ["runpod", "vast"]


@pytest.mark.parametrize(
    ("days", "after"), [(365, timedelta(days=7)), (14, timedelta(days=7)), (1, timedelta(hours=12))]
)
def test_a_price_is_confirmed_before_it_is_too_old(days: int, after: timedelta) -> None:
    assert PriceSettings(max_age_days=days).confirmed_after == after


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[prices]\nmax_age_days = 0", "`prices.max_age_days`: given 0; accepted:"),
        ("[prices]\nmax_age_days = 1.5", "`prices.max_age_days`: given 1.5; accepted:"),
        ('[[prices.source]]\nprovider = "ebay"\nmarket = "spot"', "given 'ebay'; accepted: one of runpod, vast"),
        ('[[prices.source]]\nprovider = "vast"\nmarket = "secure"', "a market that vast has: on_demand, spot"),
        ('[[prices.source]]\nprovider = "vast"', "`prices.source[1].market`: the key is missing"),
        (2 * SECURE, "markets that differ (runpod secure appears twice)"),
        (SECURE + 'base_url = "https://me:secret@example.org"', "`prices.source[1].base_url`"),
        (SECURE + "poll_s = 60", "`prices.source[1].poll_s`: given 60; accepted:"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "wattmix.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)


def test_each_provider_has_markets_of_its_own() -> None:
    assert {name: known.markets for name, known in PROVIDERS.items()} == {
        "runpod": ("secure", "community", "spot"), "vast": ("on_demand", "spot"),
    }  # fmt: skip
