"""What a server has done and holds, as Prometheus reads it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

MEDIA = "text/plain; version=0.0.4"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the ranges that answers are counted in."""
_NUMBERS = {
    "rows_total": "counter",
    "reloads_total": "counter",
    "failed_reloads_total": "counter",
    "requests_under_way": "gauge",
    "body_bytes_held": "gauge",
    "connections": "gauge",
}
_COUNTS = np.dtype(
    [
        *((name, np.int64) for name in _NUMBERS),
        ("statuses", np.int64, 600),
        ("ranges", np.int64, len(_SECONDS) + 1),
        ("seconds", np.float64),
    ]
)


class Metrics:
    """Counts of one server, through all its reloads: ``metrics["connections"] += 1``.

    Several processes have `shared` memory: what each counts lies where all of them see it, so that
    they tell what they did, and keep to bounds, together. `process` is which of them this one is.
    """

    SIZE = _COUNTS.itemsize
    """Bytes that one process needs."""

    def __init__(self, shared: Any = None) -> None:
        memory = bytearray(self.SIZE) if shared is None else shared
        self.counts: np.ndarray[Any, Any] = np.frombuffer(memory, dtype=_COUNTS)
        self.process = 0

    def __getitem__(self, name: str) -> int:
        return int(self.counts[name][self.process])

    def __setitem__(self, name: str, value: int) -> None:
        self.counts[name][self.process] = value

    def total(self, name: str) -> int:
        return int(self.counts[name].sum())

    def answered(self, status: int, seconds: float, rows: int) -> None:
        own = self.counts[self.process]
        own["statuses"][status] += 1
        own["seconds"] += seconds
        own["ranges"][bisect_left(_SECONDS, seconds)] += 1
        own["rows_total"] += rows

    def text(self) -> str:
        """Return all of it in the text format of Prometheus.

        Examples
        --------
        >>> metrics = Metrics()
        >>> metrics.answered(200, 0.02, rows=3)
        >>> print(metrics.text())  # doctest: +ELLIPSIS
        # TYPE halfseen_requests_total counter
        halfseen_requests_total{status="200"} 1
        # TYPE halfseen_rows_total counter
        halfseen_rows_total 3
        ...
        """
        total = {name: self.counts[name].sum(axis=0) for name in _COUNTS.names or ()}
        lines = ["# TYPE halfseen_requests_total counter"]
        for status in np.flatnonzero(total["statuses"]):
            count = total["statuses"][status]
            lines.append(f'halfseen_requests_total{{status="{status}"}} {count}')
        for name, kind in _NUMBERS.items():
            lines += [f"# TYPE halfseen_{name} {kind}", f"halfseen_{name} {total[name]}"]
        lines.append("# TYPE halfseen_request_seconds histogram")
        below = 0
        for end, count in zip((*map(str, _SECONDS), "+Inf"), total["ranges"], strict=True):
            below += count
            lines.append(f'halfseen_request_seconds_bucket{{le="{end}"}} {below}')
        lines.append(f"halfseen_request_seconds_sum {total['seconds']:.6f}")
        lines.append(f"halfseen_request_seconds_count {below}")
        return "\n".join(lines) + "\n"
