"""*Facts*: what counts now and since when, what counted before, and how to add to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl
import streamlit as st

from app.answers.facts import FLEET_KINDS, IN_FORCE, facts_as_csv
from app.backend.served import served
from app.errors import ImportFileError
from app.facts.cells import VALUE_COLUMNS, plans, value_columns
from app.facts.kinds import ANY_FLEET, FORMS, KINDS, Kind
from app.facts.template import template
from app.formatting import MISSING, markdown

_SAID = "said_of_facts"
_ALL = "all"
_NAMES = 6
_NO_FLEET = "* (all others)"
_ROWS_AT_ONCE = 30
_COLUMNS = {
    "subject": st.column_config.TextColumn("subject", width="medium"),
    "value": st.column_config.TextColumn("value", width="large"),
    **{
        name: st.column_config.DatetimeColumn(name, format="YYYY-MM-DD HH:mm", help="UTC. 1970 stands for: since ever.")
        for name in ("valid from", "known at")
    },
}
_WHAT = {"pue": "PUE", "slo": "SLO"}
_LABELS = {
    "per_gpu_hour": "Per GPU-hour",
    "billing_increment_s": "Billing increment, s",
    "life_years": "Life, years",
    "fixed_per_hour": "Fixed cost per hour",
    "per_kwh": "Per kWh",
    "tz": "Time zone",
    "pue": "PUE",
    "g_per_kwh": "g/kWh",
    "kg_low": "Least kg",
    "kg_high": "Most kg",
    "kg_per_gpu": "kg per GPU",
    "usd_per_unit": "USD for one",
    "input_usd_per_mtok": "USD/Mtok in",
    "output_usd_per_mtok": "USD/Mtok out",
    "percentile": "Percentile, %",
    "max_ms": "At most, ms",
}


def page() -> None:
    st.title("Facts")
    st.caption(
        "Prices, tariffs, PUEs, zones and memberships, each valid from a time. A new one changes nothing before that "
        "time, and none is ever overwritten. Times are UTC."
    )
    if _SAID in st.session_state:
        added = st.session_state.pop(_SAID)
        st.success(f"{added['new']} added, {added['known']} already known.", icon=":material/check_circle:")
        for note in added["notes"]:
            st.warning(markdown(f"{note[:1].upper()}{note[1:]}."), icon=":material/info:")
    st.subheader("In force now")
    _in_force()
    one, file = st.columns([3, 2])
    with one:
        _add_one()
    with file:
        _from_file()
    st.subheader("All facts")
    _history()


def _in_force() -> None:
    fleets = served().fleets_in_force()
    rows = [row for fleet in fleets for row in _fleet_rows(fleet)]
    others = served().facts(at=datetime.now(UTC))["facts"]
    kinds = ("exchange_rate", "hosted_price", "slo")
    rows += [_row(fact["subject"], fact["kind"], fact) for fact in others if fact["kind"] in kinds]
    if not rows:
        st.info("Nothing is known yet: add a fact below, or put fleets into `wattmix.toml` and restart the hub.",
                icon=":material/receipt_long:")  # fmt: skip
        return
    height: Literal["content", "auto"] = "content" if len(rows) <= _ROWS_AT_ONCE else "auto"
    st.dataframe(_frame(rows), hide_index=True, placeholder=MISSING, column_config=_COLUMNS, height=height)


def _fleet_rows(fleet: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row per fact of a fleet, and one with its nodes."""
    name = _NO_FLEET if fleet["fleet"] == ANY_FLEET else fleet["fleet"]
    for kind in FLEET_KINDS:
        fact = fleet["facts"][kind]
        if fact is not None:
            yield _row(name, kind, fact)
    now = fleet["electricity"]
    if now is not None:
        by = "the hour's own price" if now["of_the_hour"] else "by its tariff"
        yield {"subject": name, "what": "electricity now", "value": f"{now['per_kwh']:g} {now['currency']}/kWh, {by}"}
    if fleet["nodes"]:
        shown = ", ".join(fleet["nodes"][:_NAMES])
        more = f" and {len(fleet['nodes']) - _NAMES} more" if len(fleet["nodes"]) > _NAMES else ""
        yield {"subject": name, "what": "nodes", "value": f"{len(fleet['nodes'])}: {shown}{more}"}


def _row(subject: str, what: str, fact: dict[str, Any]) -> dict[str, Any]:
    return {
        "subject": subject,
        "what": _WHAT.get(what, what.replace("_", " ")),
        "value": fact["in_words"],
        "valid from": datetime.fromisoformat(fact["valid_from"]),
        "known at": datetime.fromisoformat(fact["known_at"]),
        "source": fact["source"],
    }


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    text = ("subject", "what", "value", "source", "standing")
    moments = ("valid from", "known at")
    types = dict.fromkeys(text, pl.String()) | dict.fromkeys(moments, pl.Datetime("us", "UTC"))
    named = {name: kind for name, kind in types.items() if any(name in row for row in rows)}
    order = [name for name in ("subject", "what", "value", "standing", *moments, "source") if name in named]
    return pl.DataFrame(rows, schema=named).select(order)


