"""The limits of a demand, each with what it forbids in the program of the demand without any.

Limits are each SLO of a class, the fleets and zones it may use, its share limits, the GPUs of a fleet and the caps.
What is measured and what is asked for are none: no relaxation changes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from app.split.demand import Demand, Policy, Slo, WorkloadClass
from app.split.mixed import Row, RowKind
from app.split.options import Option, admit, in_zones, slo_failure
from app.split.program import SplitProgram, build_wide_program

UNITS: dict[RowKind, str] = {
    "gpus": "GPUs", "share_min": "share", "share_max": "share", "watts": "W", "usd": "USD/h", "grams": "g/h",
}  # fmt: skip


@dataclass(frozen=True)
class Limit:
    """text: in words. blocked: columns of shares that it holds at 0, with what would let each in: the milliseconds
    measured there, or the fleet's or zone's name; None where nothing would. row: that it is, for the others.
    """

    text: str
    unit: str
    given: float | None = None
    subject: str = ""
    blocked: dict[int, float | str | None] = field(default_factory=dict)
    row: int | None = None


@dataclass(frozen=True)
class Wide:
    """The program without any limit of admission, and the limits, of which any may be left out.

    hopeless: classes without an option even so.
    """

    split: SplitProgram
    limits: tuple[Limit, ...]
    hopeless: tuple[str, ...]


def wide_program(demand: Demand, options: Sequence[Option]) -> Wide:
    open_demand = demand.model_copy(
        update={
            "classes": tuple(
                one.model_copy(update={"slo": (), "fleets": None, "zones": None}) for one in demand.classes
            )
        }
    )
    unlimited = [
        replace(option, fleet=replace(option.fleet, offer=option.fleet.offer.model_copy(update={"max_gpus": None})))
        for option in options
    ]
    admission = admit(open_demand, unlimited)
    split = build_wide_program(open_demand, admission)
    loaded = [one for one in demand.classes if one.tokens_per_s > 0]
    limits = [limit for one in loaded for limit in _of_class(demand, one, split)]
    limits += [_of_row(index, row) for index, row in enumerate(split.program.rows) if row.kind in UNITS]
    return Wide(
        split=split,
        limits=tuple(limits),
        hopeless=tuple(one.name for one in loaded if not admission.admissible[one.name]),
    )


def _of_class(demand: Demand, one: WorkloadClass, split: SplitProgram) -> Iterator[Limit]:
    """The class's limits of admission that bar any option."""
    mine = [
        (column, split.columns.options[index])
        for column, whose, index in split.columns.shares()
        if whose.name == one.name
    ]
    for slo in one.slo:
        measured = {
            column: _lets_in(one, slo, option, demand.solve.small_samples)
            for column, option in mine
            if slo_failure(one, [slo], option, demand.solve.small_samples)
        }
        if measured:
            yield Limit(f"{one.name}: {slo.label}", "ms", slo.max_ms, f"{slo.name} of {one.name}", dict(measured))
    fleets = {column: option.fleet.name for column, option in mine if option.fleet.name not in (one.fleets or ())}
    if one.fleets is not None and fleets:
        yield Limit(f"{one.name} only on {_listed(one.fleets)}", "fleet", None, one.name, dict(fleets))
    zones = {column: option.fleet.offer.zone for column, option in mine if not in_zones(one.zones, option.fleet)}
    if zones:
        yield Limit(f"{one.name} only in {_listed(one.zones or ())}", "zone", None, one.name, dict(zones))


def _lets_in(one: WorkloadClass, slo: Slo, option: Option, policy: Policy) -> float | None:
    """The SLO in ms at which the option would be in; None where it is out whatever the limit."""
    value_ms, _ = option.point.slo_value_ms(slo, policy)
    if value_ms is None or slo_failure(one, [slo.model_copy(update={"max_ms": value_ms})], option, policy):
        return None
    return value_ms


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _of_row(index: int, row: Row) -> Limit:
    bound = (row.low if row.kind == "share_min" else row.high) * row.scale
    return Limit(row_text(row, bound), UNITS[row.kind], bound, " of ".join(row.subject), row=index)


def row_text(row: Row, bound: float) -> str:
    """E.g. "h100 <= 2 GPUs"."""
    name, fleet = (*row.subject, "", "")[:2]
    words: dict[RowKind, str] = {
        "gpus": f"{name} <= {bound:,.0f} GPUs",
        "share_min": f"at least {bound:.4g} of {name} on {fleet}",
        "share_max": f"at most {bound:.4g} of {name} on {fleet}",
        "watts": f"<= {bound:,.6g} W",
        "usd": f"<= ${bound:,.6g}/h",
        "grams": f"<= {bound:,.6g} g/h",
    }
    return words[row.kind]
