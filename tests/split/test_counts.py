"""The cheapest whole GPUs of a matrix, against every count and against the tree over its shares."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from app.split import buckets
from app.split.buckets import BucketProblem, solve_buckets
from app.split.counts import MOST_COUNTS, NotByCounts, cheapest_counts
from app.split.solve import COST_SLACK
from tests.bench.matrices import a_matrix

INF = math.inf


def carries(loads: np.ndarray, counts: tuple[int, ...]) -> bool:
    """By Hall's condition for a divided load: each set of sizes, valued at every vertex of the prices, of two types."""
    prices = {(1.0, 0.0), (0.0, 1.0)} | {
        (float(second), float(first)) for first, second in loads.T if math.isfinite(first) and math.isfinite(second)
    }
    for first, second in prices:
        least = sum(
            min((first * one if math.isfinite(one) else INF), (second * other if math.isfinite(other) else INF))
            for one, other in loads.T
        )
        if first * counts[0] + second * counts[1] < least - 1e-9:
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_two_types_against_every_count(seed: int) -> None:
    dice = random.Random(seed)
    loads = np.array([[dice.choice([0.25, 0.5, 1.0, dice.uniform(0.1, 2)]) for _ in range(4)] for _ in range(2)])
    loads[dice.randrange(2), dice.randrange(4)] = INF
    prices = (dice.choice([1.0, 2.0]), dice.choice([1.0, 2.0, dice.uniform(0.5, 3)]))
    limits = (dice.choice([1, 2, 9]), dice.choice([1, 3, 9]))
    ranks = (0, 1) if dice.random() < 0.5 else (1, 0)
    fitting = [
        counts for counts in itertools.product(range(limits[0] + 1), range(limits[1] + 1)) if carries(loads, counts)
    ]
    expected = min(
        fitting, key=lambda counts: (round(sum(map(math.prod, zip(prices, counts, strict=True))), 9), sum(counts),
                                     sum(map(math.prod, zip(ranks, counts, strict=True)))), default=None,
    )  # fmt: skip
    assert cheapest_counts(loads, prices, limits, ranks, COST_SLACK) == expected


@pytest.mark.parametrize("seed", range(30))
def test_it_answers_as_the_tree_over_the_shares_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_matrix(2 + seed % 4, seed, requests_per_s=(4.0, 16.0, 40.0)[seed % 3], limited=seed % 2 == 0)
    by_cuts = solve_buckets(problem)
    monkeypatch.setattr(buckets, "cheapest_counts", _too_many)
    by_tree = solve_buckets(problem)
    assert by_cuts.counts == by_tree.counts
    assert by_cuts.usd_per_hour == (None if by_tree.usd_per_hour is None else pytest.approx(by_tree.usd_per_hour))
    for name, shares in by_tree.shares.items():
        assert by_cuts.shares[name] == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize(("ranks", "expected"), [((0, 1), (2, 0)), ((1, 0), (0, 2))], ids=["first", "second"])
def test_equals_go_to_the_first_rank(ranks: tuple[int, int], expected: tuple[int, int]) -> None:
    loads = np.array([[2.0], [2.0]])
    assert cheapest_counts(loads, (1.5, 1.5), (9, 9), ranks, COST_SLACK) == expected


def test_of_equal_cost_the_fewest() -> None:
    # 3 small at $1 or 1 large at $3
    assert cheapest_counts(np.array([[3.0], [1.0]]), (1.0, 3.0), (9, 9), (0, 1), COST_SLACK) == (0, 1)


def test_a_sum_that_rounding_moves_is_as_cheap() -> None:
    # 3 x 0.1 is 0.30000000000000004
    assert cheapest_counts(np.array([[3.0], [1.0]]), (0.1, 0.3), (9, 9), (0, 1), COST_SLACK) == (0, 1)


def test_too_few_of_all_is_none() -> None:
    assert cheapest_counts(np.array([[3.0, INF], [6.0, 1.0]]), (1.0, 1.0), (2, 2), (0, 1), COST_SLACK) is None


@pytest.mark.parametrize("parts", [1, 3, 7, 10, 49])
def test_all_that_there_are_may_just_be_enough(parts: int) -> None:
    """Loads and costs that rounding moves to either side of a whole number."""
    loads = np.full((1, parts), 3 / parts)
    assert cheapest_counts(loads, (0.1,), (3,), (0,), COST_SLACK) == (3,)


def test_no_sizes_take_nothing() -> None:
    assert cheapest_counts(np.zeros((2, 0)), (1.0, 1.0), (9, 9), (0, 1), COST_SLACK) == (0, 0)


def test_counts_beyond_number_are_left_to_the_tree() -> None:
    loads = np.array([[400.0 + gpu] for gpu in range(6)])
    usd_per_hour = [1.0 - 1e-3 * gpu for gpu in range(6)]
    with pytest.raises(NotByCounts):
        cheapest_counts(loads, usd_per_hour, [500] * 6, range(6), COST_SLACK)
    gpus = [
        {"name": f"g{place}", "usd_per_hour": usd, "requests_per_s": [1 / load[0]]}
        for place, (usd, load) in enumerate(zip(usd_per_hour, loads, strict=True))
    ]
    answer = solve_buckets(BucketProblem.model_validate({"requests_per_s": [1.0], "gpu": gpus}))
    # 405 of the cheapest type, unless a mix of it with others is as low
    assert math.comb(400 + 5, 5) > MOST_COUNTS
    assert answer.usd_per_hour == pytest.approx(
        min(usd * load[0] for usd, load in zip(usd_per_hour, loads, strict=True))
    )


def test_a_type_that_costs_nothing_is_left_to_the_tree() -> None:
    gpus = [
        {"name": "owned", "usd_per_hour": 0.0, "requests_per_s": [1.0], "max": 2},
        {"name": "rented", "usd_per_hour": 2.0, "requests_per_s": [4.0]},
    ]
    answer = solve_buckets(BucketProblem.model_validate({"requests_per_s": [5.0], "gpu": gpus}))
    assert answer.counts == {"owned": 1, "rented": 1}


def _too_many(*_: object) -> None:
    raise NotByCounts
