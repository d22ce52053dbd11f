"""The node around its GPUs, read from files as Linux has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collectors import host as host_module
from collectors.host import Host, HostReading, name_warning, node_id
from collectors.own_usage import OwnUsage
from collectors.rapl import Rapl

MEMINFO = "MemTotal:       16384 kB\nMemFree:         1000 kB\nMemAvailable:    4096 kB\nHugePages_Total:       0\n"


def domain(root: Path, folder: str, name: str, energy_uj: int, range_uj: int = 262_143_328_850) -> Path:
    place = root / folder
    place.mkdir(parents=True)
    (place / "name").write_text(f"{name}\n")
    (place / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (place / "energy_uj").write_text(f"{energy_uj}\n")
    return place / "energy_uj"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    root = tmp_path / "proc"
    (root / "sys/kernel/random").mkdir(parents=True)
    (root / "sys/kernel/random/boot_id").write_text("3c0c4f2e-8d0a\n")
    (root / "meminfo").write_text(MEMINFO)
    (root / "loadavg").write_text("1.25 0.50 0.10 1/200 4711\n")
    return root


def test_two_sockets_with_memory_add_up(tmp_path: Path):
    root = tmp_path / "powercap"
    package_0 = domain(root, "intel-rapl:0", "package-0", 1_000_000)
    package_1 = domain(root, "intel-rapl:1", "package-1", 5_000_000)
    dram = domain(root, "intel-rapl:0:1", "dram", 0)
    domain(root, "intel-rapl:0:0", "core", 0)
    domain(root, "intel-rapl:2", "psys", 0)
    mmio = domain(root, "intel-rapl-mmio:0", "package-0", 0)  # the same socket once more
    rapl = Rapl(root)
    assert rapl.read(1.0) == (None, None)
    package_0.write_text("121_000_999".replace("_", ""))
    package_1.write_text("85000000")
    dram.write_text("9000000")
    mmio.write_text("120000000")
    assert rapl.read(1.0) == (200_000, 9_000)
    package_0.write_text("121001000")
    assert rapl.read(1.0) == (1, 0)  # what was left below a millijoule is not lost
    assert rapl.missing == {}


def test_a_wrap_around_is_bridged_and_a_reset_is_not(tmp_path: Path):
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 262_143_000_000)
    rapl = Rapl(tmp_path)
    rapl.read(1.0)
    counter.write_text("99671150")
    assert rapl.read(1.0)[0] == 100_000  # 328.85 mJ x 1000 to the end of the range, and the rest
    counter.write_text("5000000")
    assert rapl.read(1.0)[0] is None  # a wrap-around would have been 262 kJ in a second
    counter.write_text("65000000")
    assert rapl.read(1.0)[0] == 60_000


def test_a_long_pause_may_hide_a_wrap_around(tmp_path: Path):
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    rapl = Rapl(tmp_path)
    rapl.read(1.0)
    counter.write_text("1000000")
    assert rapl.read(3600.0)[0] is None


def test_a_desktop_has_no_memory_counter_and_says_so(tmp_path: Path):
    domain(tmp_path, "intel-rapl:0", "package-0", 0)
    assert list(Rapl(tmp_path).missing) == ["dram_energy_mj"]


def test_no_counters_at_all_is_a_reason_with_a_remedy(tmp_path: Path):
    rapl = Rapl(tmp_path / "absent")
    assert rapl.read(1.0) == (None, None)
    assert "intel_rapl_msr" in rapl.missing["cpu_energy_mj"]
    assert "virtual machines" in rapl.missing["dram_energy_mj"]


def test_what_only_root_may_read_is_a_reason_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    read_text = Path.read_text
    denied = True

    def guarded(path: Path, *args: str, **options: str) -> str:
        if denied and path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read_text(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", guarded)
    rapl = Rapl(tmp_path)
    assert rapl.read(1.0) == (None, None)
    assert "only root may read" in rapl.missing["cpu_energy_mj"]
    assert f"chmod a+r {tmp_path}/intel-rapl:*/energy_uj" in rapl.missing["cpu_energy_mj"]
    denied = False
    rapl.read(1.0)
    counter.write_text("5000000")
    assert rapl.read(1.0)[0] == 5000
    assert "cpu_energy_mj" not in rapl.missing


@pytest.mark.parametrize("content", ["", "garbage", "12.5"])
def test_nonsense_in_a_counter_is_missing_with_a_reason(tmp_path: Path, content: str):
    counter = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    rapl = Rapl(tmp_path)
    rapl.read(1.0)
    counter.write_text(content)
    assert rapl.read(1.0)[0] is None
    assert "cannot be read" in rapl.missing["cpu_energy_mj"]


def test_one_unreadable_socket_makes_the_sum_unknown(tmp_path: Path):
    first = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    second = domain(tmp_path, "intel-rapl:1", "package-1", 0)
    rapl = Rapl(tmp_path)
    rapl.read(1.0)
    first.write_text("1000000")
    second.unlink()
    assert rapl.read(1.0)[0] is None


def test_memory_and_load_of_a_node(proc: Path, tmp_path: Path):
    host = Host(powercap=tmp_path / "none", proc=proc)
    assert host.read(0.0) == HostReading(None, None, 12288 * 1024, 16384 * 1024, 1250)
    assert set(host.missing) == {"cpu_energy_mj", "dram_energy_mj"}
    assert host.boot_id() == "3c0c4f2e-8d0a"


def test_a_system_without_proc_says_what_is_missing(tmp_path: Path):
    host = Host(powercap=tmp_path / "none", proc=tmp_path / "none")
    assert host.read(0.0) == HostReading(None, None, None, None, None)
    assert {"memory_used_bytes", "memory_total_bytes", "load_1m_milli"} < set(host.missing)
    assert host.boot_id() is None


def test_an_old_kernel_does_not_tell_what_is_available(proc: Path, tmp_path: Path):
    (proc / "meminfo").write_text("MemTotal:       16384 kB\n")
    host = Host(powercap=tmp_path / "none", proc=proc)
    reading = host.read(0.0)
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (None, 16384 * 1024)
    assert "memory_used_bytes" in host.missing
    (proc / "meminfo").write_text(MEMINFO)
    host.read(0.0)
    assert "memory_used_bytes" not in host.missing


def test_the_name_is_the_configured_one_or_the_hosts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-box")
    assert node_id("rack-3") == "rack-3"
    assert node_id(None) == "gpu-box"
    monkeypatch.setattr("socket.gethostname", lambda: "")
    assert node_id() == "unnamed"


def test_a_container_without_a_configured_name_is_warned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    mark = tmp_path / ".dockerenv"
    monkeypatch.setattr(host_module, "_CONTAINER_MARKS", (mark,))
    assert name_warning(None) is None
    mark.touch()
    assert "configure node_id" in str(name_warning(None))
    assert name_warning("rack-3") is None


def test_this_process_costs_something(tmp_path: Path):
    usage = OwnUsage()
    sum(number * number for number in range(2_000_000))
    assert 20 <= usage.cpu_ms() <= 20_000
    assert usage.cpu_ms() < 1000  # since the call before
    if Path("/proc/self/statm").exists():
        assert (usage.memory_bytes() or 0) > 10_000_000
    assert OwnUsage(tmp_path).memory_bytes() is None


def test_a_child_counts_with_its_time_and_memory(tmp_path: Path):
    (tmp_path / "self/task/1").mkdir(parents=True)
    (tmp_path / "self/task/1/children").write_text("77 ")
    for pid, pages in ((os.getpid(), 10), (77, 5)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "statm").write_text(f"100 {pages} 3 1 0 50 0\n")
    (tmp_path / "77/stat").write_text("77 (a) name) S 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 1 0 5 0 0\n")
    usage = OwnUsage(tmp_path)
    assert usage.memory_bytes() == 15 * os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "77/stat").write_text("77 (a) name) S 1 1 1 0 -1 0 0 0 0 0 200 150 0 0 20 0 1 0 5 0 0\n")
    assert usage.cpu_ms() >= 200 * 1000 // os.sysconf("SC_CLK_TCK")
