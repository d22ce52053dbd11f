"""Figures of latencies: quantiles and attainment over time, and how requests are spread over latency buckets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from app.accounting.account import PERCENTILES
from app.answers.query import MOST_POINTS, AccountQuery
from app.dashboard.accounts_charts import HEIGHT_PX, WHEN, ends_of, is_sparse, line_name, starts_of, time_title
from app.dashboard.charts import GRID, blank, fleet_colour
from app.formatting import number

Answer = Mapping[str, Any]
# Latencies that differ by more are told apart on a logarithmic axis only.
_LOG_FROM = 20.0


def quantiles_over_time(answer: Answer, metric: str, title: str, query: AccountQuery) -> go.Figure:
    """p50, p90 and p99 beside each other on one scale: a line per fleet and model, a gap where none was observed."""
    figure = blank(title, HEIGHT_PX + 30)
    starts, is_log = starts_of(answer, query.zone)[:MOST_POINTS], _is_wide(answer, metric)
    for place, percentile in enumerate(PERCENTILES, start=1):
        for position, (label, line) in enumerate(_named(answer["lines"])):
            _add_quantile(figure, place, label, fleet_colour(position), starts, line["steps"][metric], f"p{percentile}")
        axis = "" if place == 1 else str(place)
        figure.update_layout(
            {
                f"xaxis{axis}": {
                    "domain": [(place - 1) / 3 + (0.012 if place > 1 else 0), place / 3 - (0.012 if place < 3 else 0)],
                    "anchor": f"y{axis}", "range": ends_of(query), "title": time_title(query) if place == 2 else None,
                    "gridcolor": GRID, "nticks": 5, "automargin": True,
                },
                f"yaxis{axis}": {
                    "anchor": f"x{axis}", "matches": None if place == 1 else "y", "showticklabels": place == 1,
                    "type": "log" if is_log else "linear", "title": "ms" if place == 1 else None, "gridcolor": GRID,
                    "rangemode": "normal" if is_log else "tozero", "automargin": True, "zeroline": False,
                    "dtick": 1 if is_log else None,
                },
            }
        )  # fmt: skip
        figure.add_annotation(
            text=f"<b>p{percentile}</b>", x=(place - 1) / 3 + 0.018, y=1.0, xref="paper", yref="paper", showarrow=False,
            xanchor="left", yanchor="bottom",
        )  # fmt: skip
    return figure


def _add_quantile(
    figure: go.Figure, place: int, label: str, shade: str, starts: Sequence[str], steps: Answer, name: str
) -> None:
    found, axis = steps[name], "" if place == 1 else str(place)
    values = found["values"][:MOST_POINTS]
    columns = zip(found["lower"], found["upper"], found["at_least"], found["small_sample"], steps["n"], strict=True)
    told = [_told(*one) for one in columns][:MOST_POINTS]
    figure.add_scatter(
        x=starts, y=values, name=label, legendgroup=label, showlegend=place == 1, connectgaps=False,
        mode="lines+markers" if is_sparse(values) or any(found["at_least"]) else "lines",
        marker={"size": 6, "symbol": ["triangle-up" if one else "circle" for one in found["at_least"]]},
        line={"color": shade, "width": 2}, customdata=told, xaxis=f"x{axis}", yaxis=f"y{axis}",
        hovertemplate=f"<b>%{{customdata[0]}}%{{y:,.4~g}} ms</b> {name}<br>%{{customdata[1]}}<br>{WHEN}",
    )  # fmt: skip


def _told(lower: float | None, upper: float | None, at_least: bool, small_sample: bool, n: int) -> list[str]:
    """What stands before the value of a point, and beneath it."""
    few = ", too few to trust it" if small_sample else ""
    return ["≥ " if at_least else "", f"{bucket_name(lower, upper)}, n = {n:,}{few}"]


def attainment_over_time(answer: Answer, targets: Sequence[float], title: str, query: AccountQuery) -> go.Figure:
    """The share of requests within their limit as a band between its bounds; targets: dashed, the shares asked for."""
    figure = blank(title, HEIGHT_PX + 40)
    starts = starts_of(answer, query.zone)[:MOST_POINTS]
    for position, (label, line) in enumerate(_named(answer["lines"])):
        bounds = line["attainment_steps"]
        low, high = (_percents(bounds[end][:MOST_POINTS]) for end in ("low", "high"))
        if any(one is not None for one in low):
            _add_band(figure, starts, low, high, label, fleet_colour(position))
    for target in targets:
        figure.add_hline(y=100 * target, line={"color": "rgba(128,140,138,0.9)", "width": 1, "dash": "dash"})
    figure.update_xaxes(title_text=time_title(query), range=ends_of(query))
    figure.update_yaxes(title_text="% of requests")
    return _with_legend_on_top(figure)


def _add_band(
    figure: go.Figure, starts: Sequence[str], low: list[float | None], high: list[float | None], label: str, shade: str
) -> None:
    """Lines of both bounds, filled in between; each stretch without a gap is a band of its own."""
    for position, (first, after) in enumerate(_stretches(low)):
        inside = list(zip(low[first:after], high[first:after], strict=True))
        for end, values in (("at least", low), ("at most", high)):
            figure.add_scatter(
                x=starts[first:after], y=values[first:after], name=label, legendgroup=label,
                showlegend=position == 0 and end == "at most", mode="lines" if after - first > 1 else "markers",
                line={"color": shade, "width": 1.5}, marker={"size": 5},
                fill="tonexty" if end == "at most" else None, fillcolor=_faint(shade), customdata=inside,
                hovertemplate=f"<b>%{{customdata[0]:.2f}} to %{{customdata[1]:.2f}}%</b><br>{WHEN}",
            )  # fmt: skip


def _percents(shares: Sequence[float | None]) -> list[float | None]:
    return [None if share is None else 100 * share for share in shares]


def _stretches(values: Sequence[float | None]) -> list[tuple[int, int]]:
    """Where runs of known values begin and end."""
    known = [False, *(value is not None for value in values), False]
    firsts = [number for number in range(len(values)) if known[number + 1] and not known[number]]
    afters = [number + 1 for number in range(len(values)) if known[number + 1] and not known[number + 2]]
    return list(zip(firsts, afters, strict=True))


def histogram(lines: Sequence[Answer], metric: str, title: str) -> go.Figure:
    """Of each line's requests the share in each latency bucket."""
    figure = blank(title, HEIGHT_PX + 40)
    buckets = {(one["lower"], one["upper"]) for line in lines for one in line["whole"][metric]["histogram"]}
    order = sorted(buckets, key=lambda one: (one[0], math.inf if one[1] is None else one[1]))
    for position, (label, line) in enumerate(_named(lines)):
        found = {(one["lower"], one["upper"]): one for one in line["whole"][metric]["histogram"]}
        figure.add_bar(
            x=[bucket_name(*one).removesuffix(" ms") for one in order],
            y=[100 * found[one]["share"] if one in found else None for one in order],
            customdata=[found[one]["n"] if one in found else 0 for one in order],
            name=label, marker={"color": fleet_colour(position), "line": {"width": 0}},
            hovertemplate="<b>%{y:.2f}%</b> in %{x} ms<br>%{customdata:,} observations",
        )  # fmt: skip
    figure.update_layout(barmode="group", bargap=0.2)
    figure.update_xaxes(title_text="latency bucket (ms)", type="category", tickangle=-40)
    figure.update_yaxes(title_text="% of observations", rangemode="tozero")
    return _with_legend_on_top(figure)


