"""Plotly figures of a plan: replicas and load, what waits, and how clean the grid is, hour by hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from app.answers.plan_rows import PlanPool, arriving_tokens_per_s, plan_pools
from app.dashboard.charts import HEIGHT_PX, blank, colour, fleet_colour

Answer = Mapping[str, Any]
_HOUR = timedelta(hours=1)
_HOUR_MS = 3.6e6
# Between bars, in parts of an hour; none where there are so many that gaps would flicker.
_GAP, _MOST_WITH_GAPS = 0.08, 72
_ARRIVING, _SERVED = "#8a8f98", "#0f9d8a"
# Pools whose cards look alike are told apart by these, the first of a colour by none.
_PATTERNS = ("", "/", ".", "x", "-")


def replicas(answer: Answer, zone: ZoneInfo) -> go.Figure:
    """Replicas of each pool above, what arrives below."""
    hours, pools = answer["hours"], plan_pools(answer)
    figure = blank("Replicas and load, hour by hour", HEIGHT_PX + 150)
    for pool, look in zip(pools, _looks(pools), strict=True):
        _add_bars(figure, hours, [pool.count(hour) for hour in hours], pool.name, look, zone, ".0f", "replicas")
    arriving = arriving_tokens_per_s(hours)
    waits = answer["assumptions"]["deferrable"]
    if waits:
        served = [hour["split"]["tokens_per_s"] for hour in hours]
        _add_steps(figure, hours, served, "served (tokens/s)", _SERVED, zone, "tokens/s served", axis="y2")
    name = "arriving (tokens/s)" if waits else "load (tokens/s)"
    _add_steps(figure, hours, arriving, name, _ARRIVING, zone, "tokens/s", axis="y2", dash="dot" if waits else "solid")
    figure.update_layout(
        barmode="stack",
        yaxis={"domain": [0.38, 1], "title": {"text": "replicas"}, "rangemode": "tozero"},
        yaxis2={"domain": [0, 0.28], "title": {"text": "tokens/s"}, "rangemode": "tozero", "anchor": "x", "nticks": 4,
                "gridcolor": figure.layout.yaxis.gridcolor, "zeroline": False, "automargin": True},
    )  # fmt: skip
    figure.update_xaxes(anchor="y2")
    _in_time(figure, hours, zone)
    return figure


def waiting(answer: Answer, zone: ZoneInfo) -> go.Figure:
    """Tokens of each deferrable class that wait at an hour's end."""
    hours = answer["hours"]
    figure = blank("What waits for a better hour")
    for number, name in enumerate(answer["assumptions"]["deferrable"], start=2):  # the first two are cards' colours
        tokens = [hour["deferred_tokens"][name] for hour in hours]
        what = "tokens wait at the hour's end"
        _add_bars(figure, hours, tokens, name, {"color": fleet_colour(number)}, zone, ",.0f", what)
    figure.update_layout(barmode="stack", showlegend=True)
    figure.update_yaxes(title_text="tokens", rangemode="tozero")
    _in_time(figure, hours, zone)
    return figure


def intensity(answer: Answer, cards: Mapping[str, str], zone: ZoneInfo) -> go.Figure:
    """Grams per kWh of each fleet; those that have the same ones share a line. cards: fleet -> its GPU."""
    hours, hues = answer["hours"], {name: colour(gpu, 1) for name, gpu in cards.items()}
    hues |= {pool.fleet: colour(pool.gpu, pool.gpus_per_replica) for pool in reversed(plan_pools(answer))}
    figure = blank("How clean the electricity is")
    for (values, place), names in _same_grids(answer).items():
        of = ", ".join(names) + (f" ({place})" if place else "")
        _add_steps(figure, hours, values, of, hues[names[0]], zone, "gCO2e/kWh")
    figure.update_layout(showlegend=True)
    figure.update_yaxes(title_text="gCO2e/kWh", rangemode="tozero")
    _in_time(figure, hours, zone)
    return figure


def varies(answer: Answer) -> bool:
    """Whether a fleet's grams per kWh are others in one hour than in another."""
    return any(len(set(values)) > 1 for values, _ in _same_grids(answer))


