"""Latents that a benchmark kept: maps before and after, separability, and what was imputed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from halfseen.errors import HalfseenError, InputError
from halfseen.evidence import domain_separation
from halfseen.evidence.density_ratio import default_domain_classifier
from halfseen.report.html import Cell, Figure, Figures, Paragraph, Part, number
from halfseen_bench.problems import BenchProblem
from halfseen_bench.report.figures import draw_latents, inline_figure
from halfseen_bench.report.pictures import strip
from halfseen_bench.runner import Result
from halfseen_bench.sweep import latents_file, run_of

__all__ = ["KeptLatents", "kept_latents"]

BEFORE = ("Source-IgnoreComponent", "Source-ZeroImputation")
AFTER = ("Adaptation-Imputation", "Adaptation-IgnoreComponent", "Adaptation-ZeroImputation")
DRAWN = ("source", "target", "source_labels", "target_labels")
MOST_ROWS = 500
"""Rows of each domain that are drawn."""

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class KeptLatents:
    """Latents of one problem: of a model that does not adapt, and of one that does."""

    problem: str
    models: dict[str, Arrays]

    def figures(self) -> list[Part]:
        """Draw t-SNE maps of the latents, before and after, by domain and by class."""
        some = {
            name: {key: arrays[key][:MOST_ROWS] for key in DRAWN}
            for name, arrays in self.models.items()
        }
        picture = inline_figure(draw_latents({_title(name): kept for name, kept in some.items()}))
        alt = (
            f"t-SNE maps of the latents of {self.problem}, by domain and by class, for "
            f"{' and '.join(self.models)}."
        )
        return [
            Figures((Figure("", picture=picture, alt=alt),), wide=True),
            Paragraph(
                f"{self.problem}: test rows of the first seed. Classes are true ones in both "
                "domains; the target's were used for this picture alone."
            ),
        ]

    def separability(self) -> list[tuple[Cell, ...]]:
        """Return a row per model: how well a classifier tells the domains apart."""
        rows: list[tuple[Cell, ...]] = []
        for name, arrays in self.models.items():
            source, target = arrays["source"], arrays["target"]
            classifier = default_domain_classifier(source.shape[1], len(source))
            try:
                found = domain_separation(source, target, classifier=classifier)
            except HalfseenError:  # too few rows
                continue
            rows.append(
                (
                    Cell(self.problem),
                    Cell(name),
                    number(found.auc),
                    number(found.proxy_a_distance),
                )
            )
        return rows

    def domains(self) -> list[Part]:
        """Show images as each domain has them, where they were kept."""
        arrays = self._with_examples()
        if arrays is None:
            return []
        missing = arrays["examples_missing"]
        shown = [
            ("Source: all is seen", "examples_source", False),
            ("Target, as it is", "examples_complete", False),
            ("Target, as observed", "examples_target", True),
        ]
        figures = tuple(
            Figure(
                title,
                picture=strip(list(arrays[name]), [hide] * len(arrays[name]), missing),
                alt=f"{title}: {len(arrays[name])} images of {self.problem}.",
            )
            for title, name, hide in shown
            if name in arrays
        )
        return [Figures(figures, wide=True)]

    def imputed(self) -> list[Part]:
        """Say how imputed latents compare with true ones, and show the nearest examples."""
        parts: list[Part] = []
        for name, arrays in self.models.items():
            if "missing_source" in arrays and "imputed_source" in arrays:
                true, imputed = arrays["missing_source"], arrays["imputed_source"]
                total = float(np.square(true - true.mean(0)).sum())
                left = float(np.square(true - imputed).sum())
                ratio = float(imputed.std(0).mean() / max(true.std(0).mean(), 1e-12))
                explained = max(0.0, 1.0 - left / total) if total else 0.0
                parts.append(
                    Paragraph(
                        f"{self.problem}, {name}: on {len(true)} source test rows, imputed latents "
                        f"explain {explained:.0%} of the variance of the true ones; their "
                        f"standard deviation is {ratio:.2f} times as large."
                    )
                )
        arrays_ = self._with_examples()
        return parts if arrays_ is None else [*parts, *_nearest(self.problem, arrays_)]

    def _with_examples(self) -> Arrays | None:
        return next((a for a in self.models.values() if "examples_nearest" in a), None)


def kept_latents(folder: Path, results: Sequence[Result], most: int) -> list[KeptLatents]:
    """Return the latents of the first problems of a folder that kept some."""
    files: dict[str, dict[str, Path]] = {}
    settings: dict[str, tuple[BenchProblem, str, str]] = {}
    for result in results:
        run = run_of(result)
        path = latents_file(folder, run)
        if run.seed or run.variant or run.model not in (*BEFORE, *AFTER) or not path.exists():
            continue
        setting = (run.problem, run.preset, run.budget)
        if settings.setdefault(run.problem.name, setting) == setting:  # one layout in a picture
            files.setdefault(run.problem.name, {}).setdefault(run.model, path)
    kept = []
    for problem, of_problem in files.items():
        models = {}
        for names in (BEFORE, AFTER):
            name = next((n for n in names if n in of_problem and of_problem[n].exists()), None)
            if name is not None:
                models[name] = _read(of_problem[name])
        if models:
            kept.append(KeptLatents(problem, models))
    return kept[:most]


def _read(path: Path) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = dict(arrays)
        if all(len(found[name]) for name in DRAWN):
            return found
    except (OSError, ValueError, KeyError, BadZipFile):
        pass
    raise InputError(f"{path} does not hold latents; delete it for a report without them.")


def _nearest(problem: str, arrays: Arrays) -> list[Part]:
    nearest, target = arrays["examples_nearest"], arrays["examples_target"]
    complete = arrays.get("examples_complete")
    figures = []
    for i, image in enumerate(target):
        row: list[Any] = [image]
        row += [] if complete is None else [complete[i]]
        row += list(nearest[i])
        hidden = [True] + [False] * (len(row) - 1)
        alt = (
            f"Target image {i + 1} of {problem} as observed, "
            f"{'complete, ' if complete is not None else ''}and the {nearest.shape[1]} source "
            "images whose true latents are nearest to the imputed one."
        )
        figures.append(Figure("", picture=strip(row, hidden, arrays["examples_missing"]), alt=alt))
    shown = "as it is (unknown to the model), " if complete is not None else ""
    return [
        Paragraph(
            f"The first {len(target)} target test images. From the left: as observed, {shown}and "
            f"the {nearest.shape[1]} source images whose missing part has the latent nearest to "
            "the imputed one."
        ),
        Figures(tuple(figures)),
    ]


def _title(model: str) -> str:
    when = "Before" if model in BEFORE else "After"
    return f"{when}, {model}"
