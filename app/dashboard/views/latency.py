"""*Latency*: how long requests take, by fleet and model, over time and on each replica; whether they keep an SLO."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from app.accounting.account import PERCENTILES
from app.answers.latency import MOST_MS, Wanted
from app.answers.query import AccountQuery
from app.backend.served import served
from app.dashboard import latency_charts
from app.dashboard.figure_cards import about, compared_times, draw, simulated_badge
from app.dashboard.filters import account_filters, address_of, with_chart_step
from app.dashboard.latency_tables import attainment, line_table, replica_table
from app.dashboard.waiting import nothing_seen
from app.formatting import MISSING, markdown, number, short
from collectors.samples import LatencyMetric

_METRICS: dict[LatencyMetric, str] = {"ttft": "TTFT", "itl": "Inter-token", "e2e": "End-to-end"}
_NAMES: dict[LatencyMetric, str] = {
    "ttft": "time to first token", "itl": "time between tokens", "e2e": "time from a request to its last token",
}  # fmt: skip
_OBSERVED: dict[LatencyMetric, str] = {"ttft": "first tokens", "itl": "tokens after the first", "e2e": "requests"}
_COLOURS = {"met": "green", "missed": "red", "open": "orange", "no requests": "gray"}
_CHART = {"displayModeBar": False}
_POINTS = 300
# More lines than these are not told apart; the table has all.
_MOST_LINES = 6

Answer = dict[str, Any]
Figure = dict[str, Any]


def page() -> None:
    st.title("Latency")
    query = account_filters()
    wanted = _wanted()
    metric = wanted.metrics[0]
    backend = served()
    asked = with_chart_step(replace(query, by="fleet_model"), "minute", _POINTS)
    answer = backend.latency(asked, wanted)
    if not answer["lines"]:
        nothing_seen(query)
        return
    figures = (*wanted.quantiles, "requests", "failed_requests", "slo_attainment_low", "slo_attainment_high")
    replicas = backend.summary(replace(query, by="replica", figures=figures))
    simulated_badge(replicas)
    _cards(query, answer, replicas, metric)
    st.caption(markdown(_stands_on(query, answer, metric)))
    _slos(answer)
    _charts(query, answer, metric)
    st.subheader("By fleet and model")
    line_table(answer["lines"], metric)
    st.subheader("Replicas side by side")
    replica_table(replicas["lines"], metric)
    words = urlencode({**asked.as_words(), **wanted.as_words()}, safe=":")
    st.caption(f"The same as JSON: `/api/v1/latency?{words}`, of replicas: "
               f"`{address_of(replace(query, by='replica'), 'summary')}`")  # fmt: skip


def _wanted() -> Wanted:
    first, second, _ = st.columns([2.2, 1.6, 3.2], vertical_alignment="bottom")
    chosen = first.segmented_control(
        "Latency", tuple(_METRICS.values()), default=_METRICS["ttft"], required=True, key="metric", bind="query-params",
        help="TTFT: time to first token. Inter-token: time between two tokens of a request. End-to-end: from the "
        "request to its last token.",
    )  # fmt: skip
    max_ms = second.number_input(
        "Hold against (ms)", min_value=0.001, max_value=MOST_MS, value=None, step=10.0, format="%g", key="max_ms",
        bind="query-params", placeholder="each model's SLO",
        help="The share of requests at or under it is shown. Empty: each model's own SLO (a fact of kind slo) counts, "
        "whichever latency it is about.",
    )  # fmt: skip
    metric = next(metric for metric, label in _METRICS.items() if label == chosen)
    return Wanted((metric,), max_ms)


def _cards(query: AccountQuery, answer: Answer, replicas: Answer, metric: LatencyMetric) -> None:
    columns = st.columns([1, 1, 1, 1.25, 1])
    whole = answer["total"]["whole"][metric]
    for column, percentile in zip(columns, PERCENTILES, strict=False):
        name, figure = f"{metric}_p{percentile}_ms", whole[f"p{percentile}"]
        label = f"{_METRICS[metric]} p{percentile}"
        draw(column, label, name, written(figure), figure, replicas["change"][name], query)
        with column.popover("How", icon=":material/function:", type="tertiary", width="content"):
            st.markdown(markdown(_how(figure, percentile, metric)))
    low, high = answer["total"]["attainment"]["low"], answer["total"]["attainment"]["high"]
    columns[3].metric(
        "Within the limit", attainment(low, high), low["reason"] or _limit(answer),
        delta_color="off", delta_arrow="off",
        border=True, help=about("slo_attainment_low", low),
    )  # fmt: skip
    with columns[3].popover("How", icon=":material/function:", type="tertiary", width="content"):
        st.markdown(_HOW_ATTAINED)
    requests = replicas["total"]["figures"]["requests"]
    failed = replicas["total"]["figures"]["failed_requests"]
    columns[4].metric(
        "Requests", short(number(requests["value"], 0)), requests["reason"] or f"{number(failed['value'], 0)} failed",
        delta_color="off", delta_arrow="off", border=True,
        help="Finished in the range; beneath, those that failed, were aborted or rejected, which count as misses.",
    )  # fmt: skip


_HOW_ATTAINED = (
    "= requests at or under the limit / all that finished, failed or were aborted\n\nA limit inside a latency bucket "
    "leaves the requests of that bucket open: the lower bound counts none of them, the upper one all. Both bounds are "
    "widened by the 95% Wilson interval of the sample."
)


def written(figure: Figure) -> str:
    """E.g. "87 ms", "0.9 ms", "≥ 2,500 ms" when it lies in the unbounded bucket."""
    value = figure["value"]
    if value is None:
        return MISSING
    return f"{'≥ ' if figure['at_least'] else ''}{number(value, 0 if value >= 10 else 1)} ms"


def _how(figure: Figure, percentile: int, metric: LatencyMetric) -> str:
    if figure["value"] is None:
        return f"Missing: {figure['reason']}."
    few = " That is fewer than 5: too small a sample to trust it." if figure["small_sample"] else ""
    bucket = latency_charts.bucket_name(figure["lower"], figure["upper"])
    inside = "of which only the lower bound is known" if figure["at_least"] else "linear inside it"
    return (
        f"The {_NAMES[metric]} that {percentile}% of n = {figure['n']:,} {_OBSERVED[metric]} were at or under, read "
        f"off the merged buckets of all engines: in the bucket {bucket}, {inside}: {written(figure)}.\n\n"
        f"{number(figure['rests_on'], 0)} of them lie above it.{few}\n\nMethod: {figure['method']}. Percentiles are "
        "never averaged."
    )


def _limit(answer: Answer) -> str:
    if answer["max_ms"] is not None:
        return f"{_METRICS[answer['metrics'][0]]} ≤ {answer['max_ms']:g} ms"
    return "; ".join(dict.fromkeys(f"{_METRICS[one['metric']]} ≤ {one['max_ms']:g} ms" for one in answer["slos"]))


def _stands_on(query: AccountQuery, answer: Answer, metric: LatencyMetric) -> str:
    p99 = answer["total"]["whole"][metric]["p99"]
    few = ", too few to trust it" if p99["small_sample"] else ""
    return (
        f"{compared_times(query)} n = {p99['n']:,} {_OBSERVED[metric]}, {number(p99['rests_on'], 0)} of them above the "
        f"p99{few}. Percentiles: of the merged histogram buckets of all engines, linear inside a bucket, "
        f"never averaged; at {_said(answer['step'])} steps. A quantile is only as fine as the engines' buckets of the "
        f"{_NAMES[metric]}: hover a point for its bucket and n."
    )


def _said(step: str) -> str:
    return {"minute": "1 minute", "5min": "5 minute", "15min": "15 minute", "hour": "1 hour", "day": "1 day"}[step]


def _slos(answer: Answer) -> None:
    """How each model did against its SLO, whatever the page holds requests against."""
    for slo in answer["slos"]:
        colour, low, high = _COLOURS[slo["verdict"]], slo["attainment"]["low"], slo["attainment"]["high"]
        did = low["reason"] or f"{attainment(low, high)} of {slo['requests']:,} requests were"
        asked = f"{slo['percentile']:g}% within {_METRICS[slo['metric']]} ≤ {slo['max_ms']:g} ms"
        changed = "; it changed in this range, and requests count by the SLO of their time" if slo["changes"] else ""
        told = f"{asked}. {did[:1].upper()}{did[1:]} ({slo['source']}{changed})."
        st.markdown(f":{colour}-badge[{slo['verdict']}] **{markdown(slo['model'])}**: {markdown(told)}")


def _drawn(answer: Answer, metric: LatencyMetric) -> Answer:
    """The answer with as many lines as a chart can tell apart: those with most observations."""
    most = sorted(answer["lines"], key=lambda line: -line["whole"][metric]["p50"]["n"])[:_MOST_LINES]
    return {**answer, "lines": [line for line in answer["lines"] if line in most]}


def _charts(query: AccountQuery, answer: Answer, metric: LatencyMetric) -> None:
    drawn = _drawn(answer, metric)
    of = "" if len(drawn["lines"]) == len(answer["lines"]) else f", the {_MOST_LINES} with most observations"
    title = f"{_METRICS[metric]} over time, by fleet and model{of}"
    figure = latency_charts.quantiles_over_time(drawn, metric, title, query)
    st.plotly_chart(figure, key="chart_quantiles", config=_CHART, alt=title)
    left, right = st.columns(2)
    limited = [line for line in drawn["lines"] if line["attainment"]["low"]["value"] is not None]
    if limited:
        title = f"Requests within the limit: {_limit(answer)}"
        targets = [] if answer["max_ms"] is not None else sorted({slo["percentile"] / 100 for slo in answer["slos"]})
        figure = latency_charts.attainment_over_time(drawn, targets, title, query)
        left.plotly_chart(figure, key="chart_attainment", config=_CHART, alt=title)
    else:
        left.info("No request is held against anything here: give a limit above, or add a fact of kind slo for these "
                  "models on the Facts page.", icon=":material/rule:")  # fmt: skip
    title = f"{_METRICS[metric]} by bucket"
    figure = latency_charts.histogram(drawn["lines"], metric, title)
    right.plotly_chart(figure, key="chart_histogram", config=_CHART, alt=title)
