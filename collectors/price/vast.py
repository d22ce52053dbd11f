"""Vast.ai: a marketplace of machines, each with its own price; the median of what is offered, per GPU, no key.

A price is of the whole machine, and storage comes on top. The cheapest offer is seldom one that can be had, so the
median counts; with few machines it jumps from week to week, which is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median
from typing import Any

from collectors.http.address import checked_base_url
from collectors.http.client import Ask, Http
from collectors.http.fields import a_list, an_object
from collectors.price.number import NoPrice, amount, checked_per_gpu, gpu_count, name_of, usd
from collectors.price.point import Market, PricePoint, Refused
from collectors.price.provider import PriceAnswer, answer_of, ask_prices

NAME = "vast"
BASE_URL = "https://console.vast.ai/api/v0"
MOST_OFFERS = 2_000
STORAGE_GB_PER_GPU = 100.0
# A median of fewer machines is a thin market.
THIN_MARKET = 5
_HOURS_PER_MONTH = 720.0
_MB_PER_GB = 1024.0
# Drivers tell a card's memory within a few per cent; the cards of one name that differ do so by a half or more.
_SAME_MEMORY = 1.15
_PRICES: Mapping[Market, str] = {"on_demand": "dph_base", "spot": "min_bid"}
MARKETS = tuple(_PRICES)


class Vast:
    name = NAME

    def __init__(self, http: Http, *, base_url: str = BASE_URL) -> None:
        self._http = http
        self._base_url = checked_base_url(base_url)

    def prices(self) -> PriceAnswer:
        body = {
            "rentable": {"eq": True}, "rented": {"eq": False}, "order": [["score", "desc"]], "limit": MOST_OFFERS,
        }  # fmt: skip
        ask = Ask(self.name, self._base_url, "/bundles/", "offers of machines", body=body)
        return ask_prices(self._http, ask, read_bundles)


@dataclass(frozen=True)
class _Offer:
    gpu_name: str
    memory_gb: float | None
    machine: str
    usd_per_gpu_hour: float
    region: str | None


def read_bundles(data: Any, as_of: datetime) -> PriceAnswer:
    """The medians of an answer by GPU and market. Raises UnusableAnswer."""
    rows = a_list(an_object(data, "the answer").get("offers"), "`offers`")
    machines = [row for row in rows if isinstance(row, dict) and row.get("rented") is not True]
    on_offer = [row for row in machines if row.get("rentable") is not False]
    points: list[PricePoint] = []
    refused: list[Refused] = []
    for market, price in _PRICES.items():
        offers: list[_Offer] = []
        for number, row in enumerate(on_offer):
            gpu_name = name_of(row.get("gpu_name")) or "unknown"
            try:
                offers.append(_offer(row, number, price))
            except NoPrice as reason:
                refused.append(Refused(gpu_name, market, str(reason)))
        points += [_point(group, market, as_of) for group in _by_card(offers)]
    return answer_of(points, refused, _notes(on_offer, len(rows)))


def _offer(row: Mapping[str, Any], number: int, price: str) -> _Offer:
    gpu_name = name_of(row.get("gpu_name"))
    if gpu_name is None:
        raise NoPrice("its `gpu_name` is no name")
    gpus = gpu_count(row.get("num_gpus"), "`num_gpus`")
    machine_usd = usd(row.get(price), f"`{price}`")
    # A machine with less disk than that is rented with the disk it has.
    disk_gb = row.get("disk_space")
    storage_gb = STORAGE_GB_PER_GPU * gpus
    if disk_gb is not None:
        storage_gb = min(storage_gb, amount(disk_gb, "`disk_space`"))
    storage_usd = storage_gb * amount(row.get("storage_cost"), "`storage_cost`") / _HOURS_PER_MONTH
    return _Offer(
        gpu_name=gpu_name,
        memory_gb=_memory_gb(row.get("gpu_ram")),
        machine=_machine(row, number),
        usd_per_gpu_hour=checked_per_gpu((machine_usd + storage_usd) / gpus),
        region=name_of(row.get("geolocation")),
    )


def _memory_gb(megabytes: object) -> float | None:
    try:
        return amount(megabytes, "`gpu_ram`") / _MB_PER_GB or None
    except NoPrice:
        return None  # the price is none the worse for it


def _machine(row: Mapping[str, Any], number: int) -> str:
    """One machine may be offered whole and in parts."""
    for key in ("machine_id", "id"):
        if isinstance(row.get(key), int | str):
            return f"{key} {row[key]}"
    return f"row {number}"


def _by_card(offers: Sequence[_Offer]) -> list[list[_Offer]]:
    """Offers of one name and about one size of memory: `A100 SXM4` is of 40 and of 80 GB."""
    groups: list[list[_Offer]] = []
    ordered = sorted(offers, key=lambda offer: (offer.gpu_name, offer.memory_gb or 0.0))
    for offer in ordered:
        first = groups[-1][0] if groups else None
        if first is not None and first.gpu_name == offer.gpu_name and _same_memory(first.memory_gb, offer.memory_gb):
            groups[-1].append(offer)
        else:
            groups.append([offer])
    return groups


def _same_memory(smaller: float | None, larger: float | None) -> bool:
    if smaller is None or larger is None:
        return smaller is larger
    return larger <= smaller * _SAME_MEMORY


def _point(offers: Sequence[_Offer], market: Market, as_of: datetime) -> PricePoint:
    by_machine = groupby(sorted(offers, key=lambda offer: offer.machine), key=lambda offer: offer.machine)
    prices = [median(offer.usd_per_gpu_hour for offer in of_machine) for _, of_machine in by_machine]
    regions = {offer.region for offer in offers}
    memory_gb = offers[-1].memory_gb
    thin = f"thin market: the median of {len(prices)} machine{'s' if len(prices) > 1 else ''}"
    return PricePoint(
        gpu_name=offers[0].gpu_name, usd_per_gpu_hour=median(prices), market=market, per="instance",
        count=len(prices), as_of=as_of, provider=NAME, region=regions.pop() if len(regions) == 1 else None,
        memory_gb=None if memory_gb is None else round(memory_gb),
        cautions=(thin,) if len(prices) < THIN_MARKET else (),
    )  # fmt: skip


def _notes(on_offer: Sequence[Mapping[str, Any]], answered: int) -> list[str]:
    notes = []
    unverified = sum(1 for row in on_offer if row.get("verification", "verified") != "verified")
    if unverified:
        notes.append(f"{unverified} of {len(on_offer)} offers are of machines that Vast has not verified")
    if answered >= MOST_OFFERS:
        notes.append(f"the answer is cut at {answered} offers: the medians are of these")
    return notes
