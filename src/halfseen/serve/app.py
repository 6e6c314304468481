"""The HTTP face of a scorer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from halfseen.serve import contract
from halfseen.serve.arrow_body import ARROW, read_arrow, write_arrow
from halfseen.serve.errors import RequestError
from halfseen.serve.gate import Gate, note
from halfseen.serve.json_body import read_json
from halfseen.serve.limits import Deadline, Limits
from halfseen.serve.page import page
from halfseen.serve.scorer import Scorer

__all__ = ["create_app"]

JSON = "application/json"


def create_app(scorer: Scorer, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """Return the application: ``/predict``, ``/schema``, ``/health`` and the OpenAPI page.

    Parameters
    ----------
    scorer
        What scores tables.
    limits
        What one request may ask for.
    token
        What clients must show; None lets everybody in.
    """
    limits = limits or Limits()
    pool: ThreadPoolExecutor | None = None  # None is asyncio's own, for use without a lifespan

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        nonlocal pool
        with ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="score") as pool:
            yield
        pool = None

    app = FastAPI(title="halfseen", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.add_middleware(Gate, limits=limits, token=token)
    refusals = dict(contract.REFUSALS)
    if token is None:
        del refusals[401]
    few: dict[int | str, dict[str, Any]] = {s: r for s, r in refusals.items() if s in (401, 429)}

    @app.exception_handler(RequestError)
    async def refuse(request: Request, refusal: RequestError) -> JSONResponse:
        note(request.scope, error=refusal.sentence)
        return JSONResponse(refusal.content, refusal.status, refusal.headers)

    @app.exception_handler(HTTPException)
    async def explain(request: Request, error: HTTPException) -> JSONResponse:
        sentence = {
            404: "There is nothing at this path; see /docs.",
            405: f"This path does not take {request.method}; see /docs.",
        }.get(error.status_code, f"{error.detail}.")
        content = RequestError(error.status_code, sentence).content
        return JSONResponse(content, error.status_code, error.headers)

    @app.post(
        "/predict",
        summary="Score rows",
        response_class=Response,
        responses={200: contract.success(scorer.schema), **refusals},
        openapi_extra={"requestBody": contract.request_body(scorer.schema, limits)},
    )
    async def predict(request: Request) -> Response:
        deadline = Deadline(limits.deadline)
        media = _media_type(request)
        arrow_wanted = ARROW in request.headers.get("accept", "")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limits.deadline):
                body = await _read_body(request, limits)
                content, answered, rows = await loop.run_in_executor(
                    pool, _answer, scorer, limits, deadline, media, body, arrow_wanted
                )
        except TimeoutError:
            raise deadline.refusal() from None
        note(request.scope, rows=rows, bytes=len(body))
        return Response(content, media_type=answered)

    @app.get("/schema", summary="What the model expects and answers", responses=few)
    async def schema() -> dict[str, Any]:
        return contract.describe(scorer.schema)

    @app.get("/health", summary="Whether the server is up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(
            page(app.openapi(), contract.describe(scorer.schema)),
            headers={"Content-Security-Policy": policy},
        )

    return app


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


async def _read_body(request: Request, limits: Limits) -> bytes:
    """Read the body, stopping as soon as it is too large."""
    declared = request.headers.get("content-length", "0")
    limits.check_bytes(int(declared) if declared.isdecimal() else 0)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            limits.check_bytes(len(body))
    except ClientDisconnect:
        raise RequestError(400, "The client went away before the end of the body.") from None
    return bytes(body)


def _answer(
    scorer: Scorer, limits: Limits, deadline: Deadline, media: str, body: bytes, arrow_wanted: bool
) -> tuple[bytes, str, int]:
    """Parse, score and write: all that takes time, on a thread of its own."""
    form = "columns"
    if media == ARROW:
        needed = [column.name for column in scorer.columns]
        table, ignored = read_arrow(body, needed, limits)
    else:
        form, table, ignored = read_json(body, scorer.columns, limits)
    probabilities, prediction = scorer.score(table, deadline)
    names = contract.output_names(scorer.schema)
    columns = dict(zip(names, [*probabilities.T.tolist(), prediction.tolist()], strict=True))
    if arrow_wanted:
        return write_arrow(columns), ARROW, len(prediction)
    answer: Any = columns
    if form == "records":
        answer = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _json({form: answer, "ignored": ignored}), JSON, len(prediction)


def _json(content: Any) -> bytes:
    return bytes(JSONResponse(content).body)
