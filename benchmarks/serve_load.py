"""Load on `halfseen serve`, on this machine alone: throughput, latency, errors.

Starts a server of MODEL on a free port of 127.0.0.1, keeps a few connections busy for a bounded
time, and stops the server with SIGTERM. Client and server share the machine's cores.

    python benchmarks/serve_load.py model/ --seconds 10 --connections 1 8 64 --workers 1 2

Processor time of the server is stated too: other work on the machine hardly touches it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST = 300.0
"""Seconds that a run may last, whatever is asked for."""


@dataclass
class Tally:
    """What the connections have seen."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def percentile(self, share: float) -> float:
        """Return the latency that this share of the requests stayed below."""
        ordered = sorted(self.milliseconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def start_server(model: str, workers: int) -> tuple[subprocess.Popen[str], int]:
    """Start the server and wait for the line of its log that says where it listens."""
    code = "from halfseen.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", model, "--port", "0"]
    command += ["--workers", str(workers)] if workers > 1 else []
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if not line.startswith("{"):
            raise SystemExit(line.strip())
        record = json.loads(line)
        if record["event"] == "ready":
            return process, int(record["url"].rpartition(":")[2])
    raise SystemExit("The server did not start.")


def make_request(port: int, rows: int) -> bytes:
    """Return a request with made-up rows, as bytes."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/schema") as answer:
        schema = json.load(answer)
    records = [{c["name"]: made_up(c) for c in schema["columns"]} for _ in range(rows)]
    body = json.dumps({"records": records}).encode()
    head = (
        "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def made_up(column: dict[str, Any]) -> Any:
    if column["json"] == "a text":
        return random.choice(column["categories"])
    if column["json"].startswith("true"):
        return random.random() < 0.5
    return random.choice([None, *range(100)])


async def keep_busy(port: int, request: bytes, end: float, tally: Tally) -> None:
    """Send one request after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        begun = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        tally.milliseconds.append(1000 * (time.perf_counter() - begun))
        tally.statuses[int(head.split(b" ")[1])] += 1
    writer.close()


async def load(port: int, request: bytes, seconds: float, connections: int) -> Tally:
    tally = Tally()
    end = time.monotonic() + seconds
    await asyncio.gather(*(keep_busy(port, request, end, tally) for _ in range(connections)))
    return tally


def processor_seconds(process: int) -> float:
    """Return the processor time of a process and its children so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own + sum(processor_seconds(int(child)) for child in children)


def measure(given: argparse.Namespace, connections: int, workers: int) -> None:
    process, port = start_server(given.model, workers)
    try:
        request = make_request(port, given.rows)
        # The log must be read, or the server would wait for somebody to do so.
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        seconds = min(given.seconds, LONGEST)
        asyncio.run(load(port, request, 1.0, connections))  # to warm up
        begun, spent = time.perf_counter(), processor_seconds(process.pid)
        tally = asyncio.run(load(port, request, seconds, connections))
        took, spent = time.perf_counter() - begun, processor_seconds(process.pid) - spent
    finally:
        process.send_signal(signal.SIGTERM)
        ended = process.wait(60)
    drain.wait(10)
    count = len(tally.milliseconds)
    errors = sum(times for status, times in tally.statuses.items() if status >= 500)
    shares = {"p50": 0.5, "p99": 0.99, "largest": 1.0}
    shown = ", ".join(f"{name} {tally.percentile(p):.1f} ms" for name, p in shares.items())
    print(
        f"{workers} workers, {connections} connections, {given.rows} rows a request, {took:.1f} s: "
        f"{count:,} requests ({count / took:,.0f}/s), {shown}; {1000 * spent / count:.2f} "
        f"processor ms a request; statuses {dict(tally.statuses)}, 5xx: {errors}, exit code of "
        f"the server: {ended}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="model folder or exported graph")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--rows", type=int, default=1, help="rows of each request")
    given = parser.parse_args()
    for workers in given.workers:
        for connections in given.connections:
            measure(given, connections, workers)


if __name__ == "__main__":
    main()
