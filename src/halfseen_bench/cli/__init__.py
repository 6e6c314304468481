"""The commands `halfseen demo`, `data` and `bench`, added to the library's command line."""

from __future__ import annotations


def add_commands(commands: dict[str, tuple[str, str]]) -> None:
    """Add this package's commands; found by its entry point in ``halfseen.commands``."""
    home = "halfseen_bench.cli"
    commands |= {
        "demo": (
            f"{home}.demo:demo",
            "Train models on half-seen digits, print a table and write a report.",
        ),
        "data": (f"{home}.data:app", "List, fetch, describe and export data sets."),
        "bench": (
            f"{home}.bench:app",
            "Run the paper's experiments beside what a user would pick instead.",
        ),
    }
