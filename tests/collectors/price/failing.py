"""A source of prices whose provider answers with something else."""

from __future__ import annotations

import pytest

from collectors.http.problem import SourceProblem
from collectors.price.provider import PriceProvider
from tests.collectors.http.playing import Player, Reply


def told(source: PriceProvider, played: Player, reply: Reply, kind: str) -> str:
    """The problem, of that kind, in words."""
    played.always(reply)
    with pytest.raises(SourceProblem) as raised:
        source.prices()
    assert raised.value.kind == kind
    assert "zone" not in str(raised.value)  # the advice is about prices
    return str(raised.value)


def check_left_alone(source: PriceProvider, played: Player) -> None:
    with pytest.raises(SourceProblem, match="not asked again for"):
        source.prices()
    assert len(played.asked) == 1
