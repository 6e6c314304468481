"""What lets an estimator's probabilities be corrected for other class proportions, on request."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from halfseen.arrays import Floats, normalized, same_length
from halfseen.errors import InputError
from halfseen.evidence import PriorEstimate, correct_probabilities, estimate_target_prior
from halfseen.evidence.labels import Estimator
from halfseen.networks import nets
from halfseen.networks.nets import Networks
from halfseen.options import Options
from halfseen.selection.evidence import source_statistics

__all__ = ["CorrectedEstimator", "TargetPrior"]

TargetPrior = PriorEstimate | npt.ArrayLike | None
"""Class proportions on the target: an estimate with its checks, known ones, or no correction."""


class CorrectedEstimator:
    """Adds the estimate of the target's class proportions, and the correction by them."""

    networks_: Networks
    options_: Options
    classes_: npt.NDArray[Any]
    class_prior_: Floats
    seed_: int

    def estimate_target_prior(
        self,
        X: Any,
        y: Any,
        X_target: Any,
        *,
        method: Estimator = "mlls",
        random_state: int = 0,
    ) -> PriorEstimate:
        """Estimate the target's class proportions, and check whether they can be used.

        Parameters
        ----------
        X, y
            Source rows that the model was *not* fitted on, with their labels. Their missing block
            is not looked at, as on the target.
        X_target
            Target rows.
        method, random_state
            As for :func:`halfseen.evidence.estimate_target_prior`.

        Returns
        -------
        PriorEstimate
            `prior`, `interval` and `verdict`; pass it to `predict_proba` as `target_prior`.
        """
        check_is_fitted(self)
        rows, labels = self._rows(X), np.asarray(y)
        same_length(X=rows.numpy(), y=labels)
        position = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in labels.tolist() if label not in position]
        if unknown:
            raise InputError(f"The label {unknown[0]!r} is none of the model's classes.")
        with source_statistics(self.networks_, self.options_, rows):
            source = self._scored(rows)
        return estimate_target_prior(
            source,
            [position[label] for label in labels.tolist()],
            self._scored(self._rows(X_target)),
            method,
            random_state=random_state,
        )

    def _corrected(self, probability: Floats, target_prior: TargetPrior) -> Floats:
        """Return probabilities under the target's proportions; refuse an untrusted estimate."""
        if target_prior is None:
            return probability
        if isinstance(target_prior, PriorEstimate):
            return target_prior.correct(probability)
        if not hasattr(self, "class_prior_"):
            raise InputError(
                "This model was saved without the class proportions it was trained on, so its "
                "probabilities cannot be corrected for given ones; estimate them with "
                "estimate_target_prior, or fit the model again."
            )
        return correct_probabilities(probability, self.class_prior_, target_prior)

    def _scored(self, rows: torch.Tensor) -> Floats:
        """Return class probabilities in double precision, which sum to one there too."""
        scored = nets.probabilities(
            self.networks_, rows, samples=self.options_.prediction_samples, seed=self.seed_
        )
        return normalized(scored)

    def _rows(self, X: Any) -> torch.Tensor:
        raise NotImplementedError
