"""One JSON object per line of log, so that machines read it and nothing sent can forge a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

_LOGGER = logging.getLogger("halfseen_serve")
_LONGEST = 300
"""Characters of one field."""


def log(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one event with its fields; of long texts, such as paths from strangers, the start."""
    cut = {k: v if len(str(v)) <= _LONGEST else f"{v[:_LONGEST]}..." for k, v in fields.items()}
    _LOGGER.log(level, event, extra={"fields": cut})


def log_to_stderr() -> None:
    """Send the server's own log and that of uvicorn to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


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
