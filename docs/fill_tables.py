"""Put what was measured into the pages: overviews into Markdown, everything into CSV.

A page holds ``<!-- halfseen bench table ... -->``, the tables that this prints, and
``<!-- end -->``. ``python docs/fill_tables.py`` runs each command in the folder of its page and
writes the tables there, titles in bold, without the notes under them. Beside every log
(``runs.jsonl``) it writes ``table.csv``: all models, metrics and choices of epoch. With
``--check`` it only says which files are out of date, and fails if one is.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.outputs import write_text
from halfseen_bench.comparison import published
from halfseen_bench.metrics import METRICS
from halfseen_bench.runner import read_log
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import read_results
from halfseen_bench.tables import by_setting, choices_of, summarize

DOCS = Path(__file__).parent
TABLE = re.compile(r"(<!-- halfseen (bench table [^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, folder: Path) -> str:
    """Return a page with the tables of its commands."""
    return TABLE.sub(lambda found: f"{found[1]}\n{printed(found[2], folder)}\n\n{found[3]}", page)


def printed(command: str, folder: Path) -> str:
    """Return the tables that a command prints in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200"})
    finally:
        os.chdir(before)
    if done.exit_code:
        raise SystemExit(f"halfseen {command}: {done.output}")
    lines = [line for line in done.stdout.splitlines() if not line or line[0] in "|#"]
    text = re.sub(r"^### (.+)$", r"**\1**", "\n".join(lines), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def full_table(folder: Path) -> str:
    """Return every result of a log as CSV: a line per problem, model and metric."""
    suite = next(iter(read_log(folder / "runs.jsonl").values()))["run"]["suite"]
    runs = read_results(folder, SUITES[suite])
    records = [record for run in runs for record in run["records"]]
    lines = list(_lines(records))
    choices = list(dict.fromkeys(name for line in lines for name in line if name not in FACTS))
    columns = [*FACTS, *choices]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


FACTS = (
    "problem", "source_rows", "budget", "preset", "model", "variant", "divergence", "refined",
    "metric", "seeds", "paper",
)  # fmt: skip


def _lines(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield means and standard deviations, shares in percent."""
    for setting, found in by_setting(records).items():
        for metric in METRICS:
            for row, cells in summarize(found, metric).items():
                if not cells:
                    continue
                paper = published(setting, row, metric)
                values = (
                    setting.pair, setting.source_rows, setting.budget, setting.preset, row.model,
                    row.variant, row.divergence or "", row.refined, metric,
                    max(cell.runs for cell in cells.values()), paper.mean if paper else "",
                )  # fmt: skip
                line = dict(zip(FACTS, values, strict=True))
                digits = METRICS[metric].decimals + 1
                for choice in choices_of([cells]):
                    line[choice] = f"{cells[choice].mean:.{digits}f}"
                    if cells[choice].runs > 1:
                        line[f"{choice}_std"] = f"{cells[choice].deviation:.{digits}f}"
                yield line


def wanted() -> Iterator[tuple[Path, str]]:
    """Yield each file with what it should hold."""
    for table in sorted(DOCS.glob("results/*/table.csv")):
        yield table, full_table(table.parent)
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("results/*.md")]):
        yield path, filled(path.read_text(encoding="utf-8"), path.parent)


def main() -> None:
    check, stale = "--check" in sys.argv, []
    for path, fresh in wanted():
        if not path.exists() or path.read_text(encoding="utf-8") != fresh:
            stale.append(path.relative_to(DOCS).as_posix())
            if not check:
                write_text(path, fresh)
    if stale:
        print("out of date:" if check else "filled:", ", ".join(stale))
    raise SystemExit(1 if stale and check else 0)


if __name__ == "__main__":
    main()
