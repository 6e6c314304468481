"""``halfseen bench``: run the paper's experiments, put them into tables, draw the figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape

from halfseen.cli.terminal import Force, Json, Terminal, new_table, print_failures
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs, head
from halfseen_bench.cli import panel
from halfseen_bench.cli.data import DataDir, data_inputs, settings_of

if TYPE_CHECKING:  # the library is imported when a command runs: help must not wait for it
    from halfseen.presets import Preset
    from halfseen_bench.models import Record
    from halfseen_bench.runner import Result

app = typer.Typer(
    name="bench",
    help="Run the paper's experiments beside what a user would pick instead.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

app.add_typer(panel.app)
app.command("few-labels")(panel.few_labels)

_MARK = b"Software\0halfseen"
"""What a picture says of its origin."""

Names = list[str] | None
SuiteName = Annotated[str, typer.Argument(help="A suite, as `halfseen bench list` shows.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder of the sweep; bench-output/SUITE-BUDGET by default."
    ),
]
BudgetName = Annotated[str, typer.Option(help="paper, cpu, steps or quick.")]
Pairs = Annotated[Names, typer.Option(help="Pairs of the suite; all by default.")]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """Show every suite with its pairs, and every budget.

    Example: halfseen bench list
    """
    from halfseen_bench.budgets import BUDGETS
    from halfseen_bench.suites import SUITES
    from halfseen_bench.sweep import plan_runs

    terminal = Terminal(as_json=as_json)
    suites: list[dict[str, Any]] = [
        {
            "name": suite.name,
            "what": suite.what,
            "pairs": [problem.name for problem in suite.problems],
            "runs": {b.name: len(plan_runs(suite, b).runs) for b in BUDGETS.values()},
        }
        for suite in SUITES.values()
    ]
    if as_json:
        budgets = {budget.name: budget.what for budget in BUDGETS.values()}
        terminal.document({"suites": suites, "budgets": budgets})
        return
    table = new_table("suite", "what", "pairs", *(f"runs, {b}" for b in BUDGETS))
    for suite in suites:
        counts = [f"{count:,}" for count in suite["runs"].values()]
        row = (suite["name"], suite["what"], ", ".join(suite["pairs"]), *counts)
        table.add_row(*(escape(cell) for cell in row))
    terminal.results.print(table, highlight=False)
    for budget in BUDGETS.values():
        terminal.result(f"budget {budget.name}: {budget.what}")


@app.command()
def run(
    suite: SuiteName,
    pairs: Pairs = None,
    models: Annotated[
        Names,
        typer.Option(help="Models or baselines by name, `models` or `baselines`; all by default."),
    ] = None,
    divergence: Annotated[Names, typer.Option(help="adversarial, transport or both.")] = None,
    variants: Annotated[Names, typer.Option(help="Variants of the suite, or plain.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each model.")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="The seed to begin with.")] = 0,
    budget: BudgetName = "cpu",
    preset: Annotated[str, typer.Option(help="default, paper or reference.")] = "default",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per core.")
    ] = None,
    set_: Annotated[
        Names, typer.Option("--set", metavar="KEY=VALUE", help="An option of the reader: side=top.")
    ] = None,
    option: Annotated[
        Names,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the models: dropout=0.2."),
    ] = None,
    data_dir: DataDir = None,
    output: Folder = None,
    as_json: Json = False,
) -> None:
    """Run a suite; finished runs are kept in runs.jsonl and never repeated.

    A sweep that was stopped goes on when the same command is given again. A failed run does not
    end the others: it is reported at the end, and tried again next time.

    Example: halfseen bench run amazon --pairs dvd:books --models baselines --seeds 5
    """
    from halfseen_bench.budgets import BUDGETS
    from halfseen_bench.metrics import named
    from halfseen_bench.suites import SUITES
    from halfseen_bench.sweep import LOG, Selection, plan_runs, run_suite

    chosen, spent = named("suite", suite, SUITES), named("budget", budget, BUDGETS)
    selection = Selection(
        pairs=_split(pairs),
        models=tuple(models or ()),  # baselines' names hold commas
        divergences=_split(["adversarial,transport"] if divergence == ["both"] else divergence),
        variants=tuple(variants or ()),
        seeds=seeds,
        first_seed=first_seed,
        reader=settings_of("--set", set_),
        options=settings_of("--option", option),
        preset=cast("Preset", preset),
    )
    plan = plan_runs(chosen, spent, selection)
    folder = output or _default_folder(suite, budget)
    log = Output(folder / LOG, "the log", _is_log, is_continued=True)
    check_outputs([log], data_inputs(data_dir))
    terminal = Terminal(as_json=as_json)
    for sentence in plan.left_out:
        terminal.say(sentence)
    results, failures = run_suite(
        plan,
        folder,
        data_dir=data_dir,
        jobs=jobs,
        title=f"{suite}, {budget}",
        quiet=terminal.errors.quiet,
    )
    terminal.result(f"{len(results)} of {len(plan.runs)} runs finished: {log.path}")
    print_failures(failures, terminal.results)
    terminal.document(
        {"log": log.path, "runs": len(plan.runs), "finished": len(results), "failures": failures}
    )
    if failures:
        raise typer.Exit(1)


@app.command()
def table(
    suite: SuiteName,
    budget: BudgetName = "cpu",
    pairs: Pairs = None,
    metric: Annotated[
        Names, typer.Option(help="Metrics to print; by default those of each problem.")
    ] = None,
    choice: Annotated[
        Names, typer.Option(help="Choices of epoch: last, oracle or a label-free score.")
    ] = None,
    overview: Annotated[
        bool, typer.Option(help="All pairs in one table, at the first choice of epoch.")
    ] = False,
    versus: Annotated[
        str | None, typer.Option(help="Print differences from this model, paired by seed.")
    ] = None,
    curves: Annotated[
        bool, typer.Option("--curves", help="A column per number of source rows.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="Every cell of the paper on these pairs, ours beside.")
    ] = False,
    rows: Annotated[
        Names, typer.Option(help="Models to print, as the table names them; all by default.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="markdown, csv, latex or html.")] = (
        "markdown"
    ),
    output: Folder = None,
    as_json: Json = False,
) -> None:
    """Print a sweep's results beside the paper's.

    Example: halfseen bench table amazon --format latex > amazon.tex
    """
    from halfseen_bench import comparison, rendering
    from halfseen_bench.metrics import METRICS, named
    from halfseen_bench.suites import SUITES

    results = _results(output or _default_folder(suite, budget), suite, pairs)
    records: list[Record] = [record for result in results for record in result["records"]]
    metrics = {
        problem["name"]: [named("metric", n, METRICS).name for n in metric or problem["metrics"]]
        for problem in (result["run"]["problem"] for result in results)
    }
    choices = _known_choices(choice or [], records)
    first = choices[0] if choices else "last"
    if paper:
        names = _split(pairs) or [problem.name for problem in SUITES[suite].problems]
        variants = [variant.name for variant in SUITES[suite].variants]
        tables = comparison.paper_tables(records, names, variants)
    elif curves:
        tables = comparison.curve_tables(records, metrics, first, versus)
    elif versus is not None:
        tables = comparison.difference_tables(records, metrics, versus, first)
    elif overview:
        tables = comparison.overview_tables(records, metrics, first)
    else:
        tables = comparison.problem_tables(records, metrics, choices)
    if rows is not None:
        tables = rendering.with_rows(tables, rows)
    if as_json:
        Terminal(as_json=True).document({"suite": suite, "tables": tables})
    else:
        typer.echo(rendering.rendered(tables, format_))


@app.command()
def figures(
    suite: SuiteName,
    budget: BudgetName = "cpu",
    pairs: Pairs = None,
    data_dir: DataDir = None,
    output: Folder = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder for the pictures; that of the sweep by default.")
    ] = None,
    force: Force = False,
) -> None:
    """Draw a suite's figures from its finished runs.

    Example: halfseen bench figures patch --data-dir ~/data --to docs/images
    """
    from halfseen_bench.metrics import named
    from halfseen_bench.report.bench import Sweep, suite_figures
    from halfseen_bench.report.figures import save_figure
    from halfseen_bench.suites import SUITES

    chosen = named("suite", suite, SUITES)
    if not chosen.figures:
        raise OptionError(f"The suite {suite} has no figures; see `halfseen bench table {suite}`.")
    folder = output or _default_folder(suite, budget)
    sweep = Sweep(chosen, _results(folder, suite, pairs), folder, data_dir)
    terminal = Terminal()
    drawn = {(to or folder) / f"{name}.png": f for name, f in suite_figures(sweep).items()}
    outputs = [Output(path, "a figure", lambda path: _MARK in head(path), "--to") for path in drawn]
    check_outputs(outputs, data_inputs(data_dir), force=force)
    for path, figure in drawn.items():
        save_figure(figure, path)
        terminal.result(str(path))


def _is_log(path: Path) -> bool:
    return head(path).startswith(b'{"key"')


def _default_folder(suite: str, budget: str) -> Path:
    return Path("bench-output") / f"{suite}-{budget}"


def _results(folder: Path, suite: str, pairs: Names) -> list[Result]:
    from halfseen_bench.metrics import named
    from halfseen_bench.suites import SUITES
    from halfseen_bench.sweep import read_results

    return read_results(folder, named("suite", suite, SUITES), _split(pairs))


def _split(names: Names) -> tuple[str, ...]:
    """Read names separated by commas or given by repeating the option."""
    return tuple(part.strip() for name in names or () for part in name.split(",") if part.strip())


def _known_choices(given: list[str], records: list[Record]) -> list[str]:
    known = list(dict.fromkeys(record["epoch_choice"] for record in records))
    for name in _split(given):
        if name not in known:
            raise OptionError(f"No run chose its epoch by {name!r}; there are {', '.join(known)}.")
    return list(_split(given))
