"""The demo's report: one page of tables, losses and pictures that needs no other file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as PlottedFigure

from halfseen.report.html import (
    Cell,
    Code,
    Figure,
    Figures,
    Grid,
    Head,
    Page,
    Paragraph,
    Part,
    Section,
    Tile,
    grid,
    write_page,
)
from halfseen_bench.comparison import problem_tables
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.metrics import METRICS
from halfseen_bench.rendering import Best, ResultTable
from halfseen_bench.report.figures import (
    draw_domains,
    draw_latents,
    draw_losses,
    inline_figure,
    save_figure,
)
from halfseen_bench.runner import Result
from halfseen_bench.sweep import latents_file, run_of
from halfseen_bench.tables import paired_difference, summarize

IMPUTATION, IGNORE = "Adaptation-Imputation", "Adaptation-IgnoreComponent"
DRAWN = ("Source-IgnoreComponent", IMPUTATION)
"""Models whose latents are drawn: before adaptation and after it."""


def write_demo_report(
    output: Path, results: Sequence[Result], failures: Sequence[str], *, command: str
) -> Path:
    """Write ``domains.png`` and ``report.html`` into the demo's folder; return the page's path."""
    pair = demo_pair(0)
    domains = draw_domains(pair)
    save_figure(domains, output / "domains.png")
    records = [record for result in results for record in result["records"]]
    of = {"demo": ["accuracy", "cross_entropy", "calibration_error"]}
    words = f"{len(failures)} runs failed: {' '.join(failures)}"
    compared: list[Part] = [Paragraph(words, warning=True)] if failures else []
    compared += [_grid(table) for table in problem_tables(records, of)]
    kept = {run.model: latents_file(output, run) for run in map(run_of, results) if not run.seed}
    latents = {m: dict(np.load(kept[m])) for m in DRAWN if m in kept and kept[m].exists()}
    trained = next((r for r in results if r["run"]["model"] == IMPUTATION), None)
    losses: tuple[Part, ...] = ()
    if trained is not None:
        losses = (_picture(draw_losses(trained["history"]), "Each named loss over the epochs."),)
    settings = [] if trained is None else [json.dumps(trained["run"]["options"], indent=2)]
    alt = "Ten digits each of the source, of the target as it is, and of the target as observed."
    maps = f"t-SNE maps of the latents, by domain and by class: {' and '.join(latents)}."
    sections = (
        Section(
            "comparison",
            "How models compare",
            "Each choice of epoch is named: “last” is the final epoch, what a user gets, and "
            "“oracle” the best one in hindsight, which nobody can know.",
            tuple(compared),
        ),
        Section("missing", "What is missing", pair.card.missing, (_picture(domains, alt),)),
        Section(
            "training",
            "How training went",
            "Classification should fall, while the losses of critics (adaptation and imputation) "
            "may settle or rise: a critic that can no longer tell the two sides apart has a high "
            "loss.",
            losses,
            "" if losses else "nothing was trained.",
        ),
        Section(
            "latents",
            "Latents before and after adaptation",
            "By domain, the more circles and triangles mix, the better the domains are aligned; by "
            "class, clumps of one colour are what the classifier wants.",
            (_picture(draw_latents(latents), maps),) if latents else (),
            "" if latents else "no latents were kept.",
        ),
        Section(
            "command",
            "Command and configuration",
            "What was run, with every setting.",
            (
                Code("The command", command),
                *(Code(f"Every setting of {IMPUTATION}", text, folded=True) for text in settings),
            ),
        ),
    )
    metric = METRICS["accuracy"]
    shown = {key.model: cells["last"] for key, cells in summarize(records).items()}
    tiles = [Tile(m, str(shown[m]), f"{metric.title}, last epoch") for m in DRAWN if m in shown]
    notes = [f"Data: {pair.card.origin} {pair.card.licence}"]
    gap = paired_difference(records, IMPUTATION, IGNORE)
    if gap is not None:
        words = f"{IMPUTATION} minus {IGNORE}, seed by seed at the last epoch: "
        notes.insert(0, f"{words}{gap.mean:+.1f} ± {gap.deviation:.1f} points.")
    page = Page(
        "Models on digits that are half seen",
        f"{len(results)} finished runs. Labels of the target are used for these tables alone, "
        "after training.",
        sections,
        tuple(tiles),
        tuple(notes),
    )
    path = output / "report.html"
    write_page(path, page)
    return path


def _picture(figure: PlottedFigure, alt: str) -> Figures:
    return Figures((Figure("", picture=inline_figure(figure), alt=alt),), wide=True)


def _grid(table: ResultTable) -> Grid:
    """Return a benchmark's table as one that can be sorted and copied."""
    heads = [Head(title, numeric=title not in ("model", "divergence")) for title in table.columns]
    rows = (
        [Cell(cell, _leading(cell), strong=isinstance(cell, Best)) for cell in row]
        for row in table.rows
    )
    return grid(table.title, heads, rows, table.notes)


def _leading(text: str) -> float | None:
    """Return the number that a cell begins with, if it does."""
    try:
        return float(text.partition(" ")[0].replace("−", "-"))
    except ValueError:
        return None
