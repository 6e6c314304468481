"""An hour of `halfseen serve` under mixed load on one core: memory, descriptors and latency.

Starts a server of a small model on a free port of 127.0.0.1, pinned with its clients to one core.
Good requests in every form are compared with known answers, beside mutated bodies, slow and lying
clients, clients that go away, and reloads of another model or of a damaged one. Every ten seconds
the server's memory, descriptors and threads are noted, and the latency of the good requests.

    python benchmarks/soak.py --seconds 3600 --seed 0 --output soak.jsonl --figure soak.png
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from torture import clients
from torture.kit import Kit, damaged, written

LONGEST = 4 * 3600.0
"""Seconds that a run may last, whatever is asked for."""
PAUSE = 0.5
"""Seconds between two requests of one client: so many, and no more, are sent."""
GOOD, HOSTILE = 3, 2
"""Clients of each kind."""
OPTIONS = ["--deadline", "20", "--head-timeout", "2", "--max-bytes", "200000"]


@dataclass
class Seen:
    """What the clients have seen, of all time and since the last sample."""

    counts: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Server:
    """`halfseen serve` as a process, and what the system says of it."""

    def __init__(self, model: Path) -> None:
        code = "from halfseen.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", str(model), "--port", "0", *OPTIONS]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.events: Counter[str] = Counter()
        self.port = 0
        self.tracebacks = 0
        ready = threading.Event()
        threading.Thread(target=self._read, args=(ready,), daemon=True).start()
        if not ready.wait(120) or not self.port:
            raise SystemExit("The server did not start.")

    def _read(self, ready: threading.Event) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            record = json.loads(line)
            self.events[record["event"]] += 1
            self.tracebacks += "traceback" in record
            if record["event"] == "ready":
                self.port = int(record["url"].rpartition(":")[2])
                ready.set()
        ready.set()

    def sample(self) -> dict[str, float]:
        """Return memory in MiB, open descriptors and threads."""
        place = Path(f"/proc/{self.process.pid}")
        lines = (place / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines if ":" in line)
        return {
            "memory": round(int(status["VmRSS"].split()[0]) / 1024, 1),
            "descriptors": len(list((place / "fd").iterdir())),
            "threads": int(status["Threads"]),
        }

    def reload(self, event: str) -> bool:
        """Ask for a reload and wait until the log says how it ended."""
        before = self.events[event]
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while self.events[event] == before and time.monotonic() < end:
            time.sleep(0.05)
        return self.events[event] > before


class Soak:
    """The clients, each on a thread of its own."""

    def __init__(self, kit: Kit, folder: Path, server: Server, seed: int) -> None:
        self.kit, self.folder, self.server, self.seed = kit, folder, server, seed
        self.seen = Seen()
        self.is_over = threading.Event()

    def clients(self) -> list[threading.Thread]:
        """Return the threads, not yet started."""
        kinds = [self.ask_well] * GOOD + [self.ask_badly] * HOSTILE + [self.give_another_model]
        return [
            threading.Thread(target=self._keep_on, args=(kind, random.Random(f"{self.seed} {n}")))
            for n, kind in enumerate(kinds)
        ]

    def _keep_on(self, work: Callable[[random.Random], None], draw: random.Random) -> None:
        while not self.is_over.is_set():
            try:
                work(draw)
            except Exception as error:
                self.seen.failures.append(f"{work.__name__}: {error!r}"[:300])
                print(self.seen.failures[-1], file=sys.stderr, flush=True)
            time.sleep(PAUSE)

    def ask_well(self, draw: random.Random) -> None:
        """Ask for some rows as JSON or Arrow, and compare the answer with both models'."""
        rows, is_arrow = draw.choice([1, 5, 40]), draw.random() < 0.5
        frame = self.kit.frame.head(rows)
        body = written(frame, "stream") if is_arrow else clients.good_body(self.kit, rows)
        begun = time.perf_counter()
        media = clients.ARROW if is_arrow else "application/json"
        status, content = clients.ask(self.server.port, body, media)
        self.seen.milliseconds.append(1000 * (time.perf_counter() - begun))
        self.seen.counts["good requests"] += 1
        if status != 200:
            raise AssertionError(f"a good request was refused: {content}")
        found = np.array(probabilities_of(content))
        if not any(np.allclose(found, a[:rows], rtol=0, atol=1e-5) for a in self.kit.answers[:2]):
            raise AssertionError("another answer was given")

    def ask_badly(self, draw: random.Random) -> None:
        """Send a mutated body, or be slow, untrue or gone."""
        self.seen.counts["hostile requests"] += 1
        if draw.random() < 0.5:
            is_arrow = draw.random() < 0.5
            rows = self.kit.frame.head(5)
            good = written(rows, "stream") if is_arrow else clients.good_body(self.kit)
            media = clients.ARROW if is_arrow else "application/json"
            clients.ask(self.server.port, damaged(good, draw), media)
        else:
            clients.lie_once(self.kit, self.server.port, draw)

    def give_another_model(self, draw: random.Random) -> None:
        """Let the server read one model or the other; a damaged one is refused and made good."""
        self.is_over.wait(draw.uniform(20, 60))
        if self.is_over.is_set():
            return
        number = draw.randrange(2)
        if draw.random() < 0.3:
            name = draw.choice(["model.json", "model.safetensors"])
            path = self.folder / name
            content = bytearray(path.read_bytes())
            content[draw.randrange(len(content) - 1)] ^= 1 << draw.randrange(7)
            path.write_bytes(content)
            self.seen.counts["refused reloads"] += 1
            if not self.server.reload("not reloaded"):
                raise AssertionError("a damaged model was not refused")
        self.kit.save(self.folder, number)
        self.seen.counts["reloads"] += 1
        if not self.server.reload("reloaded"):
            raise AssertionError("another model was not read")


