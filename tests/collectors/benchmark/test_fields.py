"""A value is read, is missing, or is refused with the whole way to its key."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.benchmark.fields import FieldError, Fields, GpuOverride, latency_of
from collectors.benchmark.run import Latency


def test_a_refusal_names_the_whole_way_to_a_key() -> None:
    inner = Fields({"a": {"list": [{}, {"x": -1}]}}).inside("a").items("list", "a list")[1]
    assert str(inner.refusal("x", "a number > 0")) == "`a.list[1].x`: given -1; accepted: a number > 0"
    told = "`a.list[1].y`: given None; accepted: a number > 0 (the key is missing)"
    assert str(inner.refusal("y", "a number > 0")) == told


def test_what_is_not_there_is_an_empty_object_and_what_is_none_is_missing() -> None:
    fields = Fields({"nothing": None})
    assert fields.inside("nothing").content == {}
    assert fields.inside("absent").inside("deeper") == Fields({}, "absent.deeper.")
    assert fields.members("absent") == []
    assert fields.optional_text("nothing") is None
    assert fields.optional_count("nothing") is None
    assert fields.optional_positive("nothing") is None


@pytest.mark.parametrize("value", [[], "text", 0, True])
def test_what_is_no_object_is_refused(value: Any) -> None:
    with pytest.raises(FieldError, match=r"`a`: given .*; accepted: an object"):
        Fields({"a": value}).inside("a")
    with pytest.raises(FieldError, match=r"`a`: given .*; accepted: an object of objects"):
        Fields({"a": {"b": value}}).members("a")


def test_a_total_is_a_mean_times_its_count_to_the_whole_number() -> None:
    assert Fields({"mean": 23 / 3}).total("mean", times=3) == 23
    assert Fields({"sum": 7}).total("sum") == 7
    with pytest.raises(FieldError, match=r"`mean`: given 1e\+16; accepted: a number >= 0"):
        Fields({"mean": 1e16}).total("mean", times=3)


def test_quantiles_are_sorted_scaled_and_without_those_that_are_not_there() -> None:
    fields = Fields({"max": 3.5, "p50": 1.0, "p99": None, "p90": float("nan")})
    keys = [("max", 100.0), ("p99", 99.0), ("p90", 90.0), ("p50", 50.0), ("p10", 10.0)]
    assert list(fields.quantiles_ms(keys, ms=1000.0).items()) == [(50.0, 1000.0), (100.0, 3500.0)]


def test_a_latency_needs_a_mean_or_a_quantile() -> None:
    assert latency_of(None, 3.0, {}) is None
    assert latency_of(0.0, None, {}) == Latency(0.0)
    assert latency_of(None, None, {50.0: 1.0}) == Latency(None, None, {50.0: 1.0})


def test_a_gpu_that_was_not_given_is_asked_for() -> None:
    assert (GpuOverride("NVIDIA L4", 2).name_or_refuse("X"), GpuOverride("NVIDIA L4", 2).count_or_refuse("X")) == (
        "NVIDIA L4",
        2,
    )
    with pytest.raises(FieldError, match=r"`gpu_name`: .*--gpu \(X does not record it\)"):
        GpuOverride(None, 2).name_or_refuse("X")
    with pytest.raises(FieldError, match=r"`gpu_count`: .*--gpu-count \(X does not record it\)"):
        GpuOverride("NVIDIA L4").count_or_refuse("X")
