"""The report of a benchmark's output folder, or of the demo's: from its finished runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from halfseen.errors import InputError
from halfseen.report.html import (
    Cell,
    Code,
    Grid,
    Head,
    Page,
    Paragraph,
    Part,
    Section,
    Tile,
    number,
)
from halfseen.report.svg import HOW_TRAINING, loss_figures
from halfseen_bench.budgets import DEMO_BUDGET
from halfseen_bench.comparison import overview_tables, problem_tables
from halfseen_bench.metrics import METRICS
from halfseen_bench.models import Record
from halfseen_bench.rendering import ResultTable
from halfseen_bench.report.sweep_latents import KeptLatents, kept_latents
from halfseen_bench.runner import Result, read_log
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import LOG, read_results
from halfseen_bench.tables import summarize

__all__ = ["read_sweep", "sweep_page"]

FEW_PROBLEMS = 4
"""Beyond so many problems, all are shown in one table and each one's own is folded."""
MANY_ROWS = 40
"""A longer table that nobody reads first is folded."""
MOST_DRAWN = 3
"""Problems whose losses and latents are drawn."""
IMPUTATION, IGNORE = "Adaptation-Imputation", "Adaptation-IgnoreComponent"
SECTIONS = {
    "comparison": (
        "How models compare",
        "Each row is a model, each choice of epoch is named: “last” is the final epoch, what a "
        "user gets, and “oracle” the best one in hindsight, which nobody can know.",
        "",
    ),
    "missing": (
        "What is missing",
        "Each problem is named with what its target lacks; Full models alone are shown it.",
        "the runs do not say what is missing.",
    ),
    "calibration": (
        "Calibration",
        "The calibration error is the mean gap between stated confidence and accuracy on the "
        "target test set, 0 at best; the cross-entropy pays for both errors and false confidence.",
        "these runs recorded accuracy alone.",
    ),
    "training": (
        "How training went",
        HOW_TRAINING,
        "no run of this folder recorded its epochs.",
    ),
    "latents": (
        "Latents before and after adaptation",
        "By domain, the more circles and triangles mix, the better the domains are aligned; by "
        "class, clumps of one colour are what the classifier wants (distances between clumps mean "
        "nothing in such a map).",
        "no latents were kept: suites keep those of the first seed where they draw them.",
    ),
    "imputation": (
        "What the generator imputes",
        "A latent has no picture of its own: what was imputed is shown by the source examples "
        "whose true latents are the nearest to it.",
        "no imputed latents were kept with this output.",
    ),
    "command": (
        "Command and configuration",
        "What was run, with every setting: enough to run it again.",
        "",
    ),
}
"""Title of each section, how to read it, and why it may be left out."""


def read_sweep(folder: Path) -> list[Result]:
    """Return the finished runs of a folder, in the order of their suites."""
    found = list(read_log(folder / LOG).values())
    if not found:
        raise InputError(f"{folder / LOG} holds no finished run yet.")
    if not all(isinstance(result, dict) and "records" in result for result in found):
        raise InputError(f"{folder / LOG} is not the log of a benchmark.")
    found = [result for result in found if "run" in result]  # demos of version 0.1 have none
    if not found:
        raise InputError(f"{folder / LOG} was written by a demo of version 0.1; run it again.")
    ordered: list[Result] = []
    for name in dict.fromkeys(result["run"]["suite"] for result in found):
        if name in SUITES:
            ordered += read_results(folder, SUITES[name])
        else:
            ordered += [result for result in found if result["run"]["suite"] == name]
    return ordered


def sweep_page(folder: Path, *, command: str | None = None, failures: Sequence[str] = ()) -> Page:
    """Return the report of a benchmark's folder."""
    results = read_sweep(folder)
    records = [record for result in results for record in result["records"]]
    metrics = _metrics(results)
    latents = kept_latents(folder, results, MOST_DRAWN)
    parts: dict[str, list[Part]] = {
        "missing": _missing_parts(results, records, latents),
        "training": [*_training_parts(results), *_separability_parts(latents)],
        "latents": [part for kept in latents for part in kept.figures()],
        "comparison": _comparison_parts(records, metrics, failures),
        "calibration": _calibration_parts(records),
        "imputation": [part for kept in latents for part in kept.imputed()],
        "command": _command_parts(results, folder, command),
    }
    sections = tuple(
        Section(name, title, how, tuple(parts[name]), "" if parts[name] else absent)
        for name, (title, how, absent) in SECTIONS.items()
    )
    suites = list(dict.fromkeys(record["suite"] for record in records))
    pairs = list(dict.fromkeys(record["pair"] for record in records))
    return Page(
        f"Benchmark: {', '.join(suites)}",
        f"{len(results)} finished runs on {_count(len(pairs), 'problem')}. Labels of the target "
        "are used for these tables alone, after training.",
        sections,
        _tiles(records, metrics),
    )


def _metrics(results: Sequence[Result]) -> dict[str, tuple[str, ...]]:
    problems = [result["run"]["problem"] for result in results]
    return {p["name"]: tuple(m for m in p["metrics"] if m in METRICS) for p in problems}


