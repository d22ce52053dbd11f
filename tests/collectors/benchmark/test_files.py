"""Each file gets one verdict, and a reason a person can act on; a file gives all of its runs or none."""

from __future__ import annotations

import json
import os
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.benchmark import facts_csv
from collectors.benchmark.fields import GpuOverride
from collectors.benchmark.files import FoundFile, PathNotFound, find_files, read_file
from tests.collectors.benchmark.profiles import AIPERF, GENAI_PERF, PHASES_CONFIG
from tests.collectors.benchmark.reports import benchmark, older, report
from tests.collectors.benchmark.results import RESULT, outcome_of, result, without, write_result


def written(folder: Path, content: str | bytes, name: str = "a.json") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


ONE, TWO = json.dumps(result()), json.dumps(result(request_rate=32.0, completed=199))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (ONE, [1]),
        (f"\n\n{ONE}\n", [3]),
        (ONE + TWO, [1, 1]),
        (f"{ONE}\n{TWO}", [1, 2]),
        (f"{ONE}\r\n\r\n{TWO}\r\n", [1, 3]),
        (json.dumps(result(), indent=2) + "\n" + TWO, [1, 2 + len(RESULT) + 1]),
        (f"[{ONE}, {TWO}]", [1, 1]),
        ("\ufeff" + ONE, [1]),
    ],
    ids=["one", "blank lines first", "end to end", "JSONL", "CRLF", "indented", "array", "byte order mark"],
)
def test_every_object_of_a_file_is_a_run_with_its_place(tmp_path: Path, content: str, lines: list[int]) -> None:
    outcome = outcome_of(written(tmp_path, content))
    assert (outcome.verdict, outcome.reason) == ("read", None)
    assert [run.source_index for run in outcome.runs] == list(range(len(lines)))
    assert [run.source_line for run in outcome.runs] == lines
    assert {run.source_file for run in outcome.runs} == {"a.json"}
    assert [run.offered_requests_per_s for run in outcome.runs] == [16.0, 32.0][: len(lines)]


def test_an_object_of_an_array_has_the_line_it_starts_on(tmp_path: Path) -> None:
    outcome = outcome_of(written(tmp_path, f"[\n{ONE},\n{TWO}\n]"))
    assert [run.source_line for run in outcome.runs] == [2, 3]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the file is empty"),
        (" \n\t\n", "the file is empty"),
        ("\ufeff", "the file is empty"),
        (ONE[:-40], "line 1, column "),
        (f"{ONE}\n{TWO[:200]}", "line 2, column "),
        (f"{ONE}\n}}", "line 2, column 1: not JSON (Expecting value)"),
        ("GPU,model\n", "line 1, column 1: not JSON (Expecting value)"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 text (byte 0)"),
        (ONE.encode().replace(b"vllm", b"v\xe9lm"), "not UTF-8 text (byte "),
        ("[" * 100_000, "line 1: JSON that cannot be read ("),
        ("\n" + ONE.replace("19.004579995002132", "9" * 5000), "line 2: JSON that cannot be read ("),
        (ONE.replace("19.004579995002132", "9" * 4000), "object 1 (line 1), key `duration`: given 999"),
        (f"{ONE}\n{json.dumps(result(duration=0))}", "object 2 (line 2), key `duration`: given 0; accepted: seconds"),
        (f"{ONE}\n\n[]\n7", "object 2 (line 4) is not a benchmark result"),
        (f'{ONE}\n{{"hello": 1}}', "object 2 (line 2) is not a benchmark result"),
        (json.dumps(result(model_id=7)), "object 1 (line 1), key `model_id`: given 7; accepted: printable text"),
        (json.dumps(result(duration=float("nan"))), "object 1 (line 1), key `duration`: given nan; accepted: seconds"),
        (json.dumps(without("total_input_tokens")), "object 1 (line 1), key `total_input_tokens`: given None"),
        (json.dumps(without("gpu_name")), "object 1 (line 1), key `gpu_name`: given None; accepted: a GPU name; or "),
    ],
)  # fmt: skip
def test_a_broken_file_gives_no_run_and_says_where_and_what(tmp_path: Path, content: str | bytes, told: str) -> None:
    outcome = outcome_of(written(tmp_path, content))
    assert (outcome.verdict, outcome.runs) == ("broken", ())
    assert str(outcome.reason).startswith(told)
    assert len(str(outcome.reason)) < 300


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"a": [1, 2]}', "3", "null", '"text"', "[[1], {}]", '{"duration": 1}']
)
def test_json_of_another_kind_is_skipped_not_broken(tmp_path: Path, content: str) -> None:
    outcome = outcome_of(written(tmp_path, content))
    told = "JSON, but no result of vLLM, GuideLLM, AIPerf or GenAI-Perf"
    assert (outcome.verdict, outcome.reason) == ("skipped", told)


