"""The paper's figures from a finished sweep: patches, curves, latents and histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from halfseen.blocks import Blocks
from halfseen_bench.baselines import BASELINES
from halfseen_bench.budgets import BUDGETS
from halfseen_bench.data import DomainPair
from halfseen_bench.metrics import METRICS
from halfseen_bench.problems import BenchProblem, load_problem
from halfseen_bench.report.figures import SOURCE_COLOUR, TARGET_COLOUR, displayable, draw_latents
from halfseen_bench.runner import Result
from halfseen_bench.suites import Suite
from halfseen_bench.sweep import SweepRun, latents_file, run_of

FRACTIONS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7)
Curves = dict[str, dict[str, dict[float, list[float]]]]
"""Panel, then line, then abscissa: the values of all seeds."""


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: its suite, its results, and where its files are."""

    suite: Suite
    results: Sequence[Result]
    folder: Path
    data_dir: Path | None = None


def suite_figures(sweep: Sweep) -> dict[str, Figure]:
    """Draw what a suite has figures of; those without data are left out."""
    figures: dict[str, Figure] = {}
    for name in sweep.suite.figures:
        figures |= _FIGURES[name](sweep)
    return figures


def draw_patches(pair: DomainPair, rows: int = 4) -> Figure:
    """Draw the target with horizontal patches of growing size missing, beside the source."""
    assert pair.complete_target is not None  # the digits have them
    target = pair.complete_target.open("picture")[1][:rows]
    side = "top" if pair.blocks.missing[0] == 0 else "bottom"
    figure = Figure(figsize=(1.0 * (len(FRACTIONS) + 1), 1.0 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, len(FRACTIONS) + 1, squeeze=False)
    for line, (source, image) in enumerate(zip(pair.source_train.inputs, target, strict=False)):
        axes[line, 0].imshow(displayable(source, None))
        for axis, fraction in zip(axes[line, 1:], FRACTIONS, strict=True):
            shape = (image.shape[0], image.shape[1], image.shape[2])
            hidden = Blocks.rows(shape, fraction=fraction, side=side) if fraction else None  # type: ignore[arg-type]
            axis.imshow(displayable(image, hidden))
    for axis, title in zip(axes[0], ("source", *(f"{f:.0%}" for f in FRACTIONS)), strict=True):
        axis.set_title(title, fontsize=9)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    return figure


def draw_curves(
    curves: Curves, *, across: str, up: Mapping[str, str], scale: str = "linear"
) -> Figure:
    """Draw the mean of each line with its standard deviation as a band, a panel per problem."""
    columns = min(len(curves), 3)
    lines = -(-len(curves) // columns)
    figure = Figure(figsize=(5.0 * columns + 1.5, 3.6 * lines + 0.8), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    names = list(dict.fromkeys(name for panel in curves.values() for name in panel))
    for axis, (title, panel) in zip(axes.flat, curves.items(), strict=False):
        for number, name in enumerate(names):
            found = pd.Series(panel.get(name, {}), dtype=object).sort_index()
            means = found.map(np.mean).astype(float)
            spread = found.map(lambda values: np.std(values, ddof=1) if len(values) > 1 else 0.0)
            low, high = means - spread.astype(float), means + spread.astype(float)
            colour, line = f"C{number % 10}", ("-", "--", ":")[number // 10 % 3]
            if len(found):
                axis.plot(means, marker="o", markersize=3, label=name, color=colour, ls=line)
                axis.fill_between(means.index, low, high, alpha=0.15, color=colour, lw=0)
        marks = sorted({x for points in panel.values() for x in points})
        if scale == "symlog":
            axis.set_xscale("symlog", linthresh=min(x for x in marks if x > 0))
        elif scale == "log":
            axis.set_xscale("log")
            axis.set_xticks(marks, [f"{mark:,.0f}" for mark in marks])
            axis.minorticks_off()
        axis.set(xlabel=across, ylabel=up[title])
        axis.set_title(title, fontsize=10)
    for axis in axes.flat[len(curves) :]:
        axis.axis("off")
    # A line may be missing in the first panel.
    drawn = {line.get_label(): line for axis in axes.flat for line in axis.get_lines()}
    handles = [drawn[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8)
    return figure


def draw_histograms(pair: DomainPair, bins: int = 24) -> Figure:
    """Draw the share of rows at each value of each column, source beside target."""
    names = pair.blocks.names_of(range(pair.blocks.length))
    columns = min(len(names), 6)
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(2.2 * columns, 1.7 * lines + 0.4), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for position, (axis, name) in enumerate(zip(axes.flat, names, strict=False)):
        missing = position in pair.blocks.missing
        shown = [(pair.source_train.inputs[:, position], SOURCE_COLOUR, "source")]
        if not missing:
            shown.append((pair.target_train[:, position], TARGET_COLOUR, "target"))
        values = np.concatenate([column for column, _, _ in shown])
        edges = np.linspace(np.nanmin(values), np.nanmax(values) + 1e-6, bins + 1)
        for column, colour, label in shown:
            known = column[~np.isnan(column)]
            weights = np.full(len(known), 1.0 / max(len(known), 1))
            axis.hist(known, edges, weights=weights, color=colour, alpha=0.55, label=label)
        axis.set_title(f"{name} (missing)" if missing else name, fontsize=8)
        axis.tick_params(labelsize=6)
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    observed = pair.blocks.observed[0]
    handles, labels = axes.flat[observed].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    figure.supylabel("share of rows", fontsize=9)
    return figure


def _patches(sweep: Sweep) -> dict[str, Figure]:
    problem = sweep.suite.problems[-1]
    small = problem.having(max_train=20, max_test=20)
    name = f"patches-{_plain(problem.name.partition('@')[0])}"
    return {name: draw_patches(load_problem(small, seed=0, data_dir=sweep.data_dir).pair)}


def _histograms(sweep: Sweep) -> dict[str, Figure]:
    problems = _problems(sweep) or {p.name: p for p in sweep.suite.problems}
    return {
        f"histograms-{_plain(name)}": draw_histograms(
            load_problem(problem, seed=0, data_dir=sweep.data_dir).pair
        )
        for name, problem in problems.items()
    }


def _latents(sweep: Sweep) -> dict[str, Figure]:
    """Draw one figure per problem and divergence, with every model whose latents were kept."""
    named: dict[str, dict[str, dict[str, Any]]] = {}
    for result in sweep.results:
        run = run_of(result)
        path = latents_file(sweep.folder, run)
        if run.seed or run.variant or run.model in BASELINES or not path.exists():
            continue
        with np.load(path) as arrays:
            words = (run.problem.name, run.divergence or "source-only", *_changes(run, sweep))
            figure = _plain("-".join(("latents", *words)))
            named.setdefault(figure, {})[run.model] = dict(arrays)
    return {name: draw_latents(models) for name, models in named.items()}


def _curve_figure(
    name: str,
    across: str,
    place: Callable[[SweepRun, Result], float],
    scale: str,
    *,
    variants_are_places: bool = False,
) -> Callable[[Sweep], dict[str, Figure]]:
    """Return what draws last-epoch results over some property of the runs."""

    def draw(sweep: Sweep) -> dict[str, Figure]:
        curves: Curves = {}
        up: dict[str, str] = {}
        for result in sweep.results:
            run = run_of(result)
            metric = METRICS[run.problem.metrics[0]]
            panel = run.problem.name.partition("@")[0]
            up[panel] = metric.title
            for record in result["records"]:
                value = record.get(metric.name)
                if record["epoch_choice"] != "last" or record["refined"] or value is None:
                    continue
                variant = "" if variants_are_places else run.variant
                words = (run.model, run.divergence, variant, *_changes(run, sweep))
                label = ", ".join(word for word in words if word)
                points = curves.setdefault(panel, {}).setdefault(label, {})
                points.setdefault(place(run, result), []).append(metric.scale * value)
        return {name: draw_curves(curves, across=across, up=up, scale=scale)} if curves else {}

    return draw


def _problems(sweep: Sweep) -> dict[str, BenchProblem]:
    found = (run_of(result).problem for result in sweep.results)
    return {problem.name: problem for problem in found}


def _changes(run: SweepRun, sweep: Sweep) -> list[str]:
    """Name what a run was told to do otherwise than the others: --set, --preset, --budget."""
    own = next((p for p in sweep.suite.problems if p.name == run.problem.name), run.problem)
    budget = BUDGETS.get(run.budget)
    usual, told = (budget.problem(own) if budget else own).reader, run.problem.reader
    keys = dict.fromkeys((*usual, *told))
    changed = [f"{key}-{told.get(key)}" for key in keys if told.get(key) != usual.get(key)]
    changed += [run.preset] if run.preset != "default" else []
    return changed + ([run.budget] if run.budget != sweep.results[0]["run"]["budget"] else [])


def _plain(name: str) -> str:
    return name.replace(":", "-").replace("@", "-")


_FIGURES: dict[str, Callable[[Sweep], dict[str, Figure]]] = {
    "patches": _patches,
    "histograms": _histograms,
    "latents": _latents,
    "patch-curve": _curve_figure(
        "patch-curve",
        "share of rows missing, %",
        lambda run, result: 100.0 * float(run.problem.reader["fraction"]),
        "linear",
    ),
    "lambda-curve": _curve_figure(
        "lambda-curve",
        "λ_MSE",
        lambda run, result: float(run.variant.partition("=")[2].partition(",")[0]),
        "symlog",
        variants_are_places=True,
    ),
    "learning-curves": _curve_figure(
        "learning-curves",
        "labelled source rows",
        lambda run, result: float(result["records"][0]["source_rows"]),
        "log",
    ),
}
"""What draws each figure that a suite may name."""
