"""What an address may be, and how much of it is shown."""

from __future__ import annotations

import pytest

from collectors.http.address import checked_base_url, origin


@pytest.mark.parametrize(
    "url",
    [
        "https://me:planted@host", "https://host/v4?token=planted", "https://host/#planted", "ftp://host", "host", "",
        "http://host:99999", "http://ho st", "http://hö.example",
    ],
)  # fmt: skip
def test_a_base_url_that_could_hold_a_key_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match="base_url is http") as raised:
        checked_base_url(url)
    assert "planted" not in str(raised.value)
    assert checked_base_url("http://[::1]:8080/v3/") == "http://[::1]:8080/v3"


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://host:8443/v4?token=planted", "https://host:8443"), ("http://me:planted@[::1]/x", "http://[::1]")],
)
def test_only_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    assert origin(url) == shown
