"""Which ports are asked, how often, and what is found there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.engine.discovery import Discovery
from collectors.engine.listeners import Holders, is_own_address, listeners
from collectors.engine.scrape import ScrapeError
from collectors.engine.targets import EngineTarget
from tests.collectors.engine.pages import Work, vllm_page
from tests.collectors.engine.proctree import ESTABLISHED, ProcTree
from tests.collectors.engine.servers import server

PAGE = vllm_page("0.32.0", Work())
ANY_4, ANY_6 = "00000000", "0" * 32
LOOPBACK_6 = "00000000000000000000000001000000"
MAPPED_LOOPBACK = "0000000000000000FFFF00000100007F"
ELSEWHERE = "0500000A"  # 10.0.0.5


class Fetcher:
    """Pages by port; a port without one refuses."""

    def __init__(self, **pages: str) -> None:
        self.pages = {int(port.removeprefix("p")): page for port, page in pages.items()}
        self.asked: list[str] = []

    def __call__(self, url: str) -> str:
        self.asked.append(url)
        port = EngineTarget(url=url).port
        if port not in self.pages:
            raise ScrapeError("connection refused")
        return self.pages[port]


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    return ProcTree(tmp_path)


def test_listeners_are_read_from_both_tables(tree: ProcTree) -> None:
    for number, address in enumerate((ANY_4, "0100007F", ELSEWHERE, ANY_6, LOOPBACK_6, MAPPED_LOOPBACK)):
        tree.socket(8000 + number, inode=number, address=address)
    tree.socket(9000, inode=99, state=ESTABLISHED)
    found = listeners(tree.path)
    assert found is not None
    assert [(one.host, one.port, one.inode) for one in found] == [
        ("127.0.0.1", 8000, 0), ("127.0.0.1", 8001, 1), ("10.0.0.5", 8002, 2), ("127.0.0.1", 8003, 3),
        ("[::1]", 8004, 4), ("127.0.0.1", 8005, 5),
    ]  # fmt: skip


def test_a_table_of_another_form_gives_no_port(tree: ProcTree) -> None:
    (tree.path / "net" / "tcp").write_text(
        "head\n 0: zz:1F90 x 0A a b c d e f\n 1: junk\n 0: 0100007F:ZZ x 0A a b c d e 5\n"
    )
    assert listeners(tree.path) == []
    assert listeners(tree.path / "nowhere") is None


def test_a_real_listening_socket_is_found_with_its_process() -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this system has no /proc")
    with server(text=PAGE) as here, only(here.port):
        sighting = Discovery().look(0.0)
    assert sighting.found == (EngineTarget(url=here.url, kind="vllm"),)
    assert os.getpid() in sighting.pids[here.url]
    assert sighting.reason is None


@contextmanager
def only(port: int) -> Iterator[None]:
    """Other services of the machine that runs the test are none of its business."""
    everything = listeners

    def some(proc: Path) -> object:
        return [listener for listener in everything(proc) or [] if listener.port == port]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("collectors.engine.discovery.listeners", some)
        yield


def test_engines_are_recognised_and_others_are_not(tree: ProcTree) -> None:
    fetch = Fetcher(p8000=PAGE, p8001="node_load1 0.5\n", p8002="sglang:num_running_reqs 1\n")
    for port in (8000, 8001, 8002, 8003):
        tree.socket(port, inode=port)
    sighting = Discovery(proc=tree.path, fetch=fetch).look(0.0)
    assert [(one.url, one.kind) for one in sighting.found] == [
        ("http://127.0.0.1:8000/metrics", "vllm"),
        ("http://127.0.0.1:8002/metrics", "sglang"),
    ]


def test_a_port_is_asked_once_a_minute_at_first_and_rarely_later(tree: ProcTree) -> None:
    fetch = Fetcher(p8000=PAGE)
    tree.socket(8000, inode=1)
    tree.socket(9999, inode=2)
    discovery = Discovery(proc=tree.path, fetch=fetch)
    times = {8000: 0, 9999: 0}
    for now_s in range(0, 3600, 10):
        fetch.asked.clear()
        sighting = discovery.look(now_s)
        assert len(sighting.found) == 1
        for url in fetch.asked:
            times[EngineTarget(url=url).port] += 1
    # Ten times in the first ten minutes, then every fifteen minutes: at 600, 1500, 2400 and 3300 s.
    assert times == {8000: 1, 9999: 14}


def test_a_new_socket_is_asked_at_the_next_look_even_on_a_port_that_was_no_engine(tree: ProcTree) -> None:
    fetch = Fetcher()
    tree.socket(8000, inode=1)
    discovery = Discovery(proc=tree.path, fetch=fetch)
    assert discovery.look(0.0).found == ()
    tree.close(1)
    tree.socket(8000, inode=2)
    fetch.pages[8000] = PAGE
    assert len(discovery.look(10.0).found) == 1
    tree.close(2)
    assert discovery.look(20.0).found == ()


def test_the_hub_configured_engines_and_services_of_other_kinds_are_never_asked(tree: ProcTree) -> None:
    fetch = Fetcher(p8000=PAGE, p8501=PAGE, p5432=PAGE, p8502=PAGE)
    for port in (8000, 8501, 8502, 5432, 22):
        tree.socket(port, inode=port, address=ANY_4)
    configured = [EngineTarget(url="http://localhost:8000"), EngineTarget(url="http://no-such-host.invalid:8502")]
    discovery = Discovery(configured, avoid=[("127.0.0.1", 8501)], proc=tree.path, fetch=fetch)
    sighting = discovery.look(0.0)
    # A port of another machine keeps nobody from asking one's own.
    assert fetch.asked == ["http://127.0.0.1:8502/metrics"]
    assert len(sighting.found) == 1


def test_one_port_at_several_addresses_is_one_engine(tree: ProcTree) -> None:
    fetch = Fetcher(p8000=PAGE)
    for inode, address in enumerate((ELSEWHERE, LOOPBACK_6, ANY_4), 1):
        tree.socket(8000, inode=inode, address=address)
    discovery = Discovery(proc=tree.path, fetch=fetch)
    for now_s in (0.0, 70.0):
        assert [one.url for one in discovery.look(now_s).found] == ["http://127.0.0.1:8000/metrics"]


def test_without_probing_only_the_processes_of_configured_engines_are_found(tree: ProcTree) -> None:
    fetch = Fetcher(p8000=PAGE, p8001=PAGE)
    tree.socket(8000, inode=1)
    tree.socket(8001, inode=2)
    tree.process(100, 1, sockets=[1])
    tree.process(101, 100, sockets=[1, 2])
    target = EngineTarget(url="http://127.0.0.1:8000")
    sighting = Discovery([target], probing=False, proc=tree.path, fetch=fetch).look(0.0)
    assert (sighting.found, fetch.asked) == ((), [])
    assert sighting.pids == {target.url: (100, 101)}


def test_the_processes_of_the_very_address_count_where_a_port_has_several(tree: ProcTree) -> None:
    tree.socket(8000, inode=1, address="0100007F")
    tree.socket(8000, inode=2, address="0200007F")
    tree.process(100, 1, sockets=[1])
    tree.process(200, 1, sockets=[2])
    targets = [EngineTarget(url=f"http://127.0.0.{n}:8000") for n in (1, 2)]
    sighting = Discovery(targets, probing=False, proc=tree.path).look(0.0)
    assert list(sighting.pids.values()) == [(100,), (200,)]


def test_holders_are_looked_up_once_and_unknown_ones_again_later(tree: ProcTree) -> None:
    holders = Holders(tree.path, retry_s=60.0)
    assert holders.of({7}, 0.0) == {}
    tree.process(100, 1, sockets=[7])
    assert holders.of({7}, 30.0) == {}
    assert holders.of({7}, 60.0) == {7: (100,)}
    tree.end(100)
    assert holders.of({7}, 61.0) == {7: (100,)}  # a socket that is open is held by whom it was held
    assert holders.of(set(), 62.0) == {}
    assert holders.of({7}, 63.0) == {}


def test_ports_that_hang_are_asked_side_by_side(tree: ProcTree) -> None:
    gate = threading.Barrier(4, timeout=5.0)

    def fetch(url: str) -> str:
        gate.wait()  # passes only when all four are asked at once
        return PAGE

    for port in range(8000, 8004):
        tree.socket(port, inode=port)
    assert len(Discovery(proc=tree.path, fetch=fetch).look(0.0).found) == 4


def test_a_service_that_does_not_answer_costs_no_more_than_its_bound() -> None:
    with server("hang") as here, only(here.port):
        began = time.monotonic()
        assert Discovery().look(0.0).found == ()
        assert time.monotonic() - began < 3.0


def test_own_addresses() -> None:
    assert is_own_address("127.0.0.1")
    assert is_own_address("localhost")
    assert is_own_address("0.0.0.0")
    assert is_own_address(socket.gethostbyname("localhost"))
    assert not is_own_address("192.0.2.1")
    assert not is_own_address("no-such-host.invalid")
