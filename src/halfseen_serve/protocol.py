"""HTTP on one connection: uvicorn's own protocol, with limits and errors in JSON."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from halfseen_serve.limits import Limits
from halfseen_serve.metrics import Metrics

_CHECK_EVERY = 0.25
"""Seconds between two checks of a connection."""
_FLUSH_SECONDS = 5.0
"""Seconds that a closed connection may take to hand over the rest of its answer."""
_LONGEST_HEAD = 2**14
"""Bytes of a head, or of what stands between the pieces of a body."""
_LONGEST_PIPELINE = 8
"""Requests that a client may send before it has read the answer to the first."""


class Protocol(HttpToolsProtocol):
    """Holds a connection to its limits, and says in JSON, too, that a request is not HTTP.

    uvicorn waits without end for the head of a request, of any length, and for a client to take
    the last bytes of an answer; it reads as many requests ahead as come, and takes what follows a
    body for headers. A stranger would keep a connection, and its memory, for as long as he likes.
    """

    def __init__(self, *given: Any, limits: Limits, metrics: Metrics, **named: Any) -> None:
        super().__init__(*given, **named)
        self._limits, self._metrics = limits, metrics
        self._is_one_too_many = self._is_in_head = self._ignores_input = False
        self._unused_bytes = 0
        self._state: tuple[str, object] = ("", None)
        self._since = 0.0
        self._next_check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; one too many hears so as soon as it asks for something."""
        super().connection_made(transport)
        self._metrics["connections"] += 1
        self._is_one_too_many = self._metrics.total("connections") > self._limits.max_connections
        self._check_time()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        self._metrics["connections"] -= 1
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_one_too_many:
            most = self._limits.max_connections
            self._refuse(429, self._limits.crowded(most, "connections are open").detail)
        if self._ignores_input or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._unused_bytes += len(data)  # until something comes of it
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._reread(data[upgrade.args[0] :])
        except HttpParserError:
            self.send_400_response("")
        if self._unused_bytes > _LONGEST_HEAD:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of a head; one after the body changes nothing that was checked before it."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, or to wait in line; what is raised here makes the request malformed."""
        self._is_in_head, self._unused_bytes = False, 0
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            raise ValueError("A request has one name of a host.")
        if len(self.pipeline) >= _LONGEST_PIPELINE:
            raise ValueError("The line is long enough.")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request; where others before it wait for theirs, they come first."""
        if self._is_idle() or (self.cycle.more_body and not self.pipeline):
            self._refuse(400, "The request is not valid HTTP.")
        else:
            self.cycle.keep_alive, self._ignores_input = False, True

    def _should_upgrade(self) -> bool:
        return True  # so that uvicorn does not begin to answer; the parser has skipped the body

    def _reread(self, rest: bytes) -> None:
        """Read a request that asks for another protocol, as Java's do, once more without that."""
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method == b"CONNECT":
            self.send_400_response("")
            return
        head = [b"%s %s HTTP/%s" % (method, self.url, version.encode())]
        head += [b"%s: %s" % line for line in self.headers if line[0] != b"upgrade"]
        self.parser = HttpRequestParser(self)
        self.data_received(b"\r\n".join([*head, b"", rest]))

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _check_time(self) -> None:
        """Close a connection whose request does not begin, and end one that does not close."""
        now = time.monotonic()
        doing = "waits" if self._is_idle() else "works"
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
        self._next_check = self.loop.call_later(_CHECK_EVERY, self._check_time)

    def _refuse(self, status: int, sentence: str) -> None:
        if self._is_idle() or not self.cycle.response_started:
            body = json.dumps({"error": sentence, "field": None}).encode()
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d"
            self.transport.write(STATUS_LINE[status] + head % len(body) + b"\r\n\r\n" + body)
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever it says would come after this
        self.transport.close()
