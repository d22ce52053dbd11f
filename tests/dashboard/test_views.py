"""Each page through Streamlit's AppTest: it draws without an error, and its figures are the backend's."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.backend.local import LocalBackend
from app.config import Config
from app.dashboard import SCRIPT
from app.split.scenario import what_if
from app.store.benchmarks import add_runs
from app.store.database import Store
from app.store.facts import append_facts
from tests.dashboard.runs import run_without_prices
from tests.facts.builders import fact, rented
from tests.serving import serving

TIMEOUT_S = 30


def open_page(view: str = "benchmarks", /, **query: str) -> AppTest:
    """The page as its own small app: AppTest cannot follow st.navigation's URL paths."""
    app = AppTest.from_string(
        f"from app.dashboard.frame import show_error_of\nfrom app.dashboard.views import {view}\n"
        f"show_error_of({view}.page)()",
        default_timeout=TIMEOUT_S,
    )
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def metric(app: AppTest, label: str) -> tuple[str, str]:
    found = [one for one in app.metric if one.label == label]
    assert len(found) == 1, [one.label for one in app.metric]
    return found[0].value, found[0].delta


def test_the_frame_draws_the_first_page_and_says_that_data_is_not_the_users(served_backend: LocalBackend) -> None:
    app = AppTest.from_file(str(SCRIPT), default_timeout=TIMEOUT_S).run()
    assert not app.exception
    assert app.title[0].value == "Overview"


def test_benchmarks_shows_the_cheapest_run_of_the_studys_model(served_backend: LocalBackend) -> None:
    app = open_page()
    assert not app.exception
    # 0.50 $/h x 51.47 s / 3600 / (1619.37 tok/s x 51.47 s) x 1e6 = 0.0858
    assert metric(app, "Lowest $/Mtok (total)") == ("$0.086", "2x RTX 4090 at 16 req/s")
    assert metric(app, "Lowest TTFT p99")[1].startswith("1x H100 PCIe")
    rows = served_backend.run_rows(model="DeepSeek-R1-Distill-Qwen-14B")
    assert len(app.dataframe[0].value) == len(rows)


def test_benchmarks_in_the_url_is_the_benchmarks_shown(served_backend: LocalBackend) -> None:
    app = open_page(model="microsoft/phi-4", basis="output", assume="study")
    assert not app.exception
    best = min(row["usd_per_mtok_output"] for row in served_backend.run_rows(model="microsoft/phi-4"))
    assert metric(app, "Lowest $/Mtok (output)")[0] == f"${best:.3f}"
    assert "242 g/kWh" in " ".join(caption.value for caption in app.caption)


def test_benchmarks_without_a_price_says_for_what(store: Store) -> None:
    add_runs(store, [run_without_prices()])
    with serving(LocalBackend(store, Config())):
        app = open_page()
    assert not app.exception
    value, why = metric(app, "Lowest $/Mtok (total)")
    assert value == "–"
    assert "no price for Prototype X1" in why


@pytest.mark.parametrize("view", ["benchmarks", "split"])
def test_a_page_on_an_empty_store_says_what_to_do(view: str, store: Store) -> None:
    with serving(LocalBackend(store, Config())):
        app = open_page(view)
    assert not app.exception
    assert "wattmix import" in " ".join(one.value for one in [*app.info, *app.error])


def test_a_page_outside_the_hub_says_how_to_start_it() -> None:
    app = open_page("split")
    assert not app.exception
    assert "wattmix serve" in app.error[0].value


def test_split_shows_the_worked_example(served_backend: LocalBackend) -> None:
    app = open_page("split")
    assert not app.exception
    assert metric(app, "Cost") == ("$8.50/h", "-47% vs all enterprise")
    why = " ".join(one.value for one in app.markdown)
    assert "100% to h100" in why
    assert "266.4 ms" in why
    assert "98% to rtx4090" in why


def test_moving_a_slider_gives_the_figures_of_the_same_what_if(served_backend: LocalBackend) -> None:
    app = open_page("split")
    slider = next(one for one in app.slider if one.key == "usd.rtx4090")
    app = slider.set_value(1.0).run()
    assert not app.exception
    expected = served_backend.split(what_if(served_backend.default_demand(), {"usd.rtx4090": 1.0}))
    assert expected["usd_per_hour"] != 8.5
    assert metric(app, "Cost")[0] == f"${expected['usd_per_hour']:,.2f}/h"


def test_pages_start_from_the_prices_in_force(served_backend: LocalBackend) -> None:
    config = Config.model_validate({"fleet": [{"name": "h100", "gpu": "NVIDIA H100 PCIe"}]})
    served_backend.config = config
    append_facts(served_backend.store, [fact("price", "h100", rented(3.0), source="contract")])
    split, runs = open_page("split"), open_page()
    assert not split.exception and not runs.exception
    # one H100 and thirteen pairs of 4090s: 3.00 + 6.50
    assert metric(split, "Cost")[0] == "$9.50/h"
    assert next(one for one in split.slider if one.key == "usd.h100").value == 3.0
    said = "/h (contract, fleet h100)"
    assert said in " ".join(one.value for one in split.caption) and said in " ".join(one.value for one in runs.caption)


def test_split_says_why_there_is_no_answer(served_backend: LocalBackend) -> None:
    app = open_page("split")
    slider = next(one for one in app.slider if one.key == "slo.chat")
    app = slider.set_value(10.0).run()
    assert not app.exception
    assert "No mix carries this demand" in app.error[0].value
    assert "TTFT" in app.error[0].value


def test_the_script_is_where_the_hub_looks_for_it() -> None:
    assert Path(__file__).resolve().parents[2] / "app" / "dashboard" / "main.py" == SCRIPT
