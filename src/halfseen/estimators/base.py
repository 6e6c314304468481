"""What estimators share: parameters that are settings, rows in, one model, and what it is asked."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from halfseen.errors import OptionError
from halfseen.options import dotted, option_names
from halfseen.settings import FitSettings

# Torch and Arrow are imported when something is fitted: an import must not wait for them.
if TYPE_CHECKING:
    from halfseen.explain import Explanation
    from halfseen.fitting.member_training import Hooks
    from halfseen.model.model import Model

T = TypeVar("T", bound=type)
OWN = {
    "missing": "The block that the target lacks: names, indices, a mask or `Blocks`; of images a "
    'mask of (height, width), rows, or a side as in "bottom" or "left:0.25". By default the '
    "columns that `X_target` does not have or has entirely empty.",
    "keep": "Columns that the target has although they look otherwise; names or indices, as of the "
    "next two.",
    "categorical": "Numbers that are names of categories.",
    "drop": "Columns not to use.",
    "random_state": "Same seed, same machine: the same model.",
    "verbose": "Whether to show progress bars.",
    "checkpoint": "Folder that keeps the state of networks after every epoch; an interrupted fit "
    "continues from it. It can be deleted when the model is there.",
    "model": "Which of the paper's seven models it is, or several to choose from: of images they "
    "answer together.",
}
"""Parameters that no setting is called by, or that Python has in more forms."""


def with_parameters(*names: str, **others: Any) -> Callable[[T], T]:
    """Give an estimator settings as keyword parameters, and `others` with the defaults here.

    The constructor stores them and does nothing else; documentation takes the place of
    ``{parameters}``.
    """
    fields = FitSettings.model_fields
    of_none = {*OWN, "options"}  # a default must not be of a type that changes
    defaults = {n: None if n in of_none else fields[n].default for n in names} | others
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [inspect.Parameter(n, keyword, default=d) for n, d in defaults.items()]
    signature = inspect.Signature([own, *parameters])

    def described(name: str) -> str:
        text = OWN.get(name) or fields[name].description or ""
        lines = textwrap.fill(text, 88, initial_indent=" " * 8, subsequent_indent=" " * 8)
        return f"    {name} : default {defaults[name]!r}\n{lines}"

    def decorate(estimator: T) -> T:
        def store(self: Any, *given: Any, **named: Any) -> None:
            bound = signature.bind(self, *given, **named)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        store.__signature__ = signature  # type: ignore[attr-defined]
        estimator.__init__ = store  # type: ignore[misc]
        if estimator.__doc__:
            text = "\n".join(map(described, defaults)).lstrip()
            estimator.__doc__ = estimator.__doc__.replace("{parameters}", text)
        return estimator

    return decorate


class FrameEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of estimators: parameters, rows of both domains, and a fitted model."""

    task: ClassVar[Literal["classification", "regression"]] = "classification"
    always: ClassVar[Mapping[str, Any]] = {"report_data": "none"}
    """Settings that are no parameters."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_target: Any = None,
        *,
        X_unlabelled: Any = None,
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
            Labels of the source rows; in the stacked form those of target rows are not read. None
            or NaN where there is none, or -1 where other whole numbers are classes: such complete
            rows teach what the missing block says.
        X_target
            Target inputs, without the missing block or with it empty. When neither this nor
            `sample_domain` is given, the source's own rows stand in for a target without shift.
        X_unlabelled
            More complete rows, from anywhere, without a label.
        y_target
            Labels of the rows of `X_target`, None or NaN where there is none: a few weigh and
            calibrate the members, more are learned from. Ten are needed.
        sample_domain
            One number per row of the stacked form: positive for source, negative for target.
        sample_weight
            How much each source row counts (of the stacked form, those of target rows are not
            read).
        """
        from halfseen.estimators.from_frames import fit_frames

        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        fitted = fit_frames(
            X,
            y,
            X_target,
            self.settings_of_fit(self._seed()),
            self._hooks(),
            X_unlabelled=X_unlabelled,
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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also given options, as ``group__name``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        options = parameters.get("options")
        if deep and isinstance(options, Mapping):
            own = dotted(options)
            parameters |= {name.replace(".", "__"): value for name, value in own.items()}
        return parameters

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and options as ``group__name``.

        Examples
        --------
        >>> from halfseen import HalfSeenClassifier
        >>> HalfSeenClassifier().set_params(training__learning_rate=0.01).options
        {'training.learning_rate': 0.01}
        """
        given = {n.replace("__", "."): value for n, value in params.items() if "__" in n}
        super().set_params(**{n: value for n, value in params.items() if "__" not in n})
        for name in given:
            if name not in option_names() and not name.startswith("objective.terms"):
                raise OptionError(
                    f"There is no option {name!r}; halfseen.options.option_names() lists all."
                )
        if given:
            known: Any = self.get_params(deep=False).get("options") or {}
            self.options = {**dotted(known), **given}
        return self

    def settings_of_fit(self, seed: int = 0) -> FitSettings:
        """Return the parameters as settings; columns are named in `fit`."""
        own = self.get_params(deep=False)
        names = [n for n in own if n in FitSettings.model_fields and n not in OWN]
        given = {name: own[name] for name in names if own[name] is not None}
        return FitSettings(**self.always, **given, seed=seed)

    def _hooks(self) -> Hooks:
        from halfseen.fitting.member_training import Hooks
        from halfseen.progress import Progress, ProgressBar

        own = self.get_params(deep=False)
        checkpoint = None if own.get("checkpoint") is None else Path(own["checkpoint"])
        progress = ProgressBar if own.get("verbose") else (lambda title: Progress())
        return Hooks(progress=progress, checkpoints=checkpoint)

    def _seed(self) -> int:
        """Return the run's seed without touching NumPy's global generator."""
        state: Any = self.random_state
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        return int(state)

    def predict(self, X: Any) -> Any:
        """Return the most probable class, or the amount, of each row."""
        return self._model_for(X).predict(X)

    def explain(self, X: Any) -> Explanation:
        """Say which columns move each row's answer; see :meth:`Model.explain`."""
        return self._model_for(X).explain(X)

    def value_of_measuring(self, **how: Any) -> list[dict[str, Any]]:
        """Say what measuring missing columns would bring; see :meth:`Model.value_of_measuring`."""
        return self._fitted().value_of_measuring(**how)

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

    def _model_for(self, X: Any) -> Model:
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