def _add_one() -> None:
    with st.container(border=True):
        st.markdown("**Add a fact**")
        kinds, planned = st.columns(2)
        kind = kinds.selectbox("Kind", KINDS, index=KINDS.index("price"), key="kind")
        offered = plans(kind)
        plan = planned.selectbox("Plan", offered, key=f"plan_{kind}") if offered else None
        with st.form("one_fact", border=False):
            cells = _cells(kind, plan)
            asked = st.form_submit_button("Add", icon=":material/add:")
    if asked:
        try:
            st.session_state[_SAID] = served().add_fact(cells)
        except ImportFileError as refused:
            _told(refused)
            return
        st.rerun()


def _cells(kind: Kind, plan: str | None) -> dict[str, str]:
    """A field for each column of the kind, as the user filled it in."""
    subject, valid_from, source = st.columns([1.4, 1.2, 1.4])
    cells = {
        "kind": kind,
        "subject": subject.text_input("Subject", key="subject", placeholder=FORMS[kind].subject),
        "valid_from": valid_from.text_input(
            "Valid from", f"{datetime.now(UTC):%Y-%m-%d}", key="valid_from",
            help="A date (midnight in UTC) or a moment with its time zone, such as 2026-03-01T13:37+01:00.",
        ),
        "source": source.text_input("Source", key="source", placeholder="contract, bill, page"),
    }  # fmt: skip
    names = [name for name in value_columns(kind, plan) if name != "plan"]
    columns = st.columns(min(len(names), 4))
    for number, name in enumerate(names):
        label = _LABELS.get(name, name.replace("_", " ").capitalize())
        key = f"{kind}_{plan}_{name}"
        cells[name] = columns[number % 4].text_input(label, key=key, help=VALUE_COLUMNS[name])
    ends = st.checkbox("It ends what held before: leave its value empty", key="ends")
    return cells | ({"ends": "yes"} if ends else {"plan": plan or ""})


def _from_file() -> None:
    with st.container(border=True):
        st.markdown("**From a CSV**")
        file = st.file_uploader("CSV", type="csv", key="csv", label_visibility="collapsed")
        if st.button("Import", icon=":material/upload_file:", disabled=file is None) and file is not None:
            _import(file.name, file.getvalue())
        st.caption("All rows or none. Importing a file again changes nothing.")
        st.download_button(
            "Template", template(datetime.now(UTC)), file_name="facts-template.csv", mime="text/csv", key="template",
            icon=":material/download:", on_click="ignore", help="Every column, with an example row of each kind.",
        )  # fmt: skip


def _import(name: str, content: bytes) -> None:
    try:
        st.session_state[_SAID] = served().import_facts(content.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        st.error(f"{markdown(name)}: not UTF-8 text", icon=":material/error:")
        return
    except ImportFileError as refused:
        _told(refused)
        return
    st.rerun()


def _told(refused: ImportFileError) -> None:
    """Nothing was added, and why: a line for each finding."""
    findings = str(refused).splitlines()
    lines = "\n".join(f"* {markdown(finding)}" for finding in findings)
    st.error(f"Nothing was added:\n\n{lines}", icon=":material/error:")


def _history() -> None:
    kinds, subjects, button = st.columns([1.5, 2.5, 1], vertical_alignment="bottom")
    kind = kinds.selectbox("Kind", (_ALL, *KINDS), key="of", bind="query-params")
    known = served().facts(kind=None if kind == _ALL else kind)
    names = sorted({fact["subject"] for fact in known["facts"]})
    subject = subjects.selectbox("Subject", (_ALL, *names), key="about")
    rows = [fact for fact in known["facts"] if subject in (_ALL, fact["subject"])]
    button.download_button(
        "CSV", lambda: facts_as_csv(known | {"facts": rows}), file_name="facts.csv", mime="text/csv", key="facts_csv",
        icon=":material/download:", on_click="ignore", width="stretch",
    )  # fmt: skip
    if not rows:
        st.caption("None yet.")
        return
    shown = [_row(fact["subject"], fact["kind"], fact) | {"standing": fact["standing"]} for fact in rows]
    shown.sort(key=lambda row: (row["standing"] != IN_FORCE, row["subject"], row["what"]))
    st.dataframe(_frame(shown), hide_index=True, placeholder=MISSING, column_config=_COLUMNS)
