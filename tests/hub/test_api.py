"""Each route answers what the backend answers, and each mistake is a 4xx with words, never a trace."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.applications import Starlette

from app import __version__
from app.answers.runs import rows_as_csv
from app.backend.local import LocalBackend
from app.config import Config
from app.hub import api
from app.hub.parts import HubParts
from app.split.scenario import what_if
from app.store.benchmarks import add_runs, read_runs
from app.store.database import Store
from app.store.schema import SCHEMA_VERSION
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun
from tests.collectors.benchmark.runs import RUN
from tests.hub.asgi import Reply, ask


@pytest.fixture
def hub(backend: LocalBackend) -> Iterator[Starlette]:
    """The API over a store with the study's runs."""
    parts = HubParts(backend.store, backend.config)
    yield Starlette(routes=parts.api.routes())
    parts.close()


@pytest.fixture
def empty_hub(store: Store) -> Iterator[Starlette]:
    parts = HubParts(store, Config())
    yield Starlette(routes=parts.api.routes())
    parts.close()


def told(reply: Reply, status: int) -> str:
    """The error's words."""
    assert reply.status == status, reply.text
    assert list(reply.json()) == ["error"]
    return str(reply.json()["error"])


def as_json(content: object) -> bytes:
    return json.dumps(content).encode()


# What is answered


def test_health_says_who_answers_from_which_store(hub: Starlette, backend: LocalBackend) -> None:
    reply = ask(hub, "GET", "/healthz")
    assert reply.status == 200
    answer = reply.json()
    assert abs(answer.pop("time_us") / 1e6 - time.time()) < 60
    assert answer == {
        "status": "ok", "version": __version__, "pid": os.getpid(), "schema": SCHEMA_VERSION,
        "store": str(backend.store.path), "demo": False,
    }  # fmt: skip


def test_runs_are_the_backend_s_rows(hub: Starlette, backend: LocalBackend) -> None:
    rows = ask(hub, "GET", "/api/v1/runs").json()["runs"]
    assert rows == backend.run_rows()
    assert len(rows) == 130


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"model": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"}, 25),
        ({"model": "deepseek-r1-distill-qwen-14b", "gpu": "RTX 4090"}, 15),
        ({"gpu": "H100 PCIe", "assume": "study"}, 70),
        ({"assume": "corrected", "format": "json"}, 130),
    ],
)
def test_runs_are_chosen_by_model_gpu_and_assumptions(
    hub: Starlette, backend: LocalBackend, query: dict[str, Any], count: int
) -> None:
    rows = ask(hub, "GET", "/api/v1/runs", query=query).json()["runs"]
    assert rows == backend.run_rows(**{name: value for name, value in query.items() if name != "format"})
    assert len(rows) == count


def test_a_run_has_the_figures_of_the_study(hub: Starlette) -> None:
    """Table 2, row 6: 2 x RTX 4090 at $0.25/h for 66.47 s, 83,123 tokens: $0.1111 per Mtok."""
    query = {"model": "DeepSeek-R1-Distill-Qwen-14B", "gpu": "RTX 4090", "assume": "study"}
    rows = ask(hub, "GET", "/api/v1/runs", query=query).json()["runs"]
    [row] = [row for row in rows if (row["qps"], row["gpu_count"], row["source_index"]) == (4, 2, 0)]
    assert row["usd_per_mtok_total"] == pytest.approx(0.1111, abs=5e-5)
    # 2 x 450 W x 66.47 s / 83,123 tokens = 0.7197 J; x 242 g/kWh / 3.6 MJ/kWh = 48.4 g/Mtok, as in table 3
    assert row["joules_per_token"] == pytest.approx(0.7197, abs=5e-4)
    assert row["g_per_mtok"] == pytest.approx(48.4, abs=0.05)


def test_runs_as_csv_are_the_same_rows(hub: Starlette, backend: LocalBackend) -> None:
    reply = ask(hub, "GET", "/api/v1/runs", query={"format": "csv"})
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    assert reply.text == rows_as_csv(backend.run_rows())
    assert len(list(csv.DictReader(io.StringIO(reply.text)))) == 130


def test_an_empty_store_has_no_runs_and_a_header(empty_hub: Starlette) -> None:
    assert ask(empty_hub, "GET", "/api/v1/runs").json() == {"runs": []}
    text = ask(empty_hub, "GET", "/api/v1/runs", query={"format": "csv"}).text
    assert text.startswith("model,qps,gpu,gpu_count,")
    assert text.count("\n") == 1


