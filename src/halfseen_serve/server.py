"""Run the application on uvicorn until it is told to stop; then finish what was accepted."""

from __future__ import annotations

import gc
import ipaddress
import logging
import math
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from halfseen.errors import HalfseenError, OptionError
from halfseen_serve.app import create_app
from halfseen_serve.json_log import log, log_to_stderr
from halfseen_serve.limits import Limits
from halfseen_serve.metrics import Metrics
from halfseen_serve.protocol import Protocol
from halfseen_serve.scorer import open_scorers
from halfseen_serve.workers import run_workers

SHORTEST_TOKEN = 16
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Settings:
    """What is served, and to whom.

    Where no names of hosts are given, a server that this machine alone can reach has the names of
    this machine, so that no web page can give its own name to 127.0.0.1 and ask; any other has
    every name. Of proxies that are trusted ``X-Forwarded-For`` is believed.
    """

    model: Path
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    allow_hosts: Sequence[str] = ()
    trust_proxies: Sequence[str] = ()

    def __post_init__(self) -> None:
        # Neither easily guessed nor more than a header can hold.
        if self.token is not None and not re.fullmatch(rf"[!-~]{{{SHORTEST_TOKEN},}}", self.token):
            raise OptionError(
                f"The token must have {SHORTEST_TOKEN} or more ASCII characters and no spaces; "
                "make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        for name in self.allow_hosts:
            if not re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", name):
                raise OptionError(
                    f"{name!r} is not the name of a host; write --allow-host as clients write it, "
                    "without a port: example.org, 192.0.2.1 or [2001:db8::1]."
                )
        for proxy in self.trust_proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError as error:
                raise OptionError(
                    f"--trust-proxy takes an address or a network, such as 10.0.0.0/8: {error}."
                ) from None


def serve(settings: Settings, host: str, port: int, workers: int = 1) -> None:
    """Serve a model over HTTP; SIGHUP lets it read the model again.

    Port 0 takes any free one, which the log states. Workers keep to the limits together; one that
    dies ends all.
    """
    with listen(host, port) as listener:
        if workers == 1:
            _serve(settings, listener, Metrics())
        else:
            open_scorers(settings.model)  # what is wrong with the model is said once, here
            run_workers(partial(_serve, settings), listener, workers)


def _serve(settings: Settings, listener: socket.socket, metrics: Metrics) -> None:
    """Answer what comes to a listening socket, in one process."""
    gc.freeze()  # libraries stay: whoever looks for what was left need not look at them
    address, port = listener.getsockname()[:2]
    is_loopback = ipaddress.ip_address(address).is_loopback
    hosts = settings.allow_hosts or (THIS_MACHINE if is_loopback else ())

    def load() -> ASGIApp:
        scorers = open_scorers(settings.model)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # requests have a thread each
        return create_app(scorers, settings.limits, settings.token, hosts, metrics)

    app = ReloadableApp(load, metrics)
    config = server_config(app, settings.limits, settings.trust_proxies, metrics)
    log_to_stderr()
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda number, frame: app.begin_reload())
    # uvicorn passes the signal on when all is done: that is then a good end, not a death.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
    log("ready", url=url, model=str(settings.model), token=settings.token is not None)
    if settings.token is None and not is_loopback:
        log("anyone who reaches this port may use it: set a token", level=logging.WARNING)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        log("stopped")


class ReloadableApp:
    """An application that another can take the place of, while requests are answered.

    What cannot be loaded changes nothing: the model that is served stays. Counts and bounds go
    on, so that the requests of both are bounded together.
    """

    def __init__(self, load: Callable[[], ASGIApp], metrics: Metrics) -> None:
        self._app = load()
        self._load = load
        self._metrics = metrics
        self._is_loading = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def begin_reload(self) -> None:
        """Load beside what is served, on a thread of its own; twice at once is once."""
        threading.Thread(target=self._reload, name="reload", daemon=True).start()

    def _reload(self) -> None:
        if not self._is_loading.acquire(blocking=False):
            return
        try:
            self._app = self._load()
            gc.collect()  # applications refer to themselves: the former model would stay for long
            self._metrics["reloads_total"] += 1
            log("reloaded")
        except Exception as error:
            self._metrics["failed_reloads_total"] += 1
            said = str(error) if isinstance(error, HalfseenError) else repr(error)
            log("not reloaded", level=logging.ERROR, error=said)
        finally:
            self._is_loading.release()


def server_config(
    app: ASGIApp,
    limits: Limits,
    trust_proxies: Sequence[str] = (),
    metrics: Metrics | None = None,
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=partial(Protocol, limits=limits, metrics=metrics or Metrics()),  # type: ignore[arg-type]
        ws="none",
        proxy_headers=bool(trust_proxies),  # by default uvicorn believes everyone on loopback
        forwarded_allow_ips=list(trust_proxies),
        # A request ends by its deadline, so this is time enough for all of them.
        timeout_graceful_shutdown=math.ceil(limits.deadline) + 5,
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