def _missing_parts(
    results: Sequence[Result], records: Sequence[Record], latents: Sequence[KeptLatents]
) -> list[Part]:
    rows_of = {r["records"][0]["pair"]: r.get("rows", {}) for r in results}
    layouts = {(r["pair"], r["source_rows"]): r["layout"] for r in records}
    rows = tuple(
        (
            Cell(pair),
            Cell(layout),
            number(float(count), ",.0f"),
            number(_known(rows_of.get(pair, {}).get("target train")), ",.0f"),
            number(_known(rows_of.get(pair, {}).get("target test")), ",.0f"),
        )
        for (pair, count), layout in layouts.items()
    )
    heads = (
        Head("problem", numeric=False),
        Head("missing on the target", numeric=False),
        Head("source rows"),
        Head("target rows, training"),
        Head("target rows, test"),
    )
    return [
        *(part for kept in latents[:1] for part in kept.domains()),
        Grid("Problems", heads, rows),
    ]


def _training_parts(results: Sequence[Result]) -> list[Part]:
    """Draw the losses of the first run of the imputing model, problem by problem."""
    parts: list[Part] = []
    drawn: set[str] = set()
    for wanted in (IMPUTATION, IGNORE):
        for result in results:
            record = result["records"][0] if result["records"] else {}
            pair = record.get("pair", "")
            if record.get("model") != wanted or pair in drawn or len(drawn) == MOST_DRAWN:
                continue
            figures = loss_figures(result.get("history", []))
            if figures:
                drawn.add(pair)
                words = f"{pair}: {wanted}, {record.get('divergence') or 'no divergence'}"
                parts += [Paragraph(f"{words}, seed {record['seed']}."), *figures]
        if drawn:
            break
    return parts


def _separability_parts(latents: Sequence[KeptLatents]) -> list[Part]:
    rows = tuple(row for kept in latents for row in kept.separability())
    if not rows:
        return []
    heads = (
        Head("problem", numeric=False),
        Head("latents of", numeric=False),
        Head("AUC"),
        Head("proxy A-distance"),
    )
    note = "0.5 and 0: not at all; 1 and 2: perfectly. Test rows of the first seed."
    return [Grid("How well a classifier tells the domains apart", heads, rows, (note,))]


def _comparison_parts(
    records: Sequence[Record], metrics: Mapping[str, Sequence[str]], failures: Sequence[str]
) -> list[Part]:
    parts: list[Part] = []
    if failures:
        parts.append(Paragraph(f"{len(failures)} runs failed: {' '.join(failures)}", warning=True))
    many = len(metrics) > FEW_PROBLEMS
    if many:
        parts += [_grid(table) for table in overview_tables(records, metrics)]
    first = {pair: names[:1] for pair, names in metrics.items()}
    parts += [_grid(table, folded=many) for table in problem_tables(records, first)]
    parts += _choice_parts(records, metrics)
    others = {pair: names[1:] for pair, names in metrics.items()}
    if any(r.get(name) is not None for r in records for name in others[r["pair"]]):
        parts += [_grid(table, folded=True) for table in problem_tables(records, others)]
    return parts


def _choice_parts(records: Sequence[Record], metrics: Mapping[str, Sequence[str]]) -> list[Part]:
    """Show how far each way of choosing an epoch falls behind the best one in hindsight."""
    rows = []
    for pair, names in metrics.items():
        metric = METRICS[names[0]]
        of_pair = [r for r in records if r["pair"] == pair]
        lost: dict[str, list[float]] = {}
        for row in summarize(of_pair, metric.name):
            best = row.cells.get("oracle")
            for choice, cell in row.cells.items():
                if best is not None and choice != "oracle":
                    lost.setdefault(choice, []).append(abs(best.mean - cell.mean))
        rows += [
            (
                Cell(pair),
                Cell(choice),
                number(sum(gaps) / len(gaps), f".{metric.decimals}f"),
                number(max(gaps), f".{metric.decimals}f"),
                number(float(len(gaps)), ".0f"),
            )
            for choice, gaps in lost.items()
        ]
    if not rows:
        return []
    heads = (
        Head("problem", numeric=False),
        Head("epoch chosen by", numeric=False),
        Head("behind the oracle, mean"),
        Head("most"),
        Head("models"),
    )
    notes = (
        "In the first metric of each problem, over all models that have epochs to choose from. "
        "The oracle is chosen with test labels, so that some of this gap is luck that nobody can "
        "have.",
    )
    return [Grid("What choosing an epoch without labels costs", heads, tuple(rows), notes)]


