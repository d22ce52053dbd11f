"""Facts as answers: the settings taken over, an import all or none, each fact's standing, and each fleet's own."""

from __future__ import annotations

from typing import Any

import pytest

from app.answers.facts import (
    FLEET_KINDS,
    add_fact,
    fact_from_json,
    facts_as_csv,
    facts_as_json,
    fleets_in_force,
    import_facts,
    place_nodes,
    take_over,
)
from app.config import Config
from app.errors import ImportFileError, UnknownName
from app.store.database import Store
from app.store.facts import append_facts, read_facts
from tests.batches import batch, count, put, writing
from tests.facts.builders import fact, flat, rented, t

HEAD = "kind,subject,valid_from,source,plan,per_gpu_hour,pue,zone,per_kwh,fleet,currency\n"


def config(per_gpu_hour: float = 2.0, **said: Any) -> Config:
    fleet = {"name": "h100", "gpu": "*", "pue": 1.2, "zone": "FR", "price": rented(per_gpu_hour)}
    return Config.model_validate({"fleet": [fleet], "node": [{"match": "rack-*", "fleet": "h100"}], **said})


def see(store: Store, *nodes: str) -> None:
    with writing(store) as taking:
        for node in nodes:
            put(taking, batch(1, node=node))


def standings(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fact["valid_from"][:10], fact["standing"]) for fact in answer["facts"]]


# Taking over wattmix.toml


def test_the_settings_become_facts_and_nodes_get_their_fleets_at_start(store: Store) -> None:
    see(store, "rack-7")
    assert take_over(store, config(), t(3)) == 6
    assert count(store, "node_fleet") == 1
    assert {(one.kind, one.subject) for one in read_facts(store)} == {
        ("pue", "*"), ("zone", "*"), ("embodied", "*"), ("pue", "h100"), ("zone", "h100"), ("price", "h100"),
        ("membership", "rack-7"),
    }  # fmt: skip
    assert take_over(store, config(), t(4)) == 0
    assert take_over(store, config(2.5), t(5)) == 1
    assert take_over(store, config(2.5), t(6)) == 0


def test_without_settings_nothing_is_said_or_ended(store: Store) -> None:
    assert take_over(store, Config(), t(3)) == 0
    assert read_facts(store) == []
    see(store, "rack-7")
    take_over(store, config(), t(3))
    known = read_facts(store)
    assert take_over(store, Config(), t(4)) == 0
    place_nodes(store, Config(), t(5))
    assert read_facts(store) == known


def test_a_word_that_an_import_has_said_before_is_noted_all_the_same(store: Store) -> None:
    append_facts(store, [fact("pue", "h100", {"pue": 1.2}, known_at=t(1), source="list")])
    assert take_over(store, config(), t(3)) == 6
    assert take_over(store, config(), t(4)) == 0


def test_a_new_node_gets_what_an_import_said_of_it(store: Store) -> None:
    import_facts(store, config(), f"{HEAD}membership,rack-7,2026-01-01,list,,,,,,spot,\n", "f.csv", t(3))
    see(store, "rack-7")
    place_nodes(store, config(), t(4))
    names = {fleet["fleet"]: fleet["nodes"] for fleet in fleets_in_force(store, config(), t(5))}
    assert names == {"h100": [], "spot": ["rack-7"], "*": []}


# Imports


def test_an_import_says_how_many_were_new(store: Store) -> None:
    text = f"{HEAD}price,h100,2026-03-01,contract,rented,2.5,,,,,\npue,h100,2026-03-01,report,,,1.1,,,,\n"
    assert import_facts(store, config(), text, "f.csv", t(3)).as_json() == {"new": 2, "known": 0, "notes": []}
    assert import_facts(store, config(), text, "f.csv", t(4)).as_json() == {"new": 0, "known": 2, "notes": []}


