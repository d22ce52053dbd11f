"""The schema, one migration a module. A released migration is never edited; a change is the next one."""

from __future__ import annotations

from app.store.migrations.m1_benchmarks import BENCHMARKS
from app.store.migrations.m2_gpus import GPUS
from app.store.migrations.m3_engines import ENGINES
from app.store.migrations.m4_use import USE
from app.store.migrations.m5_grid import GRID
from app.store.migrations.m6_prices import PRICES
from app.store.migrations.m7_scenarios import SCENARIOS

MIGRATIONS: tuple[tuple[str, ...], ...] = (BENCHMARKS, GPUS, ENGINES, USE, GRID, PRICES, SCENARIOS)
