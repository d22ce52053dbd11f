"""A day, and in `make test-all` the week, simulated and stored once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.queueing.stored import Stored, stored_in
from tests.queueing.week import a_day, a_week


@pytest.fixture(scope="session", params=["day", pytest.param("week", marks=pytest.mark.slow)])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    is_week = request.param == "week"
    simulated = a_week() if is_week else a_day()
    with stored_in(tmp_path_factory.mktemp(request.param), simulated, is_week=is_week) as found:
        yield found
