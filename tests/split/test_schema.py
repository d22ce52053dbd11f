"""The split's JSON keeps docs/split.schema.json; and that only ever grows within a schema_version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.answers.split import SCHEMA_VERSION
from app.backend.local import LocalBackend
from app.config import Config
from app.reference.tables import split_schema_file
from app.split.scenario import what_if
from app.store.benchmarks import add_runs
from app.store.database import Store
from collectors.benchmark.run import BenchmarkRun
from tests.conftest import ROOT
from tests.hub.test_live_split_api import CONFIG as LIVE
from tests.hub.test_live_split_api import fill_last_hours

SCHEMA: dict[str, Any] = json.loads(split_schema_file().read_text(encoding="utf-8"))
# As it was when version 1 was first released. This file is never edited: a change that needs it is a new version.
FROZEN: dict[str, Any] = json.loads(
    (ROOT / "tests" / "split" / "frozen" / "split.schema.1.json").read_text(encoding="utf-8")
)


def problems(schema: dict[str, Any], answer: Any) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(json.loads(json.dumps(answer, allow_nan=False)))
    return [f"{'/'.join(map(str, one.path))}: {one.message}" for one in found]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory, study_runs: list[BenchmarkRun]) -> list[dict[str, Any]]:
    store = Store.open(tmp_path_factory.mktemp("schema") / "s.duckdb")
    add_runs(store, study_runs)
    found = list(all_kinds(LocalBackend(store, Config())))
    fill_last_hours(store)
    live = LocalBackend(store, LIVE)
    served = live.live_demand()
    # one GPU at 80% carries no more than 80% of what it was seen to carry
    half = {f"rps.{one.name}": one.requests_per_s / 2 for one in served.classes}
    found += [live.split(served), live.split(what_if(served, half))]
    store.close()
    return found


def all_kinds(backend: LocalBackend) -> Iterator[dict[str, Any]]:
    """Feasible, infeasible, with carbon, of a demand that asks for nothing, of live load alone, with unknown grams."""
    base = backend.default_demand()
    yield backend.split(base)
    yield backend.split(what_if(base, {"slo.chat": 1}))
    yield backend.split(what_if(base, {"carbon": 100, "util": 0.5}))
    yield backend.split(what_if(base, {"rps.chat": 0, "rps.batch": 0}))
    yield backend.split(base.model_copy(update={"solve": base.solve.model_copy(update={"sources": "live"})}))
    nowhere = [fleet.model_copy(update={"zone": None, "g_per_kwh": None}) for fleet in base.fleets]
    yield backend.split(base.model_copy(update={"fleets": tuple(nowhere)}))


def test_the_schema_is_one_of_its_draft() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


@pytest.mark.parametrize("schema", [SCHEMA, FROZEN], ids=["today's", "as released"])
def test_answers_keep_it(answers: list[dict[str, Any]], schema: dict[str, Any]) -> None:
    assert [answer["status"][:3] for answer in answers] == ["opt", "inf", "opt", "opt", "inf", "opt", "inf", "opt"]
    *_, dark, _, live = answers
    assert dark["g_per_hour"] is None
    assert live["replicas"][0]["provenance"]["source"] == "live"
    assert [problem for answer in answers for problem in problems(schema, answer)] == []


def test_answers_have_no_field_that_it_does_not_describe(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        assert set(answer) <= set(SCHEMA["properties"])
        for name, part in (("Share", "shares"), ("Replica", "replicas")):
            described = set(SCHEMA["$defs"][name]["properties"])
            assert all(set(row) <= described for row in answer[part])
        described = set(SCHEMA["$defs"]["Baseline"]["properties"])
        assert all(set(row) <= described for row in answer["baselines"].values())
        for part in ("assumptions", "solver"):
            assert set(answer[part]) <= set(SCHEMA["properties"][part]["properties"])


def test_it_only_grew_since_it_was_released() -> None:
    assert list(taken_away(FROZEN, SCHEMA, "")) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda schema: schema["properties"].pop("watts"), "/properties/watts is gone"),
        (lambda schema: schema["required"].remove("watts"), "/required: watts is no longer always there"),
        (lambda schema: schema["properties"]["watts"].update(type="string"), "/properties/watts/type: another one"),
        (lambda schema: schema["$defs"]["Share"]["properties"].pop("share"), "/$defs/Share/properties/share is gone"),
        (lambda schema: schema["$defs"]["Status"]["enum"].append("new"), "/$defs/Status/enum: another one"),
    ],
)
def test_a_field_that_is_taken_away_or_retyped_is_found(change: Any, told: str) -> None:
    changed = json.loads(json.dumps(FROZEN))
    change(changed)
    assert told in list(taken_away(FROZEN, changed, ""))


def test_a_field_may_be_added() -> None:
    grown = json.loads(json.dumps(FROZEN))
    grown["properties"]["more"] = {"type": "number"}
    grown["$defs"]["Share"]["properties"]["more"] = {"type": "string"}
    grown["$defs"]["Share"]["required"].append("more")
    assert list(taken_away(FROZEN, grown, "")) == []


def taken_away(old: Any, new: Any, where: str) -> Iterator[str]:
    """What readers of `old` relied on and `new` no longer promises."""
    if not isinstance(new, dict):
        yield f"{where} is gone"
        return
    for name, part in old.items():
        if name == "required":
            yield from (f"{where}/required: {one} is no longer always there" for one in set(part) - set(new[name]))
        elif isinstance(part, dict):
            yield from taken_away(part, new.get(name), f"{where}/{name}")
        elif name not in ("description", "title") and new.get(name) != part:
            yield f"{where}/{name}: another one"
