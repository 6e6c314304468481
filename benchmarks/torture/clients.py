"""Clients of the server: mutated bodies, slow ones, and ones that say what is not true."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn

from halfseen_serve.app import create_app
from halfseen_serve.limits import Limits
from halfseen_serve.scorer import Scorer, Scorers
from halfseen_serve.server import listen, server_config
from torture.kit import Case, Kit, damaged, written

TIGHT = Limits(max_bytes=200_000, max_total_bytes=400_000, deadline=4.0, head_timeout=1.0)
ARROW = "application/vnd.apache.arrow.stream"
NAMES = ("mutated requests", "slow and lying clients")


@contextlib.contextmanager
def classes(kit: Kit) -> Iterator[dict[str, Case]]:
    """Serve the graph on two threads, once with tight limits; give the classes of this file."""
    with contextlib.ExitStack() as stack:
        roomy, tight = (stack.enter_context(served(kit, limits)) for limits in (Limits(), TIGHT))
        cases = (partial(mutate_request, kit, roomy), partial(lie, kit, tight))
        yield dict(zip(NAMES, cases, strict=True))


@contextlib.contextmanager
def served(kit: Kit, limits: Limits) -> Iterator[int]:
    """Serve the graph on a thread; give its port."""
    logging.disable(logging.CRITICAL)
    app = create_app(Scorers((Scorer(kit.graph),)), limits)
    server = uvicorn.Server(server_config(app, limits))
    listener = listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        logging.disable(logging.NOTSET)


def good_body(kit: Kit, rows: int = 5) -> bytes:
    """Return rows as JSON."""
    frame = kit.frame.head(rows).astype(object)
    return json.dumps({"records": frame.where(frame.notna(), None).to_dict("records")}).encode()


def ask(port: int, body: bytes, media: str = "application/json") -> tuple[int, Any]:
    """Send one request; return status and content of its answer, which must be of one shape."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/predict", body, {"Content-Type": media})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    check_shape(answer.status, content)
    return answer.status, content


def check_shape(status: int, content: Any) -> None:
    """Refuse faults of the server, and errors of another shape."""
    if status >= 500:
        raise AssertionError(f"status {status}")
    if status != 200 and set(content) != {"error", "field"}:
        raise AssertionError(f"another shape: {content}")


def check_good(kit: Kit, port: int) -> None:
    """See that a good request is answered, and with the known answer."""
    status, content = ask(port, good_body(kit))
    if status != 200:
        raise AssertionError(f"a good request was refused: {content}")
    found = [[row["p_no"], row["p_yes"]] for row in content["records"]]
    if abs(kit.answers[0][:5] - found).max() > 1e-5:
        raise AssertionError("another answer was given")


def mutate_request(kit: Kit, port: int, draw: random.Random) -> None:
    """See that no request is answered with 5xx, and that a good one is answered after it."""
    arrow = draw.random() < 0.5
    kit.input = damaged(written(kit.frame.head(5), "stream") if arrow else good_body(kit), draw)
    ask(port, kit.input, ARROW if arrow else "application/json")
    check_good(kit, port)


# --- slow and lying ---------------------------------------------------------------------------


def head(*lines: str) -> bytes:
    """Return the head of a request."""
    first = ["POST /predict HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*first, *lines, "", ""]).encode()


def too_long(draw: random.Random, body: bytes) -> bytes:
    """Promise more than comes."""
    return head(f"Content-Length: {len(body) + draw.randrange(1, 10**6)}") + body


def too_short(draw: random.Random, body: bytes) -> bytes:
    """Send more than was promised: the rest looks like another request."""
    return head(f"Content-Length: {draw.randrange(len(body))}") + body


def strange_length(draw: random.Random, body: bytes) -> bytes:
    """Promise what is no length."""
    lengths = ["-1", "+5", "1e3", "0x10", "9" * 30, "1,1", " ", "5;5", "٣"]
    return head(f"Content-Length: {draw.choice(lengths)}") + body


def two_lengths(draw: random.Random, body: bytes) -> bytes:
    """Promise two things at once."""
    also = draw.choice(["Transfer-Encoding: chunked", f"Content-Length: {len(body) + 1}"])
    return head(f"Content-Length: {len(body)}", also) + body


def lying_chunks(draw: random.Random, body: bytes) -> bytes:
    """Send chunks of another size than they say."""
    size = draw.choice([b"%x" % (len(body) + 7), b"ffffffffffffffff", b"-5", b"%x" % 3, b"zz", b""])
    return head("Transfer-Encoding: chunked") + size + b"\r\n" + body + b"\r\n0\r\n\r\n"


def many_headers(draw: random.Random, body: bytes) -> bytes:
    """Send a head that does not end."""
    lines = [f"X-{number}: {'y' * draw.randrange(500)}" for number in range(draw.randrange(400))]
    return head(*lines)[:-2]


def pipelined(draw: random.Random, body: bytes) -> bytes:
    """Send many requests without waiting for an answer."""
    return (head(f"Content-Length: {len(body)}") + body) * draw.randrange(2, 20)


def noise(draw: random.Random, body: bytes) -> bytes:
    """Send a damaged request."""
    return damaged(head(f"Content-Length: {len(body)}") + body, draw)


LIES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    too_long, too_short, strange_length, two_lengths, lying_chunks, many_headers, pipelined, noise,
)  # fmt: skip


def lie(kit: Kit, port: int, draw: random.Random) -> None:
    """See that nothing untrue is answered with 5xx, and that a good request is answered after."""
    lie_once(kit, port, draw)
    check_good(kit, port)


def lie_once(kit: Kit, port: int, draw: random.Random) -> None:
    """Send something untrue, at once or slowly, and read the answer or go away."""
    kit.input = draw.choice(LIES)(draw, good_body(kit, draw.choice([1, 5, 40])))
    with socket.create_connection(("127.0.0.1", port), timeout=40) as connection:
        if draw.random() < 0.3:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with contextlib.suppress(ConnectionError):
            send_slowly(connection, kit.input, draw)
            if draw.random() < 0.2:
                with contextlib.suppress(OSError):  # it may be closed by now
                    connection.shutdown(socket.SHUT_WR)
            if draw.random() < 0.8:
                read_answers(connection)


def send_slowly(connection: socket.socket, content: bytes, draw: random.Random) -> None:
    """Send in pieces, with pauses that may be longer than the server waits."""
    pieces = draw.choice([1, 1, 2, 5])
    size = len(content) // pieces + 1
    for start in range(0, len(content), size):
        connection.sendall(content[start : start + size])
        if pieces > 1:
            time.sleep(draw.choice([0, 0.01, 0.2]))


def read_answers(connection: socket.socket) -> None:
    """Read until the server closes, which it must; every answer is JSON of one shape."""
    content, end = b"", time.monotonic() + 40
    while chunk := connection.recv(65536):
        content += chunk
        if time.monotonic() > end:
            raise AssertionError("the server kept the connection")
    while content:
        top, found, rest = content.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(top.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(rest) >= length:
            check_shape(int(top.split()[1]), json.loads(rest[:length]))
        content = rest[length:]
