"""What takes seconds to compute: only when its section is opened, and anew only when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.split.demand import Demand

Made = TypeVar("Made")


def on_demand(section: str, about: object, demand: Demand, compute: Callable[[], Made]) -> Made:
    """What `compute` gave for `demand`; while a slider has moved since, what it gave before, and a button.

    section, about: what it is of; another `about` is computed at once.
    """
    key, asked = f"computed_{section}", (about, demand.model_dump_json(by_alias=True))
    kept: tuple[tuple[object, str], Made] | None = st.session_state.get(key)
    note = st.empty()
    if kept is not None and kept[0][0] == about and kept[0] != asked:
        if not _compute_anew(note.container(), section):
            return kept[1]
        note.empty()
    if kept is None or kept[0] != asked:
        with note, st.spinner("Computing ...", show_time=True):
            kept = (asked, compute())
        st.session_state[key] = kept
    return kept[1]


def _compute_anew(where: DeltaGenerator, section: str) -> bool:
    words, button = where.columns([4, 1], vertical_alignment="center")
    words.warning(
        "A number has changed since this was computed: it is still about the numbers of before.",
        icon=":material/history:",
    )
    return button.button("Compute anew", key=f"anew_{section}", icon=":material/refresh:", width="stretch")
