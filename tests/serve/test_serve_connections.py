"""Connections that are slow, idle or too many; watching a server, and giving it another model."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time

import httpx
import numpy as np
import pytest
from local_server import ROW, Process, answer_of, scorer_of, serving
from test_serve_protection import slow_scorer

from halfseen_serve import protocol
from halfseen_serve.limits import Limits
from table_models import table_model

BODY = json.dumps({"records": [ROW]}).encode()
HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def connect(url: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20)


@pytest.mark.parametrize("sent", [b"", HEAD[:20]])
def test_a_head_that_never_ends_meets_its_limit(sent):
    with serving(limits=Limits(head_timeout=0.3)) as url, connect(url) as connection:
        connection.sendall(sent)
        status, body = answer_of(connection)
        assert status == 408
        assert "head of a request took longer than 0.3 seconds" in json.loads(body)["error"]
        assert connection.recv(1) == b""


def test_a_head_that_comes_drop_by_drop_meets_its_limit():
    with serving(limits=Limits(head_timeout=0.5)) as url, connect(url) as connection:
        connection.settimeout(0.1)
        for place in range(len(HEAD)):
            try:
                connection.sendall(HEAD[place : place + 1])
                if found := connection.recv(100):
                    break
            except TimeoutError:
                continue
        else:
            pytest.fail("it waited for all of it")
        assert found.startswith(b"HTTP/1.1 408")


def test_a_connection_may_be_kept_for_longer_than_one_head_may_take():
    with serving(limits=Limits(head_timeout=0.6)) as url, connect(url) as connection:
        for _ in range(20):
            connection.sendall(HEAD)
            assert answer_of(connection)[0] == 200
            time.sleep(0.08)


def test_one_connection_too_many_is_told_so():
    with serving(limits=Limits(max_connections=2)) as url:
        kept = [connect(url) for _ in range(2)]
        for connection in kept:
            connection.sendall(HEAD)
            assert answer_of(connection)[0] == 200
        with connect(url) as third:
            third.sendall(HEAD)
            status, body = answer_of(third)
        assert status == 429
        assert "More than 2 connections are open" in json.loads(body)["error"]
        for connection in kept:
            connection.close()
        for _ in range(50):
            if httpx.get(f"{url}/health").status_code == 200:
                return
            time.sleep(0.05)
        pytest.fail("closed connections are still counted")


def test_a_client_that_never_reads_keeps_no_connection(monkeypatch):
    """A transport that closes waits, without end, until what it has sent was taken."""
    monkeypatch.setattr(protocol, "_FLUSH_SECONDS", 0.2)
    body = json.dumps({"records": [ROW] * 20_000}).encode()
    request = (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s"
    ) % (len(body), body)
    before = len(os.listdir("/proc/self/fd"))
    with serving(limits=Limits(deadline=2)) as url:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(20)
        deaf.connect(("127.0.0.1", int(url.rpartition(":")[2])))
        deaf.sendall(request)
        time.sleep(1)
        with_it = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            if len(os.listdir("/proc/self/fd")) < with_it:
                break
            time.sleep(0.1)
        else:
            pytest.fail("the server keeps the connection")
        deaf.close()
    assert before < with_it


def test_ready_is_not_health():
    with serving(slow_scorer(), Limits(max_requests=1)) as url:
        assert httpx.get(f"{url}/ready").json() == {"status": "ready"}
        with connect(url) as busy:
            busy.sendall(
                b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
            )
            time.sleep(0.3)
            answer = httpx.get(f"{url}/ready")
            assert answer.status_code == 503
            assert set(answer.json()) == {"error", "field"}
            assert httpx.get(f"{url}/health").status_code == 200


def test_metrics_count_what_was_answered_and_what_is_held():
    with serving(scorer_of()) as url:
        httpx.post(f"{url}/predict", json={"records": [ROW, ROW]})
        httpx.get(f"{url}/nowhere")
        answer = httpx.get(f"{url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if line[0] != "#")
    assert found['halfseen_requests_total{status="200"}'] == "1"
    assert found['halfseen_requests_total{status="404"}'] == "1"
    assert found["halfseen_rows_total"] == "2"
    assert found["halfseen_body_bytes_held"] == "0"
    assert found["halfseen_requests_under_way"] == "1"
    assert found['halfseen_request_seconds_bucket{le="+Inf"}'] == "2"
    assert float(found["halfseen_request_seconds_sum"]) > 0


@pytest.fixture
def folder(tmp_path):
    table_model().save(tmp_path / "model")
    return tmp_path / "model"


def wait_for(server: Process, event: str) -> dict:
    for _ in range(200):
        if found := server.log(event):
            return found[-1]
        time.sleep(0.05)
    raise AssertionError(server.lines)


def test_another_model_is_read_while_requests_are_answered(folder):
    other = table_model(seed=1)
    with Process(folder) as server:
        url = f"http://127.0.0.1:{server.port}"
        before = httpx.post(f"{url}/predict", json={"records": [ROW]}).json()
        (folder / "model.json").write_text("damaged")
        server.process.send_signal(signal.SIGHUP)
        refused = wait_for(server, "not reloaded")
        assert refused["level"] == "error"
        assert "is not the description of a model" in refused["error"]
        assert httpx.post(f"{url}/predict", json={"records": [ROW]}).json() == before
        other.save(folder)
        server.process.send_signal(signal.SIGHUP)
        wait_for(server, "reloaded")
        after = httpx.post(f"{url}/predict", json={"records": [ROW]}).json()["records"][0]
        metrics = httpx.get(f"{url}/metrics").text
        assert re.search(r"^halfseen_reloads_total 1$", metrics, re.MULTILINE)
        assert re.search(r"^halfseen_failed_reloads_total 1$", metrics, re.MULTILINE)
        assert re.search(r'^halfseen_requests_total{status="200"} 3$', metrics, re.MULTILINE)
    assert after != before["records"][0]
    assert np.isfinite(after["p_yes"])
