"""The sliders of the *Split* page: where they start, and the mark at today's measured value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.answers.measured_knobs import Measured
from app.formatting import markdown, usd
from app.split.demand import Demand, FleetOffer, WorkloadClass


@dataclass(frozen=True)
class Knob:
    """A slider: name as in the URL, label with its unit, range and step."""

    group: str
    name: str
    label: str
    low: float
    high: float
    step: float
    help: str


def draw_sliders(base: Demand, start: Mapping[str, float | None], measured: Mapping[str, Measured]) -> dict[str, float]:
    """A slider per knob in the sidebar, at `start` unless the address says otherwise; every knob and its value."""
    values: dict[str, float] = {}
    drawn: list[tuple[Knob, float, float]] = []
    group = ""
    with st.sidebar:
        if measured:
            st.caption("An orange tick is at what is measured, or in force, now.")
        for knob in _knobs(base):
            if knob.group != group:
                group = knob.group
                st.subheader(group)
            initial = start[knob.name] or 0.0
            held = [initial, *_in_address(knob.name), *(m.value for m in [measured.get(knob.name)] if m)]
            low, high = min(knob.low, *held), max(knob.high, *held)
            drawn.append((knob, low, high))
            values[knob.name] = st.slider(
                knob.label, low, high, initial, knob.step, format="%.5g", key=knob.name, bind="query-params",
                help=_help(knob, measured.get(knob.name)),
            )  # fmt: skip
        style = "\n".join(_style(drawn, measured))
        if style:
            st.html(f"<style>{style}</style>")
    return values


def _in_address(name: str) -> Iterator[float]:
    """What the address says of a knob: the slider has to reach it, whatever it starts at."""
    text = st.query_params.get(name)
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return
    if value is not None and 0 <= value < float("inf"):
        yield value


def _help(knob: Knob, measured: Measured | None) -> str:
    if measured is None:
        return knob.help
    return f"{knob.help} The mark is at {measured.value:.5g}: {markdown(measured.source)}."


def _style(drawn: Sequence[tuple[Knob, float, float]], measured: Mapping[str, Measured]) -> Iterator[str]:
    """A tick across the track of each slider that has a measured value, and a line below that says what it is.

    Both are style alone: no element more to send and lay out. Where names become one class, there is no mark.
    """
    classes = Counter(_style_class(knob.name) for knob, _, _ in drawn)
    for knob, low, high in drawn:
        found = measured.get(knob.name)
        name = _style_class(knob.name)
        if found is None or high <= low or classes[name] > 1:
            continue
        part = (found.value - low) / (high - low)
        words = _css_text(f"\u2502 {found.value:.5g} {found.source}")
        yield f'.st-key-{name} [role="group"] > div::after {{ left: {100 * part:.3f}%; {_TICK} }}'
        yield f'.st-key-{name} [data-testid="stSlider"]::after {{ content: "{words}"; {_WORDS} }}'


_TICK = (
    'content: ""; position: absolute; top: calc(50% - 8px); height: 16px; width: 3px; margin-left: -1.5px; '
    "border-radius: 2px; background: #e8862e; pointer-events: none;"
)
_WORDS = "display: block; font-size: 0.75rem; line-height: 1.2; opacity: 0.75;"


def _css_text(text: str) -> str:
    """`text` for a quoted string of CSS: all but letters, digits and spaces by their numbers, each ended by a space."""
    return re.sub(r"[^a-zA-Z0-9 ]", lambda found: f"\\{ord(found[0]):x} ", text)


def _style_class(name: str) -> str:
    """As Streamlit makes the class of an element from its key."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name)


def _knobs(base: Demand) -> list[Knob]:
    demand = [
        Knob("Demand", f"rps.{one.name}", f"{one.name} (req/s)", 0.0, 100.0, 0.5, _tokens_of(one))
        for one in base.classes
    ]
    limits = [
        Knob("Demand", f"slo.{one.name}", f"{one.name}: {slo.metric.upper()} p{slo.percentile:g} at most (ms)", 10.0,
             1000.0, 5.0, "An option is out when its measured latency is above.")
        for one in base.classes for slo in one.slo[:1]
    ]  # fmt: skip
    prices = [
        Knob("Price", f"usd.{fleet.name}", f"{fleet.name} ($ per GPU-hour)", 0.0, 5.0, 0.01, _price_of(fleet))
        for fleet in base.fleets
    ]
    grids = [
        Knob("Carbon", f"g.{fleet.name}", f"{fleet.name} grid (gCO2e/kWh)", 0.0, 1000.0, 1.0,
             f"Starts at its grid now where that is known, else at its zone's yearly average; x PUE {fleet.pue:g}.")
        for fleet in base.fleets
    ]  # fmt: skip
    carbon = Knob("Carbon", "carbon", "carbon price ($ per t)", 0.0, 500.0, 5.0,
                  "Weighs in the choice; not part of the $/h shown.")  # fmt: skip
    headroom = Knob("Headroom", "util", "highest utilisation", 0.3, 1.0, 0.05,
                    "Share of a replica's measured throughput that may be planned on.")  # fmt: skip
    return [*demand, *limits, *prices, *grids, carbon, headroom]


def _tokens_of(one: WorkloadClass) -> str:
    return f"{one.model}: {one.prompt_tokens:g} prompt and {one.generated_tokens:g} generated tokens a request."


def _price_of(fleet: FleetOffer) -> str:
    electricity = f" Electricity at {usd(fleet.usd_per_kwh, 3)}/kWh comes on top." if fleet.usd_per_kwh else ""
    return markdown(f"{fleet.gpu}. Starts at the price in force: {fleet.price_source or 'the demand'}.{electricity}")
