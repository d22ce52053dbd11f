"""Addresses of providers: what one may be, and how much of it is shown."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked_base_url(url: str) -> str:
    """`url` without a slash at its end. Raises ValueError, without the address, for what is none."""
    accepted = "base_url is http(s)://host[:port][/path], without user, password, query or fragment"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(accepted) from None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not plain or parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError(accepted)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(accepted)
    return url.rstrip("/")


def origin(url: str) -> str:
    """Scheme, host and port: all of an address that is ever shown."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
