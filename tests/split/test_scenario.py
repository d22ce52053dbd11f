from __future__ import annotations

import math
from typing import Any

import pytest

from app.errors import DemandError
from app.split.demand import Demand, parse_demand
from app.split.scenario import knobs, what_if


@pytest.fixture
def demand() -> Demand:
    tokens = {"model": "org/model", "prompt_tokens": 208, "generated_tokens": 209}
    slo = [{"metric": "ttft", "percentile": 99, "max_ms": 60}, {"metric": "tpot", "percentile": 99, "max_ms": 30}]
    return parse_demand(
        {
            "class": [
                tokens | {"name": "chat", "requests_per_s": 5, "slo": slo, "fleets": ["h100"]},
                tokens | {"name": "batch v1.2", "requests_per_s": 40},
            ],
            "fleet": [
                {"name": "h100", "gpu": "NVIDIA H100 PCIe", "usd_per_gpu_hour": 2.0, "zone": "EU27", "max_gpus": 8},
                {"name": "rtx4090", "gpu": "RTX 4090", "usd_per_gpu_hour": 0.25, "g_per_kwh": 30},
            ],
            "solve": {"carbon_usd_per_t": 100, "max_utilisation": 0.7, "gap": 0, "small_samples": "refuse"},
        },
        "test",
    )


def test_every_replaceable_number_is_a_knob_at_its_present_value(demand: Demand) -> None:
    assert knobs(demand) == {
        "rps.chat": 5.0,
        "slo.chat": 60.0,
        "rps.batch v1.2": 40.0,
        "usd.h100": 2.0,
        "g.h100": None,
        "usd.rtx4090": 0.25,
        "g.rtx4090": 30.0,
        "carbon": 100.0,
        "util": 0.7,
    }


@pytest.mark.parametrize("value", [1, 0.5, "0.5"])
@pytest.mark.parametrize(
    "name",
    ["rps.chat", "slo.chat", "rps.batch v1.2", "usd.h100", "g.h100", "usd.rtx4090", "g.rtx4090", "carbon", "util"],
)
def test_a_knob_changes_its_own_number_and_no_other(demand: Demand, name: str, value: Any) -> None:
    changed = what_if(demand, {name: value})
    assert knobs(changed) == knobs(demand) | {name: float(value)}


def test_knobs_at_their_present_values_change_nothing(demand: Demand) -> None:
    assert what_if(demand, {}) == demand
    assert what_if(demand, knobs(demand)) == demand


def test_what_no_knob_reaches_is_kept(demand: Demand) -> None:
    changed = what_if(demand, {"rps.chat": 9, "slo.chat": 100, "usd.h100": 3, "carbon": 0})
    assert (changed.classes[0].slo[1], changed.classes[0].fleets) == (demand.classes[0].slo[1], ("h100",))
    assert (changed.fleets[0].zone, changed.fleets[0].max_gpus) == ("EU27", 8)
    assert (changed.solve.small_samples, changed.solve.gap) == ("refuse", 0)


def test_a_what_if_leaves_the_demand_itself_alone(demand: Demand) -> None:
    before = demand.model_copy(deep=True)
    what_if(demand, {"rps.chat": 9, "slo.chat": 100, "g.h100": 3, "carbon": 0})
    assert demand == before


def test_grams_per_kwh_can_be_unset(demand: Demand) -> None:
    assert what_if(demand, {"g.rtx4090": None}).fleets[1].g_per_kwh is None


@pytest.mark.parametrize(
    "name", ["rps.voice", "slo.batch v1.2", "usd.chat", "g.", "rps", "chat", "carbon.h100", "util.chat", "RPS.chat", ""]
)
def test_an_unknown_knob_is_refused_with_those_that_exist(demand: Demand, name: str) -> None:
    with pytest.raises(DemandError) as caught:
        what_if(demand, {name: 1})
    assert str(caught.value) == f"query: `{name}`: no such knob; accepted: {', '.join(knobs(demand))}"


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("rps.chat", -1, "a number >= 0"),
        ("rps.chat", "fast", "a number"),
        ("rps.chat", "", "a number"),
        ("rps.chat", None, "a number"),
        ("rps.chat", math.nan, "finite"),
        ("rps.chat", "inf", "finite"),
        ("slo.chat", 0, "a number > 0"),
        ("usd.h100", -0.01, "a number >= 0"),
        ("g.h100", -5, "a number >= 0"),
        ("carbon", -1, "a number >= 0"),
        ("util", 0, "a number > 0"),
        ("util", 1.5, "a number <= 1"),
    ],
)
def test_a_value_out_of_range_is_refused_with_what_is_accepted(
    demand: Demand, name: str, value: Any, accepted: str
) -> None:
    with pytest.raises(DemandError) as caught:
        what_if(demand, {name: value}, "the URL")
    assert str(caught.value).startswith("the URL: `")
    assert f"given {value!r}" in str(caught.value)
    assert accepted in str(caught.value)


def test_several_knobs_at_once(demand: Demand) -> None:
    changes = {"rps.chat": 7.0, "usd.rtx4090": 0.3, "util": 0.9}
    assert knobs(what_if(demand, changes)) == knobs(demand) | changes
