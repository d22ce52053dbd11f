"""Section of the *Split* page: what-ifs saved by name, side by side, and links that give the same figures elsewhere."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import polars as pl
import streamlit as st

from app.answers.scenarios import SCENARIO
from app.backend.served import served
from app.dashboard.split import figures
from app.dashboard.split.mix import CHART
from app.dashboard.split.on_demand import on_demand
from app.errors import WattmixError
from app.formatting import MISSING, load_point, markdown, utc_clock
from app.split.demand import Demand, parse_demand

_SAID, _NOW = "scenario_said", "these sliders"


def draw_scenarios(demand: Demand, link_query: str) -> None:
    _link(link_query)
    _save(demand)
    saved = served().scenarios()
    if saved:
        _listed(saved)
        _compared(saved, demand)
    else:
        st.caption("No scenario is saved yet.")


def _link(link_query: str) -> None:
    st.markdown("**Link to these figures**")
    st.code(f"{_page_address()}?{link_query}", language=None, wrap_lines=True)
    st.caption("It holds the value of every slider, so it gives the same figures whatever is measured by then.")


def _page_address() -> str:
    """Where this page is, as its visitor sees it; its path where that is not known."""
    return str(st.context.url or "/split").split("?")[0]


def _save(demand: Demand) -> None:
    said = st.session_state.pop(_SAID, None)
    with st.form("save_scenario", border=False):
        words, button = st.columns([4, 1], vertical_alignment="bottom")
        name = words.text_input(
            "Name", key="scenario_name", max_chars=100, placeholder="e.g. Black Friday, H100s at $2.50"
        )
        asked = button.form_submit_button("Save", icon=":material/save:", width="stretch")
    if asked:
        try:
            kept = served().save_scenario(name, demand)
        except WattmixError as refused:
            st.error(markdown(str(refused)), icon=":material/error:")
        else:
            verb = "Replaced" if kept["replaced"] else "Saved"
            st.session_state[_SAID] = f"{verb} {kept['name']}."
            st.rerun()
    if said:
        st.success(markdown(said), icon=":material/check:")


def _listed(saved: list[dict[str, Any]]) -> None:
    rows = [
        {
            "scenario": one["name"],
            "saved": utc_clock(one["saved_at"]),
            "classes": ", ".join(
                f"{part['name']} {load_point(part['requests_per_s'])}" for part in one["demand"]["class"]
            ),
            "open": f"{_page_address()}?{SCENARIO}={quote(one['name'])}",
        }
        for one in saved
    ]
    st.dataframe(
        pl.DataFrame(rows), hide_index=True, placeholder=MISSING, key="scenarios",
        column_config={"open": st.column_config.LinkColumn("open", display_text="open")},
    )  # fmt: skip
    with st.popover("Delete a scenario", icon=":material/delete:"):
        name = st.selectbox("Scenario", [one["name"] for one in saved], key="scenario_to_delete")
        if st.button("Delete", key="delete_scenario", type="primary"):
            served().delete_scenario(name)
            st.session_state[_SAID] = f"Deleted {name}."
            st.rerun()


@st.fragment
def _compared(saved: list[dict[str, Any]], demand: Demand) -> None:
    """Figures of the chosen scenarios and of the sliders, at today's operating points."""
    names = [one["name"] for one in saved]
    known = [name for name in st.session_state.get("compared", names[:4]) if name in names]
    st.session_state["compared"] = known
    chosen = st.multiselect("Compare", names, key="compared", max_selections=8)
    asked = [one for one in saved if one["name"] in chosen]
    about = tuple((one["name"], one["saved_at"]) for one in asked)
    rows = on_demand("scenarios", about, demand, lambda: [_row(None, demand), *(_row(one, None) for one in asked)])
    feasible = [row for row in rows if row["usd_per_hour"] is not None]
    if feasible:
        st.plotly_chart(
            figures.side_by_side(feasible), key="chart_scenarios", config=CHART, alt="Scenarios side by side"
        )
    st.dataframe(
        pl.DataFrame(
            [
                {"scenario": row["scenario"], "$/h": row["usd_per_hour"], "$/Mtok": row["usd_per_mtok"],
                 "gCO2e/h": row["g_per_hour"], "W": row["watts"], "replicas": row["replicas"], "mix": row["mix"]}
                for row in rows
            ]
        ),
        hide_index=True, placeholder=MISSING, key="side_by_side",
        column_config={
            "$/h": st.column_config.NumberColumn(format="$%.2f"),
            "$/Mtok": st.column_config.NumberColumn(format="$%.3f"),
            "gCO2e/h": st.column_config.NumberColumn(format="%.0f"),
            "W": st.column_config.NumberColumn(format="%.0f"),
        },
    )  # fmt: skip


def _row(saved: dict[str, Any] | None, demand: Demand | None) -> dict[str, Any]:
    """Figures of a saved scenario, or of the sliders' demand; without any and with the reason where there is no mix."""
    name = _NOW if saved is None else saved["name"]
    empty = {"usd_per_hour": None, "usd_per_mtok": None, "g_per_hour": None, "watts": None, "replicas": None}
    try:
        answer = served().split(demand if saved is None else parse_demand(saved["demand"], f"scenario {name!r}"))
    except WattmixError as problem:
        return {"scenario": name, "is_now": saved is None, **empty, "mix": str(problem)}
    mix = ", ".join(f"{pool['count']} x {pool['gpus_per_replica']}x {pool['gpu_label']}" for pool in answer["replicas"])
    figures_of = {key: answer[key] for key in empty if key != "replicas"}
    count = sum(pool["count"] for pool in answer["replicas"]) if answer["replicas"] else None
    return {"scenario": name, "is_now": saved is None, **figures_of, "replicas": count, "mix": mix or answer["reason"]}
