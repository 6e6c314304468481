"""The scikit-learn face of a model of amounts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from halfseen.estimators.base import FrameEstimator, with_parameters

COLUMNS = ("missing", "keep", "categorical", "drop")


@with_parameters(
    *COLUMNS,
    "members",
    "teachers",
    "effort",
    "time_limit",
    "seeds",
    "memory_mib",
    "value_of_missing",
    random_state=None,
)
class HalfSeenRegressor(RegressorMixin, FrameEstimator):  # type: ignore[misc]
    """Predict amounts on a shifted target in which some inputs are never measured.

    Boosted trees, a forest and ridge regression on the observed columns, taught by teachers that
    see the complete source, and averaged by shares that held-out rows advise. `halfseen fit
    --task regression` fits the same model to two files. `score` is R².

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : halfseen.model.model.Model
        What predicts, saves and exports: preprocessor, members and weights.
    blocks_ : Blocks
        Which prepared inputs are observed and which are missing.
    notes_ : list of str
        What was noticed about the columns.
    n_features_in_, feature_names_in_
        Columns of the source, and their names where it has names.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> source = random.normal(size=(200, 4))
    >>> amount = 3 * source[:, 0] + source[:, 3]
    >>> target = random.normal(size=(150, 4)) + 0.5
    >>> target[:, 3] = np.nan                               # never measured there
    >>> model = HalfSeenRegressor(effort="quick", random_state=0)
    >>> model = model.fit(source, amount, X_target=target)
    >>> model.predict(target).shape, model.predict_interval(target).shape
    ((150,), (150, 2))
    """

    task = "regression"

    def predict_interval(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the ends of each amount's 90 % interval."""
        return self._model_for(X).predict_interval(X)


class AdaptationImputationRegressor(HalfSeenRegressor):
    """The former name of :class:`HalfSeenRegressor`: the paper's method knows no amounts."""

    def fit(self, *given: Any, **named: Any) -> Any:
        """Fit as :class:`HalfSeenRegressor`, with a warning of the name."""
        warnings.warn(
            "AdaptationImputationRegressor is now called HalfSeenRegressor.",
            FutureWarning,
            stacklevel=2,
        )
        return super().fit(*given, **named)
