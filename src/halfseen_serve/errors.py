"""What a client did wrong: a status, a sentence, and one JSON shape for all of them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}
_SENTENCES = {
    404: "There is nothing at this path; see /openapi.json.",
    405: "This path does not take that method; see /openapi.json.",
}


class RequestError(HTTPException):
    """A request that is not answered: what was wrong, where, what to do, and in which column."""

    def __init__(self, status: int, sentence: str, field: str | None = None) -> None:
        super().__init__(status, sentence, _HEADERS.get(status))
        # A key from outside may hold half of a surrogate pair, which no answer can.
        self.field = None if field is None else field.encode("utf-8", "replace").decode()


def lacking(name: str, where: str) -> RequestError:
    sentence = (
        f"{where} lacks column {name!r}, which the model needs; give null where it is unknown."
    )
    return RequestError(422, sentence, name)


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal, of ours or of Starlette's router."""
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.status_code, error.detail)
    request.state.notes["error"] = sentence
    content = {"error": sentence, "field": getattr(error, "field", None)}
    return JSONResponse(content, error.status_code, error.headers)


async def answer_failure(request: Request, error: Exception) -> JSONResponse:
    """Answer what is our fault; the traceback goes to the log."""
    return JSONResponse({"error": "The server failed; its log says why.", "field": None}, 500)
