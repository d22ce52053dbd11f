"""Plotly figures. Axes and hover carry units; colours mean the same card set on every page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from app.formatting import load_point
from app.reference.gpus import display_name, find_gpu

# One hue per kind of card, one shade per number of cards; readable on white and on the dark background.
_ENTERPRISE = ("#2f7fd6", "#1f5fb0", "#5ea3ec", "#8cc0f5")
_CONSUMER = ("#f2b134", "#e8862e", "#d65f2f", "#b5432f")
_FLEETS = ("#2f7fd6", "#e8862e", "#0f9d8a", "#9a6ad6", "#d6497f", "#8a8f98")
_UNKNOWN = ("#8a8f98", "#6d727b", "#a5aab2", "#565b63")
_DASHES = {1: "solid", 2: "solid", 4: "dash", 8: "dot"}
GRID = "rgba(128,140,138,0.25)"
HEIGHT_PX = 330
# The legend stands so far below the axis, under two lines of ticks and the title; what is around the plot is not in it.
_LEGEND_PX, _AROUND_PX = 74, 110


def card_set(gpu: str, count: int) -> str:
    """E.g. "2x RTX 4090"."""
    return f"{count}x {display_name(gpu)}"


def colour(gpu: str, count: int) -> str:
    spec = find_gpu(gpu)
    shades = _UNKNOWN if spec is None else _CONSUMER if spec.kind == "consumer" else _ENTERPRISE
    return shades[min(count.bit_length() - 1, len(shades) - 1)]


def by_load(
    rows: Sequence[dict[str, Any]], column: str, title: str, unit: str, form: str, *, log: bool = False
) -> go.Figure:
    """`column` of benchmark rows against the target load, one line per card set; repeats of a load are all shown."""
    figure = blank(title)
    for (gpu, count), line in _lines(rows).items():
        points = [row for row in line if row["qps"] is not None and row[column] is not None]
        figure.add_scatter(
            x=[row["qps"] for row in points],
            y=[row[column] for row in points],
            customdata=[[row["requests_per_s"], row["completed"], row["flags"] or "none"] for row in points],
            name=card_set(gpu, count),
            mode="lines+markers",
            line={"color": colour(gpu, count), "width": 2, "dash": _DASHES.get(count, "solid")},
            marker={"size": 7},
            hovertemplate=(
                f"<b>%{{y:{form}}} {unit}</b><br>target %{{x:g}} req/s, achieved %{{customdata[0]:.2f}}"
                "<br>n = %{customdata[1]}, flags: %{customdata[2]}"
            ),
        )
    figure.update_xaxes(title_text="target load (req/s)", type="log", tickvals=_ticks(rows), ticktext=_tick_texts(rows))
    figure.update_yaxes(title_text=unit, type="log" if log else "linear", rangemode="tozero" if not log else "normal")
    if log:
        figure.update_yaxes(dtick=1)
    return figure


def achieved_against_target(rows: Sequence[dict[str, Any]]) -> go.Figure:
    """Requests/s achieved against offered, with the line where they are equal."""
    title = "Achieved against target load (dashed: equal)"
    figure = by_load(rows, "requests_per_s", title, "req/s achieved", ".2f", log=True)
    loads = _ticks(rows)
    figure.add_scatter(
        x=loads, y=loads, mode="lines", hoverinfo="skip", showlegend=False,
        line={"color": "rgba(128,140,138,0.8)", "width": 1, "dash": "dash"},
    )  # fmt: skip
    figure.update_yaxes(tickvals=loads, ticktext=_tick_texts(rows))
    return figure


def shares(answer: dict[str, Any]) -> go.Figure:
    """Where each class goes: one bar per class, one part per pool, in percent of the class's requests."""
    figure = blank("Where each class goes")
    classes = list(dict.fromkeys(share["class"] for share in answer["shares"]))
    for pool in answer["replicas"]:
        mine = {
            s["class"]: s for s in answer["shares"] if s["run_id"] == pool["run_id"] and s["fleet"] == pool["fleet"]
        }
        figure.add_bar(
            y=classes,
            x=[100 * mine[name]["share"] if name in mine else 0 for name in classes],
            name=pool_name(pool),
            orientation="h",
            marker={"color": colour(pool["gpu"], pool["gpus_per_replica"])},
            customdata=[[mine[name]["tokens_per_s"] if name in mine else 0] for name in classes],
            hovertemplate="<b>%{x:.1f}%</b> of %{y}<br>%{customdata[0]:,.0f} tokens/s",
        )
    figure.update_layout(barmode="stack", bargap=0.35)
    figure.update_xaxes(title_text="share of the class (%)", range=[0, 101])
    figure.update_yaxes(autorange="reversed")
    return figure


