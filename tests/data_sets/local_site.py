"""A server on this machine that truncates, stalls, lies and disappears when told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

BODY = np.random.default_rng(0).bytes(700_000)


@dataclass
class Site:
    """What the server does, and what it was asked."""

    address: str = ""
    body: bytes = BODY
    bodies: dict[str, bytes] = field(default_factory=dict)  # of addresses with a body of their own
    etag: str | None = '"one"'
    ranges: bool = True
    length: bool = True
    cut: list[int] = field(default_factory=list)  # bytes sent before the connection closes
    stall: list[int] = field(default_factory=list)  # bytes sent before nothing more comes
    status: list[int] = field(default_factory=list)  # answers instead of the file
    asked: list[str | None] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            serve(self, site)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that stops listening is part of the tests
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site.address = f"http://127.0.0.1:{server.server_port}/file.gz"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    site.done.set()
    server.shutdown()
    thread.join()
    server.server_close()


def serve(handler: BaseHTTPRequestHandler, site: Site) -> None:
    wanted = handler.headers.get("Range")
    site.asked.append(wanted)
    if site.status and (status := site.status.pop(0)) != 200:
        handler.send_error(status)
        return
    body = site.bodies.get(handler.path, site.body)
    unchanged = handler.headers.get("If-Range") in (None, site.etag)
    start = int(wanted[6:-1]) if wanted and site.ranges and unchanged else 0
    if start >= len(body):
        handler.send_response(416)
        handler.send_header("Content-Range", f"bytes */{len(body)}")
        handler.end_headers()
        return
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    if site.length:
        handler.send_header("Content-Length", str(len(body) - start))
    if site.etag:
        handler.send_header("ETag", site.etag)
    handler.end_headers()
    stop = len(body)
    if site.cut and (cut := site.cut.pop(0)):
        stop = start + cut
    if site.stall and (stall := site.stall.pop(0)):
        handler.wfile.write(body[start : start + stall])
        handler.wfile.flush()
        site.done.wait(20)
        return
    handler.wfile.write(body[start:stop])
