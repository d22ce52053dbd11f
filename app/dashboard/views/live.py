"""*Live*: what each fleet and replica does at this moment, what it costs, and which replica is off."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from app.answers.live import WINDOW_S
from app.backend.served import served
from app.dashboard import charts
from app.formatting import MISSING, markdown, number, percent, usd
from app.reference.gpus import display_name

REFRESH_S = 5
_WINDOWS_S = ("30", "60", "300")
_CHART = {"displayModeBar": False}
_COLOURS = {"problem": "red", "warning": "orange", "note": "blue"}
_LINES = 12

Figure = dict[str, Any]


def page() -> None:
    title, control = st.columns([4, 1.4], vertical_alignment="bottom")
    title.title("Live")
    window_s = control.segmented_control(
        "Rates and power over the last (s)", _WINDOWS_S, default=str(WINDOW_S), required=True, key="window_s",
        bind="query-params",
        help="Of each replica, up to its newest sample. A longer window is steadier, a shorter one quicker.",
    )  # fmt: skip
    _live(int(str(window_s)))


@st.fragment(run_every=REFRESH_S)
def _live(window_s: int) -> None:
    answer = served().live(window_s=window_s)
    if not answer["fleets"]:
        st.info(
            "Nothing has been seen in the last hour. On the machine of an engine (vLLM, SGLang, TGI, llama.cpp, "
            "Triton): `wattmix agent --hub http://THIS-HUB:8501`. It finds the engines there; others are named in "
            "`[[agent.engine]]` of its wattmix.toml.",
            icon=":material/dns:",
        )
        return
    if answer["simulated"]:
        st.badge("Simulated: these nodes are made up, no GPU stands behind them", icon=":material/science:",
                 color="violet")  # fmt: skip
    _findings(answer)
    for fleet in answer["fleets"]:
        _fleet(fleet)
    if not answer["replicas"]:
        st.info("GPUs are seen, but no engine: name them in `[[agent.engine]]` on their nodes.",
                icon=":material/search_off:")  # fmt: skip
    _chart(answer)
    _replicas(answer)
    _unallocated(answer)
    st.caption(_method(answer))


def _findings(answer: dict[str, Any]) -> None:
    """Which replica is off, by how much, and what to do; and what could not be compared."""
    found = answer["findings"]
    for finding in found[:_LINES]:
        badge = f":{_COLOURS[finding['level']]}-badge[{finding['level']}]"
        told = f"{finding['what']}. {finding['remedy'][:1].upper()}{finding['remedy'][1:]}."
        st.markdown(f"{badge} **{markdown(finding['where'])}** {markdown(told)}")
    if len(found) > _LINES:
        st.caption(f"... and {len(found) - _LINES} more: the table has them all, the worst first.")
    if not found and answer["replicas"] and not answer["not_judged"]:
        st.success("No replica stands out among its like.", icon=":material/check_circle:")


def _fleet(fleet: dict[str, Any]) -> None:
    with st.container(border=True):
        badges = [":violet-badge[simulated]"] if fleet["simulated"] else []
        badges += [_badge(one) for one in fleet["off"][:_LINES]]
        st.markdown(f"**{markdown(fleet['fleet'] or 'No fleet')}** {' '.join(badges)}")
        st.caption(markdown(_made_of(fleet)))
        tokens, ttft, power, efficiency, cost = st.columns(5)
        _metric(tokens, "Tokens/s", fleet["tokens_per_s"], number(fleet["tokens_per_s"]["value"], 0),
                f"{_short(fleet['requests_per_s'])} req/s, {_short(fleet['running'], 0)} running, "
                f"{_short(fleet['waiting'], 0)} waiting")  # fmt: skip
        _metric(ttft, "TTFT p99", fleet["ttft_p99_ms"], _latency(fleet["ttft_p99_ms"]),
                f"p50 {_latency(fleet['ttft_p50_ms'])}, n = {fleet['ttft_p50_ms']['n']:,}")  # fmt: skip
        _metric(power, "Power", fleet["power_w"], f"{number(fleet['power_w']['value'], 0)} W", _idle(fleet))
        _metric(efficiency, "Tokens/J", fleet["tokens_per_joule"], number(fleet["tokens_per_joule"]["value"], 3),
                "total tokens, GPUs only")  # fmt: skip
        _metric(cost, "Cost", fleet["usd_per_hour"], f"{usd(fleet['usd_per_hour']['value'])}/h",
                f"{usd(fleet['usd_per_mtok']['value'], 3)} per Mtok")  # fmt: skip


def _badge(one: dict[str, str]) -> str:
    colour = "red" if one["state"] in ("down", "silent") else "orange"
    return f":{colour}-badge[{markdown(one['replica'])} {one['state']}]"


def _made_of(fleet: dict[str, Any]) -> str:
    """E.g. "8 GPUs (RTX 4090), 3 of 4 replicas seen: org/model"."""
    cards = f" ({', '.join(display_name(name) for name in fleet['cards'])})" if fleet["cards"] else ""
    replicas = f"{fleet['live']} of {fleet['replicas']} replicas seen" if fleet["replicas"] else "no engine"
    models = f": {', '.join(fleet['models'])}" if fleet["models"] else ""
    return f"{fleet['gpus']} GPU{'' if fleet['gpus'] == 1 else 's'}{cards}, {replicas}{models}"


def _idle(fleet: dict[str, Any]) -> str:
    if not fleet["unallocated_gpus"]:
        return "all GPUs have an engine"
    return f"{_short(fleet['unallocated_power_w'], 0)} W without an engine"


def _metric(column: Any, label: str, figure: Figure, value: str, note: str) -> None:
    """A figure with what it stands on; one that is missing says why."""
    missing = figure["value"] is None
    covered = figure["coverage"]
    part = f" Covers {percent(covered)} of it." if covered is not None and covered < 1 else ""
    column.metric(
        label, MISSING if missing else value, figure["reason"] if missing else note, delta_color="off",
        delta_arrow="off", border=True, help=f"{figure['unit']}, {figure['method']}.{part}",
    )  # fmt: skip


def _short(figure: Figure, digits: int = 1) -> str:
    return number(figure["value"], digits)


def _latency(figure: Figure) -> str:
    """E.g. "87 ms", or ">= 2,500 ms" when it lies in the unbounded bucket."""
    if figure["value"] is None:
        return MISSING
    return f"{'≥ ' if figure['at_least'] else ''}{number(figure['value'], 0)} ms"


def _chart(answer: dict[str, Any]) -> None:
    history = answer["history"]
    if not history["fleets"]:
        return
    label = ", simulated" if answer["simulated"] else ""
    title = f"Tokens/s by fleet, last {len(history['from']) * history['bin_s'] // 60} minutes{label}"
    figure = charts.tokens_by_fleet(history, title)
    st.plotly_chart(figure, key="chart_tokens", config=_CHART, alt="Tokens per second by fleet over the last minutes")


_REPLICA_COLUMNS = {
    "state": st.column_config.TextColumn(
        help="slow: TTFT p50 above 1.5 times the median of its like, or tokens/s per running request below 1/1.5 of "
        "it. unbalanced: below 0.6 or above 1.6 times the requests of its like. down, silent: see why."
    ),
    "tokens/s": st.column_config.NumberColumn(format="%.0f", help="Prompt and generated tokens a second."),
    "output/s": st.column_config.NumberColumn(format="%.0f", help="Generated tokens a second."),
    "req/s": st.column_config.NumberColumn(format="%.2f", help="Requests that finished, a second."),
    "failed/s": st.column_config.NumberColumn(format="%.2f", help="Requests that failed, were aborted or rejected."),
    "running": st.column_config.NumberColumn(format="%.0f", help="At its newest sample."),
    "waiting": st.column_config.NumberColumn(format="%.0f", help="At its newest sample."),
    "KV cache": st.column_config.NumberColumn(format="percent", help="In use at its newest sample."),
    "TTFT p50": st.column_config.NumberColumn(format="%.0f ms", help="Linear inside its histogram bucket."),
    "TTFT p99": st.column_config.NumberColumn(format="%.0f ms", help="Linear inside its histogram bucket."),
    "p99 is": st.column_config.TextColumn(help="≥: it lies above the engine's last bucket bound, which is shown."),
    "n": st.column_config.NumberColumn(format="%d", help="First tokens behind the two latencies."),
    "W": st.column_config.NumberColumn(format="%.0f", help="Mean power of its GPUs over the same window as tokens/s."),
    "tokens/J": st.column_config.NumberColumn(format="%.3f"),
    "$/h": st.column_config.NumberColumn(format="$%.2f", help="Rent, or the owner's hourly cost and electricity."),
    "$/Mtok": st.column_config.NumberColumn(format="$%.3f", help="At the pace of this moment, total tokens."),
}


def _replicas(answer: dict[str, Any]) -> None:
    if not answer["replicas"]:
        return
    st.subheader("Replicas")
    said: dict[str, list[str]] = {}
    for finding in answer["findings"]:
        said.setdefault(finding["where"], []).append(finding["what"])
    rows = [_row(one, said.get(one["replica"], [])) for one in answer["replicas"]]
    floats = dict.fromkeys((name for name in _REPLICA_COLUMNS if name not in ("state", "p99 is", "n")), pl.Float64)
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=floats)
    st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=_REPLICA_COLUMNS)
    for kind in answer["not_judged"]:
        st.caption(markdown(f"Not compared: {_kind(kind)}. {kind['reason'][:1].upper()}{kind['reason'][1:]}."))


def _row(one: dict[str, Any], said: list[str]) -> dict[str, Any]:
    return {
        "replica": one["replica"],
        "state": one["state"],
        "fleet": one["fleet"] or MISSING,
        "GPUs": _gpus(one),
        "tokens/s": one["tokens_per_s"]["value"],
        "req/s": one["requests_per_s"]["value"],
        "running": one["running"]["value"],
        "waiting": one["waiting"]["value"],
        "TTFT p50": one["ttft_p50_ms"]["value"],
        "TTFT p99": one["ttft_p99_ms"]["value"],
        "p99 is": "≥" if one["ttft_p99_ms"]["at_least"] else "",
        "W": one["power_w"]["value"],
        "tokens/J": one["tokens_per_joule"]["value"],
        "$/h": one["usd_per_hour"]["value"],
        "$/Mtok": one["usd_per_mtok"]["value"],
        "n": one["ttft_p50_ms"]["n"],
        "output/s": one["generated_tokens_per_s"]["value"],
        "failed/s": one["failed_per_s"]["value"],
        "KV cache": one["kv_usage"]["value"],
        "model": one["model"] or MISSING,
        "method": one["tokens_per_s"]["method"],
        "price": one["usd_per_hour"]["method"],
        "why": "; ".join(said) or one["power_w"]["reason"] or "",
    }


def _gpus(one: dict[str, Any]) -> str:
    """E.g. "2x RTX 4090"; "2 GPUs" when they were not seen of late."""
    if one["gpus"] is None:
        return "not known"
    if not one["cards"]:
        return f"{len(one['gpus'])} GPUs" if one["gpus"] else MISSING
    return charts.card_set(one["cards"][0], len(one["gpus"]))


def _kind(kind: dict[str, Any]) -> str:
    """E.g. "2 replicas of org/model on 2x RTX 4090, fleet cheap"."""
    cards = f" on {charts.card_set(kind['card'], kind['gpus'])}" if kind["card"] else ""
    fleet = f", fleet {kind['fleet']}" if kind["fleet"] else ""
    return f"{kind['replicas']} replica{'' if kind['replicas'] == 1 else 's'} of {kind['model'] or '?'}{cards}{fleet}"


def _unallocated(answer: dict[str, Any]) -> None:
    gpus = answer["unallocated"]
    if not gpus:
        return
    rows = [
        {
            "node": gpu["node"],
            "GPU": gpu["gpu"],
            "card": display_name(gpu["name"]),
            "fleet": gpu["fleet"] or MISSING,
            "W": gpu["power_w"]["value"],
            "$/h": gpu["usd_per_hour"]["value"],
            "method": gpu["power_w"]["method"],
            "price": gpu["usd_per_hour"]["method"],
            "why": gpu["why"],
        }
        for gpu in gpus
    ]
    with st.expander(f"GPUs without an engine ({len(gpus)})", icon=":material/bedtime:"):
        frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"W": pl.Float64, "$/h": pl.Float64})
        columns = {name: _REPLICA_COLUMNS[name] for name in ("W", "$/h")}
        st.dataframe(frame, hide_index=True, placeholder=MISSING, column_config=columns)


def _method(answer: dict[str, Any]) -> str:
    """What the figures stand on, and how to get the same ones again."""
    at = answer["generated_at"].replace("+00:00", "Z")
    prices = "; ".join(f"{fleet['fleet'] or 'no fleet'}: {fleet['price_source'] or 'none'}" for fleet in
                       answer["fleets"])  # fmt: skip
    same = f"/api/v1/live?{urlencode({'window_s': answer['window_s'], 'at': at}, safe=':')}"
    told = markdown(
        f"As of {at}, again every {REFRESH_S} s. Rates and power: the newest {answer['window_s']} s of each replica. "
        f"TTFT and the comparison of like replicas: the newest {answer['ttft_window_s']} s. Basis: {answer['basis']} "
        f"tokens, prompt + generated. Boundary: {answer['boundary']}, with a host share of "
        f"{answer['host_w_per_gpu']:g} W per GPU: GPUs only. Cost view: {answer['cost_view']}, GPUs without an engine "
        f"included. Methods: {', '.join(answer['methods'])}. Prices: {prices}. "
    )
    return f"{told} The same as JSON: `{same}`"
