"""What every request passes first: a number, the token, the limit on requests, the log."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse

from halfseen.serve.errors import RequestError
from halfseen.serve.limits import Limits
from halfseen.serve.log_lines import log

__all__ = ["Gate", "note"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

_OPEN = "/health"
"""Answered without a token, so that whatever watches the server need not know it."""


class Gate:
    """ASGI middleware around the scorer.

    Parameters
    ----------
    app
        What answers.
    limits
        How many requests may be under way.
    token
        What clients must send as ``Authorization: Bearer TOKEN``; None asks for nothing.
    """

    def __init__(self, app: Application, limits: Limits, token: str | None) -> None:
        self._app = app
        self._limits = limits
        self._token = None if token is None else token.encode()
        self._under_way = 0
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500
        notes: dict[str, Any] = scope.setdefault("halfseen", {})

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._under_way += 1
        try:
            refusal = self._refusal(scope)
            if refusal is None:
                await self._app(scope, receive, watched)
            else:
                answer = JSONResponse(refusal.content, refusal.status, refusal.headers)
                await answer(scope, receive, watched)
        finally:
            self._under_way -= 1
            log(
                "request",
                number=next(self._numbers),
                client=(scope.get("client") or ("",))[0],
                method=scope["method"],
                path=scope["path"],
                status=status,
                milliseconds=round(1000 * (time.perf_counter() - begun), 2),
                **notes,
            )

    def _refusal(self, scope: Message) -> RequestError | None:
        if scope["path"] == _OPEN:
            return None
        if self._token is not None and not self._knows_token(scope):
            return RequestError(
                401, "This server needs a token: send it as 'Authorization: Bearer TOKEN'."
            )
        if self._under_way > self._limits.max_requests:
            return RequestError(
                429,
                f"More than {self._limits.max_requests} requests are under way, the limit of this "
                "server; try again in a moment.",
            )
        return None

    def _knows_token(self, scope: Message) -> bool:
        assert self._token is not None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, _, credentials = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and secrets.compare_digest(
            credentials.strip(), self._token
        )


def note(scope: Message, **fields: Any) -> None:
    """Add fields to the log line of a request."""
    scope.setdefault("halfseen", {}).update(fields)