def _calibration_parts(records: Sequence[Record]) -> list[Part]:
    rows = []
    for pair in dict.fromkeys(record["pair"] for record in records):
        of_pair = [r for r in records if r["pair"] == pair]
        errors = summarize(of_pair, "calibration_error")
        entropies = summarize(of_pair, "cross_entropy")
        for error, entropy in zip(errors, entropies, strict=True):
            shown, loss = error.cells.get("last"), entropy.cells.get("last")
            if shown is None or loss is None:
                continue
            rows.append(
                (
                    Cell(error.label),
                    Cell(error.divergence or "–"),
                    Cell(pair),
                    Cell(str(shown), shown.mean),
                    Cell(str(loss), loss.mean),
                )
            )
    if not rows:
        return []
    heads = (
        Head("model", numeric=False),
        Head("divergence", numeric=False),
        Head("problem", numeric=False),
        Head("calibration error"),
        Head("cross-entropy"),
    )
    note = "At the last epoch, on the target test set; mean ± standard deviation over seeds."
    folded = len(rows) > MANY_ROWS
    return [Grid("Calibration at the last epoch", heads, tuple(rows), (note,), folded)]


def _command_parts(results: Sequence[Result], folder: Path, command: str | None) -> list[Part]:
    typed = command is not None
    title = "The command, as it was typed" if typed else "Commands that run the same again"
    parts: list[Part] = [Code(title, command or "\n".join(_commands(results, folder)))]
    last = next((r for r in reversed(results) if "versions" in r), None)
    if last is not None:
        versions = ", ".join(f"{name} {v}" for name, v in last["versions"].items())
        git, machine = last.get("git") or {}, last.get("machine") or {}
        state = f" Code at {git['commit'][:12]}" if git.get("commit") else ""
        changed = ", changed since." if git.get("changed") else "." if state else ""
        where = f" On {machine.get('processor')}, {machine.get('cores')} cores." if machine else ""
        parts.append(Paragraph(f"Versions: {versions}.{state}{changed}{where}"))
    run = next((r["run"] for r in results if r["run"]["model"] == IMPUTATION), None)
    if run is not None:
        settings = json.dumps(run["options"], indent=2, ensure_ascii=False)
        parts.append(
            Code(f"Every setting of {IMPUTATION}, {run['problem']['name']}", settings, True)
        )
    return parts


def _commands(results: Sequence[Result], folder: Path) -> list[str]:
    """Return what runs these runs again, a line per suite, budget and preset."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for run in (result["run"] for result in results):
        found.setdefault((run["suite"], run["budget"], run["preset"]), []).append(run)
    lines = []
    for (suite, budget, preset), runs in found.items():
        seeds = str(len({run["seed"] for run in runs}))
        if budget == DEMO_BUDGET.name:
            for divergence in sorted({run["divergence"] or "" for run in runs} - {""}):
                words = ["halfseen", "demo", "--output", str(folder), "--divergence", divergence]
                lines.append(shlex.join([*words, "--seeds", seeds]))
            continue
        words = ["halfseen", "bench", "run", suite]
        pairs = list(dict.fromkeys(run["problem"]["name"] for run in runs))
        models = list(dict.fromkeys(run["model"] for run in runs))
        whole = SUITES.get(suite)
        if whole is None or set(pairs) != {problem.name for problem in whole.problems}:
            words += ["--pairs", ",".join(pairs)]
        if whole is None or set(models) != {*whole.models, *whole.baselines}:
            for model in models:
                words += ["--models", model]
        words += ["--seeds", seeds]
        words += ["--budget", budget, "--preset", preset, "-o", str(folder)]
        lines.append(shlex.join(words))
    return lines


def _tiles(records: Sequence[Record], metrics: Mapping[str, Sequence[str]]) -> tuple[Tile, ...]:
    """Show, for the first problems, the imputing model beside the ignoring one."""
    tiles = []
    for pair, names in list(metrics.items())[:FEW_PROBLEMS]:
        metric = METRICS[names[0]]
        rows = summarize([r for r in records if r["pair"] == pair], metric.name)
        cells = {r.model: r.cells["last"] for r in rows if not r.refined and "last" in r.cells}
        if IMPUTATION in cells:
            other = f"; {IGNORE} {cells[IGNORE]}" if IGNORE in cells else ""
            words = f"{IMPUTATION}, {metric.title}, last epoch{other}"
            tiles.append(Tile(pair, str(cells[IMPUTATION]), words))
    return tuple(tiles)


def _grid(table: ResultTable, *, folded: bool = False) -> Grid:
    """Return a benchmark's table as one that can be sorted and copied."""
    heads = tuple(
        Head(title.replace("_", " "), numeric=title not in ("model", "divergence"))
        for title in table.columns
    )
    rows = tuple(
        tuple(Cell(cell.text, _leading(cell.text), strong=cell.bold) for cell in row)
        for row in table.rows
    )
    return Grid(table.title, heads, rows, table.notes, folded)


def _leading(text: str) -> float | None:
    """Return the number that a cell begins with, if it does.

    Examples
    --------
    >>> _leading("48.8 ± 2.7"), _leading("−3.4"), _leading("Source-Full")
    (48.8, -3.4, None)
    """
    try:
        return float(text.partition(" ")[0].replace("−", "-"))
    except ValueError:
        return None


def _known(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _count(number_: int, what: str) -> str:
    return f"one {what}" if number_ == 1 else f"{number_} {what}s"