def local_hour(start: str, zone: ZoneInfo) -> str:
    """E.g. Wed 2 Dec 16:00."""
    return f"{datetime.fromisoformat(start).astimezone(zone):%a %-d %b %H:%M}"


def _same_grids(answer: Answer) -> dict[tuple[tuple[float | None, ...], str | None], list[str]]:
    """(an intensity per hour, zone) -> the fleets that have them."""
    found: dict[tuple[tuple[float | None, ...], str | None], list[str]] = {}
    for name, known in answer["grid"].items():
        values = tuple(hour["g_per_kwh"][name] for hour in answer["hours"])
        found.setdefault((values, known["zone"]), []).append(name)
    return found


def _looks(pools: Sequence[PlanPool]) -> list[dict[str, Any]]:
    """A marker for each pool: its card set's colour, as on every page."""
    taken: dict[str, int] = {}
    looks: list[dict[str, Any]] = []
    for pool in pools:
        hue = colour(pool.gpu, pool.gpus_per_replica)
        number = taken[hue] = taken.get(hue, -1) + 1
        looks.append({"color": hue, "pattern": {"shape": _PATTERNS[number % len(_PATTERNS)], "size": 6}})
    return looks


def _add_bars(
    figure: go.Figure, hours: Sequence[Answer], values: Sequence[float], name: str, look: Mapping[str, Any],
    zone: ZoneInfo, form: str, unit: str,
) -> None:  # fmt: skip
    gap = _GAP if len(hours) <= _MOST_WITH_GAPS else 0.0
    figure.add_bar(
        x=[_utc(hour) for hour in hours],
        y=values,
        offset=gap / 2 * _HOUR_MS,
        width=(1 - gap) * _HOUR_MS,
        name=name,
        marker={"line": {"width": 0}, **look},
        customdata=[local_hour(hour["start"], zone) for hour in hours],
        hovertemplate=f"<b>%{{y:{form}}} {unit}</b><br>from %{{customdata}}",
    )


def _add_steps(
    figure: go.Figure, hours: Sequence[Answer], values: Sequence[float | None], name: str, hue: str, zone: ZoneInfo,
    unit: str, *, axis: str = "y", dash: str = "solid",
) -> None:  # fmt: skip
    """A line that is level in each hour, to the end of the last one."""
    starts = [_utc(hour) for hour in hours]
    figure.add_scatter(
        x=[*starts, starts[-1] + _HOUR],
        y=[*values, values[-1]],
        yaxis=axis,
        name=name,
        mode="lines",
        line={"color": hue, "width": 2, "shape": "hv", "dash": dash},
        connectgaps=False,
        customdata=[*(local_hour(hour["start"], zone) for hour in hours), local_hour(hours[-1]["start"], zone)],
        hovertemplate=f"<b>%{{y:,.0f}} {unit}</b><br>from %{{customdata}}",
    )


def _in_time(figure: go.Figure, hours: Sequence[Answer], zone: ZoneInfo) -> None:
    """Local times on an axis of UTC: where the clock is put back, two hours have the same local time."""
    starts = [_utc(hour) for hour in hours]
    every = next((step for most, step in ((24, 3), (48, 6), (72, 12)) if len(hours) <= most), 24)
    local = [datetime.fromisoformat(hour["start"]).astimezone(zone) for hour in hours]
    ticks = [number for number, moment in enumerate(local) if moment.hour % every == 0]
    figure.update_xaxes(
        title_text="UTC" if zone.key == "UTC" else f"local time, {zone.key}",
        range=[starts[0], starts[-1] + _HOUR],
        tickvals=[starts[number] for number in ticks],
        ticktext=[_tick(local[number]) for number in ticks],
        tickangle=0,
        showgrid=False,
    )


def _tick(local: datetime) -> str:
    return f"{local:%a %-d}" if (local.hour, local.minute) == (0, 0) else f"{local:%H:%M}"


def _utc(hour: Answer) -> datetime:
    return datetime.fromisoformat(hour["start"]).astimezone(UTC).replace(tzinfo=None)
