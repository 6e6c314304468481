"""HTTP on one connection: uvicorn's own protocol, with time limits and errors in JSON."""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from halfseen.serve.limits import Limits
from halfseen.serve.metrics import Metrics

_LOOK_EVERY = 0.25
"""Seconds between two looks at a connection."""
_HELD = 2**14
"""Bytes of an answer that wait for more of it."""
_FLUSH_SECONDS = 5.0
"""Seconds that a closed connection may take to hand over the rest of its answer."""


class _AtOnce:
    """A transport that sends head and body of a small answer at once, after it was counted."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held, self._is_closing = b"", False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send at the end of this turn of the loop; what is large, now, to learn if it is slow."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += data
        if len(self._held) > _HELD:
            self._flush()

    def close(self) -> None:
        """Close when what is held has been sent."""
        self._is_closing = True
        self._loop.call_soon(self._transport.close)

    def is_closing(self) -> bool:
        """Whether no more is read."""
        return self._is_closing or self._transport.is_closing()

    def _flush(self) -> None:
        if self._held:
            self._transport.write(self._held)
            self._held = b""


class Protocol(H11Protocol):
    """Holds a connection to its limits, and says in JSON, too, that a request is not HTTP.

    uvicorn waits without end for the head of a request, and for a client to take the last bytes
    of an answer; both would keep a connection, and its memory, for as long as a stranger likes.
    """

    def __init__(self, *given: Any, limits: Limits, metrics: Metrics, **named: Any) -> None:
        super().__init__(*given, **named)
        self._limits, self._metrics = limits, metrics
        self._is_one_too_many = False
        self._state: tuple[str, object] = ("", None)
        self._since = 0.0
        self._next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; one too many hears so as soon as it asks for something."""
        super().connection_made(_AtOnce(transport, self.loop))  # type: ignore[arg-type]
        self._metrics.connections += 1
        self._is_one_too_many = self._metrics.total("connections") > self._limits.max_connections
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._next_look is not None:
            self._next_look.cancel()
        self._metrics.connections -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the connection is being closed."""
        if self._is_one_too_many:
            most = self._limits.max_connections
            self._refuse(429, self._limits.crowded(most, "connections are open").detail)
        if not self.transport.is_closing():
            super().data_received(data)

    def shutdown(self) -> None:
        """Finish the request under way, and tell its client that it is the last one."""
        if self.scope is not None:
            self.scope["headers"] = [*self.scope["headers"], CLOSE_HEADER]
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, unless an answer is already on its way."""
        self._refuse(400, "The request is not valid HTTP.")

    def _look(self) -> None:
        """Close a connection whose request does not begin, and end one that does not close."""
        now = time.monotonic()
        doing = "waits" if self.conn.their_state is h11.IDLE else "works"
        state = ("closes" if self.transport.is_closing() else doing, self.cycle)
        if state != self._state:  # a cycle is one request and its answer
            self._state, self._since = state, now
        elif state[0] == "closes" and now - self._since > _FLUSH_SECONDS:
            self.transport.abort()
            return
        elif state[0] == "waits" and self._is_one_too_many:
            self.transport.close()
        elif state[0] == "waits" and now - self._since > self._limits.head_timeout:
            self._refuse(
                408,
                f"The head of a request took longer than {self._limits.head_timeout:g} seconds, "
                "the limit of this server; send it faster.",
            )
        self._next_look = self.loop.call_later(_LOOK_EVERY, self._look)

    def _refuse(self, status: int, sentence: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": sentence, "field": None}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            reason = HTTPStatus(status).phrase.encode()
            answer = h11.Response(status_code=status, headers=headers, reason=reason)
            for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
