"""Starts and stops the hub: store, dashboard and API in one process, one event loop, one uvicorn worker."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import ipaddress
import os
import signal
import socket
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st
import uvicorn
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.web import bootstrap

from app.backend.served import serve_from
from app.config import Config
from app.dashboard import SCRIPT, theme_file
from app.errors import HubError
from app.hub.api import Api
from app.hub.parts import HubParts
from app.store.database import Store
from app.store.hub_file import HubFile, remove_hub_file, write_hub_file

GRACEFUL_STOP_S = 3
OUR_PATHS = ("/api/", "/healthz", "/metrics")
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  read from the settings, not bound to here


def run_hub(
    store: Store, config: Config, host: str, port: int, *, insecure: bool, on_ready: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then stop cleanly and close the store.

    on_ready gets the address once connections are accepted. Raises HubError when the address cannot be used.
    """
    listener = listen(host, port, insecure=insecure)
    address = f"http://{_bracketed(host)}:{listener.getsockname()[1]}"
    parts = HubParts(store, config)
    sockets, near = [listener], address
    if parts.scraper is not None:
        sockets, near = reached_from_here(host, listener)

    def started() -> None:
        parts.on_listening(near)
        on_ready(address)

    serve_from(parts.backend)
    write_hub_file(store.path, HubFile(os.getpid(), address))
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(_app(parts.api, host, port), sockets, started))
    finally:
        remove_hub_file(store.path)
        serve_from(None)
        parts.close()
        store.close()


def listen(host: str, port: int, *, insecure: bool) -> socket.socket:
    """A listening socket. Raises HubError when the port is taken, or for a wide bind without --insecure."""
    if not insecure and not _is_loopback(host):
        raise HubError(
            f"{host} can be reached from other machines, and the hub has no login configured. "
            "Use 127.0.0.1, or add --insecure if the network is trusted."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as problem:
        listener.close()
        raise HubError(f"cannot listen on {host}:{port}: {problem.strerror}. Choose another with --port.") from None
    return listener


def reached_from_here(host: str, listener: socket.socket) -> tuple[list[socket.socket], str]:
    """The sockets to serve, and an address at which the hub sees its own requests come from loopback: no token needed.

    A hub that listens on one outer address alone gets a second socket for that.
    """
    port = listener.getsockname()[1]
    if _is_loopback(host):
        return [listener], f"http://{_bracketed(host)}:{port}"
    if host in _EVERYWHERE:
        return [listener], f"http://{_EVERYWHERE[host]}:{port}"
    inner = listen("127.0.0.1", 0, insecure=False)
    return [listener, inner], f"http://127.0.0.1:{inner.getsockname()[1]}"


def _app(api: Api, host: str, port: int) -> ASGIApp:
    """The ASGI application. The theme is read from its file here, so it does not depend on the working folder."""
    flags: dict[str, Any] = dict(_flat(tomllib.loads(theme_file().read_text(encoding="utf-8"))))
    flags |= {"server.address": host, "server.port": port}
    bootstrap.load_config_options(flags)
    return _Front(st.App(SCRIPT), Router(api.routes()))


class _Front:
    """Sends our own paths to our routes, past the dashboard's middleware, and everything else to Streamlit."""

    def __init__(self, dashboard: ASGIApp, routes: ASGIApp) -> None:
        self._dashboard = dashboard
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"].startswith(OUR_PATHS)
        await (self._routes if ours else self._dashboard)(scope, receive, send)


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


async def _serve(app: ASGIApp, sockets: list[socket.socket], on_ready: Callable[[], None]) -> None:
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, workers=1, timeout_graceful_shutdown=GRACEFUL_STOP_S, lifespan="on"
    )
    server = _Server(config, on_ready)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    await server.serve(sockets=sockets)
    if not server.started:
        raise HubError("the hub did not start; the lines above say why")


class _Server(uvicorn.Server):
    """uvicorn that says when it is ready, and for which a signal is a clean end (uvicorn's own re-raises it)."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """First signal: finish what is running. Second: now."""
        self.force_exit = self.should_exit
        self.should_exit = True


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, which serves small requests about twice as fast; None where there is no uvloop (Windows)."""
    if importlib.util.find_spec("uvloop") is None:
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
