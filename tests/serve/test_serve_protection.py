"""Token, deadline, limit on requests, log: what stands between the scorer and a stranger."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from local_server import ROW, answer_of, begin_request, scorer_of, serving

from halfseen.errors import OptionError
from halfseen_serve.json_log import JsonLines
from halfseen_serve.limits import Limits
from halfseen_serve.scorer import Scorer
from halfseen_serve.server import Settings
from table_models import table_model

TOKEN = "correct-horse-battery"
BODY = json.dumps({"records": [ROW]}).encode()


class SlowScorer(Scorer):
    """Takes its time, as a large model does."""

    seconds = 0.5

    def score(self, table, is_over):
        time.sleep(self.seconds)
        return super().score(table, is_over)


class WaitingScorer(Scorer):
    """Scores when another request has been answered."""

    begun, answered = threading.Event(), threading.Event()

    def score(self, table, is_over):
        self.begun.set()
        assert self.answered.wait(20)
        return super().score(table, is_over)


def slow_scorer() -> Scorer:
    scorer = scorer_of()
    scorer.__class__ = SlowScorer
    return scorer


@pytest.fixture(scope="module")
def guarded():
    with serving(token=TOKEN) as url:
        yield url


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        TOKEN,
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN.upper()}",
        "Bearer ÿÿÿ".encode("latin-1"),
    ],
)
@pytest.mark.parametrize("path", ["/schema", "/openapi.json", "/predict", "/metrics", "/nowhere"])
def test_without_the_token_nothing_is_told(guarded, header, path):
    headers = {} if header is None else {"Authorization": header}
    answer = httpx.request("POST" if path == "/predict" else "GET", guarded + path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "token" in answer.json()["error"]


def test_two_tokens_are_none(guarded):
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
    assert httpx.get(f"{guarded}/schema", headers=headers).status_code == 401


def test_with_the_token_everything_is_answered(guarded):
    headers = {"Authorization": f"bearer {TOKEN}"}
    assert httpx.get(f"{guarded}/schema", headers=headers).status_code == 200
    answer = httpx.post(f"{guarded}/predict", json={"records": [ROW]}, headers=headers)
    assert answer.status_code == 200


def test_health_needs_no_token(guarded):
    assert httpx.get(f"{guarded}/health").status_code == 200


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with spaces in the middle", "ü" * 20])
def test_a_weak_or_unsendable_token_is_refused(token):
    with pytest.raises(OptionError, match="16 or more ASCII characters"):
        Settings(Path("model"), token)
    Settings(Path("model"), TOKEN)


def test_a_body_that_never_ends_meets_the_deadline():
    with serving(limits=Limits(deadline=0.5)) as url:
        begun = time.monotonic()
        with begin_request(int(url.rpartition(":")[2]), BODY) as connection:
            status, body = answer_of(connection)
        assert time.monotonic() - begun < 5
        assert status == 408
        assert "0.5 seconds" in json.loads(body)["error"]


def test_scoring_that_takes_too_long_meets_the_deadline():
    with serving(slow_scorer(), Limits(deadline=0.2)) as url:
        answer = httpx.post(f"{url}/predict", json={"records": [ROW]})
        assert answer.status_code == 408
        assert "0.2 seconds" in answer.json()["error"]
        assert httpx.get(f"{url}/health").status_code == 200


def test_work_stops_between_chunks_after_the_deadline(monkeypatch):
    monkeypatch.setattr("halfseen_serve.scorer.CHUNK", 1)
    runs = []
    model = table_model()
    score = model.score

    def slow(rows):
        runs.append(1)
        time.sleep(0.1)
        return score(rows)

    model.score = slow
    with serving(scorer_of(model), Limits(deadline=0.25)) as url:
        answer = httpx.post(f"{url}/predict", json={"records": [ROW] * 50})
        assert answer.status_code == 408
        time.sleep(0.3)
        seen = len(runs)
        time.sleep(0.3)
        assert len(runs) == seen < 10


def test_too_many_requests_at_once_are_told_to_wait():
    with serving(slow_scorer(), Limits(max_requests=2)) as url, ThreadPoolExecutor(6) as pool:

        def ask(_):
            return httpx.post(f"{url}/predict", json={"records": [ROW]})

        answers = list(pool.map(ask, range(6)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert refused[0].headers["retry-after"] == "1"
        assert "2 requests are under way" in refused[0].json()["error"]
        assert ask(None).status_code == 200  # refusals are not counted for ever


def test_requests_are_answered_beside_each_other():
    scorer = scorer_of()
    scorer.__class__ = WaitingScorer
    WaitingScorer.begun.clear()
    WaitingScorer.answered.clear()
    with serving(scorer) as url, ThreadPoolExecutor(1) as pool:
        first = pool.submit(httpx.post, f"{url}/predict", json={"records": [ROW]}, timeout=20)
        assert WaitingScorer.begun.wait(20)
        assert httpx.get(f"{url}/health").status_code == 200  # while the first one is scored
        WaitingScorer.answered.set()
        assert first.result().status_code == 200


def test_a_client_that_goes_away_leaves_no_mark():
    with serving() as url:
        begin_request(int(url.rpartition(":")[2]), BODY).close()
        answer = httpx.post(f"{url}/predict", json={"records": [ROW]})
        assert answer.status_code == 200


def test_every_request_is_one_line_of_json(caplog):
    with caplog.at_level(logging.INFO, logger="halfseen_serve"), serving() as url:
        httpx.post(f"{url}/predict", json={"records": [ROW, ROW]})
        httpx.get(f'{url}/a%0a{{"level":"forged"}}')
        httpx.post(f"{url}/predict", content=b"{", headers={"Content-Type": "application/json"})
    lines = [JsonLines().format(record) for record in caplog.records if record.msg == "request"]
    assert all("\n" not in line for line in lines)
    scored, lost, wrong = map(json.loads, lines)
    assert (scored["status"], scored["rows"], scored["path"]) == (200, 2, "/predict")
    assert (lost["status"], lost["level"]) == (404, "info")
    assert wrong["status"] == 400
    assert "not JSON" in wrong["error"]
    assert re.match(r"\d{4}-\d\d-\d\dT", scored["time"])


def test_nothing_that_was_sent_is_logged(caplog):
    with caplog.at_level(logging.INFO), serving(token=TOKEN) as url:
        httpx.post(
            f"{url}/predict",
            json={"records": [ROW | {"shop": "a private matter"}]},
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
    assert caplog.records
    assert "private" not in caplog.text
    assert TOKEN not in caplog.text


def test_training_statistics_are_not_told():
    with serving(scorer_of(table_model())) as url:
        schema = httpx.get(f"{url}/schema").text
    assert "mean" not in schema
    assert "fill" not in schema
