"""The dashboard's frame: title, theme, pages. Streamlit runs this file for each visit."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

if (root := str(Path(__file__).resolve().parent.parent.parent)) not in sys.path:
    sys.path.append(root)

from app.dashboard.frame import fit_narrow_windows, show_error_of, source_badge
from app.dashboard.views import benchmarks, carbon, cost, energy, facts, health, latency, live, overview, reports, split

st.set_page_config(page_title="Wattmix", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")

PAGES = [
    st.Page(
        show_error_of(overview.page), title="Overview", icon=":material/dashboard:", url_path="overview", default=True
    ),
    st.Page(show_error_of(live.page), title="Live", icon=":material/monitoring:", url_path="live"),
    st.Page(show_error_of(cost.page), title="Cost", icon=":material/payments:", url_path="cost"),
    st.Page(show_error_of(energy.page), title="Energy", icon=":material/bolt:", url_path="energy"),
    st.Page(show_error_of(carbon.page), title="Carbon", icon=":material/eco:", url_path="carbon"),
    st.Page(show_error_of(latency.page), title="Latency", icon=":material/timer:", url_path="latency"),
    st.Page(show_error_of(benchmarks.page), title="Benchmarks", icon=":material/speed:", url_path="benchmarks"),
    st.Page(show_error_of(split.page), title="Split", icon=":material/call_split:", url_path="split"),
    st.Page(show_error_of(reports.page), title="Reports", icon=":material/description:", url_path="reports"),
    st.Page(show_error_of(facts.page), title="Facts", icon=":material/receipt_long:", url_path="facts"),
    st.Page(show_error_of(health.page), title="Health", icon=":material/monitor_heart:", url_path="health"),
]

current = st.navigation(PAGES, position="top")
fit_narrow_windows()
source_badge()
current.run()