@pytest.mark.parametrize(
    "content", [f"[{ONE} {TWO}]", f"[{ONE},,{TWO}]", f"[,{ONE}]", f"[{ONE},]", f"[{ONE}", f"[{ONE}]]", "[,]", "["]
)
def test_an_array_that_is_no_json_is_broken(tmp_path: Path, content: str) -> None:
    outcome = outcome_of(written(tmp_path, content))
    assert (outcome.verdict, outcome.runs) == ("broken", ())
    assert str(outcome.reason).startswith("line 1")


@pytest.mark.parametrize("depth", [100, 100_000])
def test_a_value_that_is_nested_deeply_is_refused_in_words(tmp_path: Path, depth: int) -> None:
    nested = ONE.replace('"nvidia/AceMath-7B-Instruct"', "[" * depth + "]" * depth, 1)
    assert outcome_of(written(tmp_path, nested)).verdict == "broken"


def test_no_depth_of_nesting_escapes_a_verdict(tmp_path: Path) -> None:
    # Between what the decoder takes and what repr() takes of it lie a few depths, just below the recursion limit.
    limit = sys.getrecursionlimit()
    for depth in range(limit - 200, limit + 20):
        nested = ONE.replace('"nvidia/AceMath-7B-Instruct"', "[" * depth + "]" * depth, 1)
        assert outcome_of(written(tmp_path, nested)).verdict == "broken"


def test_zero_tokens_are_kept(tmp_path: Path) -> None:
    outcome = outcome_of(written(tmp_path, json.dumps(result(total_input_tokens=0, total_output_tokens=0))))
    assert [run.total_tokens for run in outcome.runs] == [0]


def test_a_file_over_the_limit_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    outcome = outcome_of(path)
    assert outcome.verdict == "broken"
    assert str(outcome.reason).startswith("200 MB; a result file may have ")
    assert "--max-file-mb" in str(outcome.reason)


def test_the_limit_counts_to_the_byte(tmp_path: Path) -> None:
    found = FoundFile(written(tmp_path, ONE), "a.json", named=True)
    assert read_file(found, max_bytes=len(ONE)).verdict == "read"
    assert read_file(found, max_bytes=len(ONE) - 1).verdict == "broken"


@pytest.mark.parametrize("name", [".DS_Store", "README.md", "run.json.swp", "table.csv", "noextension"])
def test_a_stray_file_of_a_folder_is_skipped_without_reading_it(tmp_path: Path, name: str) -> None:
    written(tmp_path, b"\xff\x00", name)
    [found] = find_files([str(tmp_path)])
    outcome = read_file(found)
    assert (outcome.file, outcome.verdict, outcome.reason) == (name, "skipped", "not a .json file")


@pytest.mark.parametrize("name", ["a.json", "a.JSON", "a.jsonl", "deep/er/a.json", "an empty space.json", "ü.json"])
def test_a_result_of_a_folder_is_named_by_its_path_below_it(tmp_path: Path, name: str) -> None:
    write_result(tmp_path / "runs" / name, result())
    [found] = find_files([str(tmp_path / "runs")])
    assert found == FoundFile(tmp_path / "runs" / name, name, named=False)
    assert read_file(found).verdict == "read"


def test_a_named_file_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    [found] = find_files([str(write_result(tmp_path / "result.txt", result()))])
    assert read_file(found).verdict == "read"


def test_a_named_csv_of_facts_is_read(tmp_path: Path) -> None:
    runs = outcome_of(written(tmp_path, f"{ONE}\n{TWO}")).runs
    outcome = outcome_of(written(tmp_path, "\ufeff" + facts_csv.write(runs), "facts.csv"))
    assert (outcome.verdict, outcome.runs) == ("read", runs)
    broken = outcome_of(written(tmp_path, facts_csv.write(runs).replace(",199,", ",x,"), "facts.csv"))
    assert broken.verdict == "broken"
    assert str(broken.reason).startswith("line 3: ")


