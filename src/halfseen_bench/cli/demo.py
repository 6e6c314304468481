"""`halfseen demo`: the embedded problem, end to end, with a report."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from halfseen.cli.terminal import Force, Terminal, new_table, plain, print_failures
from halfseen.outputs import Output, check_outputs, head

if TYPE_CHECKING:  # the library is imported when a command runs: help must not wait for it
    from halfseen_bench.demo import DemoResult

__all__ = ["demo"]


class Divergence(StrEnum):
    """The divergences that the demo offers."""

    adversarial = "adversarial"
    transport = "transport"


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and the results.")
    ] = Path("demo-output"),
    divergence: Annotated[
        Divergence, typer.Option(help="How distributions of latents are compared.")
    ] = Divergence.adversarial,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each model.")] = 3,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per core.")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="One epoch per phase: to try the command, not the method.")
    ] = False,
    force: Force = False,
) -> None:
    """Train the seven models on half-seen digits, print a table and write a report.

    Needs no download: the digits and photos come with scikit-learn. About two minutes on two
    cores. A demo that was stopped continues when it is started again with the same output folder.

    Example: halfseen demo --output out/ --divergence transport
    """
    from halfseen_bench.demo import run_demo

    log = Output(output / "runs.jsonl", "the log", _is_demo, is_continued=True)
    files = [
        Output(output / name, f"the file {name}", _is_demo)
        for name in ("results.json", "report.html", "domains.png")
    ]
    check_outputs([log, *files], {}, force=force)
    result = run_demo(output, divergence=divergence, seeds=seeds, jobs=jobs, quick=quick)
    terminal = Terminal()
    print_results(result, terminal.results)
    try:
        from halfseen_bench.report.demo import write_demo_report
    except ImportError as error:  # the report's libraries are an extra
        terminal.result(f"No report: {error}. Install it with: pip install 'halfseen[report]'")
    else:
        command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
        page = write_demo_report(result, command=command)
        terminal.result(f"Report:  {page}")
    terminal.result(f"Results: {output / 'results.json'}")
    if result.failures:
        raise typer.Exit(1)


def _is_demo(path: Path) -> bool:
    """Whether a file stands beside the log of a demo, or is it."""
    return head(path.with_name("runs.jsonl")).startswith(b'{"key"')


def print_results(result: DemoResult, console: Console) -> None:
    """Print accuracies with the choice of epoch stated."""
    from halfseen_bench.tables import summarize

    title = "Accuracy on the target test set, % (mean ± standard deviation over seeds)"
    table = new_table("model", "divergence", "last", "oracle", title=title, numbers=True)
    for row in summarize(result.records):
        cells = [
            str(row.cells[choice]) if choice in row.cells else "–" for choice in ("last", "oracle")
        ]
        style = "bold" if row.model == "Adaptation-Imputation" else None
        table.add_row(row.label, row.divergence or "–", *cells, style=style)
    console.print(table, highlight=False)
    plain(
        console,
        "last: final epoch, what a user gets. oracle: best epoch in hindsight, chosen with the "
        "test labels. Full models are shown the target's missing half.",
    )
    print_failures(result.failures, console)
