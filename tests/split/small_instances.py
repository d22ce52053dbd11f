"""Small random demands for properties of the solver's answers."""

from __future__ import annotations

import random
from typing import Any

from app.split.demand import Demand
from app.split.options import Option

from .builders import a_class, a_demand, a_fleet, a_run, a_slo, an_option, ttft


def draw(seed: int, **solve: Any) -> tuple[Demand, list[Option]]:
    """Two or three fleets of which some are limited, up to six options, one to three classes of which some have an
    SLO. Feasible more often than not."""
    dice = random.Random(seed)
    fleets = [
        a_fleet(
            f"fleet{number}",
            usd_per_gpu_hour=round(dice.uniform(0.2, 3.0), 2),
            g_per_kwh=dice.choice([0.0, 50.0, 240.0, 700.0]),
            max_gpus=dice.choice([None, None, 4, 8]),
        )
        for number in range(dice.randint(2, 3))
    ]
    options = [_option(dice, fleets[number % len(fleets)], number) for number in range(dice.randint(len(fleets), 6))]
    classes = [
        a_class(
            f"class{number}",
            requests_per_s=round(dice.uniform(0.5, 12.0), 2),
            slo=dice.choice([(), (a_slo(dice.choice([60.0, 150.0, 400.0])),)]),
        )
        for number in range(dice.randint(1, 3))
    ]
    return a_demand(classes, fleets, **({"max_utilisation": dice.choice([0.6, 0.8, 1.0])} | solve)), options


def _option(dice: random.Random, fleet: Any, number: int) -> Option:
    """1,000,000 tokens at 300 to 1,500 tokens/s on one or two GPUs."""
    run = a_run(
        gpu_count=dice.choice([1, 1, 2]),
        duration_s=1e6 / dice.uniform(300, 1500),
        prompt_tokens=500_000,
        generated_tokens=500_000,
        latency=ttft(dice.choice([40.0, 90.0, 140.0, 300.0, 900.0])),
        offered_requests_per_s=float(number + 1),
    )
    return an_option(fleet, run, idle_w=dice.uniform(20, 120), loaded_w=dice.uniform(150, 700))
