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
        # A key from outside may hold half of a surrogate pair, which no answer can.
        self.field = None if field is None else field.encode("utf-8", "replace").decode()

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer.

        Where the body was not read to its end, the connection closes: else a client could go on
        sending for ever.
        """
        headers = {} if self.status in (400, 422) else {"Connection": "close"}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.status == 429:
            headers["Retry-After"] = "1"
        return headers

    @property
    def content(self) -> dict[str, str | None]:
        """What the client is sent, as JSON."""
        return {"error": self.sentence, "field": self.field}
