"""Which TCP ports this node listens on, and which processes listen (Linux: /proc)."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROC = Path("/proc")
_LISTENS = "0A"


@dataclass(frozen=True)
class Listener:
    """A listening socket. address: as bound; inode: names the socket while it exists."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    inode: int

    @property
    def host(self) -> str:
        """Where to reach it from this node: the loopback address if it listens everywhere."""
        address = self.address
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if address.is_unspecified:
            return "127.0.0.1"
        return str(address) if address.version == 4 else f"[{address}]"


def listeners(proc: Path = PROC) -> list[Listener] | None:
    """Every listening TCP socket of this network namespace; None where the system does not tell."""
    found: list[Listener] = []
    told = False
    for name in ("tcp", "tcp6"):
        try:
            text = (proc / "net" / name).read_text(encoding="ascii")
        except (OSError, ValueError):
            continue
        told = True
        found += _listening(text)
    return found if told else None


def _listening(text: str) -> Iterator[Listener]:
    for line in text.splitlines()[1:]:
        fields = line.split(maxsplit=10)
        if len(fields) < 10 or fields[3] != _LISTENS:
            continue
        address, _, port = fields[1].partition(":")
        try:
            yield Listener(_address(address), int(port, 16), int(fields[9]))
        except ValueError:
            continue  # a line of another form tells of no port


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The kernel prints the 32-bit words of an address as numbers of this machine's byte order."""
    words = [int(text[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(text), 8)]
    return ipaddress.ip_address(b"".join(words))


class Holders:
    """Which processes hold a socket. Finding out reads every process's open files, so it is done once per socket.

    A socket of which no process may be seen (another user's) is tried again every `retry_s`.
    """

    def __init__(self, proc: Path = PROC, retry_s: float = 60.0) -> None:
        self._proc = proc
        self._retry_s = retry_s
        self._pids: dict[int, tuple[int, ...]] = {}
        self._tried_s: dict[int, float] = {}

    def of(self, inodes: Collection[int], now_s: float) -> dict[int, tuple[int, ...]]:
        """Inode -> pids, ascending; a socket whose process is not known is absent. now_s: of a clock never set."""
        self._pids = {inode: pids for inode, pids in self._pids.items() if inode in inodes}
        self._tried_s = {inode: at for inode, at in self._tried_s.items() if inode in inodes}
        due = {
            inode for inode in inodes
            if inode not in self._pids and now_s - self._tried_s.get(inode, -self._retry_s) >= self._retry_s
        }  # fmt: skip
        if due:
            self._tried_s |= dict.fromkeys(due, now_s)
            self._pids |= _pids_of(due, self._proc)
        return self._pids


def _pids_of(wanted: set[int], proc: Path) -> dict[int, tuple[int, ...]]:
    links = {f"socket:[{inode}]": inode for inode in wanted}
    found: dict[int, set[int]] = {}
    for folder in proc.iterdir():
        if folder.name.isdecimal():
            for inode in _held(folder / "fd", links):
                found.setdefault(inode, set()).add(int(folder.name))
    return {inode: tuple(sorted(pids)) for inode, pids in found.items()}


def _held(folder: Path, links: Mapping[str, int]) -> Iterator[int]:
    try:
        files = list(folder.iterdir())
    except OSError:
        return  # the process has gone, or is another user's
    for file in files:
        with suppress(OSError):  # closed meanwhile
            inode = links.get(str(file.readlink()))
            if inode is not None:
                yield inode


def is_own_address(host: str) -> bool:
    """Whether `host` is this machine: only an own address can be bound to."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return False
    return any(_can_bind(family, address) for family, _, _, _, address in found)


def _can_bind(family: int, address: tuple[Any, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True
