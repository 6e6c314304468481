"""The HTTP face of a scorer."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from halfseen.alarms import FEWEST_ROWS
from halfseen.serve import contract
from halfseen.serve.arrow_body import ARROW, read_arrow, write_arrow
from halfseen.serve.errors import RequestError, answer_error, answer_failure
from halfseen.serve.gate import Flow, Gate
from halfseen.serve.json_body import as_table, read_json
from halfseen.serve.limits import Limits
from halfseen.serve.metrics import MEDIA, Metrics
from halfseen.serve.scorer import Scorer, Scorers
from halfseen.serve.together import Scores, Together

JSON = "application/json"
SMALL = 2**14
"""Bytes of JSON that are read on the spot: to hand them to a thread would take longer."""


def create_app(
    scorers: Scorers,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    metrics: Metrics | None = None,
) -> Starlette:
    """Return the application: ``/predict``, ``/schema``, what watchers ask, and the OpenAPI page.

    No `token` lets everybody in, and no `hosts` allow all names. Given `metrics` go on counting:
    those of the application that this one takes the place of.
    """
    limits, metrics = limits or Limits(), metrics or Metrics()
    schemas = [scorer.schema for scorer in scorers]
    description = contract.describe(schemas)
    document = contract.openapi(schemas, limits, token=token is not None, hosts=bool(hosts))

    async def ready(request: Request) -> Response:
        if metrics.total("requests_under_way") > limits.max_requests:
            raise RequestError(503, "This server has as many requests as it takes; ask again.")
        return JSONResponse({"status": "ready"})

    async def counts(request: Request) -> Response:
        return Response(metrics.text(), media_type=MEDIA)

    policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    fixed = {
        "/schema": JSONResponse(description),
        "/health": JSONResponse({"status": "ok"}),
        "/openapi.json": JSONResponse(document),
        "/docs": HTMLResponse(contract.page(document, description), headers=policy),
    }
    app = Starlette(
        routes=[
            Route("/predict", _Predict(scorers, limits, metrics).answer, methods=["POST"]),
            Route("/ready", ready),
            Route("/metrics", counts),
            *(Route(path, answer, methods=["GET"]) for path, answer in fixed.items()),
        ],
        middleware=[
            Middleware(Flow),
            Middleware(Gate, limits=limits, token=token, hosts=hosts, metrics=metrics),
        ],
        exception_handlers={HTTPException: answer_error, Exception: answer_failure},
    )
    app.router.redirect_slashes = False  # it would redirect to whatever the Host header says
    return app


class _Predict:
    """``/predict``: reads bodies within bounds, scores on as many threads as cores."""

    def __init__(self, scorers: Scorers, limits: Limits, metrics: Metrics) -> None:
        self._scorers = scorers
        self._limits = limits
        self._metrics = metrics
        self._together = {scorer: Together(scorer, _threads()) for scorer in scorers}

    async def answer(self, request: Request) -> Response:
        media = _media_type(request)
        arrow_wanted = ARROW in request.headers.get("accept", "")
        body, is_over = bytearray(), threading.Event()
        try:
            await self._read(request, body)
            if media == JSON and len(body) <= SMALL:
                form, values, ignored = read_json(body, self._scorers.columns, self._limits)
                scorer = self._scorers.of(values)
                scores = await self._together[scorer].score(values)
                alarms = []
                if len(scores[1]) >= FEWEST_ROWS or not scorer.is_usual(values):
                    alarms = scorer.alarms(scorer.read(as_table(values, scorer.columns)), scores[0])
                answers = _answers(scorer, scores)
                content, answered = _written(form, answers, ignored, alarms, arrow_wanted)
                rows = len(scores[1])
            else:
                content, answered, rows = await asyncio.get_running_loop().run_in_executor(
                    _threads(), self._score, body, media, arrow_wanted, is_over
                )
        finally:
            is_over.set()  # after its deadline, a request is not scored on
            self._metrics["bytes_held"] -= len(body)
        request.state.notes.update(rows=rows, bytes=len(body))
        return Response(content, media_type=answered)

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the body, stopping as soon as it is too large, alone or with the others."""
        declared = request.headers.get("content-length", "0")
        self._limits.check_bytes(int(declared) if declared.isdecimal() else 0)
        try:
            async for chunk in request.stream():
                self._limits.check_bytes(len(body) + len(chunk))
                self._limits.check_total(self._metrics.total("bytes_held") + len(chunk))
                body += chunk
                self._metrics["bytes_held"] += len(chunk)
        except ClientDisconnect:
            raise RequestError(400, "The client went away before the end of the body.") from None

    def _score(
        self, body: bytearray, media: str, arrow_wanted: bool, is_over: threading.Event
    ) -> tuple[bytes, str, int]:
        """Parse, score and write: all that takes time, on a thread of its own."""
        form: str
        if media == ARROW:
            form, table, ignored = read_arrow(body, self._scorers.columns, self._limits)
            scorer = self._scorers.of(table.column_names)
        else:
            form, values, ignored = read_json(body, self._scorers.columns, self._limits)
            scorer = self._scorers.of(values)
            table = as_table(values, scorer.columns)
        read = scorer.read(table)
        scores = scorer.score(read, is_over.is_set)
        alarms = scorer.alarms(read, scores[0])
        answers = _answers(scorer, scores)
        return *_written(form, answers, ignored, alarms, arrow_wanted), table.num_rows


def _answers(scorer: Scorer, scores: Scores) -> dict[str, list[Any]]:
    shown, prediction = scores
    # Of amounts the prediction is the first column already.
    columns = [*shown.T.tolist(), prediction.tolist()]
    return dict(zip(contract.output_names(scorer.schema), columns, strict=False))


def _written(
    form: str,
    answers: dict[str, list[Any]],
    ignored: list[str],
    alarms: list[str],
    arrow_wanted: bool,
) -> tuple[bytes, str]:
    if arrow_wanted:
        return write_arrow(answers), ARROW
    answer: Any = answers
    if form == "records":
        answer = [
            dict(zip(answers, row, strict=True)) for row in zip(*answers.values(), strict=True)
        ]
    content = JSONResponse({form: answer, "ignored": ignored, "alarms": alarms}).body
    return bytes(content), JSON


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads that score, which an application hands on to the one in its place."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="score")


def _media_type(request: Request) -> str:
    """Return the type of the body, or refuse it before a byte is read."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(415, f"The body is encoded as {encoding[:40]!a}; send it as it is.")
    given = request.headers.get("content-type", "")
    media = given.partition(";")[0].strip().lower()
    if media not in (JSON, ARROW):
        raise RequestError(
            415, f"The content type is {given[:80]!a}; send {JSON} or {ARROW}.", "Content-Type"
        )
    return media