def test_with_one_bad_row_nothing_is_imported_and_all_findings_are_told(store: Store) -> None:
    text = (
        f"{HEAD}pue,h100,2026-03-01,x,,,1.1,,,,\npue,h100,2026-04-01,x,,,0.5,,,,\nzone,h100,2026-04-01,x,,,,Mars,,,\n"
    )
    with pytest.raises(ImportFileError) as refused:
        import_facts(store, config(), text, "f.csv", t(3))
    first, second = str(refused.value).splitlines()
    assert first == "f.csv: line 3, column `pue`: given '0.5'; accepted: a number >= 1"
    assert second.startswith("f.csv: line 4, column `zone`: given 'Mars'; accepted: a grid zone: no grid intensity for")
    assert read_facts(store) == []


def test_a_zone_of_the_settings_is_a_zone(store: Store) -> None:
    zone = {"name": "roof", "g_per_kwh": 40, "basis": "lifecycle", "source": "x"}
    text = f"{HEAD}zone,h100,2026-04-01,x,,,,roof,,,\n"
    with pytest.raises(ImportFileError):
        import_facts(store, config(), text, "f.csv", t(3))
    assert import_facts(store, config(zone=[zone]), text, "f.csv", t(3)).new == 1


def test_names_that_nothing_else_knows_are_noted(store: Store) -> None:
    see(store, "rack-7")
    text = (
        f"{HEAD}price,h10,2026-03-01,x,rented,2.5,,,,,EUR\nmembership,rack-7,2026-03-01,x,,,,,,spot,\n"
        "membership,rack-8,2026-03-01,x,,,,,,spot,\npue,spot,2026-03-01,x,,,1.1,,,,\npue,*,2026-03-01,x,,,1.1,,,,\n"
    )
    assert import_facts(store, config(), text, "f.csv", t(3)).notes == [
        "node 'rack-8' was not seen yet: its fleet counts once it is",
        "fleet 'h10': no node belongs to it, and wattmix.toml does not name it",
        "no exchange rate for EUR: what is in it is not known in USD (a fact of kind exchange_rate)",
    ]


def test_one_fact_of_a_form(store: Store) -> None:
    cells = {"kind": "price", "subject": " h100 ", "valid_from": "2026-03-01", "source": "contract", "plan": "rented",
             "per_gpu_hour": "2.5", "currency": "", "billing_increment_s": ""}  # fmt: skip
    assert add_fact(store, config(), cells, t(3)).new == 1
    assert read_facts(store) == [fact("price", "h100", rented(2.5), t(3), t(3), "contract")]
    with pytest.raises(ImportFileError) as refused:
        add_fact(store, config(), cells | {"per_gpu_hour": "free", "source": ""}, t(3))
    assert str(refused.value).splitlines() == [
        "`source`: given ''; accepted: where the fact is from, in 1 to 500 printable characters",
        "`per_gpu_hour`: given 'free'; accepted: a number such as 0.25, without separators of thousands",
    ]


# What is known


@pytest.fixture
def history(store: Store) -> Store:
    """A price since January, corrected in May for January, one since March and one since September."""
    for price, valid_from, known_at in ((2.0, t(1), t(1)), (3.0, t(3), t(3)), (2.2, t(1), t(5)), (4.0, t(9), t(6))):
        append_facts(store, [fact("price", "h100", rented(price), valid_from, known_at)])
    return store


def test_each_fact_has_its_standing_now(history: Store) -> None:
    assert standings(facts_as_json(history, t(7))) == [
        ("2026-01-01", "superseded"), ("2026-01-01", "past"), ("2026-03-01", "in force"), ("2026-09-01", "later"),
    ]  # fmt: skip


def test_at_a_moment_only_what_is_in_force_then(history: Store) -> None:
    [found] = facts_as_json(history, t(7), at=t(2))["facts"]
    assert (found["value"], found["known_at"], found["in_words"]) == (
        rented(2.2) | {"currency": "USD", "billing_increment_s": 0.0}, "2026-05-01T00:00:00+00:00",
        "rented, 2.2 USD per GPU-hour",
    )  # fmt: skip
    assert facts_as_json(history, t(7), at=t(1) - (t(2) - t(1)))["facts"] == []
    [later] = facts_as_json(history, t(7), at=t(12))["facts"]
    assert later["value"]["per_gpu_hour"] == 4.0


