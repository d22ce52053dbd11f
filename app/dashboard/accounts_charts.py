"""Figures of accounts over time and by group: units on axes, gaps as gaps, estimates dashed, price changes told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from app.answers.query import MOST_POINTS, AccountQuery
from app.dashboard.charts import blank, fleet_colour
from app.dashboard.figure_words import WORDS
from app.reference.gpus import display_name

# The parts of a bill, from what was worked to what nobody had.
PARTS = ("cost_working", "cost_slack", "cost_idle", "cost_unallocated")
# And what is used as one part, where it is not known how much of it was work.
BILL = (*PARTS, "cost_used")
# The parts of an energy.
ENERGY_PARTS = ("energy_active_kwh", "energy_idle_kwh", "energy_unallocated_kwh")
_PART_COLOURS = {
    "cost_working": "#0f9d8a", "cost_slack": "#7cc8a4", "cost_used": "#4a9fb5", "cost_idle": "#f2b134",
    "cost_unallocated": "#c2542d", "energy_active_kwh": "#0f9d8a", "energy_idle_kwh": "#f2b134",
    "energy_unallocated_kwh": "#c2542d",
}  # fmt: skip
# Values that meters and engines did not give themselves.
_DASHED = ("estimated", "interpolated", "forecast", "tdp_estimate")
_LONG_NAME = 24
_DAY_MS = 86_400_000
_OTHER = "rgba(128,140,138,0.9)"
WHEN = "%{x|%Y-%m-%d %H:%M}"
HEIGHT_PX = 310

Series = Mapping[str, Any]
Line = Mapping[str, Any]


def over_time(
    series: Series, name: str, title: str, query: AccountQuery, changes: Sequence[Mapping[str, Any]] = ()
) -> go.Figure:
    """A figure of each line of `series` by time. changes: what `price_changes` found, drawn as upright lines."""
    words = WORDS[name]
    figure = blank(title, HEIGHT_PX)
    starts = starts_of(series, query.zone)
    scale = 100.0 if words.unit == "%" else 1.0
    for number, line in enumerate(series["lines"]):
        found, colour = line["figures"][name], fleet_colour(number)
        values = [None if value is None else value * scale for value in found["values"]]
        told = zip(values, found["methods"], strict=True)
        solid, dashed = _apart(values, [value is not None and method in _DASHED for value, method in told])
        label = line_name(line["key"])
        for part, dash in ((solid, "solid"), (dashed, "dot")):
            if any(value is not None for value in part):
                figure.add_scatter(
                    x=starts[:MOST_POINTS], y=part[:MOST_POINTS], name=label, legendgroup=label, connectgaps=False,
                    showlegend=dash == "solid" or all(value is None for value in solid),
                    mode="lines+markers" if is_sparse(part) else "lines", marker={"size": 5},
                    line={"color": colour, "width": 2, "dash": dash}, customdata=found["methods"][:MOST_POINTS],
                    hovertemplate=f"<b>%{{y:{_d3(name)}}} {_suffix(name)}</b><br>{WHEN}, %{{customdata}}",
                )  # fmt: skip
    _mark(figure, changes, query)
    figure.update_xaxes(title_text=time_title(query), range=ends_of(query))
    figure.update_yaxes(title_text=words.unit, rangemode="tozero")
    return figure


def bill_over_time(series: Series, title: str, query: AccountQuery, changes: Sequence[Mapping[str, Any]]) -> go.Figure:
    """The bill of each step as bars: the parts of BILL on top of each other."""
    figure = blank(title, HEIGHT_PX)
    starts = starts_of(series, query.zone)
    widths = [_milliseconds(period) for period in series["periods"]]
    figures = series["lines"][0]["figures"]
    parts = _divided({name: figures[name]["values"] for name in BILL})
    for name, values in parts.items():
        found, words = figures[name], WORDS[name]
        figure.add_bar(
            x=starts, y=values, name=words.label, width=[0.92 * one for one in widths], offset=0,
            marker={"color": _PART_COLOURS[name], "line": {"width": 0}}, customdata=found["methods"],
            hovertemplate=f"<b>%{{y:{words.d3}}} {words.label.lower()}</b><br>from {WHEN}, %{{customdata}}",
        )  # fmt: skip
    _mark(figure, changes, query)
    figure.update_layout(barmode="relative", bargap=0)
    figure.update_xaxes(title_text=time_title(query), range=ends_of(query), **_day_ticks(series, starts))
    figure.update_yaxes(title_text=f"USD per {_step(series['step'])}")
    return figure


def parts_by_group(lines: Sequence[Line], title: str, parts: Sequence[str] = BILL) -> go.Figure:
    """The bill or the energy of each line as one bar of its parts; the first lines on top."""
    figure = blank(title, max(HEIGHT_PX, 90 + 26 * len(lines)))
    names = [line_name(line["key"]) for line in lines]
    amounts = {name: [line["figures"][name]["value"] for line in lines] for name in parts}
    for name, values in (_divided(amounts) if parts == BILL else amounts).items():
        figures, said = [line["figures"][name] for line in lines], WORDS[name].label.lower()
        figure.add_bar(
            y=names, x=values, name=WORDS[name].label, orientation="h",
            marker={"color": _PART_COLOURS[name], "line": {"width": 0}}, customdata=[one["method"] for one in figures],
            hovertemplate=f"<b>%{{x:{WORDS[name].d3}}} {_suffix(name)} {said}</b><br>%{{y}}, %{{customdata}}",
        )  # fmt: skip
    figure.update_layout(barmode="relative", bargap=0.3)
    figure.update_xaxes(title_text=WORDS[parts[0]].unit)
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def _divided(parts: Mapping[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """The parts of BILL that there are: used as one only where it is not divided into working and slack."""
    whole = [
        used if work is None else None for used, work in zip(parts["cost_used"], parts["cost_working"], strict=True)
    ]
    shown = {**parts, "cost_used": whole}
    order = ("cost_used", *PARTS)
    return {name: shown[name] for name in order if name in PARTS[2:] or any(one is not None for one in shown[name])}


def line_name(key: Mapping[str, Any]) -> str:
    """How a line of an answer is named: by its fleet, model, node, GPU or label."""
    if not key:
        return "all"
    if "gpu" in key:
        card = display_name(key.get("gpu_name") or "GPU")
        return f"{key.get('node') or 'no node'}: {card} {short_uuid(key['gpu'] or '')}"
    nothing = {"fleet": "no fleet", "model": "no model", "node": "no node", "label": "no label"}
    return ", ".join(str(value) if value is not None else nothing.get(name, "none") for name, value in key.items())


def short_uuid(uuid: str) -> str:
    """E.g. "0a1b2c3d…": of a real UUID the first part tells GPUs apart."""
    return uuid if len(uuid) <= _LONG_NAME else f"{uuid[:8]}…"


def _apart(values: Sequence[float | None], is_dashed: Sequence[bool]) -> tuple[list[float | None], list[float | None]]:
    """The values for a solid and for a dashed line. Where they meet the dashed one takes the neighbour, too."""
    solid = [None if dashed else value for value, dashed in zip(values, is_dashed, strict=True)]
    joined = [
        any(is_dashed[max(number - 1, 0) : number + 2]) and (is_dashed[number] or values[number] is not None)
        for number in range(len(values))
    ]
    return solid, [value if joins else None for value, joins in zip(values, joined, strict=True)]


def is_sparse(values: Sequence[float | None]) -> bool:
    """Whether a value stands without a neighbour, where a line alone would not show it."""
    around = [None, *values, None]
    return any(
        value is not None and before is None and after is None
        for before, value, after in zip(around, values, around[2:], strict=False)
    )


def _mark(figure: go.Figure, changes: Iterable[Mapping[str, Any]], query: AccountQuery) -> None:
    """An upright line at each change of a price, with what it became."""
    for number, change in enumerate(changes):
        moment = _local(change["at"], query.zone)
        is_late = datetime.fromisoformat(change["at"]) > query.start + 0.6 * (query.end - query.start)
        upright = {"color": _OTHER, "width": 1, "dash": "dash"}
        figure.add_shape(type="line", x0=moment, x1=moment, y0=0, y1=1, yref="paper", line=upright)
        figure.add_annotation(
            x=moment, y=1 - 0.09 * (number % 4), yref="paper", text=f"{change['fleet']}: {_short(change['what'])}",
            hovertext=f"{change['fleet']}, {change['kind']}: {change['what']}", showarrow=False,
            xanchor="right" if is_late else "left", yanchor="top", font={"size": 10, "color": _OTHER},
            xshift=-2 if is_late else 2,
        )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 34 else f"{text[:33]}…"


def starts_of(series: Series, zone: ZoneInfo) -> list[str]:
    return [_local(period["start"], zone) for period in series["periods"]]


def ends_of(query: AccountQuery) -> list[str]:
    return [_local(moment.isoformat(), query.zone) for moment in (query.start, query.end)]


def _local(moment: str, zone: ZoneInfo) -> str:
    """Without its zone: Plotly draws what the clock on the wall shows."""
    return datetime.fromisoformat(moment).astimezone(zone).replace(tzinfo=None).isoformat(timespec="seconds")


def _milliseconds(period: Mapping[str, Any]) -> float:
    start, end = (datetime.fromisoformat(period[name]) for name in ("start", "end"))
    return (end - start).total_seconds() * 1e3


def time_title(query: AccountQuery) -> str:
    return f"local time, {query.tz}"


def _day_ticks(series: Series, starts: Sequence[str]) -> dict[str, Any]:
    """A tick at each local midnight, or some of them, where bars are days."""
    if series["step"] != "day":
        return {}
    every = -(-len(starts) // 10)
    return {"tick0": starts[-1][:10], "dtick": every * _DAY_MS, "tickformat": "%b %-d"}


def _step(step: str) -> str:
    return {"5min": "5 minutes", "15min": "15 minutes"}.get(step, step)


def _d3(name: str) -> str:
    return ".1f" if WORDS[name].unit == "%" else WORDS[name].d3


def _suffix(name: str) -> str:
    unit = WORDS[name].unit
    return unit.removeprefix("USD").replace("/", "per ", 1) if unit.startswith("USD") else unit