def probabilities_of(content: dict[str, Any]) -> list[list[float]]:
    """Return the probabilities of an answer in either form."""
    if "columns" in content:
        return (
            pa.table({k: content["columns"][k] for k in ("p_no", "p_yes")}).to_pandas().to_numpy()
        )
    return [[row["p_no"], row["p_yes"]] for row in content["records"]]


def run(seconds: float, seed: int, every: float, output: Path) -> tuple[list[dict], Seen, int, int]:
    """Run the soak; return the samples, what was seen, tracebacks and the server's exit code."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as root, output.open("w") as log:
        kit = Kit(Path(root))
        folder = kit.place_of("served")
        server = Server(folder)
        soak = Soak(kit, folder, server, seed)
        threads = soak.clients()
        samples: list[dict] = []
        try:
            for thread in threads:
                thread.start()
            begun = time.monotonic()
            while (passed := time.monotonic() - begun) < seconds:
                time.sleep(min(every, seconds - passed))
                taken, soak.seen.milliseconds = soak.seen.milliseconds, []
                quantiles = np.percentile(taken or [0.0], [50, 99])
                samples.append(
                    {"seconds": round(time.monotonic() - begun, 1), **server.sample(),
                     "requests": len(taken), "p50": round(quantiles[0], 2),
                     "p99": round(quantiles[1], 2), "failures": len(soak.seen.failures)}
                )  # fmt: skip
                print(json.dumps(samples[-1]), file=log, flush=True)
        finally:
            soak.is_over.set()
            for thread in threads:
                thread.join(60)
            time.sleep(min(seconds, 10))  # what was left open is closed by now
            idle = {"idle": True, **server.sample()}
            server.process.send_signal(signal.SIGTERM)
            code = server.process.wait(60)
        print(json.dumps(idle), file=log, flush=True)
        soak.seen.counts["descriptors at the end"] = int(idle["descriptors"])
        return samples, soak.seen, server.tracebacks, code


def table_of(samples: list[dict], parts: int = 6) -> str:
    """Return the medians of equal parts of the time as a Markdown table."""
    lines = [
        "| minutes | good requests | p50 | p99 | memory | descriptors | threads |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for part in np.array_split(np.arange(len(samples)), min(parts, len(samples))):
        those = [samples[place] for place in part]
        middle = {k: statistics.median(s[k] for s in those) for k in those[0]}
        first, last = (those[place]["seconds"] / 60 for place in (0, -1))
        lines.append(
            f"| {first:.0f} to {last:.0f} | {sum(s['requests'] for s in those):,} | "
            f"{middle['p50']:.1f} ms | {middle['p99']:.0f} ms | {middle['memory']:.0f} MiB | "
            f"{middle['descriptors']:.0f} | {middle['threads']:.0f} |"
        )
    return "\n".join(lines)


def draw_figure(samples: list[dict], path: Path) -> None:
    """Draw memory, descriptors and latency over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    minutes = [sample["seconds"] / 60 for sample in samples]
    figure, panels = pyplot.subplots(3, 1, sharex=True, figsize=(7, 5), layout="constrained")
    for panel, name, words in zip(
        panels,
        ("memory", "descriptors", "p50"),
        ("memory, MiB", "open descriptors", "median latency, ms"),
        strict=True,
    ):
        values = [sample[name] for sample in samples]
        panel.plot(minutes, values, linewidth=1)
        panel.set_ylabel(words)
        panel.set_ylim(0, 1.2 * max(values))
    panels[-1].set_yscale("log")
    panels[-1].set_ylim(1)
    panels[-1].set_xlabel("minutes")
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    parser.add_argument("--output", type=Path, default=Path("soak.jsonl"))
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    seconds = min(given.seconds, LONGEST)
    samples, seen, tracebacks, code = run(seconds, given.seed, given.every, given.output)
    print(table_of(samples))
    print(", ".join(f"{count:,} {name}" for name, count in sorted(seen.counts.items())))
    print(f"failures: {len(seen.failures)}, tracebacks: {tracebacks}, exit code: {code}")
    if given.figure is not None:
        draw_figure(samples, given.figure)
    sys.exit(bool(seen.failures or tracebacks or code))


if __name__ == "__main__":
    main()