@pytest.mark.parametrize("content_type", ["text/csv", "text/csv; charset=utf-8", "Text/CSV"])
def test_posted_runs_are_added_once(empty_hub: Starlette, store: Store, content_type: str) -> None:
    body = facts_csv.write([RUN, replace(RUN, completed=7)]).encode()
    for new, known in ((2, 0), (0, 2)):
        reply = ask(empty_hub, "POST", "/api/v1/runs", body=[body[:50], body[50:], b""], content_type=content_type)
        assert (reply.status, reply.json()) == (200, {"new": new, "known": known})
    assert {run.run_id for run in read_runs(store)} == {RUN.run_id, replace(RUN, completed=7).run_id}


def test_posted_runs_show_at_once(hub: Starlette) -> None:
    assert len(ask(hub, "GET", "/api/v1/runs").json()["runs"]) == 130
    ask(hub, "POST", "/api/v1/runs", body=facts_csv.write([RUN]).encode(), content_type="text/csv")
    assert len(ask(hub, "GET", "/api/v1/runs").json()["runs"]) == 131


def test_the_study_is_the_backend_s(hub: Starlette, backend: LocalBackend) -> None:
    assert ask(hub, "GET", "/api/v1/study").json() == json.loads(json.dumps(backend.study()))


def test_a_get_split_is_the_default_demand_s(hub: Starlette, backend: LocalBackend) -> None:
    answer = ask(hub, "GET", "/api/v1/split").json()
    assert answer == json.loads(json.dumps(backend.split(backend.default_demand())))
    assert (answer["status"], answer["usd_per_hour"]) == ("optimal", 8.5)


@pytest.mark.parametrize(
    "query",
    [
        {"rps.chat": "20"},
        {"rps.chat": "0", "rps.batch": "1e2"},
        {"slo.chat": "0.5"},
        {"usd.h100": "1.25", "usd.rtx4090": "0.9"},
        {"g.h100": "30", "carbon": "100"},
        {"util": "0.5"},
    ],
)
def test_a_what_if_is_the_backend_s_answer_to_the_changed_demand(
    hub: Starlette, backend: LocalBackend, query: dict[str, str]
) -> None:
    answer = ask(hub, "GET", "/api/v1/split", query=query).json()
    assert answer == json.loads(json.dumps(backend.split(what_if(backend.default_demand(), query))))
    assert answer != ask(hub, "GET", "/api/v1/split").json()


def test_a_posted_demand_gives_the_same_as_the_configured_one(hub: Starlette, backend: LocalBackend) -> None:
    body = as_json(backend.default_demand().model_dump(by_alias=True, mode="json"))
    reply = ask(hub, "POST", "/api/v1/split", body=body, content_type="application/json; charset=utf-8")
    assert reply.json() == ask(hub, "GET", "/api/v1/split").json()


def test_an_imported_price_is_in_force_in_runs_and_split_at_once(store: Store, study_runs: list[BenchmarkRun]) -> None:
    add_runs(store, study_runs)
    fleets = [{"name": "h100", "gpu": "NVIDIA H100 PCIe", "price": {"plan": "rented", "per_gpu_hour": 2.0}}]
    parts = HubParts(store, Config.model_validate({"fleet": fleets}))
    hub = Starlette(routes=parts.api.routes())

    def seen() -> tuple[Any, ...]:
        [row, *_] = ask(hub, "GET", "/api/v1/runs", query={"gpu": "NVIDIA H100 PCIe"}).json()["runs"]
        split = ask(hub, "GET", "/api/v1/split").json()
        what_if = ask(hub, "GET", "/api/v1/split", query={"usd.rtx4090": "9"}).json()
        hourly = next(one["usd_per_hour"] for one in what_if["replicas"] if one["fleet"] == "h100")
        source = split["assumptions"]["prices"]["h100"]["source"]
        return row["usd_per_mtok_total"], split["usd_per_hour"], hourly, source

    per_mtok, usd_per_hour, hourly, source = seen()
    assert (usd_per_hour, source) == (8.5, "wattmix.toml, fleet h100")
    for day, price in (("2026-03-01", 3.0), ("2100-01-01", 9.0)):
        body = f"kind,subject,valid_from,source,plan,per_gpu_hour\nprice,h100,{day},contract,rented,{price}\n".encode()
        assert ask(hub, "POST", "/api/v1/facts", body=body, content_type="text/csv").json()["new"] == 1
        assert seen() == (pytest.approx(1.5 * per_mtok), 9.5, 1.5 * hourly, "contract, fleet h100")
    parts.close()


