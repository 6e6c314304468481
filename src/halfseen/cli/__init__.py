"""The command line: parse, call, print."""

from __future__ import annotations

from halfseen.cli.app import main

__all__ = ["main"]
