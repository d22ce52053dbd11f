"""What `wattmix doctor` says of price sources: one real question to each."""

from __future__ import annotations

from collections.abc import Iterator

from app.answers.market_prices import believed
from app.commands.checks import Check
from app.commands.grid_checks import BOUNDS
from app.config import Config
from app.price_settings import PriceSource
from collectors.http.client import Http
from collectors.http.problem import SourceProblem
from collectors.price.registry import PROVIDERS


def price_checks(config: Config, http: Http | None = None) -> Iterator[Check]:
    """Nothing where no [[prices.source]] is configured."""
    asking = http or Http(bounds=BOUNDS)
    for settings in config.prices.source:
        yield _asked(settings, asking)


def _asked(settings: PriceSource, http: Http) -> Check:
    name = f"price source {PROVIDERS[settings.provider].title}, {settings.market}"
    try:
        answer = settings.make(http).prices()
    except SourceProblem as problem:
        return Check("problem", f"{name}: {problem.what} ({problem.where})", problem.advice)
    used, refused = believed((point for point in answer.points if point.market == settings.market), http.utc_now())
    if not used:
        why = f", such as {refused[0][0]}: {refused[0][1]}" if refused else ""
        return Check("problem", f"{name}: no price that is used{why}", "list prices count; try another market")
    left_out = f"; not used: {', '.join(card for card, _ in refused)}" if refused else ""
    cards = "1 card" if len(used) == 1 else f"{len(used)} cards"
    return Check("ok", f"{name}: prices of {cards}{left_out}")