def test_an_infeasible_demand_is_an_answer_not_an_error(hub: Starlette) -> None:
    answer = ask(hub, "GET", "/api/v1/split", query={"slo.chat": "0.001"}).json()
    assert (answer["status"], answer["usd_per_hour"]) == ("infeasible", None)
    assert "chat" in answer["reason"]


# What is refused


@pytest.mark.parametrize(
    ("path", "query", "words"),
    [
        ("/api/v1/runs", [("modle", "x")], "query `modle`: no such parameter; accepted: assume, format, gpu, model"),
        ("/api/v1/runs", [("model", "a"), ("model", "b")], "query `model`: given twice"),
        ("/api/v1/runs", [("assume", "best")], "query `assume`: given 'best'; accepted: corrected, study"),
        ("/api/v1/runs", [("format", "xml")], "query `format`: given 'xml'; accepted: json, csv"),
        ("/api/v1/study", [("x", "1")], "query `x`: no such parameter; accepted: none"),
        ("/api/v1/split", [("util", "0.5"), ("util", "0.6")], "query `util`: given twice"),
    ],
)
def test_a_wrong_parameter_is_400(hub: Starlette, path: str, query: list[tuple[str, str]], words: str) -> None:
    assert told(ask(hub, "GET", path, query=query), 400) == words


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"rps.chta": "5"}, ["query: `rps.chta`: no such knob; accepted: rps.chat, slo.chat, rps.batch, usd.h100"]),
        ({"slo.batch": "5"}, ["query: `slo.batch`: no such knob"]),
        ({"rps.chat": "many"}, ["query: `rps.chat`: given 'many'; accepted: a number"]),
        ({"rps.chat": "-1"}, ["query: `rps.chat`: given '-1'; accepted: a number >= 0"]),
        ({"rps.chat": "nan"}, ["query: `rps.chat`: given 'nan'; accepted: a finite number"]),
        ({"rps.chat": "inf"}, ["accepted: a finite number"]),
        ({"rps.chat": ""}, ["given ''; accepted: a number"]),
        ({"util": "2"}, ["query: `util`: given '2'; accepted: a number <= 1"]),
        ({"util": "0"}, ["accepted: a number > 0"]),
        ({"carbon": "-5"}, ["query: `carbon`: given '-5'; accepted: a number >= 0"]),
    ],
)
def test_a_wrong_what_if_is_422(hub: Starlette, query: dict[str, str], words: list[str]) -> None:
    error = told(ask(hub, "GET", "/api/v1/split", query=query), 422)
    assert all(word in error for word in words), error


@pytest.mark.parametrize("query", [{"model": "gpt-5"}, {"gpu": "H200"}, {"model": "AceMath-7B-Instruct", "gpu": "L4"}])
def test_an_unknown_model_or_gpu_is_404_and_tells_what_there_is(hub: Starlette, query: dict[str, str]) -> None:
    error = told(ask(hub, "GET", "/api/v1/runs", query=query), 404)
    assert "NVIDIA-H100-PCIe" in error or "nvidia/AceMath-7B-Instruct" in error


def test_an_unknown_model_in_an_empty_store_tells_how_to_import(empty_hub: Starlette) -> None:
    assert "wattmix import" in told(ask(empty_hub, "GET", "/api/v1/runs", query={"model": "m"}), 404)


def test_the_study_of_a_store_without_it_is_404(empty_hub: Starlette) -> None:
    assert "wattmix demo" in told(ask(empty_hub, "GET", "/api/v1/study"), 404)


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/", "/api/v1", "/api/v2/runs", "/api/v1/runs/7"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_an_unknown_route_is_404_in_json(hub: Starlette, method: str, path: str) -> None:
    assert told(ask(hub, method, path), 404).startswith(f"no such route: {method} {path}")


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/api/v1/runs"), ("POST", "/api/v1/study")])
def test_a_wrong_method_is_a_4xx_in_json(hub: Starlette, method: str, path: str) -> None:
    assert f"{method} {path}" in told(ask(hub, method, path), 404)


