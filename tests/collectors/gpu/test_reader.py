"""Faults of GPUs and drivers, each on a current and an old driver: the field is null with a reason, the rest goes on.

Time is turned by hand, so a minute costs nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from collectors.gpu.nvml import NvmlUnavailable, start_nvml
from tests.collectors.gpu.rig import Rig, energy_mj, methods
from tests.fakenvml.build import ADA, ADA_UUID, HOPPER_UUID

ADA_MW, HOPPER_MW = 300_000, 600_000


@pytest.fixture(autouse=True)
def other_gpu_is_complete(rig: Rig, request: pytest.FixtureRequest):
    """Whatever happens to the first GPU: the second one's rows follow each other and hold exactly its energy."""
    rows = []
    kept = rig.rows

    def rows_of_both():
        found = kept()
        rows.extend(found.get(HOPPER_UUID, []))
        return found

    rig.rows = rows_of_both
    yield
    rig.rows()
    if "no_gpu_at_all" in request.node.name:
        return
    assert rows
    assert methods(rows) == {"counter"}
    assert all(later["t_us"] - later["dt_us"] == row["t_us"] for row, later in pairwise(rows))
    assert energy_mj(rows) == HOPPER_MW * sum(row["dt_us"] for row in rows) // 1_000_000


def test_healthy_gpu_has_every_field(rig: Rig):
    row = rig.run(3)[ADA_UUID][-1]
    assert (row["energy_mj"], row["energy_method"], row["dt_us"]) == (ADA_MW, "counter", 1_000_000)
    assert row["integral_mj"] == ADA_MW
    assert row["power_average_mw"] == ADA_MW
    assert row["power_instant_mw"] == (None if rig.driver.old else ADA_MW)
    assert (row["utilisation_pct"], row["memory_utilisation_pct"]) == (97, 61)
    reserved = ADA["mem_reserved"] if rig.driver.old else 0  # version 1 of the call counts it as used
    assert row["memory_used_bytes"] == ADA["mem_used"] + reserved
    assert (row["temperature_c"], row["sm_clock_mhz"], row["memory_clock_mhz"]) == (64, 2520, 10_501)
    assert (row["power_cap"], row["thermal_slowdown"], row["hardware_slowdown"]) == (True, False, False)
    gpu = rig.gpu(ADA_UUID)
    assert (gpu.name, gpu.index, gpu.pci_bus_id) == (ADA["name"], 0, "00000000:01:00.0")
    assert (gpu.power_limit_mw, gpu.memory_total_bytes) == (450_000, ADA["mem_total"])
    assert (gpu.energy_method, gpu.energy_scope, gpu.status) == ("counter", "gpu", "ok")
    assert (gpu.persistence_mode, gpu.mig_enabled) == (True, None)
    assert rig.gpu(HOPPER_UUID).mig_enabled is False
    if not rig.driver.old:
        assert rig.ledger.missing() == {}


def test_processes_are_read_every_ten_seconds_and_unknown_memory_stays_unknown(rig: Rig):
    rig.run(12)
    table = rig.ledger.processes(rig.gpus())
    assert table is not None
    assert (table.pid, table.memory_used_bytes) == ([4242, 5151] * 2, [20_971_520_000, None] * 2)


def test_process_structs_that_make_no_sense_are_dropped(rig: Rig):
    rig.driver.change(0, proc0="4294967295:7", proc1="77:9223372036854775807")
    rig.run(2)
    table = rig.ledger.processes(rig.gpus())
    assert table is not None
    assert (table.pid, table.memory_used_bytes) == ([77, 5151], [None, None])
    assert rig.reader.rejected == 1


@pytest.mark.parametrize("error", [15, 16])
def test_lost_gpu_is_a_gap_and_comes_back_bridged(rig: Rig, error: int):
    rig.run(3)
    rig.driver.change(0, ret=error)
    assert rig.run(70)[ADA_UUID] == []
    assert rig.gpu(ADA_UUID).status.startswith("lost: the GPU")
    rig.driver.change(0, ret=None)
    rows = rig.run(65)[ADA_UUID]
    assert rig.gpu(ADA_UUID).status == "ok"
    assert rows[0]["energy_method"] == "bridged"
    assert rows[0]["dt_us"] > 60_000_000
    assert rows[0]["integral_mj"] is None
    assert energy_mj(rows) == ADA_MW * sum(row["dt_us"] for row in rows) // 1_000_000
    assert methods(rows[1:]) == {"counter"}


