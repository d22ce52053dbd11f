"""Answers of a running hub, asked over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import requests

from app.answers.carbon import NAMES as CARBON_NAMES
from app.answers.grid import GridQuery
from app.answers.latency import Wanted
from app.answers.live import WINDOW_S
from app.answers.query import AccountQuery
from app.answers.runs import Assume
from app.answers.split_front import CARBON
from app.answers.split_plan import HOURS
from app.errors import HubError, WattmixError
from app.reports.report import Progress, Report, report_from_json, untold
from app.reports.request import Request
from app.split.demand import Demand, parse_demand
from app.split.router_files import RouterFormat
from app.store.benchmarks import Added
from app.store.tokens import Scope
from collectors.benchmark import facts_csv
from collectors.benchmark.run import BenchmarkRun

TIMEOUT_S = 60.0
# A year of hours of a large site is read in seconds; a busy machine gets minutes.
REPORT_TIMEOUT_S = 900.0


class HubBackend:
    """Answers from a running hub over HTTP."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the environment has no way to this machine's hub

    def add_runs(self, runs: Sequence[BenchmarkRun]) -> Added:
        body = facts_csv.write(runs).encode()
        return Added(**self._call("POST", "/api/v1/runs", data=body, headers={"Content-Type": "text/csv"}))

    def run_rows(
        self, *, model: str | None = None, gpu: str | None = None, assume: Assume = "corrected"
    ) -> list[dict[str, Any]]:
        wanted = {"model": model, "gpu": gpu, "assume": assume}
        rows: list[dict[str, Any]] = self._call("GET", "/api/v1/runs", params=_given(wanted))["runs"]
        return rows

    def split(self, demand: Demand | None = None) -> dict[str, Any]:
        return self._split("/api/v1/split", demand)

    def split_front(self, demand: Demand | None = None, *, against: str = CARBON) -> dict[str, Any]:
        return self._split("/api/v1/split/front", demand, {"against": against})

    def split_shadow(self, demand: Demand | None = None) -> dict[str, Any]:
        return self._split("/api/v1/split/shadow", demand)

    def split_robustness(self, demand: Demand | None = None, *, inputs: Sequence[str] | None = None) -> dict[str, Any]:
        wanted = {} if inputs is None else {"inputs": ",".join(inputs)}
        return self._split("/api/v1/split/robustness", demand, wanted, REPORT_TIMEOUT_S)

    def split_plan(self, demand: Demand | None = None, *, hours: int = HOURS) -> dict[str, Any]:
        return self._split("/api/v1/split/plan", demand, {"hours": str(hours)}, REPORT_TIMEOUT_S)

    def _split(
        self, path: str, demand: Demand | None, wanted: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> dict[str, Any]:
        body = demand and demand.model_dump(by_alias=True, mode="json")
        method = "GET" if demand is None else "POST"
        answer: dict[str, Any] = self._call(method, path, timeout_s, params=wanted, json=body)
        return answer

    def live_demand(self) -> Demand:
        return parse_demand(self._call("GET", "/api/v1/split/demand", params={"live": "1"}), self.address)

    def live_curves(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/v1/split/curves")
        return answer

    def export_split(self, demand: Demand | None, form: RouterFormat) -> str:
        body = demand and demand.model_dump(by_alias=True, mode="json")
        method = "GET" if demand is None else "POST"
        return self._ask(method, "/api/v1/split/export", params={"format": form}, json=body).text

    def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/v1/health")
        return answer

    def grid(self, query: GridQuery) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/v1/grid", params=query.as_words())
        return answer

    def live(self, *, window_s: int = WINDOW_S, at: datetime | None = None) -> dict[str, Any]:
        wanted = {"window_s": window_s, "at": at and at.isoformat()}
        answer: dict[str, Any] = self._call("GET", "/api/v1/live", params=_given(wanted))
        return answer

    def summary(self, query: AccountQuery) -> dict[str, Any]:
        return self._account("summary", query)

    def series(self, query: AccountQuery) -> dict[str, Any]:
        return self._account("series", query)

    def latency(self, query: AccountQuery, wanted: Wanted | None = None) -> dict[str, Any]:
        return self._account("latency", query, wanted.as_words() if wanted else {})

    def power_load(self, query: AccountQuery) -> dict[str, Any]:
        return self._account("power-load", query)

    def carbon(self, query: AccountQuery) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/api/v1/carbon", params=query.as_words(CARBON_NAMES))
        return answer

    def _account(self, name: str, query: AccountQuery, more: Mapping[str, str] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", f"/api/v1/{name}", params={**query.as_words(), **(more or {})})
        return answer

    def report(self, request: Request, progress: Progress = untold) -> Report:
        return report_from_json(
            self._call("GET", "/api/v1/report", timeout_s=REPORT_TIMEOUT_S, params=request.as_words())
        )

    def facts(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        at: datetime | None = None,
        known_at: datetime | None = None,
    ) -> dict[str, Any]:
        moments = {"at": at and at.isoformat(), "known_at": known_at and known_at.isoformat()}
        wanted = _given({"kind": kind, "subject": subject, **moments})
        answer: dict[str, Any] = self._call("GET", "/api/v1/facts", params=wanted)
        return answer

    def import_facts(self, text: str, file: str) -> dict[str, Any]:
        headers = {"Content-Type": "text/csv"}
        added: dict[str, Any] = self._call(
            "POST", "/api/v1/facts", params={"file": file}, data=text.encode(), headers=headers
        )
        return added

    def create_token(self, name: str, scope: Scope, node: str | None) -> str:
        wanted = {"name": name, "scope": scope, "node": node}
        return str(self._call("POST", "/api/v1/tokens", json=wanted)["token"])

    def list_tokens(self) -> list[dict[str, Any]]:
        tokens: list[dict[str, Any]] = self._call("GET", "/api/v1/tokens")["tokens"]
        return tokens

    def revoke_token(self, token_id: str) -> None:
        self._call("DELETE", f"/api/v1/tokens/{quote(token_id, safe='')}")

    def _call(self, method: str, path: str, timeout_s: float = TIMEOUT_S, **request: Any) -> Any:
        return self._json_of(self._ask(method, path, timeout_s, **request))

    def _ask(self, method: str, path: str, timeout_s: float = TIMEOUT_S, **request: Any) -> requests.Response:
        """The hub's answer; raises what it tells instead of one."""
        try:
            response = self._session.request(method, f"{self.address}{path}", timeout=timeout_s, **request)
        except requests.RequestException as problem:
            raise HubError(f"the hub at {self.address} did not answer ({type(problem).__name__})") from None
        if not response.ok:
            content = self._json_of(response)
            error = WattmixError(str(content.get("error", f"{response.url} answered {response.status_code}")))
            error.http_status = response.status_code
            raise error
        return response

    @staticmethod
    def _json_of(response: requests.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise HubError(f"{response.url} answered {response.status_code} without JSON") from None


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}
