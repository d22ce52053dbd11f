"""A day, and in `make test-all` the week."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recompute.case import Case, a_day, a_week


@pytest.fixture(scope="package")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    yield from a_day(tmp_path_factory.mktemp("day"))


@pytest.fixture(scope="package")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    yield from a_week(tmp_path_factory.mktemp("week"))


@pytest.fixture(params=["day", pytest.param("week", marks=pytest.mark.slow)])
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.getfixturevalue(request.param)
    return found
