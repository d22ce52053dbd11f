"""Answers from the store that this process has open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.accounting.energy import Boundary
from app.accounting.line import AccountLine
from app.accounting.periods import Period
from app.accounting.tokens import Basis
from app.answers.account import account_lines
from app.answers.carbon import carbon, carbon_and_summary
from app.answers.choices import account_names
from app.answers.curves import LiveCurves, live_curves, measure_curves
from app.answers.facts import add_fact, facts_as_json, fleets_in_force, import_facts
from app.answers.grid import GridQuery, grid
from app.answers.health import health
from app.answers.hosted import hosted_comparison
from app.answers.idle import idle_gpus
from app.answers.latency import Wanted, latency
from app.answers.live import WINDOW_S, live
from app.answers.live_demand import live_demand
from app.answers.measured_knobs import Measured, measured_knobs
from app.answers.owning import rent_or_own
from app.answers.power_load import power_load
from app.answers.price_changes import price_changes
from app.answers.query import AccountQuery
from app.answers.runs import Assume, Present, account_runs, run_row
from app.answers.scenarios import asked_demand, drop_scenario, keep_scenario, scenarios_as_json
from app.answers.split import default_demand, split_as_json, starting_knobs, with_options
from app.answers.split_export import export_split
from app.answers.split_front import CARBON, split_front
from app.answers.split_plan import HOURS, split_plan
from app.answers.split_robustness import split_robustness
from app.answers.split_shadow import split_shadow
from app.answers.split_today import split_today
from app.answers.study import study_findings
from app.answers.summary import series, summary
from app.config import Config
from app.reports.report import Progress, Report, build_report, untold
from app.reports.request import Request
from app.reports.runs import run_by_hand, schedules_as_json, written_file
from app.split.demand import Demand
from app.split.options import Option
from app.split.recommend import recommend
from app.split.router_files import RouterFormat
from app.store.benchmarks import Added, add_runs, read_runs
from app.store.choices import fleet_cards
from app.store.database import Store
from app.store.facts import fact_book
from app.store.tokens import Scope, create_token, list_tokens, revoke_token
from collectors.benchmark.run import BenchmarkRun


class LocalBackend:
    """Answers from an open store. Runs are read once per store revision."""

    def __init__(self, store: Store, config: Config) -> None:
        self.store = store
        self.config = config
        self._runs: tuple[int, list[BenchmarkRun]] | None = None
        self.tokens_changed: Callable[[], None] = lambda: None

    def runs(self) -> list[BenchmarkRun]:
        revision = self.store.benchmarks_revision
        if self._runs is None or self._runs[0] != revision:
            self._runs = (revision, read_runs(self.store))
        return self._runs[1]

    def add_runs(self, runs: Sequence[BenchmarkRun]) -> Added:
        return add_runs(self.store, runs)

    def run_rows(
        self, *, model: str | None = None, gpu: str | None = None, assume: Assume = "corrected"
    ) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        present = Present(fact_book(self.store), self.config, now, fleet_cards(self.store, now))
        accounts = account_runs(self.runs(), present, model=model, gpu=gpu, assume=assume)
        return [run_row(account) for account in accounts]

    def study(self) -> dict[str, Any] | None:
        return study_findings(self.runs())

    def default_demand(self) -> Demand:
        return default_demand(self.config, fact_book(self.store), datetime.now(UTC))

    def knobs(self, demand: Demand) -> dict[str, float | None]:
        return starting_knobs(demand, self.config)

    def measured_knobs(self, demand: Demand) -> dict[str, Measured]:
        """What the what-if knobs of `demand` are at now, as far as that is measured or in force."""
        return measured_knobs(self.store, self.config, demand, datetime.now(UTC))

    def asked_demand(self, words: Mapping[str, Any]) -> Demand:
        """What an address asks for: the configured demand, or that of its `scenario`, with its knobs turned."""
        return asked_demand(self.store, self.default_demand(), words)

    def scenarios(self) -> list[dict[str, Any]]:
        return scenarios_as_json(self.store)

    def save_scenario(self, name: str, demand: Demand) -> dict[str, Any]:
        return keep_scenario(self.store, name, demand, datetime.now(UTC))

    def delete_scenario(self, name: str) -> None:
        drop_scenario(self.store, name)

    def split(self, demand: Demand | None = None) -> dict[str, Any]:
        """Of the configured demand where none is given."""
        return split_as_json(recommend(*self._with_options(demand)))

    def curves(self, demand: Demand, now: datetime) -> LiveCurves | None:
        """What live load says for a demand; None where it asks for runs only."""
        return None if demand.solve.sources == "runs" else measure_curves(self.store, self.config, now)

    def live_demand(self) -> Demand:
        """What is asked of the fleets, as measured."""
        return live_demand(self.store, self.config, fact_book(self.store), datetime.now(UTC))

    def live_curves(self) -> dict[str, Any]:
        """What replicas did at which load."""
        return live_curves(self.store, self.config, self.runs(), datetime.now(UTC))

    def split_front(self, demand: Demand | None = None, *, against: str = CARBON) -> dict[str, Any]:
        """Cost against `carbon`, or against an SLO: slo.<class>."""
        return split_front(*self._with_options(demand), against)

    def split_shadow(self, demand: Demand | None = None) -> dict[str, Any]:
        return split_shadow(*self._with_options(demand))

    def split_robustness(self, demand: Demand | None = None, *, inputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Of all inputs, or of those named; none at all tells their names at once."""
        return split_robustness(*self._with_options(demand), inputs)

    def split_plan(self, demand: Demand | None = None, *, hours: int = HOURS) -> dict[str, Any]:
        """Of the next hours, from the first full one on."""
        asked, options = self._with_options(demand)
        return split_plan(self.store, self.config, asked, options, datetime.now(UTC), hours)

    def export_split(self, demand: Demand | None, form: RouterFormat) -> str:
        """The same mix as the settings of a router."""
        return export_split(self.store, *self._with_options(demand), form, datetime.now(UTC))

    def _with_options(self, demand: Demand | None) -> tuple[Demand, list[Option]]:
        book, now = fact_book(self.store), datetime.now(UTC)
        asked = demand or default_demand(self.config, book, now)
        return with_options(asked, self.runs(), self.config, book, now, self.curves(asked, now))

    def health(self) -> dict[str, Any]:
        return health(self.store, datetime.now(UTC), self.config)

    def grid(self, query: GridQuery) -> dict[str, Any]:
        return grid(self.store, self.config, query, datetime.now(UTC))

    def live(self, *, window_s: int = WINDOW_S, at: datetime | None = None) -> dict[str, Any]:
        """As of now, or of an earlier moment of which raw samples are kept."""
        return live(self.store, self.config, at or datetime.now(UTC), window_s=window_s)

    def account(
        self, periods: Sequence[Period], *, boundary: Boundary, basis: Basis, now: datetime, known_at: datetime | None
    ) -> list[AccountLine]:
        return account_lines(
            self.store, self.config, periods, boundary=boundary, basis=basis, now=now, known_at=known_at
        )

    def account_names(self) -> dict[str, list[str]]:
        """Of which fleets and models an account can be asked."""
        return account_names(self.store)

    def summary(self, query: AccountQuery) -> dict[str, Any]:
        return summary(self.store, self.config, query, datetime.now(UTC))

    def series(self, query: AccountQuery) -> dict[str, Any]:
        return series(self.store, self.config, query, datetime.now(UTC))

    def latency(self, query: AccountQuery, wanted: Wanted | None = None) -> dict[str, Any]:
        return latency(self.store, self.config, query, datetime.now(UTC), wanted)

    def power_load(self, query: AccountQuery) -> dict[str, Any]:
        return power_load(self.store, self.config, query, datetime.now(UTC))

    def carbon(self, query: AccountQuery) -> dict[str, Any]:
        """What grams stand on, what moved them, and when and where they would be fewer."""
        return carbon(self.store, self.config, query, datetime.now(UTC))

    def carbon_and_summary(self, query: AccountQuery) -> tuple[dict[str, Any], dict[str, Any]]:
        """What `carbon` and `summary` answer, of one reading of the range. query: see there."""
        return carbon_and_summary(self.store, self.config, query, datetime.now(UTC))

    def price_changes(self, query: AccountQuery) -> list[dict[str, Any]]:
        return price_changes(self.store, query)

    def idle_gpus(self, query: AccountQuery) -> dict[str, Any]:
        return idle_gpus(self.store, self.config, query, datetime.now(UTC))

    def split_today(self, query: AccountQuery) -> dict[str, Any]:
        """The split as measured beside the recommendation for the configured demand."""
        now = datetime.now(UTC)
        return split_today(self.store, self.config, query, now, self.default_demand(), self.split)

    def hosted_comparison(self, query: AccountQuery) -> list[dict[str, Any]]:
        return hosted_comparison(self.store, self.config, query, datetime.now(UTC))

    def rent_or_own(self, query: AccountQuery) -> list[dict[str, Any]]:
        return rent_or_own(self.store, self.config, query, datetime.now(UTC))

    def report(self, request: Request, progress: Progress = untold) -> Report:
        return build_report(request, self.account, datetime.now(UTC), progress)

    def scheduled_reports(self) -> list[dict[str, Any]]:
        return schedules_as_json(self.store, self.config, datetime.now(UTC))

    def run_scheduled_report(self, name: str) -> dict[str, Any]:
        return run_by_hand(self.store, self.config, name, self.account, datetime.now(UTC))

    def report_file(self, name: str, file: str) -> Path:
        return written_file(self.store, name, file)

    def facts(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        at: datetime | None = None,
        known_at: datetime | None = None,
    ) -> dict[str, Any]:
        return facts_as_json(self.store, datetime.now(UTC), kind=kind, subject=subject, at=at, known_at=known_at)

    def fleets_in_force(self) -> list[dict[str, Any]]:
        return fleets_in_force(self.store, self.config, datetime.now(UTC))

    def import_facts(self, text: str, file: str) -> dict[str, Any]:
        return import_facts(self.store, self.config, text, file, datetime.now(UTC)).as_json()

    def add_fact(self, cells: Mapping[str, str]) -> dict[str, Any]:
        return add_fact(self.store, self.config, cells, datetime.now(UTC)).as_json()

    def create_token(self, name: str, scope: Scope, node: str | None) -> str:
        token = create_token(self.store, name, scope, node)
        self.tokens_changed()
        return token

    def list_tokens(self) -> list[dict[str, Any]]:
        return [
            {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
            for row in list_tokens(self.store)
        ]

    def revoke_token(self, token_id: str) -> None:
        revoke_token(self.store, token_id)
        self.tokens_changed()
