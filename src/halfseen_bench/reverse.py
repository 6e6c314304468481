"""Reverse validation: learn back from the target what the source already knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from halfseen.arrays import same_length
from halfseen.errors import InputError, OptionError

__all__ = ["Fit", "Predict", "reverse_validation"]

Inputs = npt.NDArray[Any]
Predict = Callable[[Inputs], npt.ArrayLike]
"""Gives one label per row of inputs."""
Fit = Callable[[Inputs, npt.NDArray[Any], Inputs], Predict]
"""``fit(labelled inputs, their labels, unlabelled inputs)`` gives a predictor."""


def reverse_validation(
    fit: Fit,
    source: npt.ArrayLike,
    y_source: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    fit_back: Fit | None = None,
    validation_fraction: float = 0.1,
    random_state: int = 0,
) -> float:
    """Return the error on held-out source rows of a model learned back from the target.

    Lower is better. The source is split into a learning part S' and a validation part V. A model
    is fitted from (S', labels) to the target T and labels T; a second one is fitted the other
    way, from T with those labels to S'; its share of wrong labels on V is the score. Each fit
    costs a training run. When the first model puts all of T in one class, the way back is that
    constant and is not fitted.

    Parameters
    ----------
    fit
        ``fit(labelled, labels, unlabelled)`` trains on the way out and returns a function from
        inputs to predicted labels.
    source, y_source, target
        Inputs of both domains, one row each, and the source's labels.
    fit_back
        The same for the way back, where it differs: there the labelled rows are the target's
        and lack the missing block x2. By default `fit`.
    validation_fraction
        Share of the source rows held out, drawn class by class.
    random_state
        Seed of the split.

    References
    ----------
    E. Zhong, W. Fan, Q. Yang, O. Verscheure, J. Ren, "Cross validation framework to choose
    amongst models and datasets for transfer learning", ECML PKDD 2010.

    Y. Ganin et al., "Domain-adversarial training of neural networks", JMLR 17, 2016, section 5.1.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 100)
    >>> source = rng.normal(size=(200, 2)) + 4 * y[:, None]
    >>> target = rng.normal(size=(200, 2)) + 4 * y[:, None] + 0.5
    >>> def fit(labelled, labels, unlabelled):
    ...     return LogisticRegression().fit(labelled, labels).predict
    >>> reverse_validation(fit, source, y, target)
    0.0
    """
    if not 0.0 < validation_fraction < 1.0:
        raise OptionError(
            f"validation_fraction={validation_fraction} must lie strictly between 0 and 1."
        )
    rows, labels, others = np.asarray(source), np.asarray(y_source), np.asarray(target)
    if labels.ndim != 1:
        raise InputError(f"y_source must be a vector of labels, but its shape is {labels.shape}.")
    same_length(source=rows, y_source=labels)
    try:
        learning, validation, y_learning, y_validation = train_test_split(
            rows, labels, test_size=validation_fraction, stratify=labels, random_state=random_state
        )
    except ValueError as error:
        raise InputError(
            f"The source cannot be split class by class with validation_fraction="
            f"{validation_fraction}: {error}"
        ) from error

    pseudo = _predicted(fit(learning, y_learning, others), others)
    if len(np.unique(pseudo)) == 1:
        return float(np.mean(y_validation != pseudo[0]))
    back = (fit_back or fit)(others, pseudo, learning)
    return float(np.mean(_predicted(back, validation) != y_validation))


def _predicted(predict: Predict, inputs: Inputs) -> npt.NDArray[Any]:
    predicted = np.asarray(predict(inputs))
    if predicted.shape != (len(inputs),):
        raise InputError(
            f"The fitted predictor returned shape {predicted.shape} for {len(inputs)} rows; it "
            "must return one label per row (labels, not probabilities)."
        )
    return predicted
