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
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from socket import socket
from types import FrameType
from typing import Any

from halfseen.errors import HalfseenError
from halfseen.serve.log_lines import log, log_to_stderr
from halfseen.serve.metrics import Metrics

Answer = Callable[[socket, Metrics, Callable[[], None]], None]
"""Serves a listening socket, and says when it is ready."""


def run_workers(answer: Answer, listener: socket, workers: int) -> None:
    """Let several processes answer until a signal ends them.

    The others start when the first one is ready, so that one alone complains of a model that
    cannot be loaded. When a worker dies unasked, all end, and with them the server, for whatever
    watches it to start it again.
    """
    # Libraries have threads of their own, which a fork would lose.
    context = multiprocessing.get_context("spawn")
    counts = context.RawArray(c_char, workers * Metrics.SIZE)
    heard, told = context.Pipe(duplex=False)
    started: list[BaseProcess] = []
    for number in range(workers):
        given = (answer, listener, counts, number, told if number == 0 else None)
        started.append(context.Process(target=_work, args=given, name=f"worker {number}"))
        started[-1].start()
        if number == 0:
            told.close()
            _check_ready(heard, started[0])
    log_to_stderr()
    _hand_on_signals(started)


def _work(
    answer: Answer,
    listener: socket,
    counts: Array[c_char],
    number: int,
    told: Connection | None,
) -> None:
    """Be one worker; end when the process that started it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    metrics = Metrics(counts)
    metrics.process = number
    try:
        answer(listener, metrics, lambda: None if told is None else told.send(""))
    except HalfseenError as error:
        if told is None:
            raise
        told.send(str(error))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _check_ready(heard: Connection, first: BaseProcess) -> None:
    """Wait until the first worker is ready, or say what it says is wrong."""
    try:
        said = heard.recv()
    except EOFError:
        said = f"The first worker ended with exit code {first.exitcode}."
    if said:
        first.join()
        raise HalfseenError(said)


def _hand_on_signals(started: list[BaseProcess]) -> None:
    """Hand signals on until all workers have ended; exit with 1 where one died unasked."""
    is_ending = False

    def hand_on(number: int, frame: FrameType | None = None) -> None:
        nonlocal is_ending
        is_ending = is_ending or number == signal.SIGTERM
        for worker in started:
            if worker.is_alive():
                os.kill(worker.pid or 0, number)

    signal.signal(signal.SIGTERM, hand_on)
    signal.signal(signal.SIGINT, lambda number, frame: hand_on(signal.SIGTERM))
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, hand_on)
    left: dict[Any, BaseProcess] = {worker.sentinel: worker for worker in started}
    code = 0
    while left:
        for sentinel in wait(list(left)):
            worker = left.pop(sentinel)
            worker.join()
            if not is_ending:
                log("a worker died", level=logging.ERROR, worker=worker.name, code=worker.exitcode)
                code = 1
                hand_on(signal.SIGTERM)
    sys.exit(code)
