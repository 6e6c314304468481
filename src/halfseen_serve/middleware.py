"""What stands between the network and the application: two ASGI middlewares."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import Collection
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halfseen_serve.errors import RequestError, answer_error
from halfseen_serve.json_log import log
from halfseen_serve.limits import Limits
from halfseen_serve.metrics import Metrics

_OPEN = ("/health", "/ready")
"""Answered without a token, so that whatever watches the server need not know it."""
_PIECE = 2**16
_LINGER_SECONDS, _LINGER_BYTES = 2.0, 32 * 2**20


class Gate:
    """Admits a request or says why not, holds it to its deadline and logs it.

    The token and the names in ``hosts`` are asked for where there are any. (Starlette's
    ``TrustedHostMiddleware`` refuses in plain text.)
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        token: str | None,
        hosts: Collection[str],
        metrics: Metrics,
    ) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._credentials = None if token is None else f"bearer {token}".encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request, begun, status = Request(scope), time.perf_counter(), None
        request.state.notes = {}

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self._metrics["requests_under_way"] += 1
        try:
            refusal = self._refusal(request)
            if refusal is None:
                try:
                    async with asyncio.timeout(self._limits.deadline):
                        await self._app(scope, receive, watched)
                except TimeoutError:
                    refusal = RequestError(
                        408,
                        f"The request took longer than {self._limits.deadline:g} seconds, the "
                        "limit of this server; send fewer rows at a time, or send them faster.",
                    )
            if refusal is not None and status is None:
                await (await answer_error(request, refusal))(scope, receive, watched)
        finally:
            self._metrics["requests_under_way"] -= 1
            seconds = time.perf_counter() - begun
            self._metrics.answered(status or 500, seconds, request.state.notes.get("rows", 0))
            log(
                "request",
                number=next(self._numbers),
                client=request.client.host if request.client else "",
                method=request.method,
                path=scope["path"],
                status=status or 500,
                milliseconds=round(1000 * seconds, 2),
                **request.state.notes,
            )

    def _refusal(self, request: Request) -> RequestError | None:
        headers = request.headers
        if request.scope["path"] in _OPEN:
            return None
        if self._hosts and re.sub(r":\d*$", "", headers.get("host", "")).lower() not in self._hosts:
            return RequestError(421, "This server does not answer to the name in the Host header.")
        if self._credentials is not None and not self._is_known(headers.getlist("authorization")):
            return RequestError(
                401, "This server needs a token: send it as 'Authorization: Bearer TOKEN'."
            )
        if self._metrics.total("requests_under_way") > self._limits.max_requests:
            return self._limits.crowded(self._limits.max_requests, "requests are under way")
        return None

    def _is_known(self, given: list[str]) -> bool:
        shown = given[0].encode() if len(given) == 1 else b""
        return secrets.compare_digest(shown[:7].lower() + shown[7:], self._credentials or b"")


class FlowControl:
    """Sends no faster than the client reads, and lets it read what comes before it has sent all.

    A whole answer would lie in memory, past the deadline, for a client that never reads it.
    A connection that closes while its client is still sending is reset, and the answer is lost
    with it: so what comes is thrown away for a moment, and then the connection closes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

        async def watched() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def patient(message: Message) -> None:
            if message["type"] == "http.response.start" and unread:
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            if message["type"] == "http.response.body":
                body, start = message.get("body", b""), 0
                while len(body) - start > (0 if unread else _PIECE):
                    piece = body[start : start + _PIECE]
                    await send({**message, "body": piece, "more_body": True})
                    start += _PIECE
                message["body"] = body[start:]
                if unread:
                    await linger()
            await send(message)

        async def linger() -> None:
            left = _LINGER_BYTES
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_SECONDS):
                    while unread and left > 0:
                        left -= len((await watched()).get("body", b""))

        await self._app(scope, watched, patient)
