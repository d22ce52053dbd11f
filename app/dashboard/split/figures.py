"""Plotly figures of the *Split* page: the front, cost against an SLO, the tornado, scenarios side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app.dashboard.charts import HEIGHT_PX, blank

_LINE, _CHOSEN, _MARK = "#2f7fd6", "#e8862e", "#0f9d8a"
_AXIS = "rgba(128,140,138,0.8)"


def front(points: Sequence[Mapping[str, Any]], chosen: int) -> go.Figure:
    """Dollars against grams per hour, a marker a split; the knee and the chosen one apart."""
    figure = blank("Cost against carbon")
    figure.add_scatter(
        x=[point["g_per_hour"] for point in points],
        y=[point["usd_per_hour"] for point in points],
        customdata=[[number + 1, _kind(point)] for number, point in enumerate(points)],
        mode="lines+markers",
        name="splits",
        line={"color": _LINE, "width": 2},
        marker={
            "size": [15 if number == chosen else 12 if point["is_knee"] else 9 for number, point in enumerate(points)],
            "color": [
                _CHOSEN if number == chosen else _MARK if point["is_knee"] else _LINE
                for number, point in enumerate(points)
            ],
            "symbol": ["diamond" if point["is_knee"] else "circle" for point in points],
        },
        hovertemplate="<b>$%{y:,.2f}/h</b>, %{x:,.0f} gCO2e/h<br>point %{customdata[0]}%{customdata[1]}<extra></extra>",
        showlegend=False,
    )
    for point in points:
        if _kind(point):
            figure.add_annotation(
                x=point["g_per_hour"], y=point["usd_per_hour"], text=_kind(point).removeprefix(", "), showarrow=False,
                yshift=16, xanchor="left", xshift=4,
            )  # fmt: skip
    figure.update_layout(clickmode="event+select")
    figure.update_xaxes(title_text="gCO2e per hour")
    figure.update_yaxes(title_text="USD per hour", tickprefix="$")
    return figure


def _kind(point: Mapping[str, Any]) -> str:
    """E.g. ", cheapest"; nothing for a point that is neither an end nor the knee."""
    words = [] if point["kind"] == "between" else [point["kind"]]
    return "".join(f", {word}" for word in [*words, *(["knee"] if point["is_knee"] else [])])


def cost_of_slo(answer: Mapping[str, Any]) -> go.Figure:
    """Dollars per hour against an SLO's limit: each cost holds up to the next step. The limit in force is marked."""
    slo = answer["slo"]
    points = [point for point in answer["points"] if point["usd_per_hour"] is not None]
    figure = blank(f"{answer['class']}: cost against its limit of {slo['metric'].upper()} p{slo['percentile']:g}")
    limits, costs = [point["max_ms"] for point in points], [point["usd_per_hour"] for point in points]
    if limits:
        end = max(limits[-1], slo["max_ms"]) * 1.1
        limits, costs = [*limits, end], [*costs, costs[-1]]
    figure.add_scatter(
        x=limits, y=costs, mode="lines+markers", line={"color": _LINE, "width": 2, "shape": "hv"},
        marker={"size": 7}, showlegend=False, hovertemplate="<b>$%{y:,.2f}/h</b> from %{x:,.1f} ms on<extra></extra>",
    )  # fmt: skip
    figure.add_vline(x=slo["max_ms"], line={"color": _CHOSEN, "width": 2, "dash": "dash"})
    figure.add_annotation(  # on a logarithmic axis an annotation, unlike a line, stands at the logarithm
        x=math.log10(slo["max_ms"]), y=1, yref="paper", text=f"now: {slo['max_ms']:g} ms", showarrow=False,
        xanchor="left", xshift=4, yanchor="top",
    )  # fmt: skip
    figure.update_xaxes(
        title_text=f"{slo['metric'].upper()} p{slo['percentile']:g} at most (ms)", type="log",
        tickvals=(ticks := _round_numbers(*limits, slo["max_ms"])), ticktext=[f"{tick:g}" for tick in ticks],
    )  # fmt: skip
    figure.update_yaxes(title_text="USD per hour", tickprefix="$", rangemode="tozero")
    return figure


