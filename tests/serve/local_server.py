"""A server of the scorer on this machine: on a thread for speed, or as a process for signals."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time

import uvicorn

from halfseen_serve.app import create_app
from halfseen_serve.limits import Limits
from halfseen_serve.scorer import Scorer, Scorers
from halfseen_serve.server import listen, server_config
from table_models import table_model

ROW = {
    "age": 51.5,
    "shop": "a",
    "visits": 3,
    "time": 1.7e9,
    "smoker": True,
    "grade": 2,
    "member": False,
}
COMMAND = [sys.executable, "-c", "from halfseen.cli import main; main()"]


def scorer_of(model=None) -> Scorer:
    return Scorer(model or table_model())


@contextlib.contextmanager
def serving(scorer=None, limits: Limits | None = None, token: str | None = None, hosts=()):
    """Run a server on a thread and give its address."""
    limits = limits or Limits()
    scorers = scorer if isinstance(scorer, Scorers) else Scorers((scorer or scorer_of(),))
    app = create_app(scorers, limits, token, hosts)
    server = uvicorn.Server(server_config(app, limits))
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


class Process:
    """`halfseen serve` as a user runs it."""

    def __init__(self, model, *options: str) -> None:
        command = [*COMMAND, "serve", str(model), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(60), self.lines
        assert self.process.poll() is None, self.lines
        self.port = int(self.log("ready")[0]["url"].rpartition(":")[2])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if '"ready"' in line:
                self._ready.set()
        self._ready.set()

    def log(self, event: str) -> list[dict]:
        records = [json.loads(line) for line in self.lines]
        return [record for record in records if record["event"] == event]

    def ended(self, seconds: float = 20) -> int:
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        self.process.kill()
        self.process.wait()


def begin_request(port: int, body: bytes) -> socket.socket:
    """Send the head of a request and half of its body."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    head = (
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body[: len(body) // 2])
    time.sleep(0.3)
    return connection


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    """Read an answer until the server closes or has sent it all."""
    content = b""
    with contextlib.suppress(TimeoutError):
        while chunk := connection.recv(65536):
            content += chunk
            head, found, body = content.partition(b"\r\n\r\n")
            if found and len(body) >= _length(head):
                break
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0
