"""Energy of processors and memory from Linux's powercap files (RAPL), as millijoules since the last reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")

# No socket draws more: a larger difference is a reset counter (suspend, driver reload) and no wrap-around.
_MAX_DOMAIN_W = 2_000
# Counters wrap after about 262 kJ: in a longer pause they may have done so more than once.
_MAX_PAUSE_S = 60.0

_UNREADABLE = (
    "only root may read RAPL energy: run the agent as root, or once per boot `chmod a+r {glob}`; until then the host's"
    " energy is left out"
)
_ABSENT = (
    "this system shows no RAPL energy counters ({root} has no intel-rapl): usual in virtual machines and on ARM; on"
    " bare metal load the kernel module intel_rapl_msr, in a container mount that folder read-only"
)
_NO_DRAM = "this processor has no counter for its memory's energy: usual on desktop and AMD processors"


@dataclass
class _Domain:
    """A counter: energy_uj in `folder`, which wraps to 0 after `range_uj`."""

    folder: Path
    range_uj: int
    last_uj: int | None = None


@dataclass
class _Kind:
    """The counters that add up to one figure, and what is left of the last one below a millijoule."""

    domains: list[_Domain] = field(default_factory=list)
    rest_uj: int = 0


class Rapl:
    """Reads the package and DRAM counters below `root`. `missing` says in words why a figure is None."""

    def __init__(self, root: Path = POWERCAP) -> None:
        self._root = root
        self._cpu, self._dram = _Kind(), _Kind()
        self.missing: dict[str, str] = {}
        self._find()

    def read(self, pause_s: float) -> tuple[int | None, int | None]:
        """(processor mJ, memory mJ) since the last reading, `pause_s` seconds ago; None where unknown.

        The first reading gives (None, None): there is nothing to compare with.
        """
        return self._read(self._cpu, "cpu_energy_mj", pause_s), self._read(self._dram, "dram_energy_mj", pause_s)

    def _find(self) -> None:
        # intel-rapl:0 is a package (AMD's too), intel-rapl:0:1 a part of it; intel-rapl-mmio repeats the packages.
        for folder in sorted(self._root.glob("intel-rapl:*")):
            try:
                name = (folder / "name").read_text(encoding="ascii").strip()
                range_uj = int((folder / "max_energy_range_uj").read_text(encoding="ascii"))
            except (OSError, ValueError):
                continue
            kind = self._cpu if name.startswith("package") else self._dram if name == "dram" else None
            if kind is not None:
                kind.domains.append(_Domain(folder, range_uj))
        if not self._cpu.domains:
            self.missing["cpu_energy_mj"] = self.missing["dram_energy_mj"] = _ABSENT.format(root=self._root)
        elif not self._dram.domains:
            self.missing["dram_energy_mj"] = _NO_DRAM

    def _read(self, kind: _Kind, name: str, pause_s: float) -> int | None:
        """Sum over the counters, or None: a sum that lacks a socket would look like a smaller machine."""
        if not kind.domains:
            return None
        try:
            parts = [_difference_uj(domain, pause_s) for domain in kind.domains]
        except PermissionError:
            self.missing[name] = _UNREADABLE.format(glob=self._root / "intel-rapl:*" / "energy_uj")
            return None
        except (OSError, ValueError) as problem:
            self.missing[name] = f"a RAPL counter cannot be read: {problem}"
            return None
        self.missing.pop(name, None)
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        energy_mj, kind.rest_uj = divmod(sum(known) + kind.rest_uj, 1000)
        return energy_mj


def _difference_uj(domain: _Domain, pause_s: float) -> int | None:
    now_uj = int((domain.folder / "energy_uj").read_text(encoding="ascii"))
    before_uj, domain.last_uj = domain.last_uj, now_uj
    if before_uj is None or pause_s > _MAX_PAUSE_S:
        return None
    wrapped_uj = domain.range_uj if now_uj < before_uj else 0
    difference_uj = now_uj - before_uj + wrapped_uj
    return difference_uj if 0 <= difference_uj <= _MAX_DOMAIN_W * max(pause_s, 0.1) * 1e6 else None
