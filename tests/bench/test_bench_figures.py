"""The paper's figures from the log of a sweep."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from halfseen_bench.budgets import BUDGETS
from halfseen_bench.data.simulator import load_pair
from halfseen_bench.report import bench
from halfseen_bench.report.bench import Sweep, draw_curves, draw_histograms, suite_figures
from halfseen_bench.suites import SUITES
from halfseen_bench.sweep import Selection, latents_file, plan_runs

IMPUTATION, IGNORE = "Adaptation-Imputation", "Adaptation-IgnoreComponent"


def made_up(suite: str, selection: Selection, accuracy) -> list[dict]:
    results = []
    for run in plan_runs(SUITES[suite], BUDGETS["cpu"], selection).runs:
        shared = {"epoch_choice": "last", "refined": False, "source_rows": run.source_rows or 900}
        record = shared | {"accuracy": accuracy(run)}
        refined = record | {"refined": True, "accuracy": 0.0}  # the figures are of plain models
        results.append({"run": run.model_dump(mode="json"), "records": [record, refined]})
    return results


def lines_of(figure, panel: int = 0) -> dict[str, list[tuple[float, float]]]:
    return {
        line.get_label(): list(zip(*map(list, line.get_data()), strict=True))
        for line in figure.axes[panel].get_lines()
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"reader": {"side": "top"}}, "-side-top"),
        ({"reader": {"max_train": 500}}, "-max_train-500"),
        ({"preset": "paper"}, "-paper"),
    ],
)
def test_latents_of_other_settings_have_a_file_and_a_figure_of_their_own(
    tmp_path, monkeypatch, change, named
):
    monkeypatch.setattr(bench, "draw_latents", lambda models: models)  # t-SNE takes seconds
    results = []
    for number, settings in enumerate(({}, change)):
        selection = Selection(
            pairs=("usps:mnist",), models=(IMPUTATION,), seeds=1, variants=("plain",),
            divergences=("adversarial",), **settings,
        )  # fmt: skip
        for run in plan_runs(SUITES["digits"], BUDGETS["cpu"], selection).runs:
            np.savez(latents_file(tmp_path, run), source=np.array([number]))
            results.append({"run": run.model_dump(mode="json"), "records": []})
    assert len(list(tmp_path.glob("*.npz"))) == 2
    drawn = bench._latents(Sweep(SUITES["digits"], results, tmp_path))
    assert {name: int(models[IMPUTATION]["source"][0]) for name, models in drawn.items()} == {
        "latents-usps-mnist-adversarial": 0,
        f"latents-usps-mnist-adversarial{named}": 1,
    }


def test_a_learning_curve_goes_over_the_number_of_source_rows():
    selection = Selection(pairs=("dvd:books",), models=(IGNORE, IMPUTATION), seeds=2)
    results = made_up("source-size", selection, lambda run: 0.5 + 0.1 * run.seed)
    (figure,) = suite_figures(Sweep(SUITES["source-size"], results, Path())).values()
    lines = lines_of(figure)
    assert set(lines) == {f"{IGNORE}, adversarial", f"{IMPUTATION}, adversarial"}
    places, heights = zip(*lines[f"{IMPUTATION}, adversarial"], strict=True)
    assert places == (50, 100, 200, 400, 800, 900)
    assert heights == pytest.approx([55.0] * 6), "the mean of two seeds"
    marks = [mark.get_text() for mark in figure.axes[0].get_xticklabels()]
    assert marks == ["50", "100", "200", "400", "800", "900"]


def test_runs_with_other_options_are_a_line_of_their_own():
    results = []
    for options in ({}, {"networks.classifier_dropout": 0.2}):
        selection = Selection(pairs=("dvd:books",), models=(IGNORE,), seeds=1, options=options)
        results += made_up("source-size", selection, lambda run: 0.5)
    (figure,) = suite_figures(Sweep(SUITES["source-size"], results, Path())).values()
    assert set(lines_of(figure)) == {
        f"{IGNORE}, adversarial", f"{IGNORE}, adversarial, networks.classifier_dropout=0.2"
    }  # fmt: skip


def test_the_lambda_curve_goes_over_the_weight():
    selection = Selection(pairs=("dvd:books",), seeds=1)
    results = made_up(
        "lambda-mse", selection, lambda run: float(run.variant.partition("=")[2]) / 100 + 0.5
    )
    (figure,) = suite_figures(Sweep(SUITES["lambda-mse"], results, Path())).values()
    (line,) = lines_of(figure).values()
    assert [place for place, _ in line] == [0.0, 0.001, 0.005, 0.0075, 0.01, 0.1, 1.0, 10.0]
    assert [height for _, height in line] == pytest.approx([50.0 + place for place, _ in line])


def test_every_line_of_every_panel_is_in_the_legend():
    figure = draw_curves(
        {"one": {"A": {1.0: [2.0], 2.0: [3.0]}}, "two": {"B": {1.0: [2.0, 4.0]}}},
        across="rows", up={"one": "accuracy", "two": "accuracy"},
    )  # fmt: skip
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B"]
    assert lines_of(figure, 1) == {"B": [(1.0, 3.0)]}


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_the_legend_fits_into_the_figure(panels):
    lines = {f"{name}, adversarial": {1.0: [2.0]} for name in (IGNORE, IMPUTATION, "Source-Full")}
    figure = draw_curves(
        {f"panel {i}": lines for i in range(panels)},
        across="rows", up={f"panel {i}": "accuracy" for i in range(panels)},
    )  # fmt: skip
    FigureCanvasAgg(figure).draw()
    shown = figure.legends[0].get_window_extent()
    assert shown.x0 >= 0
    assert shown.x1 <= figure.bbox.width


def test_histograms_show_the_target_where_it_is_observed():
    pair = load_pair(None, rows=400, test_rows=100)
    figure = draw_histograms(pair)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert len(titles) == pair.blocks.length
    assert sum(title.endswith("(missing)") for title in titles) == len(pair.blocks.missing)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["source", "target"]
