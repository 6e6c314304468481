"""The HTTP interface of a scorer."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from halfseen_serve.arrow_body import ARROW, read_arrow, write_arrow
from halfseen_serve.errors import RequestError, answer_error, answer_failure
from halfseen_serve.json_body import RequestTable, read_json
from halfseen_serve.limits import Limits
from halfseen_serve.metrics import MEDIA, Metrics
from halfseen_serve.micro_batches import MicroBatcher
from halfseen_serve.middleware import FlowControl, Gate
from halfseen_serve.openapi import described_model, openapi_document, output_names
from halfseen_serve.scorer import Answer, Scorers

JSON = "application/json"
READERS = {JSON: read_json, ARROW: read_arrow}
SMALL = 2**14
"""Bytes of JSON that are read on the spot: to hand them to a thread would take longer."""


def create_app(
    scorers: Scorers,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    metrics: Metrics | None = None,
) -> Starlette:
    """Return the application: ``/predict``, ``/schema``, ``/openapi.json``, what watchers ask.

    No `token` lets everybody in, and no `hosts` allow all names. Given `metrics` go on counting:
    those of the application that this one takes the place of.
    """
    limits, metrics = limits or Limits(), metrics or Metrics()

    async def ready(request: Request) -> Response:
        if metrics.total("requests_under_way") > limits.max_requests:
            raise RequestError(503, "This server has as many requests as it takes; ask again.")
        return JSONResponse({"status": "ready"})

    async def counts(request: Request) -> Response:
        return Response(metrics.text(), media_type=MEDIA)

    document = openapi_document(scorers, limits, token=token is not None, hosts=bool(hosts))
    fixed = {
        "/schema": JSONResponse(described_model(scorers)),
        "/health": JSONResponse({"status": "ok"}),
        "/openapi.json": JSONResponse(document),
    }
    app = Starlette(
        routes=[
            Route("/predict", _Predict(scorers, limits, metrics).respond, methods=["POST"]),
            Route("/ready", ready),
            Route("/metrics", counts),
            *(Route(path, response, methods=["GET"]) for path, response in fixed.items()),
        ],
        middleware=[
            Middleware(FlowControl),
            Middleware(Gate, limits=limits, token=token, hosts=hosts, metrics=metrics),
        ],
        exception_handlers={HTTPException: answer_error, Exception: answer_failure},
    )
    app.router.redirect_slashes = False  # it would redirect to whatever the Host header says
    return app


class _Predict:
    """``/predict``: reads bodies within bounds, scores on as many threads as cores."""

    def __init__(self, scorers: Scorers, limits: Limits, metrics: Metrics) -> None:
        self._scorers, self._limits, self._metrics = scorers, limits, metrics
        self._batchers = {scorer: MicroBatcher(scorer, _threads()) for scorer in scorers.parts}

    async def respond(self, request: Request) -> Response:
        media = _media_type(request)
        wanted = ARROW if ARROW in request.headers.get("accept", "") else JSON
        body, is_over = bytearray(), threading.Event()
        read = partial(READERS[media], body, self._scorers.choose, self._limits)
        try:
            await self._receive(request, body)
            if media == JSON and len(body) <= SMALL:
                rows = read()
                answer = await self._batchers[rows.scorer].answer(rows.table)
                content = _written(rows, answer, wanted)
            else:
                rows, content = await asyncio.get_running_loop().run_in_executor(
                    _threads(), _answered, read, wanted, is_over.is_set
                )
        finally:
            is_over.set()  # after its deadline, a request is not scored on
            self._metrics["body_bytes_held"] -= len(body)
        request.state.notes.update(rows=rows.table.num_rows, bytes=len(body))
        return Response(content, media_type=wanted)

    async def _receive(self, request: Request, body: bytearray) -> None:
        """Receive the body, stopping as soon as it is too large, alone or with the others."""
        declared = request.headers.get("content-length", "0")
        self._limits.check_bytes(int(declared) if declared.isdecimal() else 0)
        try:
            async for chunk in request.stream():
                self._limits.check_bytes(len(body) + len(chunk))
                self._limits.check_total(self._metrics.total("body_bytes_held") + len(chunk))
                body += chunk
                self._metrics["body_bytes_held"] += len(chunk)
        except ClientDisconnect:
            raise RequestError(400, "The client went away before the end of the body.") from None


def _answered(
    read: Callable[[], RequestTable], wanted: str, is_over: Callable[[], bool]
) -> tuple[RequestTable, bytes]:
    """Read, score and write: all that takes time, on a thread of its own."""
    rows = read()
    (answer,) = rows.scorer.answer([rows.table], is_over)
    return rows, _written(rows, answer, wanted)


def _written(rows: RequestTable, answer: Answer, wanted: str) -> bytes:
    # Of amounts the prediction is the first column already.
    values = [*answer.outputs.T.tolist(), answer.predictions.tolist()]
    columns = dict(zip(output_names(rows.scorer.schema), values, strict=False))
    if wanted == ARROW:
        return write_arrow(columns)
    table: Any = columns
    if rows.form == "records":
        cells = zip(*columns.values(), strict=True)
        table = [dict(zip(columns, row, strict=True)) for row in cells]
    content = {rows.form: table, "ignored": rows.ignored, "alarms": answer.alarms}
    return bytes(JSONResponse(content).body)


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
    if media not in READERS:
        raise RequestError(
            415, f"The content type is {given[:80]!a}; send {JSON} or {ARROW}.", "Content-Type"
        )
    return media
