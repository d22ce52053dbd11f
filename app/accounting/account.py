"""The figures of an account by name, of one group and period over one set of tokens and GPUs (design law 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from app import units
from app.accounting.bill import Bill, View
from app.accounting.energy import Boundary, joules_per_token, tokens_per_joule
from app.accounting.figure import Figure, missing, total, weakest
from app.accounting.latency import Bucket, Held, Quantile, merged, quantile
from app.accounting.served import NO_ENGINE, Served
from app.accounting.sums import EmbodiedEnd
from app.accounting.tokens import BASES, Basis, per_mtok
from collectors.samples import LATENCY_METRICS, LatencyMetric

PERCENTILES = (50, 90, 99)
NOT_SEEN = "no GPU was seen"
_PER_MTOK = "gCO2e/Mtok"


@dataclass(slots=True)
class Account:
    """One line. seconds: how much of the period is over.

    latency: buckets of all its engines, in any order. held: requests within their model's SLO; None without one.
    """

    bill: Bill
    basis: Basis
    view: View
    seconds: float
    served: Served = field(default_factory=Served)
    latency: dict[LatencyMetric, list[Bucket]] = field(default_factory=dict)
    held: Held | None = None
    _histograms: dict[LatencyMetric, list[Bucket]] = field(default_factory=dict)

    def figure(self, name: str) -> Figure:
        """The figure of that name; names are those of FIGURES."""
        return FIGURES[name](self)

    def quantile(self, metric: LatencyMetric, percentile: float) -> Quantile:
        """Of all observations of the period."""
        if metric not in self._histograms:
            self._histograms[metric] = merged(self.latency.get(metric, ()))
        return quantile(self._histograms[metric], percentile)

    def hold(self, requests: Held) -> None:
        """Count requests of a model that has an SLO."""
        self.held = (self.held or Held()) + requests

    def cost(self, view: View | None = None) -> Figure:
        if self._was_not_there and not self._is_paid:
            return missing("USD", "measured", self._why_not_there)
        return self.bill.usd(view or self.view)

    def joules(self, view: View | None = None, boundary: Boundary | None = None) -> Figure:
        if self._was_not_there:
            return missing("J", "measured", self._why_not_there)
        return self.bill.joules(view or self.view, boundary)

    def grams(self, view: View | None = None) -> Figure:
        if self._was_not_there:
            return missing("gCO2e", "measured", self._why_not_there)
        return self.bill.grams(view or self.view)

    def market_grams(self) -> Figure:
        if self._was_not_there:
            return missing("gCO2e", "measured", self._why_not_there)
        return self.bill.market_grams(self.view)

    def embodied(self, view: View | None = None, end: EmbodiedEnd = "central") -> Figure:
        """Also of owned GPUs that were off."""
        if self._was_not_there and not self.bill.off_s:
            return missing("gCO2e", "measured", self._why_not_there)
        return self.bill.embodied(view or self.view, end)

    def sci(self, end: EmbodiedEnd = "central") -> Figure:
        """Software carbon intensity (ISO/IEC 21031) = (operational + embodied) per million tokens; location-based."""
        operational, embodied = self.grams(), self.embodied(end=end)
        both = replace(total((operational, embodied), "gCO2e"), coverage=operational.coverage)
        return self.over_mtok(both, self.tokens(), _PER_MTOK)

    def tokens(self) -> Figure:
        """The tokens that divide; missing when they were not made on exactly these GPUs."""
        if not self.served.models:
            return missing("tokens", "measured", f"{NO_ENGINE} on these GPUs")
        if self.served.unplaced:
            reason = f"the GPUs of {self.served.unplaced} of its engines are not known"
            return missing("tokens", self.served.method, reason)
        if self._was_not_there:
            return missing("tokens", self.served.method, self._why_not_there)
        return self.served.tokens(self.basis)

    def count(self, found: Figure) -> Figure:
        return found if self.served.models else missing(found.unit, "measured", NO_ENGINE)

    def cost_input(self) -> Figure:
        """The part of the cost that prompts have."""
        cost, share = self.cost(), self._input_share()
        if cost.value is None or share.value is None:
            return missing("USD", cost.method, str(cost.reason or share.reason))
        return Figure(cost.value * share.value, "USD", weakest((cost.method, share.method)), coverage=cost.coverage)

    def cost_output(self) -> Figure:
        cost, prompts = self.cost(), self.cost_input()
        if cost.value is None or prompts.value is None:
            return prompts
        return replace(prompts, value=cost.value - prompts.value)

    def over_mtok(self, amount: Figure, tokens: Figure, unit: str) -> Figure:
        """`amount` over a million tokens of these GPUs."""
        found = per_mtok(amount, self._divisor(tokens), unit)
        return replace(found, method=weakest((amount.method, tokens.method)))

    def per_second(self, amount: Figure, unit: str, factor: float = 1.0) -> Figure:
        """`amount` over the time of the period that has passed."""
        if amount.value is None:
            return missing(unit, amount.method, str(amount.reason))
        if self.seconds <= 0:
            return missing(unit, amount.method, "the period has not begun")
        return replace(amount, value=amount.value / self.seconds * factor, unit=unit)

    def share_of_time(self, seconds: float) -> Figure:
        """`seconds` over those for which the GPUs were there."""
        if self._was_not_there:
            return missing("share", "measured", self._why_not_there)
        return Figure(min(seconds / self.bill.provisioned_s, 1.0), "share", self.bill.split_method)

    def gpu_hours(self) -> Figure:
        if self._was_not_there and not self._is_paid:
            return missing("GPU-h", "measured", self._why_not_there)
        return Figure(units.hours(self.bill.provisioned_s), "GPU-h", self.bill.split_method)

    def latency_ms(self, metric: LatencyMetric, percentile: float) -> Figure:
        found = self.quantile(metric, percentile)
        if found.value_s is None:
            reason = f"no {metric.upper()} was observed in the period" if self.served.models else NO_ENGINE
            return missing("ms", self.served.method, reason)
        return Figure(units.milliseconds(found.value_s), "ms", self.served.method)

    def observed(self) -> Figure:
        return Figure(self.quantile("ttft", 50).n, "requests", self.served.method)

    def attained(self, *, high: bool) -> Figure:
        """Lower or upper bound of the share of requests within their SLO."""
        if self.held is None:
            return missing("share", self.served.method, "no SLO is set for its models")
        found = self.held.attainment()
        value = found.high if high else found.low
        if value is None:
            return missing("share", self.served.method, "no request in the period")
        return Figure(value, "share", self.served.method)

    @property
    def _was_not_there(self) -> bool:
        return self.bill.provisioned_s <= 0

    @property
    def _is_paid(self) -> bool:
        """Whether GPUs that were not there are paid all the same."""
        return self.bill.off_s + self.bill.added_s > 0

    @property
    def _why_not_there(self) -> str:
        return "its GPUs were not measured" if self.served.models else NOT_SEEN

    def _input_share(self) -> Figure:
        tokens = self.tokens()
        return self.served.input_share() if tokens.value is not None else tokens

    def _divisor(self, tokens: Figure) -> Figure:
        """`tokens`, unless those of the line as a whole may not divide."""
        whole = self.tokens()
        return tokens if whole.value is not None else whole


def _kwh(joules: Figure) -> Figure:
    return replace(joules, value=None if joules.value is None else units.kwh(joules.value), unit="kWh")


def _on_basis(of: Account, name: str, basis: Basis) -> Figure:
    return replace(of, basis=basis).figure(name)


def _both(figure: Figure, tokens: Figure) -> Figure:
    return replace(figure, method=weakest((figure.method, tokens.method)))


FIGURES: Mapping[str, Callable[[Account], Figure]] = {
    "gpu_hours": Account.gpu_hours,
    "cost": Account.cost,
    "cost_used": lambda of: of.cost("used"),
    "cost_working": lambda of: of.cost("used") if of.cost("used").value is None else of.bill.working(),
    "cost_slack": lambda of: of.cost("used") if of.cost("used").value is None else of.bill.slack(),
    "cost_idle": lambda of: of.cost("idle"),
    "cost_unallocated": lambda of: of.cost("unallocated"),
    "cost_input": Account.cost_input,
    "cost_output": Account.cost_output,
    "usd_per_hour": lambda of: of.per_second(of.cost(), "USD/h", units.SECONDS_PER_HOUR),
    "usd_per_mtok": lambda of: of.over_mtok(of.cost(), of.tokens(), "USD/Mtok"),
    "usd_per_mtok_input": lambda of: of.over_mtok(of.cost_input(), of.served.input_tokens(of.basis), "USD/Mtok"),
    "usd_per_mtok_output": lambda of: of.over_mtok(of.cost_output(), of.served.tokens("output"), "USD/Mtok"),
    "energy_kwh": lambda of: _kwh(of.joules()),
    "energy_gpu_kwh": lambda of: _kwh(of.joules(boundary="gpu")),
    "energy_it_kwh": lambda of: _kwh(of.joules(boundary="it")),
    "energy_site_kwh": lambda of: _kwh(of.joules(boundary="site")),
    "energy_active_kwh": lambda of: _kwh(of.joules("used")),
    "energy_idle_kwh": lambda of: _kwh(of.joules("idle")),
    "energy_unallocated_kwh": lambda of: _kwh(of.joules("unallocated")),
    "joules_per_token": lambda of: _both(joules_per_token(of.joules(), of.tokens()), of.tokens()),
    "tokens_per_joule": lambda of: _both(tokens_per_joule(of.joules(), of.tokens()), of.tokens()),
    **{
        f"{name}_{basis}": partial(_on_basis, name=name, basis=basis)
        for name in ("joules_per_token", "tokens_per_joule")
        for basis in BASES
    },
    "mean_power_w": lambda of: of.per_second(of.joules(), "W"),
    "carbon_g": Account.grams,
    "carbon_active_g": lambda of: of.grams("used"),
    "carbon_idle_g": lambda of: of.grams("idle"),
    "carbon_unallocated_g": lambda of: of.grams("unallocated"),
    "g_per_mtok": lambda of: of.over_mtok(of.grams(), of.tokens(), _PER_MTOK),
    "carbon_market_g": Account.market_grams,
    "g_per_mtok_market": lambda of: of.over_mtok(of.market_grams(), of.tokens(), _PER_MTOK),
    "embodied_g": Account.embodied,
    "embodied_low_g": lambda of: of.embodied(end="low"),
    "embodied_high_g": lambda of: of.embodied(end="high"),
    "embodied_active_g": lambda of: of.embodied("used"),
    "embodied_idle_g": lambda of: of.embodied("idle"),
    "embodied_unallocated_g": lambda of: of.embodied("unallocated"),
    "embodied_g_per_mtok": lambda of: of.over_mtok(of.embodied(), of.tokens(), _PER_MTOK),
    "embodied_g_per_mtok_low": lambda of: of.over_mtok(of.embodied(end="low"), of.tokens(), _PER_MTOK),
    "embodied_g_per_mtok_high": lambda of: of.over_mtok(of.embodied(end="high"), of.tokens(), _PER_MTOK),
    "sci_g_per_mtok": Account.sci,
    "sci_g_per_mtok_low": lambda of: of.sci("low"),
    "sci_g_per_mtok_high": lambda of: of.sci("high"),
    "prompt_tokens": lambda of: of.count(of.served.count("prompt_tokens")),
    "cached_tokens": lambda of: of.count(of.served.cached_tokens()),
    "computed_tokens": lambda of: of.count(of.served.tokens("computed")),
    "generated_tokens": lambda of: of.count(of.served.count("generated_tokens")),
    "requests": lambda of: of.count(of.served.count("finished")),
    "failed_requests": lambda of: of.count(of.served.count("failed")),
    "utilisation": lambda of: of.share_of_time(of.bill.used_s),
    "throttled_share": lambda of: of.share_of_time(of.bill.throttled_s),
    **{
        f"{metric}_p{percentile}_ms": partial(Account.latency_ms, metric=metric, percentile=percentile)
        for metric in LATENCY_METRICS
        for percentile in PERCENTILES
    },
    "ttft_n": Account.observed,
    "slo_attainment_low": lambda of: of.attained(high=False),
    "slo_attainment_high": lambda of: of.attained(high=True),
}
