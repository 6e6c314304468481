"""What estimators share: rows in, one model, and what it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

# Torch and Arrow are imported when something is fitted: an import must not wait for them.
if TYPE_CHECKING:
    from halfseen.data.column_spec import Missing, Task
    from halfseen.explain import Explanation
    from halfseen.fitting.member_training import Hooks
    from halfseen.model.model import Model
    from halfseen.settings import FitSettings


class FrameEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of estimators: parameters that say something of columns, and a fitted model."""

    task: Task = "classification"
    missing: Missing
    keep: Sequence[Any] | None
    categorical: Sequence[Any] | None
    drop: Sequence[Any] | None
    random_state: int | np.random.RandomState | None
    verbose: int = 0
    checkpoint: str | Path | None = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_target: Any = None,
        *,
        y_target: Any = None,
        sample_domain: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from a labelled source and a target of which no row, or a few, are labelled.

        Parameters
        ----------
        X
            Complete source inputs: a data frame or a matrix, for classes also images; or, with
            `sample_domain`, both domains stacked. Columns may hold numbers, texts, categories and
            booleans, with gaps.
        y
            Labels of the source rows; in the stacked form those of target rows are not read.
        X_target
            Target inputs, without the missing block or with it empty. When neither this nor
            `sample_domain` is given, the source's own rows stand in for a target without shift.
        y_target
            Labels of the rows of `X_target`, None or NaN where there is none: a few weigh and
            calibrate the members, more are learned from. Ten are needed.
        sample_domain
            One number per row of the stacked form: positive for source, negative for target.
        sample_weight
            How much each source row counts (of the stacked form, those of target rows are not
            read).
        """
        from halfseen.fitting.from_frames import fit_frames

        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        fitted = fit_frames(
            X,
            y,
            X_target,
            self._settings(self._seed()),
            self._hooks(),
            y_target=y_target,
            sample_domain=sample_domain,
            sample_weight=sample_weight,
            task=self.task,
            missing=self.missing,
            keep=self.keep or (),
            categorical=self.categorical or (),
            drop=self.drop or (),
        )
        self.model_, self.notes_ = fitted.model, fitted.notes
        self.n_features_in_, self.blocks_ = fitted.features, fitted.model.blocks
        self.__dict__.pop("feature_names_in_", None)
        if fitted.names is not None:
            self.feature_names_in_ = np.asarray(fitted.names, dtype=object)
        if self.task == "classification":
            self.classes_, self.class_prior_ = fitted.classes, fitted.model.class_prior
        return self

    def _settings(self, seed: int) -> FitSettings:
        """Return the parameters that settings of a fit have under the same names, as those."""
        from halfseen.settings import FitSettings

        given = {n: v for n, v in self.get_params(deep=False).items() if v is not None}
        names = [entry.name for entry in fields(FitSettings) if entry.name in given]
        settings = {name: given[name] for name in names} | {"seed": seed, "memory": 2**62}
        if "members" in settings:
            settings["members"] = tuple(settings["members"])
        return FitSettings(**settings)

    def _hooks(self) -> Hooks:
        from halfseen.fitting.member_training import Hooks
        from halfseen.progress import Progress, ProgressBar

        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        progress = ProgressBar if self.verbose else (lambda title: Progress())
        return Hooks(progress=progress, checkpoints=checkpoint)

    def _seed(self) -> int:
        """Return the run's seed without touching NumPy's global generator."""
        from halfseen.parallel import present_ranks

        if self.random_state is None:
            random = np.random.SeedSequence()
            return present_ranks().from_first(lambda: int(random.generate_state(1)[0]))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        return int(self.random_state)

    def explain(self, X: Any) -> Explanation:
        """Say which columns move each row's answer; see :meth:`Model.explain`."""
        return self._asked(X).explain(X)

    def save(self, folder: str | Path) -> None:
        """Write the fitted model as a folder: tensors and JSON, no pickle.

        An encoder of your own is code, which a folder does not hold: give it to
        :func:`halfseen.load` again.
        """
        self._fitted().save(folder)

    def _fitted(self) -> Model:
        check_is_fitted(self, "model_")
        model: Model = self.model_
        return model

    def _asked(self, X: Any) -> Model:
        """Return the fitted model, with a warning where names of columns come and go."""
        from halfseen.data.preprocessors import TablePreprocessor

        model = self._fitted()
        if isinstance(model.preprocessor, TablePreprocessor):
            named = hasattr(self, "feature_names_in_")
            model.preprocessor.warn_about_names(X, type(self).__name__, named=named, stacklevel=3)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