def test_at_a_moment_by_the_knowledge_of_another(history: Store) -> None:
    [found] = facts_as_json(history, t(7), at=t(2), known_at=t(4))["facts"]
    assert found["value"]["per_gpu_hour"] == 2.0
    answer = facts_as_json(history, t(7), known_at=t(4))
    assert (answer["known_at"], len(answer["facts"])) == ("2026-04-01T00:00:00+00:00", 2)


def test_facts_are_chosen_by_kind_and_subject(history: Store) -> None:
    append_facts(history, [fact("pue", "h100", {"pue": 1.2}), fact("price", "b", rented(1.0))])
    assert len(facts_as_json(history, t(7), kind="pue")["facts"]) == 1
    assert len(facts_as_json(history, t(7), kind="price", subject="b")["facts"]) == 1
    assert facts_as_json(history, t(7), subject="c")["facts"] == []
    with pytest.raises(UnknownName, match="no facts of kind 'prise'; there are: membership, price, tariff"):
        facts_as_json(history, t(7), kind="prise")


def test_an_hour_s_own_price_and_what_was_ended_are_past_when_they_are_over(store: Store) -> None:
    append_facts(store, [fact("tariff_hour", "home", {"per_kwh": 0.1}, t(1, 1, 13)), fact("pue", "a", None, t(1))])
    assert [one["standing"] for one in facts_as_json(store, t(1, 1, 13, 59))["facts"]] == ["in force", "in force"]
    assert [one["standing"] for one in facts_as_json(store, t(1, 1, 14))["facts"]] == ["in force", "past"]


def test_the_csv_can_be_imported_elsewhere_with_the_same_result(history: Store, tmp_path: Any) -> None:
    append_facts(history, [fact("pue", "h100", None, t(4)), fact("membership", "rack-7", {"fleet": "h100"}, t(4))])
    text = facts_as_csv(facts_as_json(history, t(7)))
    other = Store.open(tmp_path / "other.duckdb")
    assert import_facts(other, Config(), text, "f.csv", t(8)).new == 5
    ours, theirs = (
        [(one["kind"], one["valid_from"], one["value"]) for one in facts_as_json(store, t(9))["facts"]
         if one["standing"] != "superseded"]
        for store in (history, other)
    )  # fmt: skip
    assert ours == theirs
    other.close()


def test_a_fact_comes_back_from_json(history: Store) -> None:
    answer = facts_as_json(history, t(7))
    assert {fact_from_json(row) for row in answer["facts"]} == set(read_facts(history))


# Each fleet's own


def test_each_fleet_has_what_is_in_force_and_the_price_of_a_kwh_now(store: Store) -> None:
    see(store, "rack-7", "rack-8", "node-9")
    take_over(store, config(), t(3))
    append_facts(store, [
        fact("tariff", "home", flat(0.2, currency="EUR"), t(1)),
        fact("tariff_hour", "home", {"per_kwh": -0.1, "currency": "EUR"}, t(4, 1, 13)),
    ])  # fmt: skip
    h100, home, no_fleet = (
        {one["fleet"]: one for one in fleets_in_force(store, config(), t(4, 1, 13))}[name]
        for name in ("h100", "home", "*")
    )
    assert {kind: found and found["in_words"] for kind, found in h100["facts"].items()} == {
        "price": "rented, 2 USD per GPU-hour", "tariff": None, "pue": "PUE 1.2", "zone": "zone FR",
        "market_factor": None, "embodied": "boavizta, the tables' figure of the card, over 4 years",
    }  # fmt: skip
    assert (h100["nodes"], h100["electricity"]) == (["rack-7", "rack-8"], None)
    assert home["electricity"] == {"per_kwh": -0.1, "currency": "EUR", "of_the_hour": True}
    assert home["facts"]["pue"]["subject"] == "*"
    assert [no_fleet["facts"][kind] is None for kind in FLEET_KINDS] == [True, True, False, False, True, False]


def test_a_fleet_of_the_settings_is_shown_before_the_hub_has_noted_it(store: Store) -> None:
    assert [fleet["fleet"] for fleet in fleets_in_force(store, config(), t(3))] == ["h100", "*"]
