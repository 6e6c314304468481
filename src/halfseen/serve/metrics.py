"""What a server has done and holds, as Prometheus reads it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

MEDIA = "text/plain; version=0.0.4"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the ranges that answers are counted in."""


@dataclass
class Metrics:
    """Counts of one server, through all its reloads."""

    requests_under_way: int = 0
    bytes_held: int = 0
    """Of all bodies under way."""
    rows: int = 0
    reloads: int = 0
    failed_reloads: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0
    ranges: list[int] = field(default_factory=lambda: [0] * (len(_SECONDS) + 1))

    def answered(self, status: int, seconds: float, rows: int) -> None:
        """Count one answer."""
        self.statuses[status] += 1
        self.seconds += seconds
        self.rows += rows
        self.ranges[bisect_left(_SECONDS, seconds)] += 1

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
        lines = ["# TYPE halfseen_requests_total counter"]
        for status, count in sorted(self.statuses.items()):
            lines.append(f'halfseen_requests_total{{status="{status}"}} {count}')
        for name, kind, value in (
            ("rows_total", "counter", self.rows),
            ("reloads_total", "counter", self.reloads),
            ("failed_reloads_total", "counter", self.failed_reloads),
            ("requests_under_way", "gauge", self.requests_under_way),
            ("body_bytes_held", "gauge", self.bytes_held),
        ):
            lines += [f"# TYPE halfseen_{name} {kind}", f"halfseen_{name} {value}"]
        lines.append("# TYPE halfseen_request_seconds histogram")
        below = 0
        for end, count in zip((*map(str, _SECONDS), "+Inf"), self.ranges, strict=True):
            below += count
            lines.append(f'halfseen_request_seconds_bucket{{le="{end}"}} {below}')
        lines.append(f"halfseen_request_seconds_sum {self.seconds:.6f}")
        lines.append(f"halfseen_request_seconds_count {below}")
        return "\n".join(lines) + "\n"
