"""Choosing without target labels: every score that can be read off a trained model, and a scorer.

The formulas stand in :mod:`halfseen.evidence`. The rows are :class:`Evidence`, what one model makes
of them :class:`Observed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from halfseen.arrays import Floats, Matrix
from halfseen.data.frames import split_stacked
from halfseen.errors import InputError, OptionError
from halfseen.evidence.density_ratio import default_domain_classifier, fit_density_ratio
from halfseen.evidence.risk import SCORES, RiskEstimate
from halfseen.targets import ClassTarget, TargetType

__all__ = ["SCORES", "Evidence", "Observed", "evaluate", "make_scorer"]


ROWS = 2_000
"""Rows of each kind that scores are computed from: enough to rank, and cheap beside an epoch."""

CLASSES = ClassTarget(())
"""Some classes, wherever nobody asks which."""


class Observable(Protocol):
    """A trained model as scores look at it; rows are prepared, the missing block hidden.

    The domains are compared in latents ẑ, or in x1 where there are none. With
    `source_statistics` the model sees source rows as training did, for a while.
    """

    def raw_prediction(self, rows: Matrix) -> Floats: ...
    def compared_in(self, rows: Matrix) -> Matrix: ...
    def source_statistics(self, rows: Matrix) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Evidence:
    """The prepared rows that models are compared on; none carries a target label.

    `held_out` are source rows that no model was trained on, with their `labels`; whether they hold
    their missing block does not matter. The density ratio is fitted on `training`; without them,
    each half of `held_out` is weighed by a ratio fitted on the other half.
    """

    held_out: Matrix
    labels: npt.NDArray[Any]
    target: Matrix
    training: Matrix | None = None
    target_type: TargetType = CLASSES

    @classmethod
    def prepared(
        cls,
        prepare: Callable[..., Matrix],
        target_type: TargetType,
        X: Any,
        y: Any,
        X_target: Any,
    ) -> Evidence:
        """Bring rows as a user has them to the form that a model sees, by its `prepare`."""
        held_out = prepare(X, where="the held-out source")
        labels = target_type.read(y)
        if len(held_out) != len(labels):
            raise InputError(f"There are {len(held_out)} held-out rows and {len(labels)} labels.")
        target = prepare(X_target, where="the target")
        return cls(held_out, labels, target, None, target_type)

    def sample(self, rows: int | None = ROWS, *, seed: int = 0) -> Evidence:
        """Return at most `rows` rows of each kind, the same ones whenever it is asked."""
        if rows is None:
            return self

        def some(inputs: Matrix) -> npt.NDArray[np.intp]:
            order = np.random.default_rng([seed, len(inputs)]).permutation(len(inputs))
            return np.sort(order[:rows])

        held, target, training = some(self.held_out), some(self.target), self.training
        return replace(
            self,
            held_out=self.held_out[held],
            labels=self.labels[held],
            target=self.target[target],
            training=None if training is None else training[some(training)],
        )


@dataclass(frozen=True)
class Observed:
    """What one model says of the evidence; each quantity is computed when first asked for.

    Its names are those that :attr:`Score.needs <halfseen.evidence.risk.Score>` lists.
    """

    model: Observable
    evidence: Evidence

    @cached_property
    def target_probabilities(self) -> Floats:
        """Class probabilities of the target rows."""
        kind = self.evidence.target_type
        if not kind.answers_tell:
            raise OptionError(
                f"Amounts without labels do not tell how good they are: choose one of "
                f"{list(scores_for(kind))}."
            )
        return kind.to_predictions(self.model.raw_prediction(self.evidence.target))

    @cached_property
    def source_loss(self) -> Floats:
        """What each held-out source row costs, its missing block hidden."""
        kind = self.evidence.target_type
        with self.model.source_statistics(self._source_rows):
            answer = self.model.raw_prediction(self.evidence.held_out)
        return kind.row_losses(kind.to_predictions(answer), self.evidence.labels)

    @cached_property
    def weight(self) -> Floats:
        """Importance weights p_T(ẑ) / p_S(ẑ) of the held-out source rows."""
        evidence = self.evidence
        target = self._latents(evidence.target)
        with self.model.source_statistics(self._source_rows):
            held_out = self._latents(evidence.held_out)
            if evidence.training is not None:
                return _weights(self._latents(evidence.training), target, held_out)
        halves = np.random.default_rng(0).permutation(len(held_out)) % 2 == 0
        weight = np.empty(len(held_out))
        for half in (halves, ~halves):
            weight[half] = _weights(held_out[~half], target, held_out[half])
        return weight

    @property
    def _source_rows(self) -> Matrix:
        training = self.evidence.training
        return self.evidence.held_out if training is None else training

    def _latents(self, rows: Matrix) -> Floats:
        return self.model.compared_in(rows).astype(np.float64)


def scores_for(kind: TargetType | type[TargetType]) -> tuple[str, ...]:
    """Return those of :data:`SCORES` that a kind of label has."""
    return tuple(
        name
        for name, score in SCORES.items()
        if kind.answers_tell or "target_probabilities" not in score.needs
    )


def evaluate(
    model: Observable,
    evidence: Evidence,
    names: Sequence[str] | None = None,
    *,
    rows: int | None = ROWS,
) -> dict[str, float]:
    """Return scores of a trained model, each in its natural sense.

    Risks come from held-out source rows with the missing block hidden; their weights compare the
    latents ẑ = (z1, ẑ2) of both domains, as the paper does, by their leading 32 principal
    components. The model is left as it was.

    Parameters
    ----------
    model
        As it predicts on the target: a whole model, or networks alone
        (:class:`~halfseen.networks.modules.Predictor`).
    evidence
        The rows to compare models on.
    names
        Scores to compute, of :data:`SCORES`; all that there are by default.
    rows
        The most rows of each kind to use, drawn once and for all; None uses every one.
    """
    observed = Observed(model, evidence.sample(rows))
    names = scores_for(evidence.target_type) if names is None else names
    return {name: score_of(name, observed) for name in names}


def score_of(name: str, observed: Any) -> float:
    check_score(name)
    score = SCORES[name]
    value = score.function(*(getattr(observed, need) for need in score.needs))
    return value.risk if isinstance(value, RiskEstimate) else float(value)


def check_score(name: str) -> None:
    if name not in SCORES:
        raise OptionError(f"The score {name!r} is unknown; choose one of {list(SCORES)}.")


@dataclass(frozen=True, eq=False)
class LabelFreeScorer:
    """A scorer ``scorer(estimator, X, y, sample_domain=...)``; greater is always better.

    It scores a fitted estimator, or a pipeline that ends in one, on rows it was not fitted on:
    both domains stacked, target rows having a negative `sample_domain` and labels that are not
    read; or held-out source rows, where the scorer has its target.
    """

    name: str
    X_target: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_domain: Any = None) -> float:
        if sample_domain is not None:
            X, y, X_target, _ = split_stacked(X, y, sample_domain)
        elif self.X_target is not None:
            X_target = self.X_target
        else:
            raise InputError(
                f"The scorer {self.name!r} compares source and target rows: route sample_domain to "
                "it (scikit-learn's metadata routing), or make it with X_target=..."
            )
        if isinstance(estimator, Pipeline):
            steps, estimator = estimator[:-1], estimator[-1]
            X, X_target = steps.transform(X), steps.transform(X_target)
        model = estimator.model_
        evidence = Evidence.prepared(model.prepare, model.target_type, X, y, X_target)
        value = evaluate(model, evidence, (self.name,))[self.name]
        return value if SCORES[self.name].better == "higher" else -value

    def get_metadata_routing(self) -> MetadataRequest:
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request


def make_scorer(name: str = "dev", *, X_target: Any = None) -> LabelFreeScorer:
    """Return one of :data:`SCORES` as a scorer, for ``GridSearchCV`` and its kin.

    A score of which less is better has its sign flipped. Give the target here and let the search
    split the source alone; or stack both, pass `sample_domain` to ``fit`` of the search, and have
    scikit-learn route it (``sklearn.set_config(enable_metadata_routing=True)``).

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from halfseen import HalfSeenClassifier
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(90, 3)), random.normal(size=(60, 2)) + 0.5
    >>> label = (source.sum(axis=1) > 0).astype(int)
    >>> model = HalfSeenClassifier(
    ...     missing=[2],
    ...     members=["networks"],
    ...     options={"training.joint_epochs": 2},
    ...     random_state=0,
    ... )
    >>> search = GridSearchCV(
    ...     model,
    ...     {"training__learning_rate": [1e-9, 1e-2]},
    ...     scoring=make_scorer("source_loss", X_target=target),
    ...     cv=2,
    ... )
    >>> search.fit(source, label, X_target=target).best_params_
    {'training__learning_rate': 0.01}
    """
    check_score(name)
    return LabelFreeScorer(name, X_target)


def _weights(source: Floats, target: Floats, weighed: Floats) -> Floats:
    """Return the weights of some source rows from a ratio fitted on others."""
    classifier = default_domain_classifier(source.shape[1], len(source) + len(target))
    return fit_density_ratio(source, target, classifier=classifier).weights(weighed)