def test_gpu_that_answers_everything_with_unknown_error_is_lost(rig: Rig):
    rig.run(2)
    rig.driver.change(0, ret=999, ret__nvmlDeviceGetUUID=0)
    assert rig.run(3)[ADA_UUID] == []
    assert rig.gpu(ADA_UUID).status.startswith("lost: ")


def test_without_power_the_counter_goes_on(rig: Rig):
    rig.driver.change(0, ret__field185=3, ret__field186=3, ret__nvmlDeviceGetPowerUsage=3)
    rows = rig.run(5)[ADA_UUID]
    assert methods(rows) == {"counter"}
    assert energy_mj(rows) == 4 * ADA_MW
    assert {row["power_average_mw"] for row in rows} | {row["integral_mj"] for row in rows} == {None}
    assert "not supported" in rig.ledger.missing()[f"gpu {ADA_UUID}.power_average_mw"]


def test_power_usage_refused_leaves_the_fields_of_power(rig: Rig):
    rig.driver.change(0, ret__nvmlDeviceGetPowerUsage=3)
    row = rig.run(2)[ADA_UUID][-1]
    assert row["power_average_mw"] == (None if rig.driver.old else ADA_MW)
    assert row["energy_mj"] == ADA_MW


def test_without_a_counter_power_is_integrated(rig: Rig):
    rig.driver.change(0, energy_mj=None)
    rows = rig.run(5)[ADA_UUID]
    assert methods(rows) == {"integral_average" if rig.driver.old else "integral_instant"}
    assert energy_mj(rows) == 4 * ADA_MW
    assert "not supported" in rig.ledger.missing()[f"gpu {ADA_UUID}.energy_counter"]


def test_power_usage_is_instantaneous_up_to_turing(rig: Rig):
    rig.driver.change(0, energy_mj=None, architecture=4, ret__field185=3, ret__field186=3)
    rows = rig.run(3)[ADA_UUID]
    assert methods(rows) == {"integral_instant"}
    assert rows[-1]["power_average_mw"] is None


def test_field_values_missing_altogether_fall_back_to_single_calls(rig: Rig):
    rig.driver.change(0, ret__nvmlDeviceGetFieldValues=13)
    rows = rig.run(3)[ADA_UUID]
    assert methods(rows) == {"counter"}
    assert rows[-1]["power_average_mw"] == ADA_MW


def test_with_neither_power_nor_counter_energy_is_null_never_zero(rig: Rig):
    rig.driver.change(0, energy_mj=None, power_mw=None)
    rows = rig.run(5)[ADA_UUID]
    assert methods(rows) == {None}
    assert {row["energy_mj"] for row in rows} == {None}
    assert rows[-1]["utilisation_pct"] == 97
    assert rig.gpu(ADA_UUID).energy_method is None


def test_counter_reset_is_filled_by_the_integral(rig: Rig):
    rig.run(10)
    rig.driver.change(0, energy_mj=5)
    rows = rig.run(5)[ADA_UUID]
    assert [row["energy_method"] == "counter" for row in rows] == [False, True, True, True, True]
    assert energy_mj(rows) == 5 * ADA_MW


@pytest.mark.parametrize("catches_up", [True, False])
def test_frozen_counter_is_filled_and_never_counted_twice(rig: Rig, catches_up: bool):
    rig.run(10)
    rig.driver.change(0, energy_frozen_at=rig.now_us / 1e6)
    rows = rig.run(20)[ADA_UUID]
    assert "counter" not in methods(rows)
    assert "stands still" in rig.ledger.missing()[f"gpu {ADA_UUID}.energy_counter"]
    rig.driver.change(0, energy_frozen_at=None, energy_offset_mj=0 if catches_up else -20 * ADA_MW)
    rows += rig.run(10)[ADA_UUID]
    assert energy_mj(rows) == 30 * ADA_MW
    assert rows[-1]["energy_method"] == "counter"
    assert f"gpu {ADA_UUID}.energy_counter" not in rig.ledger.missing()


def test_counter_that_jumps_a_thousandfold_is_not_believed(rig: Rig):
    rig.run(5)
    rig.driver.change(0, energy_scale=1000)
    rows = rig.run(10)[ADA_UUID]
    assert "counter" not in methods(rows)
    assert energy_mj(rows) == 10 * ADA_MW
    assert rig.ledger.rejected == 10


