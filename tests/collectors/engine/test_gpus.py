"""Which GPUs an engine runs on: by configuration, processes, environment; and never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from collectors.engine.environment import NotTold, visible_gpus
from collectors.engine.gpus import Placement, Served, place
from collectors.samples import Gpu
from tests.collectors.engine.proctree import ProcTree

URL, OTHER = "http://127.0.0.1:8000/metrics", "http://127.0.0.1:8001/metrics"
UUIDS = [f"0000{n}-aaaa" for n in range(8)]
GPUS = [Gpu(uuid=uuid, name="NVIDIA L40S", index=n) for n, uuid in enumerate(UUIDS)]
HIDDEN = {"CUDA_VISIBLE_DEVICES": "0"}


@pytest.fixture
def tree(tmp_path: Path) -> ProcTree:
    made = ProcTree(tmp_path)
    made.process(2, 1, "systemd")
    return made


def page(url: str = URL, *labels: str, pids: tuple[int, ...] = (), configured: tuple[str, ...] | None = None) -> Served:
    return Served(url, labels or ("",), configured, pids)


def where(tree: ProcTree, pages: list[Served], seen: Mapping[int, list[str]]) -> dict[tuple[str, str], Placement]:
    return place(pages, GPUS, seen, tree.path)


def one(tree: ProcTree, served: Served, seen: Mapping[int, list[str]]) -> Placement:
    return where(tree, [served], seen)[URL, served.labels[0]]


def test_the_configuration_comes_first_by_uuid_or_index(tree: ProcTree) -> None:
    tree.process(100, 2)
    served = page(pids=(100,), configured=(UUIDS[3], "1", "007"))
    assert one(tree, served, {100: [UUIDS[0]]}) == Placement((UUIDS[3], UUIDS[1], UUIDS[7]), "config")
    assert one(tree, page(configured=()), {}) == Placement((), "config")


def test_a_configured_index_that_is_not_there_is_told(tree: ProcTree) -> None:
    found = one(tree, page(configured=("0", "8")), {})
    assert (found.gpus, found.source) == (None, None)
    assert found.reason == "the configuration names GPU 8, which this node does not have"


def test_configured_gpus_are_dealt_to_data_parallel_engines_in_equal_parts_in_their_order(tree: ProcTree) -> None:
    labels = ("10", "2", "0", "1")
    found = where(tree, [page(URL, *labels, configured=tuple(UUIDS))], {})
    assert {label: found[URL, label].gpus for label in labels} == {
        "0": (UUIDS[0], UUIDS[1]), "1": (UUIDS[2], UUIDS[3]), "2": (UUIDS[4], UUIDS[5]), "10": (UUIDS[6], UUIDS[7]),
    }  # fmt: skip
    uneven = where(tree, [page(URL, "0", "1", configured=("0", "1", "2"))], {})
    assert uneven[URL, "0"] == Placement(None, None, "2 engines cannot share 3 configured GPUs equally")


def test_vllms_workers_are_found_below_its_api_server(tree: ProcTree) -> None:
    # 100 listens; 101 is its EngineCore; 102 and 103 are workers. 200 is somebody's training.
    tree.process(100, 2, "vllm")
    tree.process(101, 100, "VLLM::EngineCor", title="VLLM::EngineCore")
    tree.process(102, 101, "VLLM::Worker_TP", title="VLLM::Worker_TP0")
    tree.process(103, 101, "VLLM::Worker_TP", title="VLLM::Worker_TP1")
    tree.process(200, 2)
    seen = {102: [UUIDS[4]], 103: [UUIDS[5]], 200: [UUIDS[0]]}
    assert one(tree, page(pids=(100,)), seen) == Placement((UUIDS[4], UUIDS[5]), "processes")


def test_a_process_that_listens_and_computes_itself_is_found(tree: ProcTree) -> None:
    tree.process(100, 2, "llama-server")
    assert one(tree, page(pids=(100,)), {100: [UUIDS[2]]}).gpus == (UUIDS[2],)


def test_two_engines_of_one_script_keep_their_own(tree: ProcTree) -> None:
    tree.process(50, 2, "bash", session=50)
    for api, worker in ((100, 101), (110, 111)):
        tree.process(api, 50)
        tree.process(worker, api)
    pages = [page(URL, pids=(100,)), page(OTHER, pids=(110,))]
    found = where(tree, pages, {101: [UUIDS[0]], 111: [UUIDS[1]]})
    assert (found[URL, ""].gpus, found[OTHER, ""].gpus) == ((UUIDS[0],), (UUIDS[1],))


def test_an_engine_that_has_no_gpu_yet_does_not_get_its_neighbours(tree: ProcTree) -> None:
    tree.process(50, 2, "bash", session=50)
    tree.process(100, 50, environment={})
    tree.process(110, 50)
    tree.process(120, 50, "train")
    pages = [page(URL, pids=(100,)), page(OTHER, pids=(110,))]
    found = where(tree, pages, {110: [UUIDS[1]], 120: [UUIDS[2]]})
    assert found[URL, ""].gpus is None
    assert "none of the processes on GPUs is its (process 100, python3)" in str(found[URL, ""].reason)


def test_an_engine_started_by_another_keeps_its_own(tree: ProcTree) -> None:
    tree.process(100, 2)
    tree.process(110, 100)
    tree.process(111, 110)
    pages = [page(URL, pids=(100,)), page(OTHER, pids=(110,))]
    found = where(tree, pages, {100: [UUIDS[0]], 111: [UUIDS[1]]})
    assert (found[URL, ""].gpus, found[OTHER, ""].gpus) == ((UUIDS[0],), (UUIDS[1],))


def test_what_a_launcher_started_beside_the_listener_is_found(tree: ProcTree) -> None:
    # As with TGI: 100 the launcher, 101 the router that listens, 102 and 103 the shards.
    tree.process(100, 2, "text-generation", session=100)
    tree.process(101, 100, "text-generation")
    tree.process(102, 100)
    tree.process(103, 100)
    seen = {102: [UUIDS[0]], 103: [UUIDS[1]]}
    assert one(tree, page(pids=(101,)), seen).gpus == (UUIDS[0], UUIDS[1])


@pytest.mark.parametrize("launcher", ["bash", "systemd", "sh", "tmux: server"])
def test_a_shell_is_no_launcher(tree: ProcTree, launcher: str) -> None:
    tree.process(100, 2, launcher, session=100)
    tree.process(101, 100, environment={})
    tree.process(102, 100)
    assert one(tree, page(pids=(101,)), {102: [UUIDS[0]]}).gpus is None


def test_a_launcher_of_another_session_or_of_two_engines_is_none(tree: ProcTree) -> None:
    tree.process(100, 2, "supervise", session=100)
    tree.process(101, 100, session=101, environment={})
    tree.process(102, 100)
    assert one(tree, page(pids=(101,)), {102: [UUIDS[0]]}).gpus is None
    tree.process(200, 2, "start", session=200)
    tree.process(201, 200, environment={})
    tree.process(202, 200, environment={})
    tree.process(203, 200)
    found = where(tree, [page(URL, pids=(201,)), page(OTHER, pids=(202,))], {203: [UUIDS[0]]})
    assert (found[URL, ""].gpus, found[OTHER, ""].gpus) == (None, None)


def data_parallel(tree: ProcTree, titles: Mapping[int, str]) -> None:
    """100 started the API servers 101 and 102, which share its socket, and the engines."""
    tree.process(100, 2, "vllm", session=100)
    tree.process(101, 100)
    tree.process(102, 100)
    for pid, title in titles.items():
        tree.process(pid, 100, "VLLM::EngineCor", title=title)


def test_data_parallel_engines_are_told_apart_by_the_names_of_their_processes(tree: ProcTree) -> None:
    data_parallel(tree, {103: "VLLM::EngineCore_DP0", 104: "VLLM::EngineCore_DP1"})
    tree.process(105, 104, title="VLLM::Worker_DP1_TP0")
    tree.process(106, 104, title="VLLM::Worker_TP1")  # the nearest name with a rank counts
    seen = {103: [UUIDS[0]], 105: [UUIDS[2]], 106: [UUIDS[3]]}
    found = where(tree, [page(URL, "0", "1", pids=(100, 101, 102))], seen)
    assert found[URL, "0"] == Placement((UUIDS[0],), "processes")
    assert found[URL, "1"] == Placement((UUIDS[2], UUIDS[3]), "processes")


def test_data_parallel_engines_that_cannot_be_told_apart_are_unknown(tree: ProcTree) -> None:
    data_parallel(tree, {103: "python -m serve", 104: "python -m serve"})
    found = where(tree, [page(URL, "0", "1", pids=(100, 101, 102))], {103: [UUIDS[0]], 104: [UUIDS[1]]})
    assert {placement.gpus for placement in found.values()} == {None}
    assert "2 engines' processes cannot be told apart" in str(found[URL, "0"].reason)


def test_an_engine_of_several_that_is_not_on_a_gpu_yet_is_unknown_by_itself(tree: ProcTree) -> None:
    data_parallel(tree, {103: "VLLM::EngineCore_DP0", 104: "VLLM::EngineCore_DP1"})
    found = where(tree, [page(URL, "0", "1", pids=(100,))], {103: [UUIDS[0]]})
    assert found[URL, "0"].gpus == (UUIDS[0],)
    assert found[URL, "1"] == Placement(None, None, "the driver shows no process of this engine yet")


def test_the_environment_comes_last_and_only_for_one_engine(tree: ProcTree) -> None:
    tree.process(100, 2, environment={"CUDA_VISIBLE_DEVICES": "2,1"})
    assert one(tree, page(pids=(100,)), {}) == Placement((UUIDS[2], UUIDS[1]), "environment")
    found = where(tree, [page(URL, "0", "1", pids=(100,))], {})
    assert found[URL, "0"].gpus is None
    assert "does not tell 2 engines apart" in str(found[URL, "0"].reason)


def test_a_listener_that_cannot_be_seen_or_read_is_told_with_what_to_do(tree: ProcTree) -> None:
    assert "run the agent beside it as root" in str(one(tree, page(), {}).reason)
    tree.process(100, 2, "docker-proxy")
    reason = str(one(tree, page(pids=(100,)), {}).reason)
    assert reason.startswith("the driver shows no processes on GPUs (process 100, docker-proxy)")
    assert "its environment may not be read" in reason
    assert "set `gpus`" in reason
    assert "which has ended" in str(one(tree, page(pids=(999,)), {}).reason)


def test_in_a_container_with_process_ids_of_its_own_only_a_process_with_a_gpu_open_is_believed(tree: ProcTree) -> None:
    (tree.path / "self" / "ns").mkdir(parents=True)
    namespace = tree.path / "self" / "ns" / "pid"
    namespace.symlink_to("pid:[4026532201]")
    tree.process(100, 2, environment={})
    tree.process(101, 100)
    seen = {101: [UUIDS[0]]}
    assert one(tree, page(pids=(100,)), seen).gpus is None
    (tree.path / "101" / "fd" / "9").symlink_to("/dev/nvidia0")
    assert one(tree, page(pids=(100,)), seen).gpus == (UUIDS[0],)
    # In the machine's own namespace the driver's word is enough.
    (tree.path / "101" / "fd" / "9").unlink()
    namespace.unlink()
    namespace.symlink_to("pid:[4026531836]")
    assert one(tree, page(pids=(100,)), seen).gpus == (UUIDS[0],)


def test_a_name_with_blanks_and_brackets_does_not_confuse_the_walk(tree: ProcTree) -> None:
    tree.process(100, 2, "a) S 1 (b", session=100)
    tree.process(101, 100, "c d)")
    assert one(tree, page(pids=(100,)), {101: [UUIDS[0]]}).gpus == (UUIDS[0],)


def test_a_loop_of_parents_ends(tree: ProcTree) -> None:
    tree.process(100, 101)
    tree.process(101, 100)
    assert one(tree, page(pids=(100,)), {101: [UUIDS[0]]}).gpus == (UUIDS[0],)
    assert one(tree, page(pids=(55,)), {101: [UUIDS[0]]}).gpus is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0"}, [0]),
        ({"CUDA_VISIBLE_DEVICES": " 3 , 1"}, [3, 1]),
        ({"CUDA_VISIBLE_DEVICES": "1,1"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
        ({"CUDA_VISIBLE_DEVICES": "2,-1,3"}, [2]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-00005-AAAA"}, [5]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-00005,GPU-00006"}, [5, 6]),
        ({"CUDA_VISIBLE_DEVICES": "1", "NVIDIA_VISIBLE_DEVICES": "all"}, [1]),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-00006-aaaa,GPU-00007-aaaa"}, [6, 7]),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-00006-aaaa,GPU-00007-aaaa", "CUDA_VISIBLE_DEVICES": "1"}, [7]),
    ],
)
def test_an_environment_is_read_as_cuda_reads_it(environment: dict[str, str], expected: list[int]) -> None:
    assert visible_gpus(environment, GPUS) == tuple(UUIDS[n] for n in expected)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({}, "CUDA_VISIBLE_DEVICES is not set"),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, "CUDA_VISIBLE_DEVICES is not set"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-5f2b"}, "MIG instance"),
        ({"CUDA_VISIBLE_DEVICES": "0,MIG-GPU-5f2b/1/0"}, "MIG instance"),
        ({"CUDA_VISIBLE_DEVICES": "8"}, "names GPU 8"),
        ({"CUDA_VISIBLE_DEVICES": "9" * 5000}, "a GPU that this node does not have"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-0000"}, "a GPU that this node does not have: GPU-0000"),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, "a GPU that this node does not have"),
        ({"NVIDIA_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "0"}, "a container's own"),
        ({"NVIDIA_VISIBLE_DEVICES": "GPU-00006-aaaa", "CUDA_VISIBLE_DEVICES": "1"}, "its container has 1"),
    ],
)
def test_an_environment_that_does_not_tell_is_not_guessed_at(environment: dict[str, str], says: str) -> None:
    with pytest.raises(NotTold, match=says):
        visible_gpus(environment, GPUS)


def test_numbers_among_different_gpus_need_the_drivers_order() -> None:
    mixed = [GPUS[0], Gpu(uuid="00009-bbbb", name="NVIDIA A10", index=1)]
    with pytest.raises(NotTold, match="CUDA_DEVICE_ORDER"):
        visible_gpus({"CUDA_VISIBLE_DEVICES": "1"}, mixed)
    environment = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert visible_gpus(environment, mixed) == ("00009-bbbb",)
