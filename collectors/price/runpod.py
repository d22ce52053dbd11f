"""RunPod: list prices of its secure and its community cloud, and the lowest spot bid; per GPU, no key.

Its GPU ids are the names of NVML. The question is GraphQL's: an answer of HTTP 200 may be a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from collectors.http.address import checked_base_url
from collectors.http.client import Ask, Http
from collectors.http.fields import a_list, an_object
from collectors.http.problem import UnusableAnswer
from collectors.http.status import graphql_words
from collectors.price.number import NoPrice, checked_per_gpu, name_of, usd
from collectors.price.point import Market, PricePoint, Refused
from collectors.price.provider import PriceAnswer, answer_of, ask_prices

NAME = "runpod"
BASE_URL = "https://api.runpod.io"
# The lowest price is asked for one GPU, so it is per GPU like the others.
QUERY = (
    "query { gpuTypes { id memoryInGb secureCloud communityCloud securePrice communityPrice"
    " lowestPrice(input: {gpuCount: 1}) { minimumBidPrice stockStatus } } }"
)
_OUT_OF_STOCK = "none in stock when asked: a list price"


class RunPod:
    name = NAME

    def __init__(self, http: Http, *, base_url: str = BASE_URL) -> None:
        self._http = http
        self._base_url = checked_base_url(base_url)

    def prices(self) -> PriceAnswer:
        ask = Ask(self.name, self._base_url, "/graphql", "prices of all GPUs", body={"query": QUERY})
        return ask_prices(self._http, ask, read_gpu_types)


def read_gpu_types(data: Any, as_of: datetime) -> PriceAnswer:
    """The prices of an answer, each cloud apart. Raises UnusableAnswer, also for one with `errors`.

    GraphQL may send errors beside data; which nulls are then missing and which not offered cannot be told.
    """
    answer = an_object(data, "the answer")
    errors = answer.get("errors")
    if errors:
        raise UnusableAnswer(
            f"GraphQL refuses the question: {graphql_words(errors) or 'it does not say why'}", "refused"
        )
    rows = a_list(an_object(answer.get("data"), "`data`").get("gpuTypes"), "`data.gpuTypes`")
    points: list[PricePoint] = []
    refused: list[Refused] = []
    for row in rows:
        gpu = row if isinstance(row, dict) else {}
        gpu_name = name_of(gpu.get("id"))
        for market, read in _MARKETS.items():
            if gpu_name is None:
                refused.append(Refused("unknown", market, "its `id` is no name"))
                continue
            try:
                points.append(_point(gpu, gpu_name, market, checked_per_gpu(read(gpu)), as_of))
            except NoPrice as reason:
                refused.append(Refused(gpu_name, market, str(reason)))
    return answer_of(points, refused)


def _point(gpu: Mapping[str, Any], gpu_name: str, market: Market, price: float, as_of: datetime) -> PricePoint:
    memory = gpu.get("memoryInGb")
    known = isinstance(memory, int) and not isinstance(memory, bool) and memory > 0
    return PricePoint(
        gpu_name=gpu_name, usd_per_gpu_hour=price, market=market, per="gpu", count=1, as_of=as_of, provider=NAME,
        memory_gb=memory if known else None, cautions=() if _lowest(gpu).get("stockStatus") else (_OUT_OF_STOCK,),
    )  # fmt: skip


def _of_cloud(flag: str, price: str) -> Callable[[Mapping[str, Any]], float]:
    def read(gpu: Mapping[str, Any]) -> float:
        if gpu.get(flag) is False:  # a price that is left over from when it was
            raise NoPrice(f"`{flag}` is false: not offered there")
        return usd(gpu.get(price), f"`{price}`")

    return read


def _bid(gpu: Mapping[str, Any]) -> float:
    return usd(_lowest(gpu).get("minimumBidPrice"), "`minimumBidPrice`")


def _lowest(gpu: Mapping[str, Any]) -> Mapping[str, Any]:
    lowest = gpu.get("lowestPrice")
    return lowest if isinstance(lowest, dict) else {}


_MARKETS: Mapping[Market, Callable[[Mapping[str, Any]], float]] = {
    "secure": _of_cloud("secureCloud", "securePrice"),
    "community": _of_cloud("communityCloud", "communityPrice"),
    "spot": _bid,
}
MARKETS = tuple(_MARKETS)
