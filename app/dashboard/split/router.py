"""Section of the *Split* page: the mix as the settings of a router, to read and to download."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from app.backend.served import served
from app.split.demand import Demand
from app.split.router_files import FORMATS, RouterFormat

_TITLES = {
    "litellm": "LiteLLM",
    "production-stack": "vLLM production stack",
    "gateway-api": "Gateway API (HTTPRoute)",
}


def draw_router(demand: Demand, answer: dict[str, Any]) -> None:
    st.markdown(
        "Weights for a router that sends requests as this mix says. Wattmix advises, it does not route: nothing is "
        "applied anywhere."
    )
    if answer["status"] == "infeasible":
        st.info("No mix carries this demand, so there are no weights.", icon=":material/block:")
        return
    chosen = st.segmented_control(
        "Router", FORMATS, default=FORMATS[0], required=True, key="router", format_func=lambda form: _TITLES[form]
    )
    form = cast(RouterFormat, chosen or FORMATS[0])
    text = served().export_split(demand, form)
    st.download_button(
        "Download", text, file_name=f"wattmix-{form}.yaml", mime="application/yaml", key="router_file",
        icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    st.code(text, language="yaml", height=480)
