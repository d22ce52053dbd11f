"""What a person may name as an engine, and what is said of anything else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from collectors.engine.targets import EngineTarget, is_index, urls_that_differ


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/metrics"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/metrics"),
        ("http://Node7:8000/metrics", "http://node7:8000/metrics"),
        ("https://llm.example/vllm/metrics/", "https://llm.example/vllm/metrics"),
        ("HTTP://[::1]:8000", "http://[::1]:8000/metrics"),
    ],
)
def test_a_url_becomes_the_address_of_its_page(given: str, page: str) -> None:
    assert EngineTarget(url=given).url == page


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://a", "a", 80),
        ("https://a", "a", 443),
        ("http://[::1]:8000", "::1", 8000),
        ("http://b:30000", "b", 30000),
    ],
)
def test_host_and_port(url: str, host: str, port: int) -> None:
    target = EngineTarget(url=url)
    assert (target.host, target.port) == (host, port)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "127.0.0.1:8000"}, "such as http://127.0.0.1:8000"),
        ({"url": "ftp://a:1"}, "such as http://127.0.0.1:8000"),
        ({"url": "http://a:0"}, "such as http://127.0.0.1:8000"),
        ({"url": "http://a:99999"}, "1 to 65535"),
        ({"url": "http://[::1"}, "1 to 65535"),
        ({"url": "http://user:hush@a:8000"}, "without user, password or query"),
        ({"url": "http://a:8000/metrics?token=hush"}, "without user, password or query"),
        ({"url": "http://a:8000/metrics#hush"}, "without user, password or query"),
        ({"url": "http://a:8000/" + "m" * 200}, "at most 200 characters"),
        ({"url": "http://a:8000/mé"}, "ASCII"),
        ({"url": "http://a:8000/m m"}, "ASCII"),
        ({"url": "http://a", "kind": "ollama"}, "'vllm', 'sglang', 'tgi', 'llama_cpp' or 'triton'"),
        ({"url": "http://a", "model": ""}, "at least 1 character"),
        ({"url": "http://a", "gpus": ["MIG-5f2b"]}, "GPU of a MIG instance"),
        ({"url": "http://a", "gpus": ["A100"]}, "GPU UUIDs such as"),
        ({"url": "http://a", "gpus": ["-1"]}, "GPU UUIDs such as"),
        ({"url": "http://a", "gpus": ["0", "0"]}, "GPUs that differ"),
        ({"url": "http://a", "gpus": ["GPU-5f2b-11", "5F2B-11"]}, "GPUs that differ"),
        ({"url": "http://a", "labels": {"a": "x" * 501}}, "500 characters"),
        ({"url": "http://a", "colour": "red"}, "not permitted"),
    ],
)
def test_anything_else_is_refused_with_what_is_accepted(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        EngineTarget(**given)
    (finding,) = caught.value.errors()
    assert says in finding["msg"]
    assert "hush" not in finding["msg"]


def test_gpus_are_uuids_or_indexes() -> None:
    target = EngineTarget(url="http://a", gpus=["GPU-5F2B3C1D-0000-1111-2222-333344445555", " 3"])
    assert target.gpus == ("5f2b3c1d-0000-1111-2222-333344445555", "3")
    assert [is_index(gpu) for gpu in target.gpus] == [False, True]
    assert EngineTarget(url="http://a", gpus=[]).gpus == ()
    assert EngineTarget(url="http://a").gpus is None


def test_a_page_may_be_named_once() -> None:
    two = (EngineTarget(url="http://a:1"), EngineTarget(url="http://a:2"))
    assert urls_that_differ(two) == two
    with pytest.raises(ValueError, match=r"http://a:1/metrics appears twice"):
        urls_that_differ((EngineTarget(url="http://a:1"), EngineTarget(url="http://A:1/metrics")))
