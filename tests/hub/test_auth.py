"""Who may write: this machine, and others by a token of the right scope and node; a secret shows up nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from app.store.database import Store
from tests.batches import batch, count
from tests.hub.asgi import Reply, ask
from tests.hub.test_ingest import Hub, fresh, told

ELSEWHERE = "192.0.2.7"


@pytest.fixture
def hub(store: Store) -> Iterator[Hub]:
    made = Hub(store)
    yield made
    made.parts.close()


def token(hub: Hub, scope: str = "node", node: str | None = None) -> str:
    reply = hub_json(hub, "POST", "/api/v1/tokens", {"name": "rack 7", "scope": scope, "node": node})
    assert reply.status == 200
    return str(reply.json()["token"])


def hub_json(hub: Hub, method: str, path: str, content: object = None, client: str = "127.0.0.1") -> Reply:
    body = b"" if content is None else json.dumps(content).encode()
    return ask(hub.app, method, path, body=body, content_type="application/json", client=client)


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.8.8", "::1"])
def test_this_machine_needs_no_token(hub: Hub, client: str) -> None:
    assert hub.post(fresh(1), client=client).status == 200


@pytest.mark.parametrize("client", [ELSEWHERE, "10.0.0.1", "2001:db8::7", "localhost.example", ""])
def test_another_machine_needs_one(hub: Hub, client: str) -> None:
    words = told(hub.post(fresh(1), client=client), 401)
    assert words == "a token is needed: Authorization: Bearer TOKEN (make one with: wattmix token create NAME)"
    assert count(hub.store, "ledger") == 0


def test_a_token_lets_another_machine_write(hub: Hub) -> None:
    assert hub.post(fresh(1), client=ELSEWHERE, token=token(hub)).status == 200


@pytest.mark.parametrize("client", ["127.0.0.1", ELSEWHERE])
def test_a_token_nobody_knows_is_401_from_anywhere(hub: Hub, client: str) -> None:
    real = token(hub)
    for wrong in ("wm_00000000_nothing", real[:-1], real + "x", real.upper(), "Bearer " + real):
        words = told(hub.post(fresh(1), client=client, token=wrong), 401)
        assert words == "the token is unknown or revoked; make another with: wattmix token create NAME"


def test_a_revoked_token_ends_at_once(hub: Hub) -> None:
    one, other = token(hub), token(hub)
    assert hub.post(fresh(1), client=ELSEWHERE, token=one).status == 200
    assert hub_json(hub, "DELETE", f"/api/v1/tokens/{one.split('_')[1]}").status == 200
    assert "unknown or revoked" in told(hub.post(fresh(2), client=ELSEWHERE, token=one), 401)
    assert hub.post(fresh(2), client=ELSEWHERE, token=other).status == 200


def test_a_token_is_known_and_a_revoked_one_unknown_after_a_restart(store: Store) -> None:
    first = Hub(store)
    kept, ended = token(first), token(first)
    hub_json(first, "DELETE", f"/api/v1/tokens/{ended.split('_')[1]}")
    first.parts.close()
    second = Hub(store)
    try:
        assert second.post(fresh(1), client=ELSEWHERE, token=kept).status == 200
        assert second.post(fresh(2), client=ELSEWHERE, token=ended).status == 401
    finally:
        second.parts.close()


def test_a_read_token_may_not_write(hub: Hub) -> None:
    words = told(hub.post(fresh(1), client=ELSEWHERE, token=token(hub, "read")), 403)
    assert words == "a read token may not do this; a node token may"
    assert count(hub.store, "ledger") == 0


def test_a_node_s_token_writes_for_that_node_only(hub: Hub) -> None:
    bound = token(hub, node="node-7")
    assert hub.post(fresh(1, node="node-7"), client=ELSEWHERE, token=bound).status == 200
    words = told(hub.post(fresh(1, node="node-8"), client=ELSEWHERE, token=bound), 403)
    assert words == "this token may write for node 'node-7' only, not for 'node-8'"
    assert count(hub.store, "ledger") == 1
    assert hub.post(fresh(1, node="node-8"), client=ELSEWHERE, token=token(hub)).status == 200


def test_no_token_is_asked_for_before_the_body_is_read(hub: Hub) -> None:
    """A stranger's body is not parsed: rubbish without a token is 401, not 422."""
    assert hub.post(b"rubbish", client=ELSEWHERE).status == 401
    assert hub.post(b"rubbish", client=ELSEWHERE, token=token(hub, "read")).status == 403


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("DELETE", "/00000000")])
def test_tokens_are_managed_on_this_machine_only(hub: Hub, method: str, path: str) -> None:
    content = {"name": "mine", "scope": "node"} if method == "POST" else None
    words = told(hub_json(hub, method, f"/api/v1/tokens{path}", content, client=ELSEWHERE), 403)
    assert words == "this is done on the hub's own machine, with the wattmix command there"
    assert count(hub.store, "token") == 0


@pytest.mark.parametrize(
    "content", [{}, {"name": ""}, {"name": 7}, {"name": "a", "node": 7}, {"name": "a", "scope": "admin"}, []],
    ids=str,
)  # fmt: skip
def test_a_token_that_cannot_be_made_is_told(hub: Hub, content: object) -> None:
    assert hub_json(hub, "POST", "/api/v1/tokens", content).status in (400, 422)
    assert count(hub.store, "token") == 0


def test_what_a_token_is_made_of_is_told(hub: Hub) -> None:
    words = told(hub_json(hub, "POST", "/api/v1/tokens", []), 422)
    assert words == "body: a JSON object with `name`, `node` and `scope` is accepted"


def test_a_token_that_is_not_there_cannot_be_revoked(hub: Hub) -> None:
    assert told(hub_json(hub, "DELETE", "/api/v1/tokens/none"), 404).startswith("no token 'none'")


def test_a_token_is_in_no_log_error_list_page_or_metric(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = [token(hub), token(hub, "read"), token(hub, node="node-7")]
    unknown = "wm_00000000_a-secret-of-somewhere-else"
    replies = [hub.post(fresh(1, node="node-9"), client=ELSEWHERE, token=one) for one in (*made, unknown)]
    assert [reply.status for reply in replies] == [200, 403, 403, 401]
    replies += [hub.post(b"{", client=ELSEWHERE, token=made[0]), hub.post(batch(1), "text/plain", token=made[0])]
    replies += [ask(hub.app, "GET", path) for path in ("/metrics", "/healthz", "/api/v1/tokens", "/api/v1/health")]
    said = "\n".join([caplog.text, *(reply.text + str(reply.headers) for reply in replies)])
    for one in (*made, unknown):
        assert one not in said
        assert one.split("_", 2)[2] not in said


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/health", "/api/v1/runs", "/api/v1/study", "/api/v1/split"])
def test_reading_from_elsewhere_needs_a_read_token_and_a_node_token_does_not_do(hub: Hub, path: str) -> None:
    assert hub_json(hub, "GET", path, None, client=ELSEWHERE).status == 401
    for scope, status in (("node", 403), ("read", 200)):
        reply = ask(hub.app, "GET", path, client=ELSEWHERE, token=token(hub, scope))
        # the study's runs are not in this store: 404 is past the gate
        assert reply.status == (404 if (path, status) == ("/api/v1/study", 200) else status)


def test_runs_are_imported_on_this_machine_only(hub: Hub) -> None:
    assert hub_json(hub, "POST", "/api/v1/runs", {}, client=ELSEWHERE).status == 403
