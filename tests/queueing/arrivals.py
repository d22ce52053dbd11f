"""When requests arrive, how long their prompts are and how many tokens are generated for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.simulator.arrays import Bools, Floats, Ints

SECOND_NS = 1_000_000_000
MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400


@dataclass(frozen=True, eq=False)
class Requests:
    """In order of arrival, in nanoseconds since the simulation began. Every request generates a token at least."""

    arrival_ns: Ints
    prompt_tokens: Ints
    generated_tokens: Ints

    def __len__(self) -> int:
        return len(self.arrival_ns)

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(arrival_ns, prompt tokens, generated tokens) of each."""
        columns = (self.arrival_ns, self.prompt_tokens, self.generated_tokens)
        return zip(*(column.tolist() for column in columns), strict=True)

    def where(self, mask: Bools) -> Requests:
        return Requests(self.arrival_ns[mask], self.prompt_tokens[mask], self.generated_tokens[mask])


@dataclass(frozen=True)
class Lengths:
    """Log-normal prompt and output lengths, independent of each other, rounded and cut to 1 ... `longest`.

    The means are those of the distributions before the cut; a sigma (of the logarithm) of 0 makes all alike.
    """

    prompt_tokens: float
    generated_tokens: float
    prompt_sigma: float = 0.7
    generated_sigma: float = 0.6
    longest: int = 8192

    @property
    def tokens(self) -> float:
        """Mean of a request."""
        return self.prompt_tokens + self.generated_tokens

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        """(prompt, generated) tokens of so many requests."""
        return (
            self._drawn(rng, count, self.prompt_tokens, self.prompt_sigma),
            self._drawn(rng, count, self.generated_tokens, self.generated_sigma),
        )

    def _drawn(self, rng: np.random.Generator, count: int, mean: float, sigma: float) -> Ints:
        tokens = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
        return np.clip(np.rint(tokens), 1, self.longest).astype(np.int64)


@dataclass(frozen=True)
class Surge:
    """Seconds since the simulation began in which `factor` times as many come."""

    start_s: int
    end_s: int
    factor: float


# Parts of the busiest hour, by the hour of the day (UTC) and the day of the week from Monday.
BY_HOUR = (
    0.16, 0.12, 0.10, 0.09, 0.10, 0.14, 0.24, 0.42, 0.66, 0.84, 0.94, 0.97, 0.86, 0.92, 1.00, 0.98, 0.93, 0.84, 0.72,
    0.62, 0.54, 0.44, 0.32, 0.22,
)  # fmt: skip
BY_WEEKDAY = (0.88, 0.95, 1.00, 0.92, 0.81, 0.46, 0.40)


@dataclass(frozen=True)
class Curve:
    """Requests per second over days that begin on a Monday at 00:00: straight lines between the hours' middles."""

    busiest_per_s: float
    by_hour: tuple[float, ...] = BY_HOUR
    by_weekday: tuple[float, ...] = BY_WEEKDAY
    surges: tuple[Surge, ...] = ()

    def per_s(self, at_s: Floats) -> Floats:
        hours = (at_s % DAY_S) / HOUR_S
        middles = np.arange(24) + 0.5
        of_day = np.interp(hours, middles, self.by_hour, period=24)
        rates: Floats = self.busiest_per_s * of_day * np.asarray(self.by_weekday)[(at_s // DAY_S).astype(int) % 7]
        for surge in self.surges:
            rates = np.where((at_s >= surge.start_s) & (at_s < surge.end_s), surge.factor * rates, rates)
        return rates


def by_curve(rng: np.random.Generator, curve: Curve, lengths: Lengths, start_s: int, end_s: int) -> Requests:
    """A Poisson process in [start, end), whose rate is that of the curve in the middle of each minute."""
    begins_s = np.arange(start_s, end_s, MINUTE_S)
    spans_s = np.minimum(begins_s + MINUTE_S, end_s) - begins_s
    counts = rng.poisson(curve.per_s(np.asarray(begins_s + MINUTE_S / 2, np.float64)) * spans_s)
    places_s = np.repeat(begins_s, counts) + rng.random(int(counts.sum())) * np.repeat(spans_s, counts)
    return _requests(rng, np.sort(places_s), lengths)


def steadily(rng: np.random.Generator, per_s: float, lengths: Lengths, count: int) -> Requests:
    """So many requests of a Poisson process of one rate; of an infinite one all come at once."""
    gaps_s = np.zeros(count) if np.isinf(per_s) else rng.exponential(1 / per_s, count)
    return _requests(rng, np.cumsum(gaps_s), lengths)


def _requests(rng: np.random.Generator, arrivals_s: Floats, lengths: Lengths) -> Requests:
    prompt, generated = lengths.draw(rng, len(arrivals_s))
    return Requests(np.rint(arrivals_s * SECOND_NS).astype(np.int64), prompt, generated)