@pytest.mark.parametrize(
    ("path", "content_type", "accepted"),
    [
        ("/api/v1/runs", None, "text/csv"),
        ("/api/v1/runs", "application/json", "text/csv"),
        ("/api/v1/runs", "text/plain", "text/csv"),
        ("/api/v1/runs", "application/x-www-form-urlencoded", "text/csv"),
        ("/api/v1/split", None, "application/json"),
        ("/api/v1/split", "text/csv", "application/json"),
        ("/api/v1/split", "text/plain; application/json", "application/json"),
        ("/api/v1/split", "multipart/form-data; boundary=x", "application/json"),
    ],
)
def test_another_content_type_is_415(hub: Starlette, path: str, content_type: str | None, accepted: str) -> None:
    """A page of another site can send only the types that need no asking first (CORS), and these are not ours."""
    assert (
        told(ask(hub, "POST", path, body=b"{}", content_type=content_type), 415)
        == f"Content-Type: {accepted} is accepted"
    )


@pytest.mark.parametrize(
    ("path", "content_type"), [("/api/v1/runs", "text/csv"), ("/api/v1/split", "application/json")]
)
def test_too_large_a_body_is_413_before_it_is_all_there(
    hub: Starlette, monkeypatch: pytest.MonkeyPatch, path: str, content_type: str
) -> None:
    monkeypatch.setattr(api, "MAX_BODY_BYTES", 2 * 1024 * 1024)
    part = b"\n" * 1024 * 1024
    assert told(ask(hub, "POST", path, body=[part, part, b"x", b"never read"], content_type=content_type), 413) == (
        "body: more than 2 MiB"
    )
    assert ask(hub, "POST", path, body=[part, part], content_type=content_type).status == 422


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff\xfe", b"[" * 100_000, b"9" * 5000])
def test_a_demand_that_is_no_json_is_422(hub: Starlette, body: bytes) -> None:
    assert told(ask(hub, "POST", "/api/v1/split", body=body, content_type="application/json"), 422).startswith("body: ")


@pytest.mark.parametrize("content", [[], 3, None, "x", True])
def test_a_demand_that_is_no_object_is_422(hub: Starlette, content: object) -> None:
    error = told(ask(hub, "POST", "/api/v1/split", body=as_json(content), content_type="application/json"), 422)
    assert error == "body: a JSON object with `class`, `fleet` and `solve` is accepted"


def demand(backend: LocalBackend, **changes: Any) -> dict[str, Any]:
    """The default demand as JSON, with changes to its first class or, with a prefix, to `fleet` or `solve`."""
    content: dict[str, Any] = backend.default_demand().model_dump(by_alias=True, mode="json")
    for name, value in changes.items():
        where, _, key = name.partition("__")
        target = content["solve"] if where == "solve" else content[{"one": "class", "fleet": "fleet"}[where]][0]
        target[key] = value
    return content


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"one__requests_per_s": "many"}, "body: `class[1].requests_per_s`: given 'many'; accepted: a number"),
        ({"one__requests_per_s": -1}, "body: `class[1].requests_per_s`: given -1; accepted: a number >= 0"),
        ({"one__requests_per_s": 10**400}, "body: `class[1].requests_per_s`: given 1000"),
        ({"one__prompt_tokens": float("nan")}, "body: `class[1].prompt_tokens`: given nan; accepted: a finite number"),
        ({"one__slo": [{"metric": "ttft", "percentile": 99}]}, "body: `class[1].slo[1].max_ms`: the key is missing"),
        (
            {"one__slo": [{"metric": "tps", "percentile": 99, "max_ms": 1}]},
            "body: `class[1].slo[1].metric`: given 'tps'",
        ),
        ({"one__fleets": ["h200"]}, "class 'chat' to list fleets among h100, rtx4090"),
        ({"one__colour": "red"}, "body: `class[1].colour`: no such key"),
        ({"fleet__usd_per_gpu_hour": "two"}, "body: `fleet[1].usd_per_gpu_hour`: given 'two'"),
        ({"fleet__pue": 0.5}, "body: `fleet[1].pue`: given 0.5; accepted: a number >= 1"),
        ({"fleet__name": "rtx4090"}, "fleet names that differ (rtx4090 appears twice)"),
        ({"fleet__zone": "EU28"}, "no grid intensity for zone 'EU28'; near it: EU27"),
        ({"fleet__zone": None, "solve__carbon_usd_per_t": 50}, "fleet h100: a carbon price needs its grams"),
        ({"solve__max_utilisation": 0}, "body: `solve.max_utilisation`: given 0; accepted: a number > 0"),
        ({"solve__small_samples": "ignore"}, "body: `solve.small_samples`: given 'ignore'"),
    ],
)
def test_a_wrong_value_in_a_demand_is_422_with_its_key(
    hub: Starlette, backend: LocalBackend, changes: dict[str, Any], words: str
) -> None:
    body = as_json(demand(backend, **changes))
    assert words in told(ask(hub, "POST", "/api/v1/split", body=body, content_type="application/json"), 422)


