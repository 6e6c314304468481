"""`halfseen demo`: the suite of the embedded problem, end to end, with a report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from halfseen.cli.terminal import Force, Terminal, new_table, plain, print_failures
from halfseen.outputs import Output, check_outputs, head

if TYPE_CHECKING:  # the library is imported when a command runs: help must not wait for it
    from halfseen_bench.models import Record


MODELS = ("Source-IgnoreComponent", "Adaptation-IgnoreComponent", "Adaptation-Imputation")
"""Those of the paper's seven that tell the story: no adaptation, x1 alone, x2 imputed."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and the results.")
    ] = Path("demo-output"),
    divergence: Annotated[
        str, typer.Option(help="How latents are compared: adversarial or transport.")
    ] = "adversarial",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each model.")] = 3,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per core.")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="One epoch per phase: to try the command, not the method.")
    ] = False,
    force: Force = False,
) -> None:
    """Train models on half-seen digits, print a table and write a report.

    Needs no download: the digits and photos come with scikit-learn. A few minutes on two cores.
    A demo that was stopped continues when it is started again with the same output folder.

    Example: halfseen demo --output out/ --divergence transport
    """
    from halfseen.outputs import write_text
    from halfseen_bench.budgets import BUDGETS, DEMO_BUDGET
    from halfseen_bench.report.demo import write_demo_report
    from halfseen_bench.suites import SUITES, TREES_COLOURS
    from halfseen_bench.sweep import Selection, plan_runs, run_suite

    log = Output(output / "runs.jsonl", "the log", _is_demo, is_continued=True)
    files = [
        Output(output / name, f"the file {name}", _is_demo)
        for name in ("results.json", "report.html", "domains.png")
    ]
    check_outputs([log, *files], {}, force=force)
    # No label-free score is taken: the demo shows models, and is short.
    budget = BUDGETS["quick"].model_copy(update={"score_rows": 0}) if quick else DEMO_BUDGET
    wanted = Selection(models=(*MODELS, TREES_COLOURS), divergences=(divergence,), seeds=seeds)
    plan = plan_runs(SUITES["demo"], budget, wanted)
    results, failures = run_suite(plan, output, jobs=jobs, title="training models")
    # The baseline below the models.
    results.sort(key=lambda result: result["run"]["model"] == TREES_COLOURS)
    records = [record for result in results for record in result["records"]]
    write_text(output / "results.json", json.dumps(records, indent=1))
    terminal = Terminal()
    print_results(records, terminal.results)
    print_failures(failures, terminal.results)
    command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
    page = write_demo_report(output, results, failures, command=command)
    terminal.result(f"Report:  {page}")
    terminal.result(f"Results: {output / 'results.json'}")
    if failures:
        raise typer.Exit(1)


def _is_demo(path: Path) -> bool:
    """Whether a file stands beside the log of a demo, or is it."""
    return head(path.with_name("runs.jsonl")).startswith(b'{"key"')


def print_results(records: Sequence[Record], console: Console) -> None:
    """Print accuracies with the choice of epoch stated."""
    from halfseen_bench.tables import summarize

    title = "Accuracy on the target test set, % (mean ± standard deviation over seeds)"
    table = new_table("model", "divergence", "last", "oracle", title=title, numbers=True)
    for key, cells in summarize(records).items():
        texts = [str(cells.get(choice, "–")) for choice in ("last", "oracle")]
        style = "bold" if key.model == "Adaptation-Imputation" else None
        table.add_row(key.label, key.divergence or "–", *texts, style=style)
    console.print(table, highlight=False)
    plain(
        console,
        "last: final epoch, what a user gets. oracle: best epoch in hindsight, chosen with the "
        "test labels.",
    )