def test_folders_globs_and_files_are_found_in_a_stable_order_and_once(tmp_path: Path) -> None:
    for name in ("b/2.json", "b/1.json", "a/3.json", "4.json"):
        write_result(tmp_path / name, result())
    in_order = ["4.json", "a/3.json", "b/1.json", "b/2.json"]
    assert [found.name for found in find_files([str(tmp_path)])] == in_order
    assert [found.name for found in find_files([str(tmp_path)] * 2 + [str(tmp_path / "a" / "3.json")])] == in_order
    assert [found.name for found in find_files([str(tmp_path / "b" / "*.json")])] == ["1.json", "2.json"]
    assert len(find_files([str(tmp_path / "**" / "*.json")])) == 4


def test_the_same_file_by_another_way_is_one_file(tmp_path: Path) -> None:
    path = write_result(tmp_path / "runs" / "a.json", result())
    (tmp_path / "link.json").symlink_to(path)
    around = tmp_path / "runs" / ".." / "runs" / "a.json"
    assert len(find_files([str(path), str(around), str(tmp_path / "link.json"), "runs/a.json"])) == 1


def test_a_relative_path_and_a_home_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_result(tmp_path / "a.json", result())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [found.name for found in find_files(["a.json"])] == ["a.json"]
    assert [found.name for found in find_files(["~/a.json"])] == ["a.json"]


@pytest.mark.parametrize("path", ["nowhere", "nowhere.json", "nowhere/*.json", "", "a\0b"])
def test_a_path_that_leads_nowhere_is_named(tmp_path: Path, path: str) -> None:
    if path == "":  # an empty text is the working folder to pathlib
        assert find_files([path]) == []
        return
    write_result(tmp_path / "a.json", result())
    with pytest.raises(PathNotFound) as refused:
        find_files(["a.json", path])
    assert str(refused.value) == f"no such file or folder, and no file matches: {path}"


def test_an_empty_folder_gives_no_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert find_files([str(tmp_path / "empty")]) == []


def test_what_is_no_regular_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "dead.json").symlink_to(tmp_path / "gone.json")
    outcomes = [read_file(found) for found in find_files([str(tmp_path)])]
    assert [(outcome.verdict, outcome.reason) for outcome in outcomes] == [("broken", "not a regular file")] * 2


def test_a_file_that_may_not_be_read_is_broken_with_the_system_s_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    path = write_result(tmp_path / "a.json", result())
    monkeypatch.setattr(Path, "read_bytes", denied)
    outcome = outcome_of(path)
    assert (outcome.verdict, outcome.reason) == ("broken", "cannot be read: Permission denied")


def test_gpu_options_reach_every_object(tmp_path: Path) -> None:
    path = write_result(tmp_path / "a.json", without("gpu_name"), without("gpu_name", "gpu_count"))
    runs = outcome_of(path, gpu=GpuOverride("NVIDIA L4", 3)).runs
    assert [(run.gpu_name, run.gpu_count) for run in runs] == [("NVIDIA L4", 3)] * 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    [*RESULT, "p99.9_ttft_ms", "median_e2el_ms", "p50_e2el_ms", "std_itl_ms", "p000_ttft_ms", "p٩٩_ttft_ms"]
) | st.from_regex(r"p[0-9.]{1,5}_(ttft|tpot|itl|e2el)_ms", fullmatch=True)