@pytest.mark.parametrize("missing", ["class", "fleet"])
def test_a_demand_without_classes_or_fleets_is_422(hub: Starlette, backend: LocalBackend, missing: str) -> None:
    for content in (demand(backend) | {missing: []}, {k: v for k, v in demand(backend).items() if k != missing}):
        reply = ask(hub, "POST", "/api/v1/split", body=as_json(content), content_type="application/json")
        assert f"body: `{missing}`" in told(reply, 422)


@pytest.mark.parametrize(
    "changes",
    [
        {"one__requests_per_s": 1e12},
        {"one__requests_per_s": 1e100},
        {"one__prompt_tokens": 1e300},
        {"one__requests_per_s": 1e308},
        {"fleet__usd_per_gpu_hour": 1e100},
        {"fleet__pue": 1.7e308},
        {"solve__carbon_usd_per_t": 1e300},
    ],
)
def test_a_number_out_of_all_reason_is_refused_or_answered_never_wrong(
    hub: Starlette, backend: LocalBackend, changes: dict[str, Any]
) -> None:
    body = as_json(demand(backend, **changes))
    reply = ask(hub, "POST", "/api/v1/split", body=body, content_type="application/json")
    assert reply.status in (200, 422, 503)
    if reply.status == 200 and reply.json()["status"] == "optimal":
        more_than_today = ask(hub, "GET", "/api/v1/split").json()["usd_per_hour"]
        assert reply.json()["usd_per_hour"] >= more_than_today


GOOD, BAD = facts_csv.write([RUN]), facts_csv.write([RUN, replace(RUN, duration_s=7.0)]).replace(",7.0,", ",0,")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "body: line 1: the columns model, "),
        (b"\xff\xfe", "body: "),
        (b"model,backend\n", "body: line 1: the columns gpu_name, "),
        (BAD.encode(), "body: line 3: "),
        (GOOD.replace(",200,200,", ",200,201,").encode(), "body: line 2: `completed` cannot be 201"),
        (GOOD.replace("+00:00", "").encode(), "body: line 2: `recorded_at`"),
        (GOOD.replace("vllm", "v" * 200_000).encode(), "body: line 2: "),
        (GOOD.replace("vllm", "v\rl").encode(), "body: line 2: "),
        (GOOD.replace(",40991,", f",{10**30},").encode(), "body: line 2: "),
    ],
    ids=["empty", "not UTF-8", "no columns", "zero duration", "too many completed", "no zone", "huge field",
         "carriage return", "huge tokens"],
)  # fmt: skip
def test_runs_that_cannot_be_read_are_422_and_nothing_is_written(
    empty_hub: Starlette, store: Store, body: bytes, words: str
) -> None:
    assert told(ask(empty_hub, "POST", "/api/v1/runs", body=body, content_type="text/csv"), 422).startswith(words)
    assert read_runs(store) == []


def test_a_huge_gpu_count_is_stored_or_refused(empty_hub: Starlette, store: Store) -> None:
    body = GOOD.replace("NVIDIA-H100-PCIe,1,", "NVIDIA-H100-PCIe,3000000000,").encode()
    reply = ask(empty_hub, "POST", "/api/v1/runs", body=body, content_type="text/csv")
    assert reply.status in (200, 422)
    assert [run.gpu_count for run in read_runs(store)] == ([3_000_000_000] if reply.status == 200 else [])


def test_text_that_a_spreadsheet_would_run_is_made_inert(empty_hub: Starlette, store: Store) -> None:
    names = ["=1+1", "+1", "-1", "@x", "\t=1", "plain"]
    runs: list[BenchmarkRun] = [replace(RUN, model=name, source_file=name) for name in names]
    add_runs(store, runs)
    text = ask(empty_hub, "GET", "/api/v1/runs", query={"format": "csv"}).text
    cells = [cell for row in csv.DictReader(io.StringIO(text)) for cell in (row["model"], row["source_file"])]
    assert sorted(cells) == sorted(2 * ["'=1+1", "'+1", "'-1", "'@x", "'\t=1", "plain"])
