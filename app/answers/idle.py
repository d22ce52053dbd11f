"""Question: which GPUs idle or have no engine, and what does that cost?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.accounting.account import Account
from app.accounting.figure import Figure, total
from app.accounting.periods import Period
from app.answers.account import accounts_of
from app.answers.figures import as_json
from app.answers.query import AccountQuery
from app.config import Config
from app.store.database import Store

FIGURES = ("cost_idle", "cost_unallocated", "cost", "utilisation", "gpu_hours")


def idle_gpus(store: Store, config: Config, query: AccountQuery, now: datetime, most: int = 10) -> dict[str, Any]:
    """The GPUs that cost most while nothing worked on them, the dearest first; `others`: how many more there are."""
    asked = replace(query, by="gpu", view="bill", step=None, figures=FIGURES)
    found = accounts_of(store, config, asked, [Period(query.start, query.end, "")], now, engines=False)
    wasted = {key: _wasted(found.line(0, key)) for key in found.keys}
    worst = sorted(wasted, key=lambda key: -(wasted[key].value or 0.0))
    some = [key for key in worst if wasted[key].value != 0]
    return {
        "gpus": [_row(found.named(key), found.line(0, key), wasted[key]) for key in some[:most]],
        "others": max(len(some) - most, 0),
        "total": as_json(_wasted(found.total())),
    }


def _wasted(account: Account) -> Figure:
    return total((account.figure("cost_idle"), account.figure("cost_unallocated")), "USD")


def _row(named: Mapping[str, str | None], account: Account, wasted: Figure) -> dict[str, Any]:
    known = {name: named.get(name) for name in ("gpu", "node", "gpu_name")}
    return known | {"wasted": as_json(wasted)} | {name: as_json(account.figure(name)) for name in FIGURES}
