"""*Health*: which nodes and GPUs are seen, how well, which providers answer, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from app.answers.engine_findings import engine_gpus
from app.answers.findings import duration, place
from app.backend.served import served
from app.formatting import MISSING, basis_said, markdown, percent
from app.reference.gpus import display_name

REFRESH_S = 10
_LINES, _NAMES = 30, 6
_COLOURS = {"problem": "red", "warning": "orange", "note": "blue"}


def page() -> None:
    st.title("Health")
    _live()


@st.fragment(run_every=REFRESH_S)
def _live() -> None:
    answer = served().health()
    if not answer["nodes"]:
        st.info("No node has sent anything yet. On a GPU node: `wattmix agent --hub http://THIS-HUB:8501`",
                icon=":material/dns:")  # fmt: skip
        if answer["grid"] or answer["prices"]:
            _findings(answer)
        _sources(answer)
        return
    if any(node["simulated"] for node in answer["nodes"]):
        st.badge("Some nodes are simulated: they are made up, no GPU stands behind them", icon=":material/science:",
                 color="violet")  # fmt: skip
    _summary(answer)
    _findings(answer)
    _table("Nodes", answer["nodes"], _node_row, _NODE_COLUMNS)
    _table("Engines", answer["engines"], _engine_row, _ENGINE_COLUMNS)
    _table("GPUs", answer["gpus"], _gpu_row, _GPU_COLUMNS)
    _sources(answer)
    st.caption(
        "Coverage: seconds with a measured energy over seconds the GPU was there, of the last day. Divergence: energy "
        "counter against the integral of power, of the last hour. Lag: age of the newest sample when its batch arrived."
    )


def _summary(answer: dict[str, Any]) -> None:
    nodes, gpus = answer["nodes"], answer["gpus"]
    states = [node["state"] for node in nodes]
    engines = [engine["state"] for engine in answer["engines"]]
    out = engines.count("down") + engines.count("silent")
    covered = [gpu["coverage_day"] for gpu in gpus if gpu["coverage_day"] is not None]
    waiting = sum(node["agent"].get("spool_batches") or 0 for node in nodes)
    cards = (
        ("Nodes seen", f"{len(nodes) - states.count('silent')} of {len(nodes)}", f"{states.count('silent')} silent"),
        ("Engines read", f"{len(engines) - out} of {len(engines)}", f"{out} down or silent"),
        ("GPUs", str(len(gpus)), f"{sum(gpu['status'] != 'ok' for gpu in gpus)} with a problem"),
        ("Lowest coverage", percent(min(covered), 1) if covered else MISSING, "of the last day"),
        ("Batches on nodes", f"{waiting:,}", "waiting to be sent"),
    )
    for column, (label, value, note) in zip(st.columns(len(cards)), cards, strict=True):
        column.metric(label, value, note, delta_color="off", delta_arrow="off", border=True)


def _findings(answer: dict[str, Any]) -> None:
    """What to do, the worst first; nodes, GPUs and engines of which the same is found share a line."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in [*answer["nodes"], *answer["engines"], *answer["gpus"], *answer["grid"], *answer["prices"]]:
        for finding in one["findings"]:
            alike.setdefault((finding["level"], finding["what"], finding["remedy"]), []).append(place(one))
    if not alike:
        st.success("Nothing to do: every node is seen, every GPU is measured.", icon=":material/check_circle:")
        return
    levels = list(_COLOURS)
    with st.expander(f"What to do ({len(alike)})", expanded=True, icon=":material/build:"):
        ordered = sorted(alike.items(), key=lambda item: levels.index(item[0][0]))
        for (level, what, remedy), places in ordered[:_LINES]:
            badge = f":{_COLOURS[level]}-badge[{level}]"
            told = f"{what}. {remedy[:1].upper()}{remedy[1:]}."
            st.markdown(f"{badge} **{markdown(_named(places))}**: {markdown(told)}")
        if len(alike) > _LINES:
            st.caption(f"... and {len(alike) - _LINES} more; `wattmix status` has all.")


def _named(places: list[str]) -> str:
    """E.g. "n1, n2, n3 and 5 more"."""
    shown = ", ".join(places[:_NAMES])
    return shown if len(places) <= _NAMES else f"{shown} and {len(places) - _NAMES} more"


_NODE_COLUMNS = {
    "lag s": st.column_config.NumberColumn(format="%.1f", help="Age of the newest sample when its batch arrived."),
    "skew s": st.column_config.NumberColumn(format="%.1f", help="The node's clock less the hub's."),
    "agent MB": st.column_config.NumberColumn(format="%.0f", help="Memory of the agent and its NVML process."),
    "tick p99 ms": st.column_config.NumberColumn(format="%.1f", help="Time to read all GPUs once, 99th percentile."),
}


