"""The Streamlit dashboard. A page reads its filters from the URL, calls one function and draws."""

from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "main.py"


def theme_file() -> Path:
    """.streamlit/config.toml: beside this package in a wheel, at the root of a checkout."""
    beside = SCRIPT.parent / ".streamlit" / "config.toml"
    return beside if beside.is_file() else SCRIPT.parent.parent.parent / ".streamlit" / "config.toml"
