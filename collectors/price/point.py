"""One price of renting one GPU for an hour, of one provider and one market, with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

# secure, community: the two clouds of RunPod. on_demand: a marketplace, not to be taken away. spot: may be.
Market = Literal["secure", "community", "spot", "on_demand"]
Per = Literal["gpu", "instance"]

# No single GPU is rented for more; what is above is another unit or a fault.
MAX_USD_PER_GPU_HOUR = 1000.0


@dataclass(frozen=True)
class PricePoint:
    """gpu_name: as the source spells it. memory_gb tells cards of one name apart; None where it is not told.

    usd_per_gpu_hour: always of one GPU, above 0. per: what the source's own price is for.
    count:    how many offers it rests on; 1 for a list price.
    as_of:    when the source said so.
    region:   None where it holds for several, or the source does not tell.
    cautions: what to know before it is used, in words.
    """

    gpu_name: str
    usd_per_gpu_hour: float
    market: Market
    per: Per
    count: int
    as_of: datetime
    provider: str
    region: str | None = None
    memory_gb: int | None = None
    cautions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.gpu_name or not self.provider:
            raise ValueError("a price names its GPU and its provider")
        if self.market not in get_args(Market) or self.per not in get_args(Per):
            raise ValueError(f"{self.market!r}, {self.per!r} are no market and unit of a price")
        if not 0 < self.usd_per_gpu_hour <= MAX_USD_PER_GPU_HOUR:  # NaN is not, either
            raise ValueError(f"{self.usd_per_gpu_hour} USD/GPU-h is not above 0 and at most {MAX_USD_PER_GPU_HOUR:g}")
        if self.count < 1:
            raise ValueError(f"a price rests on at least one offer, not {self.count}")
        if self.as_of.utcoffset() != timedelta(0):
            raise ValueError(f"`as_of` of a price is in UTC, not {self.as_of.isoformat()}")


@dataclass(frozen=True)
class Refused:
    """A price that a source gave and that is not used, or did not give; reason: why, in words."""

    gpu_name: str
    market: Market
    reason: str
