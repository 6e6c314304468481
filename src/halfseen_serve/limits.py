"""How much a request may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from halfseen_serve.errors import RequestError

_UNPACKED = 4
"""How many times larger than its limit a packed body may become."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one request, and on all that are under way at once."""

    max_rows: int = 100_000
    max_bytes: int = 8 * 2**20
    deadline: float = 30.0
    """Seconds from the head of a request to the last byte of its answer."""
    max_requests: int = 64
    max_total_bytes: int = 64 * 2**20
    """Of all bodies together; one body of ``max_bytes`` is always let in."""
    max_connections: int = 256
    """Open at once; each may hold a third of a MiB that nobody has asked for yet."""
    head_timeout: float = 10.0
    """Seconds from an open connection, or the answer before, to the whole head of a request."""

    def check_bytes(self, count: int) -> None:
        self._check(count, self.max_bytes, "body is larger than {:,} bytes")

    def check_unpacked(self, count: int) -> None:
        """Refuse a body that is small only because it is packed."""
        self._check(count, _UNPACKED * self.max_bytes, "body unpacks to more than {:,} bytes")

    def check_rows(self, count: int) -> None:
        """Refuse too many rows, or none."""
        self._check(count, self.max_rows, "request has more than {:,} rows")
        if count == 0:
            raise RequestError(422, "The request has no rows; send at least one.")

    def check_total(self, count: int) -> None:
        """Refuse what would not fit into memory beside the bodies that are being read."""
        if count > max(self.max_total_bytes, self.max_bytes):
            raise RequestError(
                429,
                f"The requests under way hold {self.max_total_bytes:,} bytes, the limit of this "
                "server; try again in a moment.",
            )

    def crowded(self, most: int, what: str) -> RequestError:
        sentence = f"More than {most} {what}, the limit of this server; try again in a moment."
        return RequestError(429, sentence)

    def _check(self, count: int, most: int, words: str) -> None:
        if count > most:
            raise RequestError(
                413,
                f"The {words.format(most)}, the limit of this server; send fewer rows at a time.",
            )
