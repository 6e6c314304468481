"""How much a request may ask for."""

from __future__ import annotations

import time
from dataclasses import dataclass

from halfseen.serve.errors import RequestError

__all__ = ["Deadline", "Limits"]


_UNPACKED = 4
"""How many times larger than its limit a packed body may become."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one request, and on how many are under way at once.

    Together they bound memory: bodies take at most ``max_bytes * max_requests``.
    """

    max_rows: int = 100_000
    max_bytes: int = 8 * 2**20
    deadline: float = 30.0
    """Seconds from the first byte to the answer."""
    max_requests: int = 64

    def check_bytes(self, count: int) -> None:
        """Refuse a body that is too large."""
        if count > self.max_bytes:
            raise RequestError(
                413,
                f"The body is larger than {self.max_bytes:,} bytes, the limit of this server; send "
                "fewer rows at a time.",
            )

    def check_unpacked(self, count: int) -> None:
        """Refuse a body that is small only because it is packed."""
        most = _UNPACKED * self.max_bytes
        if count > most:
            raise RequestError(
                413,
                f"The body unpacks to more than {most:,} bytes, the limit of this server; send "
                "fewer rows at a time.",
            )

    def check_rows(self, count: int) -> None:
        """Refuse too many rows, or none."""
        if count > self.max_rows:
            raise RequestError(
                413,
                f"The request has more than {self.max_rows:,} rows, the limit of this server; send "
                "fewer rows at a time.",
            )
        if count == 0:
            raise RequestError(422, "The request has no rows; send at least one.")


class Deadline:
    """The moment by which a request must be answered."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Refuse to go on after it."""
        if time.monotonic() > self._end:
            raise self.refusal()

    def refusal(self) -> RequestError:
        """Return what the client is told."""
        return RequestError(
            408,
            f"The request took longer than {self.seconds:g} seconds, the limit of this server; "
            "send fewer rows at a time, or send them faster.",
        )
