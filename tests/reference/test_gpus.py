"""A card is found under every spelling in use, and never under another card's name."""

from __future__ import annotations

import pytest

from app.reference.gpus import display_name, find_gpu, gpu_specs, same_gpu, words
from app.reference.tables import read_table


def name_of(spelling: str) -> str | None:
    spec = find_gpu(spelling)
    return spec.name if spec else None


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA L4", "NVIDIA L4"),
        ("L4", "NVIDIA L4"),
        ("NVIDIA L40", "NVIDIA L40"),
        ("NVIDIA L40S", "NVIDIA L40S"),
        ("l40s", "NVIDIA L40S"),
        ("NVIDIA A10", "NVIDIA A10"),
        ("NVIDIA A10G", "NVIDIA A10G"),
        ("NVIDIA H200", "NVIDIA H200"),
        ("NVIDIA H200 NVL", "NVIDIA H200 NVL"),
        ("NVIDIA H100 NVL", "NVIDIA H100 NVL"),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe"),
        ("H100 PCIe", "NVIDIA H100 PCIe"),
        ("NVIDIA-H100-PCIe", "NVIDIA H100 PCIe"),
        ("nvidia_h100__pcie", "NVIDIA H100 PCIe"),
        ("  NVIDIA  H100\tPCIe ", "NVIDIA H100 PCIe"),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"),
        ("H100 SXM", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA A100 SXM4 80GB", "NVIDIA A100-SXM4-80GB"),
        ("A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB"),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 80GB PCIe"),
        ("RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA-GeForce-RTX-4090", "NVIDIA GeForce RTX 4090"),
        ("RTX 4080", "NVIDIA GeForce RTX 4080"),
        ("RTX 4080 SUPER", "NVIDIA GeForce RTX 4080 SUPER"),
        ("NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 4080 SUPER"),
        ("NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 3090 Ti"),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 6000 Ada Generation"),
        ("RTX PRO 6000 Blackwell Max-Q Workstation Edition", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
        ("RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("Tesla T4", "Tesla T4"),
        ("AMD Instinct MI300X", "AMD Instinct MI300X"),
        ("Instinct MI300X", "AMD Instinct MI300X"),
        ("MI300X", "AMD Instinct MI300X"),
        ("AMD Instinct MI300X OAM", "AMD Instinct MI300X"),
        ("AMD Instinct MI250X / MI250", "AMD Instinct MI250X"),
    ],
)
def test_a_spelling_means_its_card(spelling: str, name: str) -> None:
    assert name_of(spelling) == name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB"),
        ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA H100 PCIe MIG 1g.10gb+me", "NVIDIA H100 PCIe"),
        ("NVIDIA H200 NVL MIG 1g.18gb", "NVIDIA H200 NVL"),
    ],
)
def test_a_mig_slice_means_the_card_it_is_cut_from(spelling: str, name: str) -> None:
    assert name_of(spelling) == name


@pytest.mark.parametrize(
    "spelling",
    [
        "NVIDIA GeForce RTX 4080 Laptop GPU", "RTX 4080 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D", "RTX 4090 D", "NVIDIA GeForce RTX 5080 Ti", "NVIDIA GeForce RTX 5090 Mobile",
        "NVIDIA GeForce RTX 409", "NVIDIA GeForce RTX 40900", "NVIDIA RTX 6000 Ada Generation Laptop GPU",
        "NVIDIA L40X", "NVIDIA L", "H100", "NVIDIA H100", "NVIDIA", "AMD Instinct", "AMD Instinct MI300A", "",
        "  ", "GPU",
    ],
)  # fmt: skip
def test_a_name_that_is_close_is_not_taken_for_a_card(spelling: str) -> None:
    assert find_gpu(spelling) is None
    assert display_name(spelling) == spelling


def test_every_spelling_of_the_table_means_its_own_row() -> None:
    for row in read_table("gpu_specs"):
        for spelling in (row["name_pattern"], row["display"], *filter(None, row["aliases"].split(";"))):
            assert name_of(spelling) == row["name_pattern"], spelling


@pytest.mark.parametrize(
    ("name", "display", "gpu_class", "kind", "tdp_w"),
    [
        ("NVIDIA H100 PCIe", "H100 PCIe 80GB", "datacenter", "enterprise", 350.0),
        ("NVIDIA H100 80GB HBM3", "H100 SXM5 80GB", "datacenter", "enterprise", 700.0),
        ("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "consumer", "consumer", 450.0),
        ("NVIDIA RTX A6000", "RTX A6000", "workstation", "enterprise", 300.0),
        ("AMD Instinct MI300X", "Instinct MI300X", "datacenter", "enterprise", 750.0),
        ("NVIDIA L4", "L4", "datacenter", "enterprise", 72.0),
    ],
)
def test_a_card_has_the_power_limit_and_the_kind_of_its_datasheet(
    name: str, display: str, gpu_class: str, kind: str, tdp_w: float
) -> None:
    spec = find_gpu(name)
    assert spec is not None
    assert (spec.display, spec.gpu_class, spec.kind, spec.tdp_w) == (display, gpu_class, kind, tdp_w)
    assert spec.source
    assert display.endswith(display_name(name))


def test_a_card_without_an_embodied_figure_has_none_not_zero() -> None:
    spec = find_gpu("NVIDIA L40")
    assert spec is not None
    assert spec.embodied_kg is None
    assert all(spec.embodied_kg is None or spec.embodied_kg > 0 for spec in gpu_specs())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("RTX 4090", "NVIDIA-GeForce-RTX-4090", True),
        ("H100 PCIe", "NVIDIA H100 PCIe MIG 1g.10gb", True),
        ("Some New-Card", "some_new card", True),
        ("NVIDIA H200", "NVIDIA H200 NVL", False),
        ("NVIDIA L4", "NVIDIA L40S", False),
        ("Some New Card", "Another New Card", False),
        ("RTX 4080", "RTX 4080 SUPER", False),
    ],
)
def test_two_names_are_one_card_or_not(one: str, other: str, same: bool) -> None:
    assert same_gpu(one, other) is same
    assert same_gpu(other, one) is same


def test_words_do_not_depend_on_the_spelling() -> None:
    assert words(" NVIDIA_GeForce-RTX  4090 ") == ("nvidia", "geforce", "rtx", "4090")
