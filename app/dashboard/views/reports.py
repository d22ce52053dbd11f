"""*Reports*: the scheduled ones with what became of them, and one for any window at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import streamlit as st

from app.accounting.periods import zone_names
from app.accounting.tokens import BASES
from app.backend.served import served
from app.errors import UnknownName
from app.formatting import MISSING, markdown, percent
from app.reports.columns import NAMES
from app.reports.delivery import MANIFEST_SUFFIX, file_name
from app.reports.report import Report
from app.reports.request import BOUNDARIES, KINDS, parse_request

_EXAMPLE = """[[report]]
name = "daily"
kind = "fleet-day"          # or "hourly"
cron = "0 6 * * *"          # each day at 06:00
tz = "Europe/Madrid"
window = "day"              # or "week", "month"
"""
_COLOURS = {"written": "green", "waiting": "blue", "retrying": "orange", "failed": "red", "skipped": "gray"}
_SAID = "said_of_run"
# Not shown in the preview, which is for one zone, boundary and basis; the file has them.
_SAME_IN_ALL = ("tz", "start_utc", "end_utc", "boundary", "currency", "basis", "known_at")
_FORMATS: dict[str, Any] = {
    "coverage": st.column_config.NumberColumn(format="percent"),
    **{name: st.column_config.NumberColumn(format="localized") for name in ("prompt_tokens", "generated_tokens")},
    **{name: st.column_config.NumberColumn(format="localized") for name in ("cached_tokens", "requests", "ttft_n")},
    **{name: st.column_config.NumberColumn(format="%.3f") for name in ("cost", "cost_per_mtok", "energy_kwh")},
    **{name: st.column_config.NumberColumn(format="%.1f") for name in ("ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms")},
}


def page() -> None:
    st.title("Reports")
    schedules = served().scheduled_reports()
    if _SAID in st.session_state:
        st.success(st.session_state.pop(_SAID), icon=":material/check_circle:")
    if not schedules:
        st.info("No report is scheduled yet. Put one into `wattmix.toml` and restart the hub:",
                icon=":material/schedule:")  # fmt: skip
        st.code(_EXAMPLE, language="toml")
    for schedule in schedules:
        with st.container(border=True):
            _schedule(schedule)
    st.subheader("One report now")
    _one_now(schedules[0]["tz"] if schedules else "UTC")


def _schedule(schedule: dict[str, Any]) -> None:
    told, last, following, button = st.columns([3.2, 3, 2, 1.2], vertical_alignment="top")
    told.markdown(f"**{markdown(schedule['name'])}** :blue-badge[{schedule['kind']}]")
    told.caption(
        f"{schedule['cron_in_words']} ({markdown(schedule['tz'])}; `{schedule['cron']}`), on the last complete "
        f"{schedule['window']}. Boundary {schedule['boundary']}, basis {schedule['basis']}."
    )
    run = schedule["last_run"]
    last.markdown(f"Last run {_badge(run['status'])}" if run else "Last run: none yet")
    if run:
        last.caption(markdown(_outcome(run, schedule["tz"])))
    following.markdown("Next run")
    following.caption(_local(schedule["next_due"], schedule["tz"]))
    if button.button("Run now", key=f"run_{schedule['name']}", icon=":material/play_arrow:", width="stretch"):
        written = served().run_scheduled_report(schedule["name"])
        st.session_state[_SAID] = markdown(f"{written['file']}: {written['rows']} rows, in {written['folder']}")
        st.rerun()
    _files(schedule)
    _runs(schedule)


def _badge(status: str) -> str:
    return f":{_COLOURS[status]}-badge[{status}]"


def _outcome(run: dict[str, Any], tz: str) -> str:
    """E.g. "2026-02-03 06:00 CET: 12 rows, coverage 99.8%"."""
    when = _local(run["ran_at"], tz)
    if run["error"]:
        return f"{when}, attempt {run['attempts']}: {run['error']}"
    return f"{when}: {run['rows']} rows, coverage {percent(run['coverage'], 1)}"


def _local(moment: str | None, tz: str) -> str:
    return MISSING if moment is None else f"{datetime.fromisoformat(moment).astimezone(ZoneInfo(tz)):%Y-%m-%d %H:%M %Z}"


def _files(schedule: dict[str, Any]) -> None:
    files = list(dict.fromkeys(run["file"] for run in schedule["runs"] if run["status"] == "written"))
    if not files:
        return
    choice, csv, manifest = st.columns([5, 1.2, 1.2], vertical_alignment="bottom")
    file = choice.selectbox("File", files, key=f"file_{schedule['name']}", label_visibility="collapsed")
    for column, label, name, mime in (
        (csv, "CSV", file, "text/csv"), (manifest, "Manifest", f"{file}{MANIFEST_SUFFIX}", "application/json"),
    ):  # fmt: skip
        try:
            path = served().report_file(schedule["name"], name)
        except UnknownName:
            column.caption(f"{label}: no longer there")
            continue
        column.download_button(
            label, path.read_bytes, file_name=name, mime=mime, key=f"{label}_{schedule['name']}",
            icon=":material/download:", on_click="ignore", width="stretch",
        )  # fmt: skip


def _runs(schedule: dict[str, Any]) -> None:
    if not schedule["runs"]:
        return
    tz = schedule["tz"]
    rows = [
        {
            "due": _local(run["due_at"], tz) if run["due_at"] else "by hand",
            "status": run["status"],
            "from": _local(run["window_from"], tz),
            "to": _local(run["window_to"], tz),
            "ran": _local(run["ran_at"], tz),
            "attempts": run["attempts"],
            "rows": run["rows"],
            "coverage": run["coverage"],
            "file": run["file"],
            "why not": run["error"],
        }
        for run in schedule["runs"]
    ]
    with st.expander(f"Runs ({len(rows)})"):
        percentage = {"coverage": st.column_config.NumberColumn(format="percent")}
        st.dataframe(
            pl.DataFrame(rows, infer_schema_length=None), hide_index=True, placeholder=MISSING, column_config=percentage
        )


def _one_now(tz: str) -> None:
    with st.form("one_report", border=True):
        kind, first, after, zone, boundary, basis = st.columns([1.3, 1.2, 1.2, 1.8, 1.2, 1.4])
        zones = sorted(zone_names())
        today = datetime.now(UTC).astimezone(ZoneInfo(tz)).date()
        given = {
            "kind": kind.selectbox("Kind", KINDS, key="kind"),
            "from": first.date_input("From", today - timedelta(days=1), key="from"),
            "to": after.date_input("To, exclusive", today, key="to", help="The day after the last one."),
            "tz": zone.selectbox("Time zone", zones, index=zones.index(tz), key="tz"),
            "boundary": boundary.selectbox("Boundary", BOUNDARIES, index=BOUNDARIES.index("it"), key="boundary"),
            "basis": basis.selectbox("Tokens", BASES, key="basis"),
        }
        asked = st.form_submit_button("Make the report", icon=":material/table_view:")
    if asked:
        request = parse_request({name: str(value) for name, value in given.items()}, datetime.now(UTC))
        _preview(served().report(request))


def _preview(report: Report) -> None:
    if not report.rows:
        st.info("No GPU and no engine was seen in this window.", icon=":material/search_off:")
        return
    about = report.about()
    coverage = about["coverage"]
    said, button = st.columns([5, 1.2], vertical_alignment="bottom")
    said.caption(
        f"{about['rows']} rows. Coverage {percent(coverage['mean'], 1)} on average, {percent(coverage['lowest'], 1)} "
        f"at the least. Methods: {', '.join(about['methods'])}. Known at {about['known_at'][:19]} UTC."
        + ("" if report.is_complete else " The window is not over yet.")
    )
    button.download_button(
        "CSV", report.csv, file_name=file_name(report.request.name, report), mime="text/csv", key="one_csv",
        icon=":material/download:", on_click="ignore", width="stretch",
    )  # fmt: skip
    frame = pl.DataFrame(report.rows, infer_schema_length=None)
    shown = [name for name in NAMES if name not in _SAME_IN_ALL]
    st.dataframe(frame, hide_index=True, placeholder=MISSING, column_order=shown, column_config=_FORMATS)
