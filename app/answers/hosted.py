"""Question: would the same tokens have cost less from a provider, and from which load on would they not?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from app import units
from app.accounting.account import Account
from app.accounting.comparison import against, break_even_tokens_per_hour, hosted_usd_per_mtok
from app.accounting.figure import Figure, missing, weakest
from app.accounting.periods import Period
from app.accounting.tokens import per_mtok
from app.answers.account import accounts_of
from app.answers.accounts import Accounts
from app.answers.figures import as_json
from app.answers.query import AccountQuery
from app.config import Config
from app.facts.book import FactBook
from app.facts.fact import Fact
from app.facts.kinds import HostedPrice
from app.store.database import Store
from app.store.facts import fact_book

_FIGURES = ("cost", "usd_per_hour", "usd_per_mtok", "prompt_tokens", "computed_tokens", "generated_tokens")


def hosted_comparison(store: Store, config: Config, query: AccountQuery, now: datetime) -> list[dict[str, Any]]:
    """A row per hosted price in force at the end of the range.

    A price of a model that engines serve is held against that model's part of the bill, any other against the whole.
    The break-even load takes the bill of an hour as it is: for owned GPUs electricity counts as at the present load.
    """
    book = fact_book(store, query.known_at)
    offers = list(_offers(book, min(query.end, now)))
    if not offers:
        return []
    asked = replace(query, by="model", view="bill", step=None, figures=_FIGURES)
    found = accounts_of(store, config, asked, [Period(query.start, query.end, "")], now)
    return [_row(fact, price, found) for fact, price in offers]


def _offers(book: FactBook, moment: datetime) -> Iterator[tuple[Fact, HostedPrice]]:
    for subject in book.subjects("hosted_price"):
        fact = book.at("hosted_price", subject, moment)
        if fact is not None and isinstance(fact.value, HostedPrice):
            yield fact, fact.value


def _row(fact: Fact, price: HostedPrice, found: Accounts) -> dict[str, Any]:
    provider, name = fact.subject.split("/", 1)
    model, account = _compared(found, name)
    prompt, generated = account.figure("prompt_tokens"), account.figure("generated_tokens")
    per_token_mix, paid = _paid(price, prompt, generated)
    hosted = per_mtok(paid, account.tokens(), "USD/Mtok")
    own = account.figure("usd_per_mtok")
    return {
        "provider": provider,
        "hosted_model": name,
        "model": model,
        "input_usd_per_mtok": price.input_usd_per_mtok,
        "output_usd_per_mtok": price.output_usd_per_mtok,
        "valid_from": fact.valid_from.isoformat(),
        "source": fact.source,
        "cost": as_json(account.figure("cost")),
        "hosted_cost": as_json(paid),
        "usd_per_mtok": as_json(own),
        "hosted_usd_per_mtok": as_json(hosted),
        "own_against_hosted": as_json(against(own, hosted)),
        "tokens_per_hour": as_json(_load(account, prompt, generated)),
        "break_even_tokens_per_hour": as_json(
            break_even_tokens_per_hour(account.figure("usd_per_hour"), per_token_mix)
        ),
    }


def _compared(found: Accounts, name: str) -> tuple[str | None, Account]:
    """The model of that name and its account; None and the whole where no engine serves it."""
    wanted = name.casefold()
    for key in found.keys:
        model = dict(key)["model"]
        if model is not None and wanted in (model.casefold(), model.rsplit("/", 1)[-1].casefold()):
            return model, found.line(0, key)
    return None, found.total()


def _paid(price: HostedPrice, prompt: Figure, generated: Figure) -> tuple[float | None, Figure]:
    """What a provider asks for a million tokens of this mix, and for all of them."""
    method = weakest((prompt.method, generated.method, "user"))
    if prompt.value is None or generated.value is None:
        return None, missing("USD", method, str(prompt.reason or generated.reason))
    mix = hosted_usd_per_mtok(price.input_usd_per_mtok, price.output_usd_per_mtok, prompt.value, generated.value)
    if mix is None:
        return None, missing("USD", method, "no tokens")
    return mix, Figure(mix * units.mtok(prompt.value + generated.value), "USD", method)


def _load(account: Account, prompt: Figure, generated: Figure) -> Figure:
    """Prompt and generated tokens an hour, over the range."""
    if prompt.value is None or generated.value is None:
        return missing("tokens/h", prompt.method, str(prompt.reason or generated.reason))
    tokens = Figure(prompt.value + generated.value, "tokens", weakest((prompt.method, generated.method)))
    return account.per_second(tokens, "tokens/h", units.SECONDS_PER_HOUR)
