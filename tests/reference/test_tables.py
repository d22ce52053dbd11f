"""Every shipped table reads, and every number in it says where it is from."""

from __future__ import annotations

import csv
import math
from datetime import date
from pathlib import Path

import pytest

from app.reference.tables import checkout_folder, data_folder, in_checkout, read_table

TABLES = sorted(path.name for path in data_folder().glob("*.csv"))
FACTS = [name for name in TABLES if name != "aibc2025_runs.csv"]  # a run's source is its file, see source_file

NUMBERS = {
    "cloud_region_zones.csv": ("pue", "pue_year"),
    "electricity_prices.csv": ("price_per_kwh",),
    "gpu_embodied.csv": ("kg_co2e",),
    "gpu_prices.csv": ("usd_per_gpu_hour",),
    "gpu_purchase_estimates.csv": ("usd",),
    "gpu_specs.csv": ("memory_gb", "tdp_w", "launch_price_usd", "embodied_kg"),
    "grid_intensity.csv": ("g_per_kwh", "year"),
    "pue_defaults.csv": ("pue", "year"),
}
KEYS = {
    "cloud_region_zones.csv": ("provider", "region"),
    "electricity_prices.csv": ("zone", "customer_class", "period"),
    "gpu_embodied.csv": ("item", "method", "boundary"),
    "gpu_specs.csv": ("name_pattern",),
    "grid_intensity.csv": ("zone",),
    "pue_defaults.csv": ("site_class",),
}


def rows(name: str) -> list[list[str]]:
    with (data_folder() / name).open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_a_header_and_rows_of_its_width(name: str) -> None:
    header, *content = rows(name)
    assert content
    assert len(set(header)) == len(header)
    assert {len(row) for row in content} == {len(header)}
    assert read_table(name.removesuffix(".csv")) == tuple(dict(zip(header, row, strict=True)) for row in content)


@pytest.mark.parametrize("name", FACTS)
def test_every_row_names_its_source(name: str) -> None:
    for row in read_table(name.removesuffix(".csv")):
        assert row["source"].strip(), row


@pytest.mark.parametrize("name", FACTS)
def test_every_number_is_finite_and_not_negative_and_a_blank_is_a_blank(name: str) -> None:
    for row in read_table(name.removesuffix(".csv")):
        for column in NUMBERS[name]:
            cell = row[column]
            assert cell == "" or (math.isfinite(float(cell)) and float(cell) >= 0), (column, row)


@pytest.mark.parametrize(("name", "key"), KEYS.items())
def test_no_row_stands_twice(name: str, key: tuple[str, ...]) -> None:
    seen = [tuple(row[column] for column in key) for row in read_table(name.removesuffix(".csv"))]
    assert sorted(seen) == sorted(set(seen))


def test_grid_rows_carry_year_and_basis() -> None:
    assert {row["basis"] for row in read_table("grid_intensity")} == {"lifecycle", "direct"}
    assert all(2015 <= int(row["year"]) <= date.today().year for row in read_table("grid_intensity"))  # noqa: DTZ011


def test_a_pue_is_never_below_one() -> None:
    assert all(float(row["pue"]) >= 1 for row in read_table("pue_defaults"))
    assert all(row["pue"] == "" or float(row["pue"]) >= 1 for row in read_table("cloud_region_zones"))


def test_sources_md_names_every_file() -> None:
    sources = (data_folder() / "SOURCES.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if name not in sources] == []
    for line in sources.splitlines():
        for word in line.replace("`", " ").replace("|", " ").split():
            if word.endswith(".csv") and "/" not in word:
                assert word in TABLES, f"SOURCES.md names {word}, which is not there"


def test_the_odbl_table_does_not_ship() -> None:
    assert not any("odbl" in name for name in TABLES)


def test_the_tables_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (data_folder() / "gpu_specs.csv").is_file()
    if in_checkout():
        assert (checkout_folder() / "app" / "cli" / "hub.py").is_file()
