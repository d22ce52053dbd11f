"""The matrix of request sizes against enumeration by hand and against the sliced program of Mélange."""

from __future__ import annotations

import tomllib

import pytest

from app.errors import DemandError
from app.split.buckets import BucketProblem, parse_matrix, solve_buckets
from tests.bench.matrices import a_matrix
from tests.bench.sliced_ilp import solve_sliced

MATRIX = """
[matrix]
requests_per_s = [4.0, 1.0]

[[matrix.gpu]]
name = "small"
usd_per_hour = 1.0
requests_per_s = [2.0, 0.0]

[[matrix.gpu]]
name = "large"
usd_per_hour = 3.0
max = 2
requests_per_s = [8.0, 2.0]
"""


def a_problem() -> BucketProblem:
    return parse_matrix(tomllib.loads(MATRIX), "matrix.toml")


def test_by_hand() -> None:
    # size 2 fits only large: 1 / 2 = half of one, $3; its other half takes 4 of size 1's 4 requests/s: nothing is left
    answer = solve_buckets(a_problem())
    assert answer.counts == {"small": 0, "large": 1}
    assert answer.shares == {"small": (0.0, 0.0), "large": pytest.approx((1.0, 1.0))}
    assert (answer.usd_per_hour, answer.bound_usd_per_hour) == (pytest.approx(3.0), pytest.approx(3.0))


def test_a_size_is_divided_where_that_is_cheaper() -> None:
    # 5 requests/s of size 1: the half of large takes 4 of them, one small ($1) the fifth; $4 rather than 2 x $3
    problem = a_problem().model_copy(update={"requests_per_s": (5.0, 1.0)})
    answer = solve_buckets(problem)
    assert (answer.counts, answer.usd_per_hour) == ({"small": 1, "large": 1}, pytest.approx(4.0))
    assert answer.shares["small"][0] >= 0.2 - 1e-9
    assert answer.shares["small"][0] + answer.shares["large"][0] == pytest.approx(1.0)


def test_utilisation_leaves_room() -> None:
    # at 50% size 2 alone fills a large one; size 1 takes 4 / (0.5 x 2) = 4 small ($4) or 1 large more ($3)
    answer = solve_buckets(a_problem().model_copy(update={"max_utilisation": 0.5}))
    assert (answer.counts, answer.usd_per_hour) == ({"small": 0, "large": 2}, pytest.approx(6.0))


@pytest.mark.parametrize("rates", [(4.0, 9.0), (100.0, 4.0)], ids=["two large carry 4/s", "size 2 fills both"])
def test_limits_hold(rates: tuple[float, float]) -> None:
    answer = solve_buckets(a_problem().model_copy(update={"requests_per_s": rates}))
    if rates[1] > 4:
        assert (answer.counts, answer.usd_per_hour) == ({}, None)
    else:
        assert (answer.counts, answer.usd_per_hour) == ({"small": 50, "large": 2}, pytest.approx(56.0))


def test_no_requests_take_no_gpus() -> None:
    answer = solve_buckets(a_problem().model_copy(update={"requests_per_s": (0.0, 0.0)}))
    assert (answer.counts, answer.usd_per_hour) == ({"small": 0, "large": 0}, 0.0)


def test_a_size_that_fits_no_gpu_is_infeasible() -> None:
    gpus = tuple(gpu for gpu in a_problem().gpus if gpu.name == "small")
    assert solve_buckets(a_problem().model_copy(update={"gpus": gpus})).usd_per_hour is None


@pytest.mark.parametrize(
    ("old", "new", "accepted"),
    [
        ("[4.0, 1.0]", "[4.0]", "as many rates for each gpu as there are sizes (1 sizes, small has 2)"),
        ("[4.0, 1.0]", "[-1.0, 1.0]", "`requests_per_s[1]`: given -1.0; accepted: a number >= 0"),
        ('"large"', '"small"', "gpu names that differ"),
        ("max = 2", "max = 2.5", "`gpu[2].max`: given 2.5; accepted: a whole number"),
        ("[matrix]", "[matrix]\nslices = 8", "`slices`: no such key (a misspelling?)"),
    ],
)
def test_a_wrong_matrix_is_refused_with_what_is_accepted(old: str, new: str, accepted: str) -> None:
    with pytest.raises(DemandError) as caught:
        parse_matrix(tomllib.loads(MATRIX.replace(old, new, 1)), "matrix.toml")
    assert str(caught.value).startswith("matrix.toml, [matrix]: ")
    assert accepted in str(caught.value)


def test_a_missing_matrix_is_told() -> None:
    with pytest.raises(DemandError, match=r"matrix.toml: `matrix`: the table is missing"):
        parse_matrix({}, "matrix.toml")


@pytest.mark.parametrize("seed", range(40))
def test_never_dearer_than_the_sliced_program(seed: int) -> None:
    problem = a_matrix(2 + seed % 2, seed, requests_per_s=(4.0, 16.0, 40.0)[seed % 3], limited=seed % 4 == 0)
    ours, theirs = solve_buckets(problem), solve_sliced(problem, slice_factor=4)
    assert theirs.proven
    if theirs.usd_per_hour is not None:
        assert ours.usd_per_hour is not None
        assert ours.usd_per_hour <= theirs.usd_per_hour + 1e-9
    if ours.usd_per_hour is not None:
        loads = {
            gpu.name: sum(
                share * problem.requests_per_s[size] / gpu.requests_per_s[size]
                for size, share in enumerate(ours.shares[gpu.name])
                if share
            )
            for gpu in problem.gpus
        }
        assert all(load <= ours.counts[name] + 1e-6 for name, load in loads.items())
        assert [sum(column) for column in zip(*ours.shares.values(), strict=True)] == pytest.approx(
            [1.0] * len(problem.requests_per_s)
        )
