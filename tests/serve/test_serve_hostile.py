"""Clients that lie about who they are, break HTTP, or fill memory."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import httpx
import pyarrow as pa
import pytest
from local_server import ROW, Process, answer_of, begin_request, scorer_of, serving

from halfseen.errors import OptionError
from halfseen_serve.arrow_body import ARROW
from halfseen_serve.limits import Limits
from halfseen_serve.metrics import Metrics
from halfseen_serve.middleware import FlowControl, Gate
from halfseen_serve.scorer import Scorer
from halfseen_serve.server import Settings
from table_models import table_model

JSON = {"Content-Type": "application/json"}
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = (
    b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    table_model().save(path)
    return path


@pytest.fixture(scope="module")
def server(folder):
    with Process(folder) as process:
        yield process


def exchange(port: int, request: bytes) -> bytes:
    """Send bytes as they are and return all that comes back until the connection closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        content = b""
        while chunk := connection.recv(65536):
            content += chunk
    return content


def request_line(server: Process, path: str) -> dict:
    """Return the line of log of a path, which may be written a little after the answer."""
    for _ in range(100):
        found = [line for line in server.log("request") if line["path"].startswith(path)]
        if found:
            return found[-1]
        time.sleep(0.05)
    raise AssertionError(server.lines)


def test_a_named_proxy_is_believed_and_a_named_host_answered(folder):
    options = ["--trust-proxy", "127.0.0.1", "--allow-host", "scores.example.org"]
    with Process(folder, *options) as server:
        url = f"http://127.0.0.1:{server.port}"
        named = {"X-Forwarded-For": "203.0.113.9", "Host": "Scores.example.org:80"}
        assert httpx.get(f"{url}/schema", headers=named).status_code == 200
        assert request_line(server, "/schema")["client"] == "203.0.113.9"
        assert httpx.get(f"{url}/schema").status_code == 421


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trust_proxies": ["*"]}, "takes an address or a network"),
        ({"allow_hosts": ["http://example.org"]}, "not the name of a host"),
    ],
)
def test_a_proxy_and_a_host_must_be_ones(folder, options, words):
    with pytest.raises(OptionError, match=words):
        Settings(folder, **options)


def test_a_page_that_calls_itself_this_machine_is_not_answered(server):
    url = f"http://127.0.0.1:{server.port}"
    for host in ("evil.example", f"evil.example:{server.port}", "localhost.evil.example", "[::2]"):
        answer = httpx.get(f"{url}/schema", headers={"Host": host})
        assert answer.status_code == 421
        assert "Host header" in answer.json()["error"]
    for host in ("localhost", f"LOCALHOST:{server.port}", "[::1]", f"[::1]:{server.port}"):
        assert httpx.get(f"{url}/schema", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"),
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000,
    ],
)
def test_what_is_not_http_is_answered_in_json(server, request_):
    head, _, body = exchange(server.port, request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body) == {"error": "The request is not valid HTTP.", "field": None}


@pytest.mark.parametrize("more", [b"2;" + b"x" * 20_000, b"0\r\n" + b"X: y\r\n" * 4_000])
def test_what_stands_between_pieces_of_a_body_is_bounded(server, more):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(CHUNKED + b"2\r\n{}\r\n")
        time.sleep(0.2)
        connection.sendall(more)
        assert answer_of(connection)[0] == 400


def test_requests_in_line_are_answered_in_turn_and_only_so_many(server):
    line = (HEALTH + b"\r\n") * 3
    for last in (HEALTH + b"Connection: close\r\n\r\n", b"nonsense\r\n\r\n"):
        answers = exchange(server.port, line + last)
        assert answers.count(b"HTTP/1.1 200") == (4 if b"GET" in last else 3)
        assert b"HTTP/1.1 400" not in answers
    assert 1 < exchange(server.port, line * 1000).count(b"HTTP/1.1 200") < 20


def test_what_follows_a_body_is_no_header(folder):
    forged = b"0\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n"
    with Process(folder, "--trust-proxy", "127.0.0.1") as server:
        request = CHUNKED.replace(b"Transfer", b"Connection: close\r\nTransfer")
        assert exchange(server.port, request + forged).startswith(b"HTTP/1.1 400")
        assert request_line(server, "/predict")["client"] == "127.0.0.1"