def _round_numbers(*values: float) -> list[float]:
    """1, 2 and 5 of each decade that the values lie in."""
    low, high = (math.floor(math.log10(end)) for end in (min(values), max(values)))
    return [digit * 10.0**decade for decade in range(low, high + 1) for digit in (1, 2, 5)]


def tornado(inputs: Sequence[Mapping[str, Any]], usd_per_hour: float) -> go.Figure:
    """Dollars per hour when one input is lower or higher, the input that moves it most on top."""
    moved = sorted((one for one in inputs if one["tornado"]), key=_width)
    figure = blank("What moves the cost: one input lower, and higher", max(HEIGHT_PX, 110 + 26 * len(moved)))
    for side, colour in (("low", _MARK), ("high", _CHOSEN)):
        ends = [one["tornado"][side] for one in moved]
        costs = [usd_per_hour if end["usd_per_hour"] is None else end["usd_per_hour"] for end in ends]
        figure.add_bar(
            y=[one["label"] for one in moved],
            x=[cost - usd_per_hour for cost in costs],
            base=usd_per_hour,
            orientation="h",
            name="input lower" if side == "low" else "input higher",
            marker={"color": colour},
            customdata=[
                [
                    end["value"],
                    one["unit"],
                    end["factor"],
                    _cost_words(end["usd_per_hour"]),
                ]
                for one, end in zip(moved, ends, strict=True)
            ],
            hovertemplate="<b>%{customdata[3]}</b> at %{customdata[0]:,.4g} %{customdata[1]} (x %{customdata[2]:g})",
        )
    figure.add_vline(x=usd_per_hour, line={"color": _AXIS, "width": 1})
    figure.update_layout(barmode="overlay", bargap=0.3)
    figure.update_xaxes(title_text="USD per hour (with the carbon price)", tickprefix="$")
    return figure


def _cost_words(usd_per_hour: float | None) -> str:
    return "no mix" if usd_per_hour is None else f"${usd_per_hour:,.2f}/h"


def _width(one: Mapping[str, Any]) -> float:
    costs = [end["usd_per_hour"] for end in one["tornado"].values() if end["usd_per_hour"] is not None]
    return max(costs) - min(costs) if len(costs) == 2 else float("inf")


# What scenarios are compared by: key of an answer, title with its unit.
COMPARED = (("usd_per_hour", "$/h"), ("g_per_hour", "gCO2e/h"), ("watts", "W"), ("replicas", "replicas"))


def side_by_side(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """A bar per scenario in each of four small plots, as their units differ."""
    figure = blank("Scenarios side by side", 200 + 30 * len(rows))
    gap = 0.03
    width = (1 - gap * (len(COMPARED) - 1)) / len(COMPARED)
    for number, (key, title) in enumerate(COMPARED):
        axis = "" if number == 0 else str(number + 1)
        start = number * (width + gap)
        figure.add_bar(
            y=[row["scenario"] for row in rows],
            x=[row[key] for row in rows],
            orientation="h",
            marker={"color": [_CHOSEN if row["is_now"] else _LINE for row in rows]},
            xaxis=f"x{axis}",
            yaxis="y",
            showlegend=False,
            texttemplate="%{x:,.2f}" if key == "usd_per_hour" else "%{x:,.0f}",
            textposition="auto",
            hovertemplate=f"<b>%{{x:,.2f}} {title}</b><br>%{{y}}<extra></extra>",
        )
        figure.update_layout({f"xaxis{axis}": {"domain": [start, start + width], "title": {"text": title},
                                               "rangemode": "tozero", "nticks": 4}})  # fmt: skip
    figure.update_layout(bargap=0.35)
    figure.update_yaxes(autorange="reversed", domain=[0, 1])
    return figure
