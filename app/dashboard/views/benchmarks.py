"""*Benchmarks*: what load tests measured, what they cost, and whether the study's claims hold in its own runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import polars as pl
import streamlit as st

from app.answers.runs import Assume, rows_as_csv
from app.backend.local import LocalBackend
from app.backend.served import served
from app.dashboard import charts
from app.formatting import MISSING, gpu_price, markdown, number, usd

_CHART = {"displayModeBar": False}
_BASES = ("total", "output")
_QUANTILES = ("p50", "p90", "p99")
_TABLE = {
    "gpu_set": ("GPUs", None),
    "qps": ("target req/s", "%.0f"),
    "requests_per_s": ("achieved req/s", "%.2f"),
    "total_tokens_per_s": ("tokens/s", "%.0f"),
    "usd_per_mtok_total": ("$/Mtok total", "$%.3f"),
    "usd_per_mtok_output": ("$/Mtok output", "$%.3f"),
    "ttft_p50_ms": ("TTFT p50 ms", "%.0f"),
    "ttft_p99_ms": ("TTFT p99 ms", "%.0f"),
    "joules_per_token": ("J/token", "%.3f"),
    "g_per_mtok": ("g/Mtok", "%.1f"),
    "completed": ("n", "%d"),
    "flags": ("flags", None),
    "source_file": ("source file", None),
    "source_index": ("object", "%d"),
}


def page() -> None:
    backend = served()
    st.title("Benchmarks")
    models = sorted({run.model for run in backend.runs()}, key=str.casefold)
    if not models:
        st.info("No benchmark runs yet. Import some with `wattmix import PATH`.", icon=":material/upload_file:")
        return
    model, assume, basis, quantile = _filters(models)
    rows = backend.run_rows(model=model, assume=assume)
    _best(rows, basis)
    _charts(rows, basis, quantile)
    st.caption(_method(rows))
    _table(rows, model)
    _study(backend)


def _filters(models: list[str]) -> tuple[str, Assume, str, str]:
    wide, assumed, based, quantiled = st.columns([2.2, 2, 1.6, 1.2])
    study_model = [name for name in models if name.endswith("DeepSeek-R1-Distill-Qwen-14B")]
    model = wide.selectbox(
        "Model", models, index=models.index(study_model[0]) if study_model else 0, key="model", bind="query-params",
        help="Every model of which the store holds a run.",
    )  # fmt: skip
    assume = assumed.segmented_control(
        "Power and grid", ("corrected", "study"), default="corrected", required=True, key="assume", bind="query-params",
        help="Corrected: each card's own power limit (350 W for the H100 PCIe) and your fleets' zones. "
        "Study: 700 W for that card, 242 g/kWh, PUE 1.",
    )  # fmt: skip
    basis = based.segmented_control(
        "$/Mtok on tokens", _BASES, default="total", required=True, key="basis", bind="query-params",
        help="Total = prompt + generated tokens, as the study counts. Output = generated tokens only.",
    )  # fmt: skip
    quantile = quantiled.segmented_control(
        "TTFT", _QUANTILES, default="p99", required=True, key="ttft", bind="query-params",
        help="Quantile of the time to first token. A p99 of 200 requests rests on 2 of them.",
    )  # fmt: skip
    return model, cast(Assume, assume), str(basis), str(quantile)


def _best(rows: list[dict[str, Any]], basis: str) -> None:
    cost = f"usd_per_mtok_{basis}"
    cards: tuple[tuple[str, str, Callable[..., int], Callable[[float], str]], ...] = (
        (f"Lowest $/Mtok ({basis})", cost, min, lambda value: usd(value, 3)),
        ("Fastest replica", "total_tokens_per_s", max, lambda value: f"{number(value, 0)} tok/s"),
        ("Lowest TTFT p99", "ttft_p99_ms", min, lambda value: f"{number(value, 0)} ms"),
        ("Least energy", "joules_per_token", min, lambda value: f"{number(value, 3)} J/token"),
    )
    for column, (label, key, choose, form) in zip(st.columns(len(cards)), cards, strict=True):
        known = {index: row[key] for index, row in enumerate(rows) if row[key] is not None}
        if not known:
            column.metric(label, "–", _why_missing(rows), delta_color="off", delta_arrow="off", border=True)
            continue
        best = rows[choose(known, key=known.__getitem__)]
        where = f"{charts.card_set(best['gpu'], best['gpu_count'])} at {_load(best)}"
        column.metric(label, form(best[key]), where, delta_color="off", delta_arrow="off", border=True)


def _load(row: dict[str, Any]) -> str:
    return "full load" if row["qps"] is None else f"{row['qps']:g} req/s"


def _why_missing(rows: list[dict[str, Any]]) -> str:
    return next((row["missing"] for row in rows if row["missing"]), "not measured")


def _charts(rows: list[dict[str, Any]], basis: str, quantile: str) -> None:
    cost = charts.by_load(
        rows, f"usd_per_mtok_{basis}", "Cost of a million tokens against load", "USD per Mtok", "$.3f"
    )
    ttft = charts.by_load(
        rows, f"ttft_{quantile}_ms", f"Time to first token, {quantile}, against load", "ms", ",.0f", log=True
    )
    figures = {"cost": cost, "ttft": ttft, "achieved": charts.achieved_against_target(rows)}
    for column, (name, figure) in zip(st.columns(3), figures.items(), strict=True):
        column.plotly_chart(figure, key=f"chart_{name}", config=_CHART, alt=figure.layout.title.text)


def _method(rows: list[dict[str, Any]]) -> str:
    grids = "; ".join(sorted({row["grid"] for row in rows}))
    prices = "; ".join(sorted({_price(row) for row in rows}))
    watts = "; ".join(sorted({f"{number(row['tdp_w'], 0)} W" for row in rows}, reverse=True))
    return markdown(
        f"Price: {prices}; a fleet's own is the one in force now, a list price is of the run's day. "
        f"Energy: TDP estimate, every GPU at its limit ({watts}) for the whole run, GPU only. "
        f"Carbon: operational, {grids}. Flags: small_sample: a p99 rests on fewer than 5 requests; burst: the "
        "arrivals ended before a steady state; saturated: less than 90% of the offered load was achieved."
    )


def _price(row: dict[str, Any]) -> str:
    card = charts.card_set(row["gpu"], 1).removeprefix("1x ")
    return f"{card} {gpu_price(row['usd_per_gpu_hour'], row['usd_per_kwh'])} ({row['price_source']})"


def _table(rows: list[dict[str, Any]], model: str) -> None:
    head, button = st.columns([5, 1], vertical_alignment="bottom")
    head.subheader("Runs")
    button.download_button(
        "CSV", rows_as_csv(rows), file_name=f"wattmix-runs-{model.rsplit('/', 1)[-1]}.csv", mime="text/csv",
        icon=":material/download:", on_click="ignore", width="stretch",
        help="The same columns, unrounded, as `wattmix runs --format csv`.",
    )  # fmt: skip
    frame = pl.DataFrame(
        [row | {"gpu_set": charts.card_set(row["gpu"], row["gpu_count"])} for row in rows], infer_schema_length=None
    )
    config: dict[str, Any] = {
        name: st.column_config.NumberColumn(label, format=form) if form else st.column_config.TextColumn(label)
        for name, (label, form) in _TABLE.items()
    }
    st.dataframe(frame.select(list(_TABLE)), column_config=config, hide_index=True, placeholder=MISSING, height=320)


def _study(backend: LocalBackend) -> None:
    findings = backend.study()
    if findings is None:
        return
    st.subheader("The study's headline claims beside its own runs")
    st.caption(
        "AIBC 2025, doi:10.1145/3775043.3775047, DeepSeek-R1-Distill-Qwen-14B, $2.00 per H100-hour and $0.25 per "
        "4090-hour. Everything below is computed from the 130 raw runs."
    )
    badges = {
        "holds": ":green-badge[holds]",
        "holds in part": ":orange-badge[in part]",
        "does not hold": ":red-badge[does not hold]",
    }
    claims = [
        {"Claim": claim["claim"], "Verdict": badges[claim["verdict"]], "What the runs say": markdown(claim["finding"])}
        for claim in findings["claims"]
    ]
    st.table(pl.DataFrame(claims))
    st.caption("Tokens per kWh and grams per million tokens (table 3), from power limits, not measured")
    st.table(pl.DataFrame([_energy_row(row, name) for name, rows in _energy_tables(findings) for row in rows]))


def _energy_tables(findings: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [("study", findings["energy_study_assumptions"]), ("corrected", findings["energy_corrected"])]


def _energy_row(row: dict[str, Any], assumed: str) -> dict[str, str]:
    return {
        "Assumptions": assumed,
        "Configuration": f"{row['configuration']} at {row['qps']} req/s",
        "W per GPU": number(row["tdp_w"], 0),
        "Mtok/kWh": number(row["mtok_per_kwh"], 2),
        "g/Mtok at 242 g/kWh": number(row["g_per_mtok"], 2),
        "as printed in the study": f"{row['printed_mtok_per_kwh']} Mtok/kWh, {row['printed_g_per_mtok']} g/Mtok"
        if assumed == "study"
        else "–",
    }