def _with_legend_on_top(figure: go.Figure) -> go.Figure:
    """Beneath its title, away from the labels of its axis."""
    title, legend = {"y": 0.98, "yanchor": "top"}, {"y": 1.02, "yanchor": "bottom"}
    return figure.update_layout(margin={"t": 80}, title=title, legend=legend)


def bucket_name(lower: float | None, upper: float | None) -> str:
    """E.g. "20–40 ms", "> 2,500 ms"; that of a quantile without observations says so."""
    if lower is None:
        return "nothing observed"
    return f"> {_ms(lower)} ms" if upper is None else f"{_ms(lower)}–{_ms(upper)} ms"


def _named(lines: Sequence[Answer]) -> list[tuple[str, Answer]]:
    """The lines with short names, e.g. "h100, model-14b"; in full where these are alike."""
    short = [
        line_name({name: value and value.rsplit("/", 1)[-1] for name, value in line["key"].items()}) for line in lines
    ]
    return [
        (name if short.count(name) == 1 else line_name(line["key"]), line)
        for name, line in zip(short, lines, strict=True)
    ]


def _ms(value: float) -> str:
    return number(value, 0) if value >= 10 or value == int(value) else f"{value:g}"


def _is_wide(answer: Answer, metric: str) -> bool:
    steps = [line["steps"][metric][f"p{percentile}"] for line in answer["lines"] for percentile in PERCENTILES]
    known = [value for one in steps for value in one["values"] if value]
    return bool(known) and max(known) > _LOG_FROM * min(known)


def _faint(shade: str) -> str:
    red, green, blue = (int(shade[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"
