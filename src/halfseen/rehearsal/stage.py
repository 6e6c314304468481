"""The rest and the slice, and what is done on them: training, predicting, checking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.evidence import (
    adaptation_bound,
    adaptation_effect,
    conditional_change,
    fit_density_ratio,
    imputation_terms,
    posterior_change,
    self_consistency,
)
from halfseen.front.fronts import TableFront
from halfseen.front.schema import TableSchema
from halfseen.members import Sample
from halfseen.members.linear import fit_regression
from halfseen.metrics import row_losses
from halfseen.model.fitting import Hooks, fit_rows
from halfseen.model.model import Model
from halfseen.model.rows import Fold, PreparedRows
from halfseen.model.settings import FitSettings
from halfseen.networks.training import LabelledRows, Rows
from halfseen.rehearsal.results import Checks
from halfseen.selection.evidence import Evidence, Observed
from halfseen.splitting import held_out_count

__all__ = ["BASELINES", "RehearsalStage", "Shown"]

REGRESSION, TREES = "Logistic regression", "Gradient-boosted trees"
BASELINES = (REGRESSION, TREES)
"""What a user would pick instead, on the observed columns."""
HELD_OUT = 0.2
"""Share of the rest that no model is trained on."""
FEWEST = 5
CHECKED_ROWS = 2_000
"""Rows of each kind that assumptions and bounds are checked on."""

Matrix = npt.NDArray[np.float32]


class Shown(Protocol):
    """What scores read off a model, as :class:`halfseen.selection.evidence.Observed` has it."""

    @property
    def target_probabilities(self) -> Floats:
        """Class probabilities of the slice."""

    @property
    def source_loss(self) -> Floats:
        """Cross-entropy of each held-out row of the rest."""

    @property
    def weight(self) -> Floats:
        """How much more often such a row is in the slice."""


@dataclass(frozen=True)
class _Baseline:
    target_probabilities: Floats
    source_loss: Floats
    weight: Floats


@dataclass(frozen=True)
class RehearsalStage:
    """The rest, split, and the slice."""

    schema: TableSchema
    fold: Fold
    slice: Sample

    @classmethod
    def of(
        cls, schema: TableSchema, source: Sample, chosen: npt.NDArray[np.bool_], seed: int
    ) -> RehearsalStage:
        """Hold out a part of the rest, class by class."""
        rest = np.flatnonzero(~chosen)
        classes = len(schema.classes)
        fewest = np.bincount(source.labels[rest], minlength=classes)
        if fewest.min() < FEWEST:
            raise InputError(
                f"Outside the slice there are {fewest.min()} source rows of class "
                f"{schema.class_names[int(fewest.argmin())]!r}; a rehearsal needs {FEWEST} of each."
            )
        size = max(round(HELD_OUT * len(rest)), classes)
        training, held_out = held_out_count(source.labels[rest], size, seed)
        fold = Fold(source[rest[training]], source[rest[held_out]])
        return cls(schema, fold, source[np.flatnonzero(chosen)])

    def observed_columns(self, rows: Sample) -> Matrix:
        """Return x1."""
        return rows.inputs[:, list(self.schema.blocks.observed)]

    def hidden(self, rows: Sample) -> Matrix:
        """Return rows as those of a target look."""
        return self.schema.blocks.hide(rows.inputs)

    def fit(self, settings: FitSettings, hooks: Hooks) -> Model:
        """Fit one model for the slice as for a target, its labels and missing block unseen."""
        classes = len(self.schema.classes)
        rows = PreparedRows(self.schema.blocks, classes, self.hidden(self.slice), None, [self.fold])
        counts = np.bincount(self.fold.training.labels, minlength=classes).tolist()
        return fit_rows(TableFront(self.schema), rows, settings, hooks, counts=counts).model

    def observed(self, model: Model) -> Shown:
        """Return what the scores can read off a fitted model, all rows of the slice in it."""

        def rows(sample: Sample) -> torch.Tensor:
            return torch.from_numpy(self.hidden(sample))

        held_out = self.fold.held_out
        labelled = LabelledRows(rows(held_out), torch.from_numpy(held_out.labels))
        evidence = Evidence(labelled, Rows(rows(self.slice)), Rows(rows(self.fold.training)))
        return Observed(model, evidence)

    def baseline(self, name: str, seed: int) -> _Baseline:
        """Fit logistic regression or trees on the observed columns of the rest."""
        training, held_out = self.fold.training, self.fold.held_out
        known, asked = self.observed_columns(training), self.observed_columns(self.slice)
        weighed = self.observed_columns(held_out)
        predict: Callable[[Matrix], Floats]
        if name == REGRESSION:
            regression = fit_regression(training, self.schema.blocks, len(self.schema.classes))
            predict = lambda rows: np.exp(regression.log_probabilities(rows))  # noqa: E731
            on_slice, on_held_out = predict(self.slice.inputs), predict(held_out.inputs)
        else:
            trees = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
            predict = trees.fit(known, training.labels).predict_proba
            on_slice, on_held_out = predict(asked), predict(weighed)
        return _Baseline(
            on_slice,
            row_losses(on_held_out, held_out.labels),
            fit_density_ratio(known, asked).weights(weighed),
        )

    def checks(self, model: Model, shown: Shown) -> Checks:
        """Check assumptions 3 and 4 on the slice, and estimate the terms of both bounds."""
        rest, some = self._some(self.fold.held_out), self._some(self.slice)
        y, y_slice = self.fold.held_out.labels[rest], self.slice.labels[some]
        held_out, played = self.fold.held_out[rest], self.slice[some]
        networks = model.networks_member

        def latents(rows: Sample) -> tuple[Floats, Floats]:
            """Return (z1, z2) of rows whose missing block is known, and (z1, ẑ2)."""
            complete = networks.complete_latents(rows.inputs).astype(np.float64)
            return complete, networks.latents(self.hidden(rows)).astype(np.float64)

        with networks.source_statistics(self.hidden(held_out)):
            z, imputed = latents(held_out)
            predicted = model.score(self.hidden(held_out))
        z_slice, imputed_slice = latents(played)
        width = z.shape[1] - networks.networks.missing_size
        on_slice = shown.target_probabilities[some]
        return Checks(
            conditional_change(z[:, :width], z[:, width:], z_slice[:, :width], z_slice[:, width:]),
            posterior_change(imputed, y, imputed_slice, y_slice),
            self_consistency(imputed, y, imputed_slice, on_slice),
            adaptation_effect(
                self.observed_columns(held_out),
                self.observed_columns(played),
                imputed,
                imputed_slice,
            ),
            adaptation_bound(predicted, y, on_slice, imputed, imputed_slice),
            imputation_terms(
                z[:, :width],
                z[:, width:],
                imputed[:, width:],
                imputed_slice[:, :width],
                imputed_slice[:, width:],
            ),
            float((on_slice.argmax(axis=1) != y_slice).mean()),
        )

    def _some(self, rows: Sample) -> npt.NDArray[np.intp]:
        return np.sort(np.random.default_rng(0).permutation(len(rows))[:CHECKED_ROWS])
