"""Tables of latencies: percentiles with n, their bucket, and a flag where they rest on too few observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from app.accounting.account import PERCENTILES
from app.answers.replicas import engine_names
from app.dashboard.latency_charts import bucket_name
from app.formatting import MISSING, number, percent

Answer = Mapping[str, Any]


def line_table(lines: Sequence[Answer], metric: str) -> None:
    """Fleets and models, each with what its percentiles rest on."""
    rows = [
        {
            "fleet": line["key"]["fleet"] or MISSING,
            "model": line["key"]["model"] or MISSING,
            **_quantile_cells(line["whole"][metric]),
            "within the limit": attainment(line["attainment"]["low"], line["attainment"]["high"]),
        }
        for line in lines
    ]
    _table(rows)


def replica_table(lines: Sequence[Answer], metric: str) -> None:
    """Lines of a summary by replica; GPUs without an engine are left out."""
    lines = [line for line in lines if line["key"]["url"] is not None]
    names = engine_names([{**line["key"], "label": line["key"]["engine"]} for line in lines])
    rows = [
        {
            "replica": name,
            "fleet": line["key"]["fleet"] or MISSING,
            "model": line["key"]["model"] or MISSING,
            **_quantile_cells(
                {f"p{percentile}": line["figures"][f"{metric}_p{percentile}_ms"] for percentile in PERCENTILES}
            ),
            "requests": line["figures"]["requests"]["value"],
            "failed": line["figures"]["failed_requests"]["value"],
        }
        for name, line in zip(names, lines, strict=True)
    ]
    _table(rows)


def _quantile_cells(whole: Answer) -> dict[str, Any]:
    p99 = whole["p99"]
    notes = [
        f"p{percentile} rests on {whole[f'p{percentile}']['rests_on']:.3g} requests"
        for percentile in PERCENTILES
        if whole[f"p{percentile}"]["small_sample"]
    ]
    return {
        "n": p99["n"],
        **{f"p{percentile}": whole[f"p{percentile}"]["value"] for percentile in PERCENTILES},
        "p99 is in": bucket_name(p99["lower"], p99["upper"]),
        "above p99": p99["rests_on"],
        "flags": "; ".join(notes),
        "method": p99["method"],
        "missing": p99["reason"],
    }


_COLUMNS = {
    "n": st.column_config.NumberColumn(format="localized", help="Observations behind the percentiles."),
    "p50": st.column_config.NumberColumn(format="%.1f ms", help="Linear inside its histogram bucket."),
    "p90": st.column_config.NumberColumn(format="%.1f ms", help="Linear inside its histogram bucket."),
    "p99": st.column_config.NumberColumn(format="%.1f ms", help="Linear inside its histogram bucket."),
    "p99 is in": st.column_config.TextColumn(help="The bucket that the p99 lies in. >: above the engines' last bound."),
    "above p99": st.column_config.NumberColumn(
        format="compact", help="How many observations the p99 rests on: n x (1 - 0.99). Below 5 it is flagged."
    ),
    "flags": st.column_config.TextColumn(help="Percentiles above which fewer than 5 observations lie."),
    "requests": st.column_config.NumberColumn(format="localized", help="That finished."),
    "failed": st.column_config.NumberColumn(format="localized", help="That failed, were aborted or rejected."),
    "within the limit": st.column_config.TextColumn(help="Lower and upper bound of the share of requests within it."),
}


def _table(rows: Sequence[Answer]) -> None:
    floats = {name: pl.Float64() for name in ("p50", "p90", "p99", "above p99", "requests", "failed")}
    frame = pl.DataFrame(rows, infer_schema_length=None, schema_overrides=floats)
    empty = [name for name in ("flags", "missing") if name in frame.columns and not any(frame[name])]
    st.dataframe(frame.drop(empty), hide_index=True, placeholder=MISSING, column_config=_COLUMNS)


def attainment(low: Answer, high: Answer) -> str:
    """E.g. "97.1–98.4%"."""
    if low["value"] is None or high["value"] is None:
        return MISSING
    return f"{number(100 * low['value'], 1)}–{percent(high['value'], 1)}"
