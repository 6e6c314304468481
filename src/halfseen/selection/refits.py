"""Scores that take several fits, from a function that makes estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.evidence.reverse import Fit, Predict
from halfseen.evidence.scores import agreement

__all__ = ["agreement_of_runs", "estimator_fit"]


def agreement_of_runs(
    make: Callable[[int], Any],
    X: Any,
    y: Any,
    X_target: Any,
    *,
    seeds: Sequence[int] = (0, 1, 2),
) -> float:
    """Return how often independently seeded fits predict the same class of a target row.

    Parameters
    ----------
    make
        Gives an estimator that is not fitted yet, for a seed.
    X, y, X_target
        What each of them is fitted on.
    seeds
        One fit each.
    """
    runs = [make(seed).fit(X, y, X_target=X_target).predict_proba(X_target) for seed in seeds]
    return agreement(np.stack(runs))


def estimator_fit(make: Callable[[], Any], *, columns: Sequence[int] | None = None) -> Fit:
    """Return the fit that :func:`~halfseen.selection.reverse_validation` asks for.

    Parameters
    ----------
    make
        Gives an estimator that is not fitted yet.
    columns
        Which columns it is shown. On the way back the labelled rows are the target's and lack
        the missing block: there the observed columns alone are shown, to a model of complete
        inputs.

    Examples
    --------
    >>> from halfseen import AdaptationImputationClassifier
    >>> from halfseen.selection import reverse_validation
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(200, 3)), random.normal(size=(200, 3)) + 0.2
    >>> label = (source[:, 0] > 0).astype(int)
    >>> common = {"members": ["networks"], "random_state": 0, "device": "cpu"}
    >>> common |= {"options": {"training.joint_epochs": 15}}
    >>> out = estimator_fit(lambda: AdaptationImputationClassifier(missing=[2], **common))
    >>> back = estimator_fit(
    ...     lambda: AdaptationImputationClassifier(model="Adaptation-Full", **common),
    ...     columns=[0, 1],
    ... )
    >>> reverse_validation(out, source, label, target, fit_back=back) < 0.2
    True
    """

    def shown(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rows if columns is None else rows[:, list(columns)]

    def fit(
        labelled: npt.NDArray[Any], labels: npt.NDArray[Any], unlabelled: npt.NDArray[Any]
    ) -> Predict:
        model = make().fit(shown(labelled), labels, X_target=shown(unlabelled))
        return lambda rows: model.predict(shown(rows))

    return fit