def alternatives(answers: dict[str, dict[str, Any]]) -> go.Figure:
    """Dollars per hour of the recommendation and of each alternative that can carry the demand."""
    figure = blank("Cost against the alternatives")
    feasible = {name: answer for name, answer in answers.items() if answer["usd_per_hour"] is not None}
    figure.add_bar(
        x=[answer["usd_per_hour"] for answer in feasible.values()],
        y=list(feasible),
        orientation="h",
        marker={"color": ["#0b7a6f", *["#6f7d7b"] * (len(feasible) - 1)]},
        text=[f"${answer['usd_per_hour']:,.2f}" for answer in feasible.values()],
        textposition="inside",
        insidetextfont={"color": "#ffffff"},
        customdata=[
            [answer["g_per_hour"] if answer["g_per_hour"] is not None else "unknown"] for answer in feasible.values()
        ],
        hovertemplate="<b>$%{x:,.2f}/h</b><br>%{customdata[0]:,.0f} gCO2e/h",
        showlegend=False,
    )
    figure.update_layout(bargap=0.45)
    figure.update_xaxes(title_text="USD per hour", rangemode="tozero")
    figure.update_yaxes(autorange="reversed")
    return figure


def tokens_by_fleet(history: dict[str, Any], title: str) -> go.Figure:
    """Tokens/s of each fleet over the last minutes; a gap where nothing of it was seen."""
    figure = blank(title)
    for number, line in enumerate(history["fleets"]):
        figure.add_scatter(
            x=history["from"],
            y=line["tokens_per_s"],
            name=line["fleet"] or "no fleet",
            mode="lines",
            line={"color": fleet_colour(number), "width": 2},
            connectgaps=False,
            hovertemplate="<b>%{y:,.0f} tokens/s</b><br>%{x|%H:%M:%S} UTC",
        )
    figure.update_layout(height=HEIGHT_PX - 60)
    figure.update_xaxes(title_text="UTC", range=[history["from"][0], history["from"][-1]])
    figure.update_yaxes(title_text="tokens/s", rangemode="tozero")
    return figure


def pool_name(pool: dict[str, Any]) -> str:
    """E.g. "13 x (2x RTX 4090 at 16 req/s), rtx4090"."""
    cards = card_set(pool["gpu"], pool["gpus_per_replica"])
    return f"{pool['fleet']}: {pool['count']} x ({cards} at {load_point(pool['qps_point'])})"


def fleet_colour(number: int) -> str:
    """Of the fleet, or other line, of that number."""
    return _FLEETS[number % len(_FLEETS)]


def blank(title: str, height_px: int = HEIGHT_PX) -> go.Figure:
    """A figure with the look that all of them have, and nothing in it."""
    figure = go.Figure()
    figure.update_layout(
        title={"text": title, "font": {"size": 15}},
        height=height_px,
        margin={"l": 10, "r": 10, "t": 48, "b": 10},
        legend={"orientation": "h", "yanchor": "top", "y": _LEGEND_PX / (_AROUND_PX - height_px), "x": 0},
        hovermode="closest",
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor=GRID, zeroline=False, automargin=True)
    return figure


def _lines(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    lines: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in sorted(
        rows, key=lambda row: (row["gpu"] != rows[0]["gpu"], row["gpu"], row["gpu_count"], row["qps"] or 0)
    ):
        lines.setdefault((row["gpu"], row["gpu_count"]), []).append(row)
    return lines


def _ticks(rows: Sequence[dict[str, Any]]) -> list[float]:
    return sorted({row["qps"] for row in rows if row["qps"] is not None})


def _tick_texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [f"{load:g}" for load in _ticks(rows)]
