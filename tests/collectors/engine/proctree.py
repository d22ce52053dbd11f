"""A fake /proc: processes with parent, session, title, environment and open sockets, and the table of TCP sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

# sl, local address, remote address, state, queues, timer, retransmits, uid, time-out, inode
_LINE = "   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0 100 0"
_HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
LISTEN, ESTABLISHED = "0A", "01"


class ProcTree:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "proc"
        (self.path / "net").mkdir(parents=True)
        self._tcp: list[str] = []

    def process(
        self,
        pid: int,
        parent: int,
        name: str = "python3",
        *,
        session: int | None = None,
        title: str = "",
        environment: Mapping[str, str] | None = None,
        sockets: Sequence[int] = (),
        began_s: float = 0.0,
    ) -> None:
        """session: its parent's when None. environment: one that may not be read when None. began_s: since boot."""
        folder = self.path / str(pid)
        (folder / "fd").mkdir(parents=True)
        if session is None:
            stat = self.path / str(parent) / "stat"
            session = int(stat.read_text().rpartition(")")[2].split()[3]) if stat.exists() else pid
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {pid} {session}{' 0' * 15} {round(began_s * 100)} 0")
        (folder / "cmdline").write_text(title or f"{name}\0-m\0serve")
        if environment is not None:
            (folder / "environ").write_text("".join(f"{key}={value}\0" for key, value in environment.items()))
        (folder / "fd" / "0").symlink_to("/dev/null")
        for number, inode in enumerate(sockets, 3):
            (folder / "fd" / str(number)).symlink_to(f"socket:[{inode}]")

    def end(self, pid: int) -> None:
        folder = self.path / str(pid)
        for file in [*(folder / "fd").iterdir(), *(file for file in folder.iterdir() if file.name != "fd")]:
            file.unlink()
        (folder / "fd").rmdir()
        folder.rmdir()

    def socket(self, port: int, inode: int, address: str = "0100007F", state: str = LISTEN) -> None:
        """address: as the kernel prints it, 127.0.0.1 if not given."""
        self._tcp.append(_LINE.format(address=f"{address}:{port:04X}", state=state, inode=inode))
        self._write()

    def close(self, inode: int) -> None:
        self._tcp = [line for line in self._tcp if f" {inode} 1 " not in line]
        self._write()

    def _write(self) -> None:
        for name, width in (("tcp", 8), ("tcp6", 32)):
            lines = [line for line in self._tcp if len(line.split()[1].partition(":")[0]) == width]
            (self.path / "net" / name).write_text("\n".join([_HEAD, *lines, ""]))
