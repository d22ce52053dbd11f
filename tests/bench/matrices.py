"""Random matrices of request sizes, shaped like those of cards: large ones are dear and good at long requests."""

from __future__ import annotations

import random

from app.split.buckets import BucketProblem

# $/h, requests/s of the smallest size, and how much of it is left when prompt and answer double
_CARDS = (("a10g", 1.01, 6.0, 0.55), ("l4", 0.70, 4.0, 0.5), ("a100", 3.67, 22.0, 0.66), ("h100", 7.52, 40.0, 0.7))


def a_matrix(sizes: int, seed: int, *, requests_per_s: float = 32.0, limited: bool = False) -> BucketProblem:
    """sizes x sizes buckets of prompt and answer length on four GPU types; long requests do not fit the small cards."""
    dice = random.Random(1000 * sizes + seed)
    weights = [dice.expovariate(1.0) for _ in range(sizes * sizes)]
    gpus = []
    for name, usd, most, kept in _CARDS:
        rates = [
            most * kept ** ((prompt + answer) * 6 / sizes) * dice.uniform(0.8, 1.25)
            for prompt in range(sizes)
            for answer in range(sizes)
        ]
        if name in ("a10g", "l4"):
            rates = [rate if n // sizes + n % sizes < 1.6 * (sizes - 1) else 0.0 for n, rate in enumerate(rates)]
        limit = dice.choice([None, 4, 12]) if limited and name != "h100" else None
        gpus.append({"name": name, "usd_per_hour": usd, "requests_per_s": rates, "max": limit})
    total = sum(weights)
    asked = [requests_per_s * weight / total for weight in weights]
    return BucketProblem.model_validate({"requests_per_s": asked, "gpu": gpus})