def test_who_asks_for_another_protocol_is_answered_in_this_one(server):
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    body = json.dumps({"records": [{}]}).encode()
    request = CHUNKED.replace(b"Transfer-Encoding: chunked\r\n", wish + b"Content-Length: %d\r\n")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        for _ in range(2):
            connection.sendall(request % len(body) + body[:5])
            connection.sendall(body[5:])
            status, said = answer_of(connection)
            assert status == 422
            assert "lacks column" in json.loads(said)["error"]


def test_a_broken_body_after_the_answer_is_no_fault_of_the_server(server):
    request = (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        assert answer_of(connection)[0] == 415
        connection.sendall(b"no chunk\r\n\r\n")
        assert connection.recv(100) == b""
    time.sleep(0.2)
    assert "Traceback" not in "".join(server.lines)
    assert httpx.get(f"http://127.0.0.1:{server.port}/health").status_code == 200


class BrokenScorer(Scorer):
    """Fails, as no scorer should."""

    def score(self, table, is_over):
        raise ZeroDivisionError


def test_a_fault_of_the_server_has_the_shape_of_every_error():
    scorer = scorer_of()
    scorer.__class__ = BrokenScorer
    with serving(scorer) as url:
        answer = httpx.post(f"{url}/predict", json={"records": [ROW]})
    assert answer.status_code == 500
    assert set(answer.json()) == {"error", "field"}
    assert "Zero" not in answer.text


def test_a_boolean_of_seven_is_that_number_in_every_form(server):
    url = f"http://127.0.0.1:{server.port}/predict"
    sink = pa.BufferOutputStream()
    table = pa.table({name: [value] * 2 for name, value in ROW.items()})
    place = table.column_names.index("smoker")
    table = table.set_column(place, "smoker", pa.array([1.0, 7.0]))
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = httpx.post(url, content=sink.getvalue().to_pybytes(), headers={"Content-Type": ARROW})
    plain = httpx.post(
        url, json={"columns": {n: [v, v] for n, v in ROW.items()} | {"smoker": [1.0, 7.0]}}
    )
    assert arrow.json() == plain.json()
    expected = table_model().predict_proba(table)
    assert plain.json()["columns"]["p_yes"] == expected[:, 1].tolist()


@pytest.mark.parametrize("declared", [True, False])
def test_a_refused_upload_reads_why(declared):
    body = b" " * (4 * 2**20)
    framing = b"Content-Length: %d" % len(body) if declared else b"Transfer-Encoding: chunked"
    if not declared:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%s\r\n\r\n"
    with serving(limits=Limits(max_bytes=100_000)) as url:
        answer = exchange(int(url.rpartition(":")[2]), head % framing + body)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()
    assert b"100,000 bytes" in answer


def test_bodies_are_bounded_together():
    body = json.dumps({"records": [ROW | {"note": "x" * 90_000}]}).encode()
    with serving(limits=Limits(max_bytes=100_000, max_total_bytes=120_000)) as url:
        port = int(url.rpartition(":")[2])
        first, second, third = (begin_request(port, body) for _ in range(3))
        status, content = answer_of(third)
        assert status == 429
        assert "120,000 bytes" in json.loads(content)["error"]
        second.close()  # what went away is not counted
        time.sleep(0.5)
        first.sendall(body[len(body) // 2 :])
        assert answer_of(first)[0] == 200
        for _ in range(3):
            assert httpx.post(f"{url}/predict", content=body, headers=JSON).status_code == 200


def test_a_client_that_never_reads_is_left_at_the_deadline():
    answer, sent = b"x" * 10**6, []

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        if sent.append(message) or len(sent) > 5:
            await asyncio.sleep(60)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": None}
    app = FlowControl(Gate(application, Limits(deadline=0.2), None, (), Metrics()))
    asyncio.run(asyncio.wait_for(app(scope, receive, send), timeout=5))
    assert sum(len(message.get("body", b"")) for message in sent) < len(answer) / 2
    assert all(message.get("more_body") for message in sent[1:])
