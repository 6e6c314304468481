"""Several processes that answer, and several requests that are scored at once."""

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from local_server import COMMAND, ROW, Process, scorer_of, serving

from halfseen.export.onnx import onnx_model, write_onnx
from halfseen_serve.errors import RequestError
from halfseen_serve.json_log import log, log_to_stderr
from halfseen_serve.metrics import Metrics
from halfseen_serve.micro_batches import MicroBatcher
from halfseen_serve.scorer import Answer
from table_models import table_model


def post(port: int, rows: list[dict]) -> dict:
    body = json.dumps({"records": rows}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/predict", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def workers(server: Process) -> list[int]:
    """Return the processes that answer, once both do."""
    for _ in range(600):
        started = [line for line in server.lines if "Started server process" in line]
        if len(started) == 2:
            return [int(re.findall(r"process \[(\d+)", line)[0]) for line in started]
        time.sleep(0.1)
    raise AssertionError(server.lines)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "model.onnx"
    write_onnx(onnx_model(table_model()), path)
    return path


def test_two_workers_answer_count_together_and_end_together(graph):
    server = Process(graph, "--workers", "2")
    assert len(set(workers(server))) == 2
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: post(server.port, [ROW]), range(40)))
    assert len({json.dumps(answer) for answer in answers}) == 1
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        assert 'halfseen_requests_total{status="200"} 40' in answer.read().decode()
    server.process.send_signal(signal.SIGTERM)
    assert server.ended() == 0


def test_a_model_that_cannot_be_loaded_is_said_once(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    command = [*COMMAND, "serve", str(tmp_path / "model.onnx"), "--port", "0", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("is not as halfseen export wrote it") == 1


def test_a_worker_that_dies_ends_the_server(graph):
    server = Process(graph, "--workers", "2")
    os.kill(workers(server)[0], signal.SIGKILL)
    assert server.ended() == 1
    assert server.log("a worker died")


def test_bounds_are_those_of_all_workers():
    metrics = Metrics(bytearray(3 * Metrics.SIZE))
    for process in range(3):
        metrics.process = process
        metrics["requests_under_way"] += 2
    assert metrics["requests_under_way"] == 2
    assert metrics.total("requests_under_way") == 6


class Counting:
    """A scorer that counts the rows it is asked for, and refuses negative numbers."""

    def __init__(self):
        self.asked = []
        self.may_go_on = threading.Event()

    def answer(self, tables, is_over):
        self.may_go_on.wait(20)
        numbers = [table["x"].to_numpy() for table in tables]
        self.asked.append(sum(map(len, numbers)))
        if (np.concatenate(numbers) < 0).any():
            raise RequestError(422, "negative", "x")
        return [Answer(np.stack([each, 1 - each], axis=1), each > 0.5, []) for each in numbers]


def asked_together(numbers):
    async def ask():
        scorer = Counting()
        with ThreadPoolExecutor(1) as pool:
            batcher = MicroBatcher(scorer, pool)
            asking = [batcher.answer(pa.table({"x": [number]})) for number in numbers]
            tasks = [asyncio.create_task(one) for one in asking]
            await asyncio.sleep(0.05)
            scorer.may_go_on.set()
            return scorer.asked, await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(ask())


def test_requests_that_wait_are_scored_at_once_each_with_its_own_answer():
    numbers = [0.1, 0.9, 0.2, 0.3]
    asked, answers = asked_together(numbers)
    assert sum(asked) == 4
    assert len(asked) <= 2
    assert [answer[0][0, 0] for answer in answers] == numbers
    assert [bool(answer[1][0]) for answer in answers] == [False, True, False, False]


def test_what_is_wrong_with_one_request_is_said_to_that_one_alone():
    _, answers = asked_together([0.1, -1.0, 0.2])
    assert [isinstance(answer, RequestError) for answer in answers] == [False, True, False]


def test_small_and_large_bodies_get_the_same_answer():
    rows = [ROW] * 300  # too many bytes to be read on the spot
    with serving(scorer_of()) as address:
        port = int(address.rpartition(":")[2])
        (one,) = post(port, [ROW])["records"]
        many = post(port, rows)["records"]
    # Networks round in single precision, by how many rows there are.
    assert [row["p_yes"] for row in many] == pytest.approx([one["p_yes"]] * 300, abs=1e-6)
    assert {row["prediction"] for row in many} == {one["prediction"]}


def test_each_line_is_one_write_that_no_other_process_can_cut(monkeypatch):
    writes = []
    stream = SimpleNamespace(write=writes.append, flush=lambda: None)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)
    log_to_stderr()
    for number in range(3):
        log("x" * 50, number=number, path="/" * 10**5)
    assert [json.loads(write)["number"] for write in writes] == [0, 1, 2]
    assert all(len(write) <= 4096 and write.endswith("\n") for write in writes)