@given(changes=st.dictionaries(_KEYS, _JSON | st.integers(-(10**30), 10**30), min_size=1, max_size=3))
def test_no_json_value_in_any_key_gives_anything_but_a_verdict(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_text(json.dumps(RESULT | changes), encoding="utf-8")
    outcome = outcome_of(path)
    assert outcome.verdict in ("read", "broken")
    assert bool(outcome.reason) is (outcome.verdict == "broken")
    assert len(outcome.runs) == (1 if outcome.verdict == "read" else 0)
    if outcome.reason:
        assert any(f"key `{key}`" in outcome.reason for key in (*changes, "completed"))
    for run in outcome.runs:
        assert list(facts_csv.read(facts_csv.write([run]))) == [run]


@given(content=st.binary(max_size=60) | st.text('{}[]",:0123456789eE+-.truefalsn \n', max_size=60).map(str.encode))
def test_no_bytes_give_anything_but_a_verdict(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_bytes(content)
    outcome = outcome_of(path)
    assert outcome.verdict in ("skipped", "broken")
    assert outcome.reason


GPU = GpuOverride("NVIDIA L40S", 2)
REPORT = report(benchmark("poisson"), benchmark("concurrent"))


@pytest.mark.parametrize(
    ("content", "models"),
    [
        (result(), ["nvidia/AceMath-7B-Instruct"]),
        (REPORT, ["Qwen/Qwen3-8B"] * 2),
        (AIPERF, ["Qwen/Qwen3-8B"]),
        (GENAI_PERF, ["Qwen/Qwen3-8B"]),
    ],
    ids=["vLLM", "GuideLLM", "AIPerf", "GenAI-Perf"],
)
@pytest.mark.parametrize("name", ["benchmarks.json", "profile_export_aiperf.json", "vllm-16qps.json", "x.JSON"])
def test_a_format_is_known_by_its_content_not_by_the_name(
    tmp_path: Path, content: dict[str, Any], models: list[str], name: str
) -> None:
    outcome = outcome_of(written(tmp_path, json.dumps(content, indent=2), name), gpu=GPU)
    assert (outcome.verdict, outcome.reason) == ("read", None)
    assert [run.model for run in outcome.runs] == models
    assert {(run.gpu_name, run.gpu_count, run.source_line) for run in outcome.runs} == {("NVIDIA L40S", 2, 1)}


def test_several_results_of_several_kinds_in_a_file_are_numbered_through(tmp_path: Path) -> None:
    outcome = outcome_of(write_result(tmp_path / "all.json", REPORT, result(), report(older()), AIPERF), gpu=GPU)
    assert (outcome.verdict, outcome.reason) == ("read", None)
    assert [(run.source_index, run.source_line) for run in outcome.runs] == [(0, 1), (1, 1), (2, 2), (3, 3), (4, 4)]
    assert list(facts_csv.read(facts_csv.write(outcome.runs))) == list(outcome.runs)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([REPORT], "object 1 (line 1), key `gpu_name`: given None; accepted: a GPU name given with --gpu (GuideLLM"),
        ([AIPERF], "object 1 (line 1), key `gpu_name`: given None; accepted: a GPU name given with --gpu (AIPerf"),
        ([result(), report()], "object 2 (line 2), key `benchmarks`: given []; accepted: a list of at least one"),
        ([result(), report(benchmark(), benchmark(duration=0))],
         "object 2 (line 2), key `gpu_name`"),
        ([AIPERF | {"request_count": {"unit": "requests", "avg": -4}}],
         "object 1 (line 1), key `request_count.avg`: given -4; accepted: a whole number >= 0"),
        ([REPORT, {"hello": 1}], "object 1 (line 1), key `gpu_name`"),
        ([result(), {"benchmarks": [{"name": "BM_sort"}]}], "object 2 (line 2) is not a benchmark result"),
    ],
)  # fmt: skip
def test_a_broken_result_of_any_kind_says_where_and_what(tmp_path: Path, content: list[Any], told: str) -> None:
    outcome = outcome_of(write_result(tmp_path / "a.json", *content))
    assert (outcome.verdict, outcome.runs) == ("broken", ())
    assert str(outcome.reason).startswith(told)
    assert "planted-key" not in str(outcome.reason)


def _places(value: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every key and item of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inner for found in [(*place, key), *_places(one, (*place, key))]]


_WHOLE = [REPORT, report(older()), AIPERF, GENAI_PERF, AIPERF | {"input_config": PHASES_CONFIG}]
_ANYWHERE = st.sampled_from([(index, place) for index, one in enumerate(_WHOLE) for place in _places(one)])


@given(where=_ANYWHERE, value=_JSON | st.integers(-(10**30), 10**30))
def test_no_json_value_anywhere_in_a_report_gives_anything_but_a_verdict(
    tmp_path_factory: pytest.TempPathFactory, where: tuple[int, tuple[Any, ...]], value: object
) -> None:
    index, (*way, last) = where
    changed = inside = deepcopy(_WHOLE[index])
    for key in way:
        inside = inside[key]
    inside[last] = value
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_text(json.dumps(changed), encoding="utf-8")
    outcome = outcome_of(path, gpu=GPU)
    assert bool(outcome.reason) is (outcome.verdict != "read")
    assert bool(outcome.runs) is (outcome.verdict == "read")
    assert len(str(outcome.reason)) < 400
    assert list(facts_csv.read(facts_csv.write(outcome.runs))) == list(outcome.runs)
