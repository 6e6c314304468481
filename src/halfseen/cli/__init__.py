"""The command line: parse, call, print."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    It is imported here: its commands come from several packages, which import parts of this one.
    """
    from halfseen.cli.app import main

    main()
