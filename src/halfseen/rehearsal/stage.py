"""The rest and the slice, and what is done on them: training, predicting, checking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
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
from halfseen.front.schema import TableSchema
from halfseen.members.linear import Regression, fit_regression
from halfseen.metrics import row_losses
from halfseen.model.domains import Fold, Run, Sample, prepared_domains
from halfseen.model.fitting import restore_prior
from halfseen.model.measuring import hold_out
from halfseen.networks.nets import Networks, latents, probabilities
from halfseen.networks.training import LabelledRows, Rows
from halfseen.options import Options
from halfseen.rehearsal.results import Checks
from halfseen.selection.evidence import Evidence, Observed, source_statistics
from halfseen.splitting import held_out_count
from halfseen.weights.blending import install

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

    def hidden(self, rows: Sample) -> torch.Tensor:
        """Return rows as those of a target look."""
        return torch.from_numpy(self.schema.blocks.hide(rows.inputs))

    def train(self, run: Run) -> Networks:
        """Train one model for the slice as for a target, its labels and missing block unseen."""
        fold = self.fold
        domains = prepared_domains(self.schema, fold, self.hidden(self.slice).numpy())
        networks, _ = domains.train(run, 0)
        if run.options.balanced:
            restore_prior(networks, np.bincount(fold.training.labels).tolist())
        if run.options.shortcut:
            regression = self._regression()
            held = hold_out(
                networks,
                fold.held_out,
                regression,
                samples=run.options.prediction_samples,
                seed=run.seed,
            )
            install(networks, regression, held.blend(), held.complete_scale())
        return networks

    def observed(self, networks: Networks, options: Options, seed: int) -> Shown:
        """Return what the scores can read off a trained model, all rows of the slice in it."""
        held_out = LabelledRows(
            self.hidden(self.fold.held_out), torch.from_numpy(self.fold.held_out.labels)
        )
        evidence = Evidence(
            held_out, Rows(self.hidden(self.slice)), Rows(self.hidden(self.fold.training))
        )
        return Observed(networks, evidence, options, seed)

    def baseline(self, name: str, seed: int) -> _Baseline:
        """Fit logistic regression or trees on the observed columns of the rest."""
        training, held_out = self.fold.training, self.fold.held_out
        known, asked = self.observed_columns(training), self.observed_columns(self.slice)
        weighed = self.observed_columns(held_out)
        predict: Callable[[Matrix], Floats]
        if name == REGRESSION:
            regression = self._regression()
            predict = lambda rows: softmax(regression.logits(rows), axis=1)  # noqa: E731
        else:
            trees = HistGradientBoostingClassifier(max_iter=60, random_state=seed)
            predict = trees.fit(known, training.labels).predict_proba
        return _Baseline(
            predict(asked),
            row_losses(predict(weighed), held_out.labels),
            fit_density_ratio(known, asked).weights(weighed),
        )

    def checks(self, networks: Networks, options: Options, shown: Shown) -> Checks:
        """Check assumptions 3 and 4 on the slice, and estimate the terms of both bounds."""
        rest, chosen = self._some(self.fold.held_out), self._some(self.slice)
        y, y_slice = self.fold.held_out.labels[rest], self.slice.labels[chosen]
        held_out, played = self.fold.held_out[rest], self.slice[chosen]
        with source_statistics(networks, options, self.hidden(held_out)):
            z, imputed = _complete_latents(networks, held_out), _latents(networks, held_out)
            predicted = probabilities(networks, self.hidden(held_out)).double().numpy()
        z_slice, imputed_slice = _complete_latents(networks, played), _latents(networks, played)
        width = z.shape[1] - networks.missing_size
        on_slice = shown.target_probabilities[chosen]
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

    def _regression(self) -> Regression:
        training = self.fold.training
        classes = len(self.schema.classes)
        return fit_regression(self.observed_columns(training), training.labels, classes)

    def _some(self, rows: Sample) -> npt.NDArray[np.intp]:
        return np.sort(np.random.default_rng(0).permutation(len(rows))[:CHECKED_ROWS])


@torch.no_grad()
def _complete_latents(networks: Networks, rows: Sample) -> Floats:
    """Return (z1, z2) of rows whose missing block is known."""
    latent: Floats = networks.source_latent(torch.from_numpy(rows.inputs)).double().numpy()
    return latent


def _latents(networks: Networks, rows: Sample) -> Floats:
    """Return (z1, ẑ2), the block hidden."""
    hidden = torch.from_numpy(networks.blocks.hide(rows.inputs))
    latent: Floats = latents(networks, hidden).double().numpy()
    return latent
