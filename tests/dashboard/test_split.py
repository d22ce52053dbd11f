"""The *Split* page through AppTest: where sliders begin, what is computed when, scenarios, links, the router's file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from app.answers.measured_knobs import Measured
from app.backend.local import LocalBackend
from app.config import Config
from app.split.demand import Demand
from app.split.scenario import knobs, what_if
from tests.answers.planned import a_plan
from tests.dashboard.split_fakes import CountingBackend
from tests.dashboard.test_views import metric, open_page
from tests.serving import serving

MEASURED = {
    "rps.chat": Measured(7.123456789012345, "measured: busiest hour"),
    "usd.h100": Measured(2.0, "price in force: contract"),
    "g.h100": Measured(97.5, "grid of DE now: live, Energy-Charts"),
}


@pytest.fixture
def counting(backend: LocalBackend) -> Iterator[CountingBackend]:
    made = CountingBackend(backend.store, Config())
    made.asked = Counter()
    with serving(made):
        yield made


@pytest.fixture
def measuring(counting: CountingBackend, monkeypatch: pytest.MonkeyPatch) -> CountingBackend:
    monkeypatch.setattr(counting, "measured_knobs", lambda demand: MEASURED)
    return counting


def slider(app: AppTest, key: str) -> AppTest:
    return next(one for one in app.slider if one.key == key)


def words(app: AppTest) -> str:
    return " ".join(one.value for one in [*app.markdown, *app.caption, *app.info, *app.success])


def in_section(section: str, **query: str) -> AppTest:
    app = open_page("split", section=section, **query)
    assert not app.exception
    return app


def test_sliders_begin_at_what_is_measured(measuring: CountingBackend) -> None:
    app = open_page("split")
    assert not app.exception
    assert slider(app, "rps.chat").value == 7.123456789012345
    assert slider(app, "g.h100").value == 97.5
    assert slider(app, "rps.batch").value == 40.0
    begun = {name: found.value for name, found in MEASURED.items()}
    expected = measuring.split(what_if(measuring.default_demand(), begun))
    assert metric(app, "Carbon (CO2e)")[0] == f"{expected['g_per_hour']:,.0f} g/h"
    assert "h100: 98 g/kWh (grid of DE now: live, Energy-Charts)" in words(app)


def test_a_tick_stands_at_the_measured_value_and_says_what_it_is(measuring: CountingBackend) -> None:
    app = open_page("split")
    style = "".join(one.proto.body for one in app.get("html"))
    # 7.123 of 0 to 100 req/s; 2 of 0 to 5 $; 97.5 of 0 to 1,000 g/kWh
    for name, part in (("rps-chat", "7.123%"), ("usd-h100", "40.000%"), ("g-h100", "9.750%")):
        assert re.search(rf"\.st-key-{name} \S+ > div::after {{ left: {re.escape(part)};", style)
    assert "rps-batch" not in style
    said = re.sub(r"\\([0-9a-f]+) ", lambda code: chr(int(code[1], 16)), style)
    assert 'content: "│ 7.1235 measured: busiest hour"' in said
    assert "The mark is at 97.5: grid of DE now" in slider(app, "g.h100").help


def test_where_nothing_is_measured_there_is_no_tick(counting: CountingBackend) -> None:
    assert not open_page("split").get("html")


def test_moved_sliders_stay_and_the_others_begin_at_what_is_measured(measuring: CountingBackend) -> None:
    app = open_page("split", **{"usd.h100": "3.25"})
    assert (slider(app, "usd.h100").value, slider(app, "rps.chat").value) == (3.25, 7.123456789012345)


def test_an_address_beyond_a_slider_s_range_is_reached(counting: CountingBackend) -> None:
    app = open_page("split", **{"rps.chat": "123.456789"})
    assert slider(app, "rps.chat").value == 123.456789


def test_only_an_open_section_is_computed_and_not_again_when_a_slider_moves(counting: CountingBackend) -> None:
    app = open_page("split")
    assert counting.asked == {}
    app = in_section("Cost and carbon")
    assert counting.asked == {"carbon": 1}
    app = slider(app, "usd.h100").set_value(2.5).run()
    assert not app.exception
    assert counting.asked == {"carbon": 1}
    assert "still about the numbers of before" in app.warning[0].value
    app = next(one for one in app.button if one.key == "anew_front").click().run()
    assert not app.exception
    assert counting.asked == {"carbon": 2}
    assert not app.warning


def test_a_point_of_the_front_opens_its_split(counting: CountingBackend) -> None:
    app = in_section("Cost and carbon")
    point = next(one for one in app.selectbox if one.key == "front_point")
    assert [re.sub(r" g/h", "", option) for option in point.options] == [
        "1: $8.50/h, 1,200 (cheapest)", "2: $9.00/h, 900 (knee)", "3: $12.00/h, 850 (greenest)",
    ]  # fmt: skip
    app = point.set_value(2).run()
    assert not app.exception
    # 3.50 $/h more for 350 g/h fewer: 3.50 / 350 x 1e6 = 10,000 $ per tonne
    assert r"\$3.50/h more than the cheapest, 350 gCO2e/h fewer: \$10,000 per tonne that is avoided." in words(app)
    assert "The split of point 3" in [one.value for one in app.subheader]
    assert counting.asked == {"carbon": 1}


def test_cost_against_an_slo_starts_where_a_mix_is_possible(counting: CountingBackend) -> None:
    app = in_section("Cost and SLO")
    assert r"Below 41.2 ms no mix is possible; there it costs \$11.00/h." in words(app)
    assert counting.asked == {"slo.chat": 1}


def test_robustness_is_asked_input_by_input(counting: CountingBackend) -> None:
    app = in_section("Robustness")
    assert counting.asked == {"names": 1, "rps.chat": 1, "usd.h100": 1}
    ranges = app.dataframe[0].value
    assert list(ranges["from"]) == ["4.5 (90%)"] * 2
    assert list(ranges["to"]) == ["50 (1000%) or more"] * 2
    assert "Below 3.1 req/s h100 costs less." in words(app)


def test_an_input_that_does_not_bear_says_so_in_full_and_none_is_below_zero(
    counting: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = counting.split_robustness(counting.default_demand())
    idle = found["inputs"][0] | {"text": "grid of h100: it does not bear on the answer.", "solves": 0}
    idle |= {"low": 0.0, "low_factor": None, "low_is_open": True}
    monkeypatch.setattr(counting, "split_robustness", lambda demand=None, *, inputs=(): found | {"inputs": [idle]})
    app = in_section("Robustness")
    assert "grid of h100: it does not bear on the answer." in [one.value for one in app.caption]
    assert list(app.dataframe[0].value["from"]) == ["0"] * 2


def test_the_front_says_why_its_cheapest_point_has_fewer_grams_than_the_mix(
    counting: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = counting.split(counting.default_demand())
    front = counting.split_front(counting.default_demand())
    front["points"][0] |= {"usd_per_hour": mix["usd_per_hour"], "split": mix | {"g_per_hour": mix["g_per_hour"] / 2}}
    monkeypatch.setattr(counting, "split_front", lambda demand, against="carbon": front)
    assert f"The recommended mix has {mix['g_per_hour']:,.0f} g/h at the same cost" in words(
        in_section("Cost and carbon")
    )


def test_shadow_prices_are_computed_when_they_are_opened(counting: CountingBackend) -> None:
    app = open_page("split")
    assert "shadow" not in counting.asked
    app.session_state["one_more"] = True
    app = app.run()
    assert not app.exception
    assert counting.asked["shadow"] == 1
    row = next(one.value for one in app.dataframe if "saves $/h" in one.value.columns)
    assert (row["saves $/h"][0], row["in words"][0]) == ("+1.10", "One more h100 saves $1.10/h.")


def test_a_link_holds_every_knob_and_gives_the_same_figures_to_the_digit(measuring: CountingBackend) -> None:
    app = in_section("Scenarios", carbon="120", util="0.7")
    query = dict(parse_qsl(urlsplit(app.code[0].value).query))
    assert set(query) == set(knobs(measuring.default_demand()))
    assert query["rps.chat"] == "7.123456789012345"
    measuring.measured_knobs = lambda demand: {}  # type: ignore[method-assign]
    again = open_page("split", **query)
    for label in ("Cost", "Per million tokens", "Power", "Carbon (CO2e)"):
        assert metric(again, label) == metric(app, label)
    assert measuring.split(measuring.asked_demand(query))["usd_per_hour"] is not None
    assert metric(app, "Cost")[0] == f"${measuring.split(measuring.asked_demand(query))['usd_per_hour']:,.2f}/h"


def test_a_scenario_is_saved_compared_opened_and_deleted(counting: CountingBackend) -> None:
    app = in_section("Scenarios", **{"rps.batch": "80"})
    app.text_input(key="scenario_name").set_value("twice the batch")
    app = app.button[0].click().run()
    assert not app.exception
    assert "Saved twice the batch." in words(app)
    [kept] = counting.scenarios()
    expected = counting.split(what_if(counting.default_demand(), {"rps.batch": 80}))
    listed, compared = app.dataframe[0].value, app.dataframe[1].value
    assert list(listed["open"]) == ["/split?scenario=twice%20the%20batch"]
    assert list(compared["scenario"]) == ["these sliders", "twice the batch"]
    assert list(compared["$/h"]) == [expected["usd_per_hour"]] * 2
    assert list(compared["replicas"]) == [sum(pool["count"] for pool in expected["replicas"])] * 2
    opened = open_page("split", scenario="twice the batch")
    assert not opened.exception
    assert slider(opened, "rps.batch").value == 80.0
    assert metric(opened, "Cost") == metric(app, "Cost")
    assert "begin at the scenario **twice the batch**" in words(opened)
    app = app.button(key="delete_scenario").click().run()
    assert not app.exception
    assert counting.scenarios() == []
    assert kept["name"] == "twice the batch"


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_cannot_be_one_is_told(counting: CountingBackend, name: str) -> None:
    app = in_section("Scenarios")
    app.text_input(key="scenario_name").set_value(name)
    app = app.button[0].click().run()
    assert "1 to 100 printable characters without a slash" in app.error[0].value
    assert counting.scenarios() == []


def test_a_scenario_that_is_not_there_is_told(counting: CountingBackend) -> None:
    app = open_page("split", scenario="gone")
    assert not app.exception
    assert "no scenario 'gone'" in app.error[0].value


def test_the_router_s_file_is_the_backend_s(counting: CountingBackend) -> None:
    app = in_section("Router")
    shown = app.code[0].value
    exported = counting.export_split(counting.default_demand(), "litellm")
    assert yaml.safe_load(shown) == yaml.safe_load(exported)
    assert shown.splitlines()[1] == exported.splitlines()[1]


def test_a_plan_is_computed_when_its_section_is_opened_and_for_other_hours_at_once(counting: CountingBackend) -> None:
    app = in_section("Plan")
    assert counting.asked == {"plan 24": 1}
    app = app.button_group("hours").set_value(72).run()
    assert not app.exception
    assert counting.asked == {"plan 24": 1, "plan 72": 1}
    app = slider(app, "usd.h100").set_value(2.5).run()
    assert counting.asked == {"plan 24": 1, "plan 72": 1}
    assert "still about the numbers of before" in app.warning[0].value
    app = next(one for one in app.button if one.key == "anew_plan").click().run()
    assert counting.asked == {"plan 24": 1, "plan 72": 2}


def test_a_plan_has_its_figures_a_row_per_hour_and_says_what_it_stands_on(counting: CountingBackend) -> None:
    app = in_section("Plan", tz="Europe/Madrid", **{"rps.batch": "45"})
    assert metric(app, "Cost of 3 h") == ("$7.00", "-42% vs peak split")
    assert metric(app, "Saved in 3 h") == ("$5.00", "300 gCO2e fewer")
    assert metric(app, "CO2e of 3 h") == ("600 g", "-33% vs peak split")
    assert metric(app, "Gap") == ("2.00%", "bound $7.06")
    rows = app.dataframe[0].value
    assert list(rows["from (Europe/Madrid)"]) == ["Sun 25 Oct 02:00", "Sun 25 Oct 02:00", "Sun 25 Oct 03:00"]
    assert list(rows["h100: 1x H100 PCIe 80GB"]) == [1, 1, 1]
    assert list(rows["rtx4090: 2x RTX 4090"]) == [0, 2, 4]
    assert list(rows["$"]) == [2.0, 2.0, 3.0]
    assert list(rows["waits: batch"]) == [3_600_000, 1_800_000, 0]
    said = words(app)
    assert (
        r"Against the best split of the busiest hours, run in all hours (\$12.00, 900 gCO2e): \$5.00 (41.7%) less"
        in said
    )
    assert "* Grid of rtx4090: FR, forecast by Electricity Maps." in said
    assert "`/api/v1/split/plan?hours=24&rps.batch=45.0`" in said


def test_a_plan_that_there_is_not_says_why(counting: CountingBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"status": "infeasible", "reason": "batch: no GPU is left", "hours": [], "totals": None, "saving": None}
    monkeypatch.setattr(counting, "split_plan", lambda demand=None, *, hours=24: a_plan() | nothing)
    app = in_section("Plan")
    assert app.error[0].value == "**No plan carries this demand.** batch: no GPU is left"
    assert "What the plan stands on" in words(app)


def test_a_plan_takes_the_forecast_of_a_grid_that_stands_where_it_is_now(
    measuring: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Demand] = []
    monkeypatch.setattr(measuring, "split_plan", lambda demand, *, hours: asked.append(demand) or a_plan())
    in_section("Plan")
    in_section("Plan", **{"g.h100": "120"})
    grids = [{fleet.name: fleet.g_per_kwh for fleet in demand.fleets} for demand in asked]
    assert grids == [{"h100": None, "rtx4090": None}, {"h100": 120.0, "rtx4090": None}]
    # all else is where the sliders are
    assert [one.requests_per_s for one in asked[0].classes] == [7.123456789012345, 40.0]


@pytest.mark.parametrize("section", ["Mix", "Scenarios", "Router"])
def test_an_impossible_demand_has_sections_as_well(counting: CountingBackend, section: str) -> None:
    app = in_section(section, **{"slo.chat": "10"})
    assert "No mix carries this demand" in app.error[0].value


def test_what_conflicts_and_the_cheapest_way_out_are_shown(
    counting: CountingBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = counting.split(what_if(counting.default_demand(), {"slo.chat": 10}))
    way_out = {"text": "chat p99 TTFT <= 51.3 ms rather than 10", "usd_per_hour": 8.5}
    found = asked | {"conflict": ["chat p99 TTFT <= 10 ms", "4 GPUs of h100"], "relaxation": way_out}
    monkeypatch.setattr(counting, "split", lambda demand=None: found)
    app = open_page("split")
    said = words(app)
    assert "Cheapest single relaxation" in asked["reason"]
    assert "Cheapest single relaxation" not in app.error[0].value  # said once, in the box below
    assert "* chat p99 TTFT <= 10 ms\n* 4 GPUs of h100" in said
    assert r"Cheapest way out: chat p99 TTFT <= 51.3 ms rather than 10, for \$8.50/h." in said
