"""What every page has: errors told in words, and the label of the data it stands on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import streamlit as st

from app.backend.served import served
from app.errors import WattmixError


def show_error_of(page: Callable[[], None]) -> Callable[[], None]:
    """`page`, with a WattmixError shown as a message instead of a traceback."""

    @wraps(page)
    def shown() -> None:
        try:
            page()
        except WattmixError as error:
            st.error(str(error), icon=":material/error:")

    shown.__name__ = page.__module__.rsplit(".", 1)[-1]
    return shown


# On a narrow window cards stand two in a row and charts below each other, instead of being cut.
_NARROW = """<style>
@media (max-width: 1100px) {
  [data-testid="stColumn"]:has([data-testid="stMetric"]) { min-width: calc(50% - 1rem); }
  [data-testid="stColumn"]:has([data-testid="stPlotlyChart"]) { min-width: 100%; }
  [data-testid="stColumn"]:has([data-testid="stSelectbox"]) { min-width: 9rem; }
  [data-testid="stColumn"]:has([data-testid="stFormSubmitButton"], [data-testid="stButton"]) { min-width: 9rem; }
}
</style>"""


def fit_narrow_windows() -> None:
    st.html(_NARROW)


def source_badge() -> None:
    """A line that says when the figures stand on demo data, so that they are never taken for the user's own."""
    try:
        demo = served().store.purpose == "demo"
    except WattmixError:
        return
    if demo:
        st.badge("Demo data: the study's benchmark runs, prices and grid", icon=":material/science:", color="orange")
