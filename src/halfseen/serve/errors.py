"""What a client did wrong, as a status and a sentence."""

from __future__ import annotations

from halfseen.errors import HalfseenError

__all__ = ["RequestError"]


class RequestError(HalfseenError):
    """A request that is not answered, and why; always a 4xx.

    Parameters
    ----------
    status
        The HTTP status.
    sentence
        What was wrong, where, and what to do.
    field
        The column that the sentence speaks of, where there is one.
    """

    def __init__(self, status: int, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.field = field

    @property
    def content(self) -> dict[str, str | None]:
        """What the client is sent, as JSON."""
        return {"error": self.sentence, "field": self.field}
