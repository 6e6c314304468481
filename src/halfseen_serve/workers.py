"""Several processes behind one listening socket."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from ctypes import Array, c_char
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from socket import socket
from types import FrameType
from typing import Any

from halfseen_serve.json_log import log, log_to_stderr
from halfseen_serve.metrics import Metrics

Serve = Callable[[socket, Metrics], None]
"""Answers what comes to a listening socket, in one process."""


def run_workers(serve: Serve, listener: socket, workers: int) -> None:
    """Let several processes answer until a signal ends them.

    When a worker dies unasked, all end, and with them the server, for whatever watches it to start
    it again.
    """
    # Libraries have threads of their own, which a fork would lose.
    context = multiprocessing.get_context("spawn")
    counts = context.RawArray(c_char, workers * Metrics.SIZE)
    started: list[BaseProcess] = []
    for number in range(workers):
        given = (serve, listener, counts, number)
        started.append(context.Process(target=_work, args=given, name=f"worker {number}"))
        started[-1].start()
    log_to_stderr()
    _pass_signals_on(started)


def _work(serve: Serve, listener: socket, counts: Array[c_char], number: int) -> None:
    """Be one worker; end when the process that started it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    metrics = Metrics(counts)
    metrics.process = number
    serve(listener, metrics)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _pass_signals_on(started: list[BaseProcess]) -> None:
    """Pass signals on until all workers have ended; exit with 1 where one died unasked."""
    is_ending = False

    def pass_on(number: int, frame: FrameType | None = None) -> None:
        nonlocal is_ending
        is_ending = is_ending or number == signal.SIGTERM
        for worker in started:
            if worker.is_alive():
                os.kill(worker.pid or 0, number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, lambda number, frame: pass_on(signal.SIGTERM))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, pass_on)
    left: dict[Any, BaseProcess] = {worker.sentinel: worker for worker in started}
    code = 0
    while left:
        for sentinel in wait(list(left)):
            worker = left.pop(sentinel)
            worker.join()
            if not is_ending:
                log("a worker died", level=logging.ERROR, worker=worker.name, code=worker.exitcode)
                code = 1
                pass_on(signal.SIGTERM)
    sys.exit(code)
