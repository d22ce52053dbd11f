"""What is known of a zone's carbon intensity: live, else cached with its age, else the yearly table, always visibly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.answers.grid import GridQuery, grid
from app.answers.health import health
from app.config import Config
from app.errors import BadParameter, UnknownName
from app.store.database import Store
from app.store.grid import append_points
from app.store.source_states import GridState, write_state
from tests.grid_points import to_come, value

NOW = datetime(2026, 2, 3, 12, 10, tzinfo=UTC)
NOON = NOW - timedelta(minutes=10)
HOUR = timedelta(hours=1)
MAPS = {"provider": "electricity_maps", "zones": {"DE": "DE"}, "key": "k"}
CHARTS = {"provider": "energy_charts", "zones": {"DE": "de"}}
WATTTIME = {"provider": "watttime", "zones": {"DE": "DE_X"}, "user": "u", "key": "k"}
CONFIG = Config.model_validate({"grid": [MAPS]})
BOTH = Config.model_validate({"grid": [MAPS, CHARTS]})


def state(store: Store, provider: str = "electricity_maps", **said: Any) -> None:
    write_state(store, GridState(provider, "DE", **{"asked_at": NOON, "answered_at": NOON} | said))


def asked(store: Store, config: Config = CONFIG, zone: str = "DE", **more: Any) -> dict[str, Any]:
    return grid(store, config, GridQuery.around(zone, NOW, **more), NOW)


def words(answer: dict[str, Any]) -> list[str]:
    return [f"{one['level']}: {one['what']}. {one['remedy']}" for source in answer for one in source["findings"]]


def test_a_provider_that_answers_is_live(store: Store) -> None:
    append_points(store, [value(NOON - HOUR, 60, 300), value(NOON, 60, 320, fetched_at=NOON)])
    state(store)
    current = asked(store)["current"]
    assert (current["from"], current["g_per_kwh"], current["method"]) == ("live", 320, "measured")
    assert (current["basis"], current["kind"], current["provider"]) == ("lifecycle", "average", "electricity_maps")
    assert (current["age_s"], current["value_age_s"], current["why"]) == (600, 0, None)
    assert words(asked(store)["sources"]) == []
    assert [source["state"] for source in asked(store)["sources"]] == ["ok"]


def test_what_is_kept_stands_in_with_its_age_and_why(store: Store) -> None:
    append_points(store, [value(NOON - 3 * HOUR, 60, 300)])
    state(store, answered_at=NOON - 2 * HOUR, problem="HTTP 500", problem_kind="failed", advice="it is asked again",
          retry_at=NOW + HOUR)  # fmt: skip
    answer = asked(store)
    current = answer["current"]
    assert (current["from"], current["g_per_kwh"], current["why"]) == ("cached", 300, "Electricity Maps: HTTP 500")
    # it answered last 2 h 10 min ago, and the value was over at 10:00
    assert (current["age_s"], current["value_age_s"]) == (2 * 3600 + 600, 2 * 3600 + 600)
    assert words(answer["sources"]) == [
        "warning: no answer for 2 h: HTTP 500; asked again from 2026-02-03 13:10Z on. it is asked again; until then "
        "values to 2026-02-03 10:00Z are kept, and after that DE 2025 average, 329.65 g/kWh lifecycle (default) counts"
    ]


def test_without_a_value_of_the_last_day_the_yearly_table_counts(store: Store) -> None:
    append_points(store, [value(NOON - 26 * HOUR, 60, 300)])
    state(store, answered_at=None, problem="no connection", problem_kind="unreachable", advice="check the network")
    answer = asked(store)
    assert answer["current"] == answer["table"] | {
        "from": "table", "age_s": None, "kind": "average", "why": "Electricity Maps has never answered: no connection",
        "is_fallback": True,
    }  # fmt: skip
    assert (answer["table"]["g_per_kwh"], answer["table"]["year"], answer["table"]["method"]) == (
        329.65,
        2025,
        "default",
    )
    assert words(answer["sources"]) == [
        "warning: it has never answered: no connection. check the network; until then DE 2025 average, 329.65 g/kWh "
        "lifecycle (default) counts"
    ]


def test_no_provider_leaves_the_table_and_says_so(store: Store) -> None:
    current = asked(store, Config())["current"]
    assert (current["from"], current["g_per_kwh"]) == ("table", 329.65)
    assert current["why"] == "no provider of wattmix.toml is asked for the average of this zone"
    assert not current["is_fallback"]


def test_a_cloud_region_stands_for_its_zone(store: Store) -> None:
    append_points(store, [value(NOON, 60, 320, fetched_at=NOON)])
    answer = asked(store, zone="aws:eu-central-1")
    assert (answer["zone"], answer["current"]["g_per_kwh"]) == ("DE", 320)


def test_a_zone_that_nobody_knows_is_refused(store: Store) -> None:
    with pytest.raises(UnknownName, match="no grid intensity for zone 'Atlantis'"):
        asked(store, zone="Atlantis")


def test_the_first_entry_of_the_file_counts_and_the_second_stands_in(store: Store) -> None:
    append_points(store, [value(NOON, 60, 200, provider="energy_charts", basis="provider", fetched_at=NOON)])
    state(store, "energy_charts")
    state(store, answered_at=None, problem="HTTP 401", problem_kind="no_access", advice="check the key")
    current = asked(store, BOTH)["current"]
    assert (current["from"], current["provider"], current["why"]) == (
        "live",
        "energy_charts",
        "Electricity Maps has never answered: HTTP 401",
    )
    append_points(store, [value(NOON, 60, 320, fetched_at=NOON)])
    answer = asked(store, BOTH)
    assert answer["current"]["provider"] == "electricity_maps"
    assert [(hour["g_per_kwh"], hour["provider"]) for hour in answer["hours"]] == [(320, "electricity_maps")]


def test_marginal_values_are_beside_and_never_the_current_one(store: Store) -> None:
    marginal = {"provider": "watttime", "kind": "marginal", "basis": "provider", "fetched_at": NOON}
    append_points(store, [value(NOON, 60, 700, **marginal)])
    state(store, "watttime")
    answer = asked(store, Config.model_validate({"grid": [WATTTIME]}))
    assert answer["current"]["from"] == "table"
    assert answer["current"]["why"] == "no provider of wattmix.toml is asked for the average of this zone"
    assert answer["hours"] == []
    assert [(hour["g_per_kwh"], hour["provider"]) for hour in answer["marginal_hours"]] == [(700, "watttime")]
    assert answer["sources"][0]["newest"]["kind"] == "marginal"


def test_hours_and_forecasts_are_of_the_range(store: Store) -> None:
    append_points(store, [value(NOON - number * HOUR, 60, 100 + number) for number in range(1, 5)])
    append_points(store, [to_come(NOON + number * HOUR, 60, 200 + number, NOON, issued_at=NOON) for number in range(4)])
    answer = asked(store, start=NOON - 2 * HOUR, end=NOON + 2 * HOUR)
    assert [(hour["g_per_kwh"], hour["method"]) for hour in answer["hours"]] == [
        (102, "measured"), (101, "measured"), (200, "forecast"), (201, "forecast"),
    ]  # fmt: skip
    assert [one["g_per_kwh"] for one in answer["forecast"]] == [200, 201]
    assert {one["issued_at"] for one in answer["forecast"]} == {NOON.isoformat()}


def test_an_earlier_knowledge_is_what_was_known_then(store: Store) -> None:
    append_points(store, [value(NOON - 2 * HOUR, 60, 100, fetched_at=NOON - HOUR)])
    append_points(store, [value(NOON - 2 * HOUR, 60, 130, fetched_at=NOON)])
    assert [hour["g_per_kwh"] for hour in asked(store)["hours"]] == [130]
    before = asked(store, known_at=NOON - timedelta(minutes=1))
    assert [hour["g_per_kwh"] for hour in before["hours"]] == [100]
    assert before["current"]["g_per_kwh"] == 100
    assert asked(store, known_at=NOON - 2 * HOUR)["hours"] == []


def test_without_a_range_it_is_the_last_day_and_three_to_come() -> None:
    query = GridQuery.around("DE", NOW)
    assert (query.start, query.end) == (NOW - timedelta(days=1), NOW + timedelta(days=3))
    with pytest.raises(BadParameter, match="`from` is before `to`, by at most 400 days"):
        GridQuery.around("DE", NOW, NOW, NOW)
    with pytest.raises(BadParameter, match="400 days"):
        GridQuery.around("DE", NOW, NOW - timedelta(days=500), NOW)


# On Health


def test_health_says_what_a_provider_lacks(store: Store) -> None:
    state(store, asked_at=None, answered_at=None, problem="$TOKEN is not set (key_env)", problem_kind="absent",
          advice="set what it needs")  # fmt: skip
    (source,) = health(store, NOW, CONFIG)["grid"]
    assert source["state"] == "absent"
    assert words([source]) == [
        "warning: not asked: $TOKEN is not set (key_env). set what it needs; until then DE 2025 average, 329.65 g/kWh "
        "lifecycle (default) counts"
    ]


def test_health_says_when_values_stay_behind(store: Store) -> None:
    append_points(store, [value(NOON - 6 * HOUR, 60, 100)])
    state(store, forecast_problem="HTTP 401: not in your plan")
    (source,) = health(store, NOW, CONFIG)["grid"]
    assert source["state"] == "behind"
    assert [one["what"] for one in source["findings"]] == [
        "its newest value ended 5 h ago", "no forecasts: HTTP 401: not in your plan",
    ]  # fmt: skip


def test_health_says_when_nobody_asks(store: Store) -> None:
    (never,) = health(store, NOW, CONFIG)["grid"]
    assert (never["state"], never["findings"]) == ("waiting", [])
    append_points(store, [value(NOON - HOUR, 60, 100)])
    state(store, asked_at=NOON - HOUR, answered_at=NOON - HOUR)
    (source,) = health(store, NOW, CONFIG)["grid"]
    assert words([source]) == ["note: not asked for 70 min. providers are asked while the hub runs: `wattmix serve`"]
