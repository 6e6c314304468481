"""Probabilities under other class proportions, where these are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, normalized, probabilities, vector
from halfseen.errors import InputError


def correct_probabilities(
    source_model_probabilities: npt.ArrayLike,
    source_prior: npt.ArrayLike,
    target_prior: npt.ArrayLike,
) -> Floats:
    r"""Return p(y | x) under another prior: :math:`p_k q_k / \pi_k`, scaled to sum to one.

    Exact when p(x | y) is the same in both domains and the probabilities are calibrated.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to new a
    priori probabilities", Neural Computation 14(1), 2002.

    Examples
    --------
    >>> correct_probabilities([[0.5, 0.5]], [0.5, 0.5], [0.9, 0.1])
    array([[0.9, 0.1]])
    """
    array = probabilities("source_model_probabilities", source_model_probabilities)
    source = _prior("source_prior", source_prior, array.shape[1])
    target = _prior("target_prior", target_prior, array.shape[1])
    if not (source > 0).all():
        raise InputError(
            f"source_prior gives class {int(source.argmin())} no mass: a class that the source "
            "never showed cannot be corrected for."
        )
    # A row that is sure of a class with no target mass keeps a defined answer.
    return normalized(np.maximum(array, 1e-12) * (target / source))


def _prior(name: str, values: npt.ArrayLike, classes: int) -> Floats:
    array = vector(name, values)
    if array.shape != (classes,) or array.min() < 0 or abs(array.sum() - 1.0) > 1e-3:
        raise InputError(
            f"{name} must hold {classes} proportions that sum to 1, one per class, not "
            f"{np.array2string(array, precision=4)}."
        )
    return array
