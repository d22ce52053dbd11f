"""Finds the engines of this node: asks each listening TCP port for a metrics page that looks like an engine's."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from collectors.engine import page
from collectors.engine.listeners import PROC, Holders, Listener, is_own_address, listeners
from collectors.engine.scrape import Bounds, ScrapeError, fetch_page
from collectors.engine.targets import DEFAULT_PATH, EngineTarget

# A server may answer late while it loads a model: a port that is no engine is asked again, often at first.
PROBE_EVERY_S = 60.0
PROBE_RARELY_S = 900.0
YOUNG_S = 600.0
OWN_ADDRESS_S = 300.0
PROBES_AT_ONCE = 8
PROBE = Bounds(connect_s=0.5, total_s=2.0)
# Well-known services that speak no HTTP and log whatever else they hear.
NEVER_ASKED = frozenset({21, 22, 23, 25, 53, 88, 110, 111, 139, 143, 389, 445, 587, 636, 873, 993, 995, 2049, 2181,
                         3306, 5432, 5672, 6379, 6380, 9092, 11211, 27017})  # fmt: skip


@dataclass(frozen=True)
class Sighting:
    """What one look at the node's ports gave.

    found: engines that were recognised and still listen. pids: URL, of those and of the configured ones, -> the
    processes that listen; absent where that is not known. reason: why the ports cannot be told at all.
    """

    found: tuple[EngineTarget, ...] = ()
    pids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    reason: str | None = None


@dataclass
class _Socket:
    since_s: float
    next_s: float
    found: EngineTarget | None = None


class Discovery:
    """Looks at the ports of this node. Not thread-safe; a look takes as long as the ports that hang.

    configured: engines that are read anyway: their ports are not asked. avoid: other addresses not to ask, such as
    the hub's. probing: False to only find the processes of the configured engines. proc, fetch: for tests.
    """

    def __init__(
        self,
        configured: Sequence[EngineTarget] = (),
        *,
        avoid: Collection[tuple[str, int]] = (),
        probing: bool = True,
        proc: Path = PROC,
        fetch: Callable[[str], str] = lambda url: fetch_page(url, PROBE),
    ) -> None:
        self._configured = configured
        self._avoid = avoid
        self._probing = probing
        self._proc = proc
        self._fetch = fetch
        self._sockets: dict[int, _Socket] = {}
        self._holders = Holders(proc)
        self._own: dict[str, tuple[bool, float]] = {}

    def look(self, now_s: float) -> Sighting:
        """Ask the ports that are due. now_s: seconds by a clock that is never set."""
        table = listeners(self._proc)
        if table is None:
            remedy = "name engines in the configuration, with their GPUs"
            return Sighting(reason=f"{platform.system()} does not tell here which ports are listened on: {remedy}")
        configured = [target for target in self._configured if self._is_own(target.host, now_s)]
        if self._probing:
            avoided = {port for host, port in self._avoid if self._is_own(host, now_s)}
            self._probe(table, NEVER_ASKED | avoided | {target.port for target in configured}, now_s)
        found = tuple(socket.found for socket in self._sockets.values() if socket.found is not None)
        return Sighting(found, self._pids([*configured, *found], table, now_s))

    def _probe(self, table: Sequence[Listener], taken: AbstractSet[int], now_s: float) -> None:
        alive = {listener.inode for listener in table}
        self._sockets = {inode: socket for inode, socket in self._sockets.items() if inode in alive}
        taken = taken | {socket.found.port for socket in self._sockets.values() if socket.found is not None}
        due: list[Listener] = []
        # Of a port that is listened on at several addresses, the address of this machine alone comes first.
        for listener in sorted(table, key=lambda listener: (listener.port, listener.host != "127.0.0.1")):
            socket = self._sockets.setdefault(listener.inode, _Socket(now_s, now_s))
            if listener.port not in taken and now_s >= socket.next_s:
                socket.next_s = now_s + (PROBE_EVERY_S if now_s - socket.since_s < YOUNG_S else PROBE_RARELY_S)
                due.append(listener)
        if not due:
            return
        with ThreadPoolExecutor(PROBES_AT_ONCE, thread_name_prefix="probe") as probes:
            for listener, found in zip(due, probes.map(self._recognised, due), strict=True):
                if found is not None and listener.port not in taken:
                    self._sockets[listener.inode].found = found
                    taken |= {listener.port}

    def _recognised(self, listener: Listener) -> EngineTarget | None:
        url = f"http://{listener.host}:{listener.port}{DEFAULT_PATH}"
        try:
            kind = page.recognise(self._fetch(url))
        except ScrapeError:
            return None  # no metrics page: some other service
        return None if kind is None else EngineTarget(url=url, kind=kind)

    def _pids(
        self, targets: Sequence[EngineTarget], table: Sequence[Listener], now_s: float
    ) -> dict[str, tuple[int, ...]]:
        inodes = {target.url: _inodes(target, table) for target in targets}
        holders = self._holders.of({inode for some in inodes.values() for inode in some}, now_s)
        pids = {url: {pid for inode in some for pid in holders.get(inode, ())} for url, some in inodes.items()}
        return {url: tuple(sorted(some)) for url, some in pids.items() if some}

    def _is_own(self, host: str, now_s: float) -> bool:
        own, until_s = self._own.get(host, (False, now_s))
        if now_s >= until_s:
            own = is_own_address(host)
            self._own[host] = (own, now_s + OWN_ADDRESS_S)
        return own


def _inodes(target: EngineTarget, table: Sequence[Listener]) -> list[int]:
    """The sockets behind a page: those of its very address, else all of its port."""
    same_port = [listener for listener in table if listener.port == target.port]
    exact = [listener for listener in same_port if listener.host.strip("[]") == target.host]
    return [listener.inode for listener in exact or same_port]
