"""One JSON object per line of log, so that machines read it and nothing sent can forge a line."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

_LOGGER = logging.getLogger("halfseen.serve")
_LONGEST = 300
"""Characters of one field."""
_WHOLE = 4096
"""Bytes that a pipe takes as a whole, though other processes write to it too."""


def log(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one event with its fields; of long texts, such as paths from strangers, the start."""
    cut = {k: v if len(str(v)) <= _LONGEST else f"{v[:_LONGEST]}..." for k, v in fields.items()}
    _LOGGER.log(level, event, extra={"fields": cut})


def log_to_stderr() -> None:
    """Send the server's own log and that of uvicorn to standard error."""
    handler = Lines()
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


class Lines(logging.Handler):
    """Writes the lines of one turn of the event loop together: each write takes a while."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line until the end of the turn; outside of the loop, write it."""
        self._lines.append(self.format(record) + "\n")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
        else:
            if len(self._lines) == 1:
                loop.call_soon(self.flush)

    def flush(self) -> None:
        with self.lock or nullcontext():
            block = ""
            for line in self._lines:
                if len(block) + len(line) > _WHOLE:  # JSON is ASCII
                    sys.stderr.write(block)
                    sys.stderr.flush()
                    block = ""
                block += line
            self._lines.clear()
            sys.stderr.write(block)
            sys.stderr.flush()


class JsonLines(logging.Formatter):
    r"""Formats a record as one line of JSON.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "two\nlines", "fields": {"status": 200}})
    >>> line = JsonLines().format(record)
    >>> "\n" in line, json.loads(line)["event"], json.loads(line)["status"]
    (False, 'two\nlines', 200)
    """

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content)