def test_single_jump_of_the_counter_is_dropped(rig: Rig):
    rig.run(5)
    rig.driver.change(0, energy_offset_mj=10**9)
    rows = rig.run(5)[ADA_UUID]
    assert [row["energy_method"] == "counter" for row in rows] == [False, True, True, True, True]
    assert energy_mj(rows) == 5 * ADA_MW


def test_power_beyond_the_limit_is_refused(rig: Rig):
    # open-gpu-kernel-modules#1237: 588 W on a laptop part of 35 W.
    rig.driver.change(0, limit_mw=35_000, power_mw=30_000, power_instant_mw=588_000, power_average_mw=588_000)
    rows = rig.run(5)[ADA_UUID]
    assert {row["power_average_mw"] for row in rows} | {row["power_instant_mw"] for row in rows} == {None}
    assert energy_mj(rows) == 4 * 30_000
    assert "52 W" in rig.ledger.missing()[f"gpu {ADA_UUID}.power_average_mw"]
    assert rig.ledger.rejected == (5 if rig.driver.old else 10)


def test_power_that_stands_still_while_the_load_moves_is_null(rig: Rig):
    for tick in range(90):
        rig.driver.change(0, util=tick)
        rig.tick()
    row = rig.rows()[ADA_UUID][-1]
    assert (row["power_average_mw"], row["power_instant_mw"], row["integral_mj"]) == (None, None, None)
    assert "has not moved" in rig.ledger.missing()[f"gpu {ADA_UUID}.power_average_mw"]
    assert row["energy_mj"] == ADA_MW


@pytest.mark.parametrize("garbage", [101, 808_334_905, 4_294_967_295])
def test_utilisation_out_of_range_is_null_and_counted(rig: Rig, garbage: int):
    rig.driver.change(0, util=garbage, util_mem=garbage)
    rows = rig.run(4)[ADA_UUID]
    assert {row["utilisation_pct"] for row in rows} | {row["memory_utilisation_pct"] for row in rows} == {None}
    assert rig.reader.rejected == 8
    assert "outside 0 to 100" in rig.ledger.missing()[f"gpu {ADA_UUID}.utilisation_pct"]


def test_other_numbers_out_of_range_are_null(rig: Rig):
    rig.driver.change(0, temp_c=2_147_483_600, sm_mhz=4_294_967_295, mem_used=2**60, reasons=2**40)
    row = rig.run(2)[ADA_UUID][-1]
    assert [row[name] for name in ("temperature_c", "sm_clock_mhz", "memory_used_bytes", "power_cap")] == [None] * 4


def test_unknown_type_of_a_field_value_is_null_with_a_reason(rig: Rig):
    rig.driver.change(0, type_of_power=99)
    row = rig.run(2)[ADA_UUID][-1]
    assert row["power_instant_mw"] is None
    assert row["energy_mj"] == ADA_MW


def test_mig_parent_is_counted_once_and_has_no_utilisation(rig: Rig):
    rig.driver.change(0, mig=2)
    rows = rig.run(5)
    assert set(rows) == {ADA_UUID, HOPPER_UUID}
    assert energy_mj(rows[ADA_UUID]) == 4 * ADA_MW
    assert {row["utilisation_pct"] for row in rows[ADA_UUID]} == {None}
    assert rig.gpu(ADA_UUID).mig_enabled is True
    assert "MIG" in rig.ledger.missing()[f"gpu {ADA_UUID}.utilisation_pct"]


def test_mig_switched_on_and_off_again_gives_utilisation_back(rig: Rig):
    rig.driver.change(0, mig=0)
    rig.run(2)
    rig.driver.change(0, mig=2)
    assert rig.run(62)[ADA_UUID][-1]["utilisation_pct"] is None
    rig.driver.change(0, mig=0)
    assert rig.run(62)[ADA_UUID][-1]["utilisation_pct"] == 97


def test_refused_field_is_asked_again_after_ten_minutes(rig: Rig):
    rig.driver.change(0, ret__nvmlDeviceGetClockInfo=3)
    rig.run(2)
    rig.driver.change(0, ret__nvmlDeviceGetClockInfo=None)
    rows = rig.run(605)[ADA_UUID]
    assert (rows[500]["sm_clock_mhz"], rows[-1]["sm_clock_mhz"]) == (None, 2520)


