"""Section of the *Split* page: how far inputs may move before the answer changes, and where fleets break even."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from app.backend.served import served
from app.dashboard.split import figures
from app.dashboard.split.mix import CHART
from app.dashboard.split.on_demand import on_demand
from app.formatting import MISSING, markdown, percent
from app.split.demand import Demand


@st.fragment
def draw_robustness(demand: Demand) -> None:
    found = on_demand("robustness", None, demand, lambda: _by_input(demand))
    if found["reason"] is not None:
        st.info(markdown(found["reason"]), icon=":material/block:")
        return
    st.plotly_chart(
        figures.tornado(found["inputs"], found["usd_per_hour"]), key="chart_tornado", config=CHART,
        alt="USD per hour when one input is lower or higher",
    )  # fmt: skip
    st.subheader("How far each input may move")
    kept = "; ".join(f"{count} x {name}" for name, count in found["replicas"].items())
    st.caption(markdown(f"Until the replicas ({kept}) or the fleets with more than 1% of a class are others."))
    st.dataframe(pl.DataFrame([_range(one) for one in found["inputs"]]), hide_index=True, placeholder=MISSING,
                 key="ranges", height="content")  # fmt: skip
    for note in filter(None, map(_note, found["inputs"])):
        st.caption(markdown(note))
    _break_even(found["break_even"])


def _by_input(demand: Demand) -> dict[str, Any]:
    """The answer input by input, so that the wait can be seen to end."""
    found = served().split_robustness(demand, inputs=())
    names: list[str] = found["names"]
    bar = st.progress(0.0, text="Looking for the range of each input ...")
    inputs: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        bar.progress(
            place / len(names), text=f"Looking for the range of {markdown(name)} ({place + 1} of {len(names)})"
        )
        inputs += served().split_robustness(demand, inputs=(name,))["inputs"]
    bar.empty()
    return found | {"inputs": inputs}


def _range(one: dict[str, Any]) -> dict[str, Any]:
    def end(side: str) -> str | None:
        if one[side] is None:
            return None
        is_open = one[f"{side}_is_open"] and one[side] != 0  # none of these inputs is below 0
        beyond = {"low": "or less", "high": "or more"}[side] if is_open else ""
        factor = one[f"{side}_factor"]
        relative = "" if factor is None else f" ({percent(factor)})"
        return f"{one[side]:,.4g}{relative} {beyond}".strip()

    return {
        "input": one["label"],
        "unit": one["unit"],
        "now": f"{one['value']:,.4g}",
        "from": end("low"),
        "to": end("high"),
    }


def _note(one: dict[str, Any]) -> str | None:
    """Why an input has no range, or that it does not bear on the answer; in full, which no column has room for."""
    return str(one["text"]) if one["reason"] or one["solves"] == 0 else None


def _break_even(pairs: list[dict[str, Any]]) -> None:
    st.subheader("Where two fleets break even")
    if not pairs:
        st.caption("No class has two fleets that could carry it alone.")
        return
    for pair in pairs:
        texts = [pair[name]["text"] for name in ("load", "price", "carbon", "grams") if pair[name]["text"]]
        lines = "\n".join(f"* {markdown(text)}" for text in texts)
        st.markdown(
            f"**{markdown(pair['class'])}**: {markdown(pair['cheaper'])} and {markdown(pair['dearer'])}\n\n{lines}"
        )
