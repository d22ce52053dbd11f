"""One page, whatever the server does: the text, or the reason in words, within the bound."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from collectors.engine import scrape
from collectors.engine.scrape import Bounds, ScrapeError, fetch_json, fetch_page
from tests.collectors.engine.servers import VLLM, server
from tests.conftest import need
from tests.hub_process import free_port

BOUNDS = Bounds(connect_s=0.2, total_s=0.5, max_bytes=2**20)


def reason(url: str, bounds: Bounds = BOUNDS) -> ScrapeError:
    with pytest.raises(ScrapeError) as caught:
        fetch_page(url, bounds)
    return caught.value


@pytest.mark.parametrize("do", ["ok", "slow", "chunked"])
def test_a_page_is_had_as_it_is(do: str) -> None:
    with server(do) as here:
        assert fetch_page(here.url, BOUNDS) == VLLM
        (request,) = here.requests
    lines = request.split("\r\n")
    assert lines[0] == "GET /metrics HTTP/1.1"
    assert f"Host: 127.0.0.1:{here.port}" in lines
    assert "Accept: text/plain; version=0.0.4" in lines
    assert not any(line.lower().startswith(("authorization", "cookie")) for line in lines)


def test_an_empty_page_is_a_page() -> None:
    with server(text="") as here:
        assert fetch_page(here.url, BOUNDS) == ""


def test_bytes_that_are_no_utf_8_do_not_hide_the_rest() -> None:
    with server(text="a 1\n") as here:
        here.bodies["/metrics"] = "\udcff a 1\n".encode("utf-8", "surrogateescape").decode("latin-1")
        assert fetch_page(here.url, BOUNDS).endswith(" a 1\n")


@pytest.mark.parametrize(
    ("do", "says", "is_down"),
    [
        ("hang", "no answer within 0.5 s", True),
        ("trickle-head", "no answer within 0.5 s", True),
        ("trickle-body", "no answer within 0.5 s", True),
        ("close", "it closed the connection without an answer", True),
        ("huge", "the page has more than 1 MiB", False),
        ("cut", "the page was cut short", False),
        ("cut-chunk", "the page was cut short", False),
        ("cut-line", "the page was cut short", False),
        ("gzip", "the page is compressed, which was not asked for", False),
        ("html", "an HTML page, not metrics: is this the engine's own port?", False),
        ("html-as-text", "an HTML page, not metrics: is this the engine's own port?", False),
        ("redirect", "HTTP 307: it redirects, which is not followed; name the page's own address", False),
        ("ssh", "it does not speak HTTP as it should", False),
        ("404", "HTTP 404: it has no such page (SGLang shows it with --enable-metrics)", False),
        ("401", "HTTP 401: it asks for a login, which is not supported for metrics", False),
        ("501", "HTTP 501: it does not show metrics (llama-server does with --metrics)", False),
        ("500", "HTTP 500", False),
        ("204", "HTTP 204", False),
    ],
)
def test_what_is_wrong_is_said_in_words_within_the_bound(do: str, says: str, is_down: bool) -> None:
    with server(do) as here:
        began = time.monotonic()
        problem = reason(here.url)
        assert time.monotonic() - began < BOUNDS.total_s + 0.4
    assert (str(problem), problem.is_down) == (says, is_down)
    assert "hush" not in str(problem)


def test_nobody_there_is_a_refused_connection() -> None:
    problem = reason(f"http://127.0.0.1:{free_port()}/metrics")
    assert (str(problem), problem.is_down, problem.is_refused) == ("connection refused", True, True)


def test_an_unknown_name_is_told() -> None:
    problem = reason("http://no-such-host.invalid:8000/metrics")
    assert str(problem) == "the name no-such-host.invalid is not known here"
    assert problem.is_down


def test_a_full_backlog_ends_with_the_connect_time_out() -> None:
    # A listener that never accepts: once its queue is full, further connections get no answer.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        problem = reason(f"http://127.0.0.1:{port}/metrics")
        assert time.monotonic() - began < 0.5
        for one in waiting:
            one.close()
    assert problem.is_down


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with server() as here:
        assert fetch_page(here.url, BOUNDS) == VLLM


def test_localhost_is_found_whichever_address_it_listens_on() -> None:
    with server() as here:
        assert fetch_page(f"http://localhost:{here.port}/metrics", BOUNDS) == VLLM


def test_a_certificate_that_nobody_signed_is_refused_and_one_that_is_trusted_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(shutil.which("openssl") is not None, "openssl", "apt-get install openssl")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve_tls, args=(listener, context), daemon=True).start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/metrics"
        problem = reason(url, Bounds(total_s=3.0))
        assert str(problem).startswith("TLS fails: self")
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(scrape, "_tls", lambda: trusting)
        assert fetch_page(url, Bounds(total_s=3.0)) == VLLM


def _serve_tls(listener: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = listener.accept()
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(VLLM) + VLLM.encode())
        except ssl.SSLError:
            continue  # the client did not like the certificate
        except OSError:
            return


def test_another_path_of_the_server_is_read_as_json() -> None:
    with server() as here:
        here.bodies["/v1/models"] = json.dumps({"data": [{"id": "m"}]})
        assert fetch_json(here.url, "/v1/models", BOUNDS) == {"data": [{"id": "m"}]}
        assert here.paths == ["/v1/models"]


@pytest.mark.parametrize(("body", "says"), [("[" * 100_000, "/a does not answer with JSON"), ("x", "/a does not")])
def test_what_is_no_json_is_told(body: str, says: str) -> None:
    with server() as here, pytest.raises(ScrapeError, match=says):
        here.bodies["/a"] = body
        fetch_json(here.url, "/a", BOUNDS)
