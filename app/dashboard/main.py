"""The dashboard's frame: title, theme, pages. Streamlit runs this file for each visit."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

if (root := str(Path(__file__).resolve().parent.parent.parent)) not in sys.path:
    sys.path.append(root)

from app.dashboard.frame import show_error_of, source_badge
from app.dashboard.views import benchmarks, health, live, reports, split

st.set_page_config(page_title="Wattmix", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")

PAGES = [
    st.Page(
        show_error_of(benchmarks.page),
        title="Benchmarks",
        icon=":material/speed:",
        url_path="benchmarks",
        default=True,
    ),
    st.Page(show_error_of(live.page), title="Live", icon=":material/monitoring:", url_path="live"),
    st.Page(show_error_of(split.page), title="Split", icon=":material/call_split:", url_path="split"),
    st.Page(show_error_of(reports.page), title="Reports", icon=":material/description:", url_path="reports"),
    st.Page(show_error_of(health.page), title="Health", icon=":material/monitor_heart:", url_path="health"),
]

current = st.navigation(PAGES, position="top")
source_badge()
current.run()