def test_field_that_fails_for_once_is_asked_at_the_next_tick(rig: Rig):
    rig.driver.change(0, ret__nvmlDeviceGetClockInfo=999)
    assert rig.run(2)[ADA_UUID][-1]["sm_clock_mhz"] is None
    rig.driver.change(0, ret__nvmlDeviceGetClockInfo=None)
    assert rig.run(1)[ADA_UUID][-1]["sm_clock_mhz"] == 2520


def test_name_that_is_not_utf8_is_unknown(rig: Rig):
    rig.driver.change(0, name="\xf8\x81bad")
    row = rig.run(2)[ADA_UUID][-1]
    assert row["energy_mj"] == ADA_MW
    assert rig.gpu(ADA_UUID).name == "unknown"
    assert "UTF-8" in rig.ledger.missing()[f"gpu {ADA_UUID}.name"]


def test_no_gpu_at_all(rig: Rig):
    rig.driver.gpus.clear()
    rig.driver.write()
    assert rig.run(2) == {}


def test_gpu_that_appears_later_is_found(rig: Rig):
    newcomer = {**ADA, "uuid": "GPU-NEW", "epoch": rig.driver.gpus[0]["epoch"]}
    rig.run(3)
    rig.driver.gpus.append(newcomer)
    rig.driver.write()
    assert energy_mj(rig.run(3)["new"]) == 2 * ADA_MW


def test_gpu_that_disappears_is_kept_as_lost(rig: Rig):
    rig.run(3)
    rig.driver.gpus = rig.driver.gpus[::-1][:1]
    rig.driver.write()
    rig.run(3)
    assert rig.gpu(ADA_UUID).status.startswith("lost: ")
    assert rig.gpu(HOPPER_UUID).index == 0


def test_gpus_that_swap_indexes_keep_their_energy(rig: Rig):
    before = rig.run(5)
    rig.driver.gpus.reverse()
    rig.driver.write()
    after = rig.run(5)
    assert rig.gpu(HOPPER_UUID).index == 0
    assert energy_mj(before[ADA_UUID] + after[ADA_UUID]) == 9 * ADA_MW


def test_gpu_outside_the_permitted_set_is_skipped_and_said(rig: Rig):
    rig.driver.change(0, ret=4)
    assert set(rig.run(3)) == {HOPPER_UUID}
    assert "not permitted" in rig.reader.missing["gpu #0"]


def test_unified_memory_has_no_total(rig: Rig):
    rig.driver.change(0, mem_total=0, mem_used=5)
    rig.run(2)
    assert rig.gpu(ADA_UUID).memory_total_bytes is None
    assert "host's memory" in rig.ledger.missing()[f"gpu {ADA_UUID}.memory_total_bytes"]


def test_superchip_says_what_its_energy_covers(rig: Rig):
    rig.driver.change(0, power_module_mw=700_000)
    rig.run(2)
    assert rig.gpu(ADA_UUID).energy_scope == ("gpu" if rig.driver.old else "unknown")


def test_module_power_stands_in_for_a_gpu_without_its_own(rig: Rig):
    rig.driver.change(0, power_module_mw=400_000, ret__field185=3, power_mw=None, energy_mj=None)
    row = rig.run(3)[ADA_UUID][-1]
    if not rig.driver.old:
        assert (row["power_instant_mw"], row["energy_mj"]) == (400_000, 400_000)
        assert rig.gpu(ADA_UUID).energy_scope == "module"


def test_suspended_gpu_is_not_touched(rig: Rig, tmp_path: Path):
    rig.run(3)
    status = tmp_path / "pci" / "0000:01:00.0" / "power" / "runtime_status"
    status.parent.mkdir(parents=True)
    status.write_text("suspended\n")
    rig.driver.change(0, ret=15)  # a question would be answered with a loss
    assert rig.run(70)[ADA_UUID] == []
    assert rig.gpu(ADA_UUID).status == "suspended"
    status.write_text("active\n")
    rig.driver.change(0, ret=None)
    rows = rig.run(3)[ADA_UUID]
    assert rows[0]["energy_method"] == "bridged"
    assert rig.gpu(ADA_UUID).status == "ok"


def test_old_pynvml_in_the_way_is_named(monkeypatch: pytest.MonkeyPatch, rig: Rig):
    impostor = ModuleType("pynvml")
    impostor.__file__ = "/somewhere/pynvml/__init__.py"
    rig.run(2)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", impostor)
    with pytest.raises(NvmlUnavailable, match=re.escape("/somewhere/pynvml/__init__.py")):
        start_nvml(None)
