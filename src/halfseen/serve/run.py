"""Run the application on uvicorn until it is told to stop; then finish what was accepted."""

from __future__ import annotations

import math
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn

from halfseen.errors import HalfseenError, OptionError
from halfseen.serve.app import create_app
from halfseen.serve.limits import Limits
from halfseen.serve.log_lines import log, log_to_stderr
from halfseen.serve.scorer import open_scorer

__all__ = ["check_token", "listen", "serve"]

SHORTEST_TOKEN = 16


def serve(
    model: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve a model folder or an exported graph over HTTP.

    Parameters
    ----------
    model
        A model folder, or a file that ``halfseen export`` wrote.
    host, port
        Where to listen; port 0 takes any free one, which the log states.
    token
        What clients must show.
    limits
        What one request may ask for.
    """
    limits = limits or Limits()
    check_token(token)
    scorer = open_scorer(model)
    listener = listen(host, port)
    config = uvicorn.Config(
        create_app(scorer, limits, token),
        log_config=None,
        access_log=False,
        server_header=False,
        http="h11",  # what the tests of hostile requests ran against
        ws="none",
        # A request ends by its deadline, so this is time enough for all of them.
        timeout_graceful_shutdown=math.ceil(limits.deadline) + 5,
    )
    log_to_stderr()
    # uvicorn passes the signal on when all is done: that is then a good end, not a death.
    signal.signal(signal.SIGTERM, _leave)
    log("ready", url=_url(listener), model=str(model), token=token is not None)
    if token is None and not _is_loopback(listener):
        log("anyone who reaches this port may use it: set a token", level=30)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        log("stopped")


def check_token(token: str | None) -> None:
    """Refuse a token that is easily guessed or that no header can hold."""
    if token is None:
        return
    if len(token) < SHORTEST_TOKEN or not all("!" <= character <= "~" for character in token):
        raise OptionError(
            f"The token must have {SHORTEST_TOKEN} or more ASCII characters and no spaces; make "
            "one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or say why the address cannot be had.

    The protocol is stated because asyncio turns off Nagle's algorithm for TCP sockets that say
    so, and for no others; with it, every answer on a kept connection waits 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
        return listener
    except OSError as error:
        listener.close()
        raise HalfseenError(
            f"The server cannot listen on {host}, port {port}: {error}. Choose another with --host "
            "and --port."
        ) from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(listener: socket.socket) -> bool:
    host: str = listener.getsockname()[0]
    return host == "::1" or host.startswith("127.")


def _leave(number: int, frame: Any) -> None:
    sys.exit(0)
