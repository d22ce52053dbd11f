"""What a page of accounts shows while there is nothing to show. It looks again by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import streamlit as st

from app.answers.query import AccountQuery
from app.backend.served import served

AGAIN_S = 3
# What has been sent is rolled up within this time; a range that ended earlier stays as it is.
_SETTLED = timedelta(minutes=5)
_SEEN = "gpu_hours_seen"


def nothing_seen(query: AccountQuery) -> None:
    """What to do where a range has nothing in it; samples that are being rolled up are waited for."""
    names = served().account_names()
    if names["fleets"] or names["models"]:
        st.info("No GPU and no engine was seen in this range, with these filters. Choose a longer one; what was sent "
                "just now is shown once it is added up.", icon=":material/search_off:")  # fmt: skip
    else:
        st.info(
            "Nothing has been measured yet. On a GPU node: `wattmix agent --hub http://THIS-HUB:8501`; it finds the "
            "engines there. Prices are set in `wattmix.toml` or on the Facts page. What load tests say is on the "
            "Benchmarks page.",
            icon=":material/dns:",
        )
    if query.end > datetime.now(UTC) - _SETTLED:
        _look_again(query)


@st.fragment(run_every=AGAIN_S)
def _look_again(query: AccountQuery) -> None:
    """Draw the page once something is seen, and no more of it than the last time: then all is added up."""
    asked = replace(query, by="none", step=None, figures=("gpu_hours",))
    hours = served().summary(asked)["total"]["figures"]["gpu_hours"]["value"]
    if hours is not None and hours == st.session_state.get(_SEEN):
        st.rerun()
    st.session_state[_SEEN] = hours
