"""Plotly figures of a plan: replicas by hour, and the load and the grid that they follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app.answers.plan_hours import PlannedHour, PlannedPool
from app.dashboard.charts import HEIGHT_PX, blank, colour, fleet_colour

_SMALL_PX = HEIGHT_PX - 60


def replicas(pools: Sequence[PlannedPool], hours: Sequence[PlannedHour]) -> go.Figure:
    """Replicas of each pool in each hour, stacked."""
    figure = blank("Replicas by hour")
    for pool in pools:
        figure.add_bar(
            x=[hour.start for hour in hours], y=list(pool.counts), name=pool.title,
            xperiod=3_600_000, xperiodalignment="middle",
            marker={"color": colour(pool.gpu, pool.gpus_per_replica)},
            hovertemplate="<b>%{y} replicas</b><br>%{x|%a %H:%M} UTC",
        )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=0.1, showlegend=True)
    figure.update_xaxes(title_text="UTC")
    figure.update_yaxes(title_text="replicas", rangemode="tozero")
    return figure


def load(plan: Mapping[str, Any]) -> go.Figure | None:
    """What of each class arrives, in percent of its busiest hour; None where all hours are alike."""
    lines = {name: [100 * hour["load"][name] for hour in plan["hours"]] for name in plan["load"]}
    if all(len(set(line)) < 2 for line in lines.values()):
        return None
    return _steps(plan, "Load by hour", lines, "% of the busiest hour", "%{y:.0f}% of the busiest hour")


def grid(plan: Mapping[str, Any]) -> go.Figure | None:
    """Grams per kWh of each fleet's zone; None where no hour differs from another."""
    lines = {name: [hour["g_per_kwh"][name] for hour in plan["hours"]] for name in plan["grid"]}
    if all(len(set(line)) < 2 for line in lines.values()):
        return None
    return _steps(plan, "Grid intensity by hour", lines, "gCO2e per kWh", "%{y:,.0f} g/kWh")


def _steps(
    plan: Mapping[str, Any], title: str, lines: Mapping[str, Sequence[float | None]], unit: str, hover: str
) -> go.Figure:
    figure = blank(title, _SMALL_PX)
    starts = [hour["start"] for hour in plan["hours"]]
    for place, (name, line) in enumerate(lines.items()):
        figure.add_scatter(
            x=starts, y=list(line), name=name, mode="lines",
            line={"color": fleet_colour(place), "width": 2, "shape": "hv"},
            hovertemplate=f"<b>{hover}</b><br>%{{x|%a %H:%M}} UTC",
        )  # fmt: skip
    figure.update_layout(showlegend=True)
    figure.update_xaxes(title_text="UTC")
    figure.update_yaxes(title_text=unit, rangemode="tozero")
    return figure