def _node_row(node: dict[str, Any]) -> dict[str, Any]:
    agent = node["agent"]
    return {
        "node": node["node"],
        "fleet": node["fleet"] or MISSING,
        "state": node["state"],
        "data": "simulated" if node["simulated"] else "measured",
        "last seen": MISSING if node["age_s"] is None else f"{duration(node['age_s'])} ago",
        "lag s": node["lag_s"],
        "skew s": None if node["skew_s"] is None else round(node["skew_s"], 1) + 0.0,  # no -0.0
        "GPUs": node["gpus"],
        "waiting": agent.get("spool_batches"),
        "dropped": agent.get("dropped_batches"),
        "rejected": agent.get("rejected_batches"),
        "late rows": node["late_rows"],
        "agent MB": None if agent.get("memory_bytes") is None else agent["memory_bytes"] / 1e6,
        "tick p99 ms": None if agent.get("tick_p99_us") is None else agent["tick_p99_us"] / 1e3,
        "agent": node["agent_version"] or MISSING,
        "driver": node["driver_version"] or MISSING,
    }


_ENGINE_COLUMNS = {
    "GPUs": st.column_config.TextColumn(help="How many, and whence that is known; without them no joules, no dollars."),
}


def _engine_row(engine: dict[str, Any]) -> dict[str, Any]:
    return {
        "engine": engine["engine"],
        "state": engine["state"],
        "model": engine["model"] or MISSING,
        "kind": " ".join(filter(None, (engine["kind"], engine["version"]))),
        "GPUs": engine_gpus(engine),
        "last seen": f"{duration(engine['age_s'])} ago",
        "data": "simulated" if engine["simulated"] else "measured",
        "status": engine["status"],
        "url": engine["url"],
    }


_GPU_COLUMNS = {
    "W": st.column_config.NumberColumn(format="%.0f", help="Mean of the last minute that is rolled up."),
    "limit W": st.column_config.NumberColumn(format="%.0f"),
    "kWh, last day": st.column_config.NumberColumn(format="%.3f"),
    "coverage": st.column_config.NumberColumn(format="percent"),
    "divergence": st.column_config.NumberColumn(format="percent"),
    "gaps s": st.column_config.NumberColumn(format="%.0f"),
}


def _gpu_row(gpu: dict[str, Any]) -> dict[str, Any]:
    return {
        "node": gpu["node"],
        "GPU": gpu["gpu"],
        "card": display_name(gpu["name"]),
        "status": gpu["status"],
        "data": "simulated" if gpu["simulated"] else "measured",
        "energy by": gpu["energy_method"] or "nothing",
        "W": gpu["power_w"],
        "limit W": gpu["power_limit_w"],
        "kWh, last day": gpu["energy_day_kwh"],
        "coverage": gpu["coverage_day"],
        "gaps s": gpu["gap_day_s"],
        "divergence": gpu["divergence_hour"],
        "uuid": gpu["uuid"],
    }


_GRID_COLUMNS = {
    "g/kWh": st.column_config.NumberColumn(format="%.0f", help="The newest value of the last day."),
    "instead": st.column_config.TextColumn(help="What counts where the provider has no value."),
}


def _grid_row(source: dict[str, Any]) -> dict[str, Any]:
    newest = source["newest"] or {}
    return {
        "provider": source["title"],
        "zone": source["zone"],
        "state": source["state"],
        "g/kWh": newest.get("g_per_kwh"),
        "by": newest.get("method"),
        "kind": newest.get("kind"),
        "basis": basis_said(newest["basis"]) if newest else None,
        "value ended": _ago(newest.get("age_s")),
        "last answer": _ago(source["answered_age_s"]),
        "instead": source["table"],
        "source": source["attribution"],
    }


_PRICE_COLUMNS = {
    "cards": st.column_config.NumberColumn(help="Of how many cards it told a price that is used."),
    "not used": st.column_config.NumberColumn(help="Prices of its last answer that are not believed."),
}


def _price_row(source: dict[str, Any]) -> dict[str, Any]:
    return {
        "provider": source["title"],
        "market": source["market"],
        "state": source["state"],
        "cards": len(source["prices"]),
        "not used": len(source["refused"]),
        "last answer": _ago(source["answered_age_s"]),
    }


def _sources(answer: dict[str, Any]) -> None:
    _table("Grid providers", answer["grid"], _grid_row, _GRID_COLUMNS)
    _table("Price sources", answer["prices"], _price_row, _PRICE_COLUMNS)


def _table(
    title: str,
    things: Sequence[dict[str, Any]],
    row_of: Callable[[dict[str, Any]], dict[str, Any]],
    columns: Mapping[str, Any],
) -> None:
    """A row of each; nothing where there are none."""
    if things:
        st.subheader(title)
        rows = pl.DataFrame(map(row_of, things), infer_schema_length=None)
        st.dataframe(rows, hide_index=True, placeholder=MISSING, column_config=columns)


def _ago(age_s: float | None) -> str | None:
    return None if age_s is None else "now" if age_s == 0 else f"{duration(age_s)} ago"
