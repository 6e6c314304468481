"""The class proportions by which refinement divides its pseudo-labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.evidence import estimate_target_prior

__all__ = ["RefinementPrior", "refinement_prior"]

MOST_ROWS = 5_000
"""Rows of each domain that the proportions are estimated from."""
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class RefinementPrior:
    """Class proportions for refinement.

    Parameters
    ----------
    prior
        The target's as estimated, or the source's where that estimate was refused.
    estimated
        Which of the two.
    reason
        The verdict on the estimate, as a sentence.
    """

    prior: Floats
    estimated: bool
    reason: str

    def used(self) -> Floats:
        """Return the proportions, with a warning if they are the source's."""
        if not self.estimated:
            warnings.warn(
                f"Refinement divides its pseudo-labels by the source's class proportions. "
                f"{self.reason}",
                stacklevel=2,
            )
        return self.prior


def refinement_prior(
    x1_source: npt.NDArray[np.float32],
    y_source: npt.NDArray[np.int64],
    x1_target: npt.NDArray[np.float32],
    *,
    classes: int,
    seed: int = 0,
) -> RefinementPrior:
    """Estimate the target's class proportions, falling back on the source's when refused.

    Predictions come from logistic regression on x1, those for source rows out of fold: a network
    is surer of the rows it was trained on, and the estimate wants rows that are held out. It is
    :func:`halfseen.evidence.estimate_target_prior` with its checks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, y_target = np.repeat([0, 1], 500), np.repeat([0, 1], [900, 100])
    >>> source, target = (rng.normal(3.0 * k[:, None] * [1, 0]) for k in (y, y_target))
    >>> found = refinement_prior(source, y, target, classes=2)
    >>> found.estimated, bool(abs(found.prior[1] - 0.1) < 0.03)
    (True, True)
    >>> moved = refinement_prior(source, y, target + [6, 0], classes=2)
    >>> moved.estimated, moved.prior
    (False, array([0.5, 0.5]))
    """
    source_prior = np.bincount(y_source, minlength=classes) / len(y_source)
    random = np.random.default_rng(seed)
    rows = random.permutation(len(y_source))[:MOST_ROWS]
    others = random.permutation(len(x1_target))[:MOST_ROWS]
    inputs, labels = x1_source[rows].astype(np.float64), y_source[rows]
    if np.bincount(labels, minlength=classes).min() < _FOLDS:
        return RefinementPrior(
            source_prior, False, f"A class has fewer than {_FOLDS} rows to estimate from."
        )
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    held_out = cross_val_predict(model, inputs, labels, cv=folds, method="predict_proba")
    target = model.fit(inputs, labels).predict_proba(x1_target[others].astype(np.float64))
    try:
        found = estimate_target_prior(held_out, labels, target, draws=100, random_state=seed)
    except InputError as error:  # x1 says nothing of the label: nothing can be estimated
        return RefinementPrior(source_prior, False, str(error))
    prior = found.prior if found.trustworthy else source_prior
    return RefinementPrior(prior, found.trustworthy, found.verdict)
