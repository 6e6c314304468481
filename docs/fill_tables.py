"""Put into the pages of docs and docs/results what their commands print.

A page holds ``<!-- halfseen bench table ... -->``, the output of that, and ``<!-- end -->``.
``python docs/fill_tables.py`` runs each command in the folder of the page and writes its output
there; with ``--check`` it only says which pages are out of date, and fails if one is.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.files import write_text

DOCS = Path(__file__).parent
TABLE = re.compile(r"(<!-- halfseen (bench [^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, folder: Path) -> str:
    """Return a page with the output of its commands."""
    return TABLE.sub(lambda found: f"{found[1]}\n{printed(found[2], folder)}\n\n{found[3]}", page)


def printed(command: str, folder: Path) -> str:
    """Return what a command prints in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200"})
    finally:
        os.chdir(before)
    if done.exit_code:
        raise SystemExit(f"halfseen {command}: {done.output}")
    return done.stdout.strip()


def main() -> None:
    stale = []
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("results/*.md")]):
        page = path.read_text(encoding="utf-8")
        fresh = filled(page, path.parent)
        if fresh != page:
            stale.append(path.name)
            if "--check" not in sys.argv:
                write_text(path, fresh)
    if stale:
        print("out of date:" if "--check" in sys.argv else "filled:", ", ".join(stale))
    raise SystemExit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
