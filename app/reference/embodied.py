"""Embodied carbon of cards from the shipped table: every estimate by its method, one method to a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from app.accounting.carbon import EmbodiedMethod, Spread
from app.reference.gpus import display_name, find_gpu, words
from app.reference.tables import read_table

# Whose method a row's is. Rows of whole machines are of neither and are no card's.
_WHOSE: Mapping[str, EmbodiedMethod | None] = {
    "vendor_pcf": "pcf", "boavizta_named": "boavizta", "boavizta_by_die": "boavizta", "peer_lca": None,
    "paper_estimate": None,
}  # fmt: skip
_ANY = ("(any)",)


@lru_cache(maxsize=4096)
def embodied_kg(gpu_name: str, whose: EmbodiedMethod) -> Spread | str:
    """Kilograms to make the card by that method, between the least and the most of all methods; why it is not known.

    A figure of another card is never taken for it, however alike they are.
    """
    found = [(method, kg) for item, method, kg in _rows() if _is_of(item, gpu_name)]
    figures = [kg for _, kg in found]
    chosen = next((kg for method, kg in found if method == whose), None)
    if chosen is not None:
        return Spread(min(figures), chosen, max(figures))
    others = sorted({method for method, _ in found if method is not None})
    known = f"; {' and '.join(others)} has one" if others else ""
    return f"no {whose} figure of making {display_name(gpu_name)}{known}"


@cache
def _rows() -> tuple[tuple[tuple[str, ...], EmbodiedMethod | None, float], ...]:
    """(words of the card, whose, kilograms)."""
    return tuple(
        (words(row["item"]), _WHOSE[row["method"]], float(row["kg_co2e"]))
        for row in read_table("gpu_embodied")
        if row["method"] in _WHOSE
    )


def _is_of(item: tuple[str, ...], gpu_name: str) -> bool:
    """Whether a row is of the card: `H100 SXM5 80GB`, `MI300X 192GB` with its memory, `A100 (any)` in every form."""
    card = words(display_name(gpu_name))
    if item[-1:] == _ANY:
        return item[:-1] == card[: len(item) - 1]
    if words(gpu_name)[-len(item) :] == item:
        return True
    return _spec_of(item) is not None and _spec_of(item) == find_gpu(gpu_name)


@cache
def _spec_of(item: tuple[str, ...]) -> object:
    without_memory = item[:-1] if item[-1].endswith("gb") else item
    return find_gpu(" ".join(item)) or find_gpu(" ".join(without_memory))
