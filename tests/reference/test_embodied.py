"""Embodied kilograms of cards: one method chosen, the range of all; never those of another card."""

from __future__ import annotations

import pytest

from app.accounting.carbon import COMPARABLE_METHOD, Spread
from app.reference.embodied import embodied_kg
from app.reference.gpus import gpu_specs


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "H100 SXM", "nvidia-h100-80gb-hbm3"])
def test_a_card_with_two_methods_has_a_range_and_either_may_be_chosen(name: str) -> None:
    # 1,312 kg of the board / 8 = 164 by the vendor, 575.1 bottom-up
    assert embodied_kg(name, "pcf") == Spread(164.0, 164.0, 575.1)
    assert embodied_kg(name, "boavizta") == Spread(164.0, 575.1, 575.1)


@pytest.mark.parametrize(
    ("name", "kg"),
    [
        ("NVIDIA H100 PCIe", Spread(566.7, 566.7, 566.7)),
        ("NVIDIA GeForce RTX 4090", Spread(185.1, 185.1, 185.1)),
        ("NVIDIA A100-SXM4-40GB", Spread(127.6, 319.3, 319.3)),  # a teardown, 150 of any A100, and boavizta
        ("NVIDIA A100 80GB PCIe", Spread(150.0, 569.4, 569.4)),  # 318 of an instance's share is no card's
        ("NVIDIA B300 SXM6 AC", Spread(2543.0, 2543.0, 2543.0)),
        ("AMD Instinct MI300X", Spread(1497.0, 1497.0, 1497.0)),
        ("Tesla V100-SXM2-32GB", Spread(290.0, 290.0, 290.0)),
    ],
)
def test_each_spelling_finds_its_own_row(name: str, kg: Spread) -> None:
    assert embodied_kg(name, "boavizta") == kg


@pytest.mark.parametrize(
    ("name", "method", "reason"),
    [
        # the vendor's figure is of the SXM board: it is not taken for the PCIe card, and none of a 4080 for a SUPER
        ("NVIDIA H100 PCIe", "pcf", "no pcf figure of making H100 PCIe 80GB; boavizta has one"),
        ("NVIDIA GeForce RTX 4090", "pcf", "no pcf figure of making RTX 4090; boavizta has one"),
        ("NVIDIA GeForce RTX 4080 SUPER", "boavizta", "no boavizta figure of making RTX 4080 SUPER"),
        ("NVIDIA L40", "boavizta", "no boavizta figure of making L40"),
        ("Some Card 9000", "boavizta", "no boavizta figure of making Some Card 9000"),
    ],
)
def test_an_unknown_card_is_unknown_and_not_0(name: str, method: str, reason: str) -> None:
    assert embodied_kg(name, method) == reason  # type: ignore[arg-type]


def test_the_method_that_counts_when_nothing_is_said_has_both_cards_of_the_study() -> None:
    known = {
        method: {name for name in ("NVIDIA H100 PCIe", "NVIDIA GeForce RTX 4090")
                 if isinstance(embodied_kg(name, method), Spread)}
        for method in ("pcf", "boavizta")
    }  # fmt: skip
    assert (len(known["pcf"]), len(known[COMPARABLE_METHOD])) == (0, 2)


def test_every_range_holds_its_figure() -> None:
    found = [embodied_kg(spec.name, method) for spec in gpu_specs() for method in ("pcf", "boavizta")]
    ranges = [one for one in found if isinstance(one, Spread)]
    assert len(ranges) == 27
    assert all(0 < one.low <= one.central <= one.high for one in ranges)
