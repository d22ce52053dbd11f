"""How much of the time in which replicas worked they would have needed at their type's best sustained rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from app.reference.gpus import find_gpu, words
from app.store.benchmarks import best_run_rates
from app.store.reader import Reader
from app.store.replica_rates import best_rates

# Of the hours before a window's end, so many days say what a replica type sustains.
BEST_OF_DAYS = 90
Row = Mapping[str, Any]
_COLUMNS = ("position", "fleet", "model", "gpu_name", "replica_gpus", "node", "gpu", "url", "engine", "label")


class BestRates:
    """Best tokens/s (prompt + generated) by model, card and GPUs: of the store's hours, and of benchmark runs.

    Hours of simulated replicas say nothing of measured ones.
    """

    def __init__(self, store: Reader, until: datetime) -> None:
        self._live: dict[tuple[Any, ...], float] = {
            (row["model"], row["gpu_name"], row["replica_gpus"], row["simulated"]): row["tokens_per_s"]
            for row in best_rates(store, until, BEST_OF_DAYS)
        }
        self._runs: dict[tuple[Any, ...], float] = {}
        for row in best_run_rates(store, until):
            key = (row["model"], _card(row["gpu_name"]), row["gpu_count"])
            self._runs[key] = max(self._runs.get(key, 0.0), row["tokens_per_s"])

    def of(self, row: Row) -> float | None:
        """Of the replica type of a row of use."""
        live = self._live.get((row["model"], row["gpu_name"], row["replica_gpus"], row["simulated"]))
        run = self._runs.get((row["model"], _card(row["gpu_name"]), row["replica_gpus"]))
        return max((rate for rate in (live, run) if rate), default=None)


class WorkingShares:
    """Of rows of use, by the tokens that their replicas made in the same time: min(1, tokens/s / the best rate).

    best None: nobody asks for them. Rows have the same columns but for their sums.
    """

    def __init__(self, best: BestRates | None, used: Sequence[Row], served: Sequence[Row]) -> None:
        self._best = best
        self._used_s: dict[tuple[Any, ...], float] = {}
        self._tokens: dict[tuple[Any, ...], int | None] = {}
        if best is None or not used or not served:
            return
        self._kind = itemgetter(*(name for name in _COLUMNS if name in used[0]))
        for row in used:
            kind = self._kind(row)
            self._used_s[kind] = self._used_s.get(kind, 0.0) + row["used_s"]
        for row in served:
            kind = self._kind(row)
            prompt, generated, before = row["prompt_tokens"], row["generated_tokens"], self._tokens.get(kind, 0)
            known = prompt is not None and generated is not None and before is not None
            self._tokens[kind] = before + prompt + generated if known else None

    def of(self, row: Row) -> tuple[float | None, str | None]:
        """The share, or why it is not known."""
        if self._best is None or not row["used_s"]:
            return 0.0, None
        kind = self._kind(row) if self._tokens else ()
        tokens, best = self._tokens.get(kind), self._best.of(row)
        if tokens is None:
            return None, f"the tokens of {row['model'] or 'an engine'} are not known"
        if best is None:
            return None, f"no rate that {row['model']} sustained on {row['gpu_name']} is known"
        # used_s counts each GPU of a replica.
        return min(1.0, tokens * row["replica_gpus"] / (best * self._used_s[kind])), None


def _card(gpu_name: str) -> object:
    """The same for every spelling of a card."""
    return find_gpu(gpu_name) or words(gpu_name)
