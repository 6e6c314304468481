"""The scikit-learn face of a model of amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from halfseen.estimators.base import FrameEstimator

if TYPE_CHECKING:
    from halfseen.data.column_spec import Missing
    from halfseen.settings import Effort


class AdaptationImputationRegressor(RegressorMixin, FrameEstimator):  # type: ignore[misc]
    """Predict amounts on a shifted target in which some inputs are never measured.

    Boosted trees, a forest and ridge regression on the observed columns, taught by teachers that
    see the complete source, and averaged by shares that held-out rows advise. `halfseen fit
    --task regression` fits the same model to two files. `score` is R².

    Parameters
    ----------
    missing : names, indices, boolean mask or Blocks, optional
        The block that the target lacks. By default: the columns that `X_target` does not have or
        has entirely empty.
    keep, categorical, drop : lists of names or indices, optional
        Columns that the target has although they look otherwise, numbers that are names of
        categories, and columns not to use.
    members : list of {"boosted_trees", "forest", "regression"}, optional
        What learns beside each other; by default all of them.
    effort : {"quick", "default", "best"}
        How long a fit may take. ``quick`` leaves teachers out; ``best`` holds rows out in five
        folds, however many there are.
    time_limit : float, optional
        Seconds to keep to: what would take longer is left out, all but trees and regression;
        ``model_.metrics["time_limit"]`` names it.
    seeds : int
        With how many seeds trees are grown, which answer together.
    random_state : int or RandomState, optional
        Same seed, same machine: identical model.

    Attributes
    ----------
    model_ : halfseen.model.Model
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
    >>> model = AdaptationImputationRegressor(effort="quick", random_state=0)
    >>> model = model.fit(source, amount, X_target=target)
    >>> model.predict(target).shape, model.predict_interval(target).shape
    ((150,), (150, 2))
    """

    task = "regression"

    def __init__(
        self,
        *,
        missing: Missing = None,
        keep: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        drop: Sequence[Any] | None = None,
        members: Sequence[str] | None = None,
        effort: Effort = "default",
        time_limit: float | None = None,
        seeds: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.missing = missing
        self.keep = keep
        self.categorical = categorical
        self.drop = drop
        self.members = members
        self.effort = effort
        self.time_limit = time_limit
        self.seeds = seeds
        self.random_state = random_state

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the amount of each row."""
        predicted: npt.NDArray[np.float64] = self._asked(X).predict(X)
        return predicted

    def predict_interval(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the ends of each amount's 90 % interval."""
        return self._asked(X).predict_interval(X)
