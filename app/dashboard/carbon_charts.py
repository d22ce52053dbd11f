"""Figures of carbon: what moved it, when the grid is clean and the site is busy, and what is ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from app import units
from app.dashboard.accounts_charts import HEIGHT_PX, WHEN
from app.dashboard.charts import blank, fleet_colour
from app.formatting import basis_said, signed

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CAUSES = {"mix": "mix of fleets", "energy": "energy per token", "grid": "grid"}
_WORSE, _BETTER, _LEVEL = "#c2542d", "#0f9d8a", "#8a8f98"
# Readable on white and on the dark background, and for those who see no red or green.
_COLOURS = {
    "g/kWh": ((0.0, "#1b7f79"), (0.5, "#f2b134"), (1.0, "#a63d2f")),
    "kW": ((0.0, "#274c77"), (0.5, "#6096ba"), (1.0, "#e8f1f8")),
}

Answer = Mapping[str, Any]


def moved(found: Answer, title: str) -> go.Figure:
    """From g/Mtok before to g/Mtok now, by cause."""
    causes = found["effects"]
    figure = blank(title, HEIGHT_PX)
    figure.add_waterfall(
        x=["before", *(_CAUSES[name] for name in causes), "now"],
        y=[found["before"], *causes.values(), found["now"]],
        measure=["absolute", *("relative" for _ in causes), "total"],
        text=[f"{found['before']:.1f}", *(signed(one, "+.2f") for one in causes.values()), f"{found['now']:.1f}"],
        textposition="outside",
        cliponaxis=False,
        increasing={"marker": {"color": _WORSE}},
        decreasing={"marker": {"color": _BETTER}},
        totals={"marker": {"color": _LEVEL}},
        connector={"line": {"color": _LEVEL, "width": 1, "dash": "dot"}},
        hovertemplate="<b>%{text} gCO2e/Mtok</b><br>%{x}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(title_text="gCO2e/Mtok", rangemode="tozero")
    return figure


def by_weekday_and_hour(heat: Sequence[Sequence[float | None]], title: str, unit: str, tz: str) -> go.Figure:
    """A mean for each hour of the week, in g/kWh or kW; blank where there is none."""
    figure = blank(title, HEIGHT_PX)
    figure.add_heatmap(
        z=heat,
        x=list(range(24)),
        y=list(_DAYS),
        colorscale=_COLOURS[unit],
        colorbar={"title": {"text": unit}, "thickness": 12},
        xgap=1,
        ygap=1,
        hoverongaps=False,
        hovertemplate=f"<b>%{{z:,.1f}} {unit}</b><br>%{{y}} %{{x}}:00<extra></extra>",
    )
    figure.update_xaxes(title_text=f"hour of the day, {tz}", dtick=3, showgrid=False)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def ahead(zones: Sequence[Answer], windows: Mapping[str, Answer], title: str, zone: ZoneInfo) -> go.Figure:
    """Each zone's forecast, dotted as what is not measured; its window, if it has one, shaded in its colour."""
    figure = blank(title, HEIGHT_PX)
    for number, one in enumerate(zones):
        starts = [_local(value["start"], zone) for value in one["values"]]
        figure.add_scatter(
            x=[*starts, _local(one["values"][-1]["end"], zone)],
            y=[*(value["g_per_kwh"] for value in one["values"]), one["values"][-1]["g_per_kwh"]],
            name=f"{one['zone']} ({basis_said(one['basis'])})",
            mode="lines",
            line={"color": fleet_colour(number), "width": 2, "dash": "dot", "shape": "hv"},
            hovertemplate=f"<b>%{{y:,.0f}} g/kWh</b><br>from {WHEN}, forecast",
        )
        if (window := windows.get(one["zone"])) is not None:
            figure.add_vrect(
                x0=_local(window["start"], zone),
                x1=_local(window["end"], zone),
                fillcolor=fleet_colour(number),
                opacity=0.18,
                line_width=0,
            )
    figure.update_xaxes(title_text=f"local time, {zone.key}")
    figure.update_yaxes(title_text="g/kWh", rangemode="tozero")
    return figure


def elsewhere(rows: Sequence[Answer], title: str) -> go.Figure:
    """Grams of the same energy by zone; the fleets' own in colour."""
    figure = blank(title, max(HEIGHT_PX, 90 + 26 * len(rows)))
    figure.add_bar(
        y=[row["zone"] for row in rows],
        x=[units.kilograms(row["carbon_g"]) for row in rows],
        orientation="h",
        marker={"color": [_BETTER if row["is_own"] else _LEVEL for row in rows]},
        customdata=[[row["g_per_kwh"], row["basis"], row["year"] or "no year"] for row in rows],
        hovertemplate="<b>%{x:,.2f} kg CO2e</b><br>%{y}: %{customdata[0]:g} g/kWh %{customdata[1]}, %{customdata[2]}"
        "<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(title_text="kg CO2e, operational")
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def _local(text: str, zone: ZoneInfo) -> datetime:
    """Plotly draws the clock's own time."""
    return datetime.fromisoformat(text).astimezone(zone).replace(tzinfo=None)
