"""Figures of energy: what replicas draw at which load, and how well an account is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from app.dashboard.accounts_charts import HEIGHT_PX
from app.dashboard.charts import blank, card_set, colour

_DASHES = ("solid", "dash", "dot", "dashdot")
# What a share of seconds or joules is known by, from the best on.
_METHODS = {
    "measured": "#0f9d8a", "user": "#5ea3ec", "interpolated": "#7cc8a4", "estimated": "#f2b134", "default": "#8a8f98",
    "tdp_estimate": "#c98a2b", "forecast": "#c9a7e8", "simulated": "#9a6ad6", "missing": "#c2542d",
}  # fmt: skip
_QUALITY = {"grid": "grid factors", "prices": "prices", "gpu_seconds": "energy"}


def power_against_load(answer: Mapping[str, Any], title: str) -> go.Figure:
    """Measured power of each replica type by its tokens/s: one line per type, a point per bin of load."""
    figure = blank(title, HEIGHT_PX)
    models: dict[tuple[str, int], int] = {}
    for kind in answer["types"]:
        card = (kind["card"], kind["gpus"])
        models[card] = models.get(card, -1) + 1
        points = kind["points"]
        figure.add_scatter(
            x=[point["tokens_per_s"] for point in points],
            y=[point["power_w"] for point in points],
            customdata=[[point["hours"], point["tokens_per_joule"]] for point in points],
            name=replica_type(kind),
            mode="lines+markers",
            marker={"size": 6},
            line={"color": colour(*card), "width": 2, "dash": _DASHES[models[card] % len(_DASHES)]},
            hovertemplate=(
                "<b>%{y:,.0f} W</b> at %{x:,.0f} tokens/s<br>%{customdata[1]:.3f} tokens/J"
                f"<br>%{{customdata[0]:,.1f}} replica-hours, {kind['method']}"
            ),
        )
    figure.update_xaxes(title_text="prompt + generated tokens/s of a replica", rangemode="tozero")
    figure.update_yaxes(title_text="W of its GPUs", rangemode="tozero")
    return figure


def replica_type(kind: Mapping[str, Any]) -> str:
    """E.g. "2x RTX 4090: model-14b"."""
    model = (kind["model"] or "unknown model").rsplit("/", 1)[-1]
    return f"{card_set(kind['card'], kind['gpus'])}: {model}"


def quality(told: Mapping[str, Any], title: str) -> go.Figure:
    """Shares of energy, prices and grid factors by how they are known, as one bar each."""
    figure = blank(title, 200)
    rows = [name for name in _QUALITY if told[name]]
    for method, shade in _METHODS.items():
        shares = [100 * told[name].get(method, 0.0) for name in rows]
        if any(shares):
            figure.add_bar(
                y=[_QUALITY[name] for name in rows], x=shares, name=method.replace("_", " "), orientation="h",
                marker={"color": shade, "line": {"width": 0}},
                hovertemplate=f"<b>%{{x:.1f}}% {method.replace('_', ' ')}</b><br>%{{y}}",
            )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_layout(margin={"r": 28})
    figure.update_xaxes(range=[0, 100], ticksuffix="%", dtick=25, title_text=None)
    figure.update_yaxes(type="category")
    return figure
