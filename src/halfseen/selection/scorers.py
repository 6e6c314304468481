"""Scores without target labels as scikit-learn scorers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from halfseen.errors import InputError
from halfseen.evidence.registry import SCORES
from halfseen.front.frames import split_stacked
from halfseen.selection.scoring import Evidence, check_one_fit, evaluate


@dataclass(frozen=True, eq=False)
class LabelFreeScorer:
    """A scorer ``scorer(estimator, X, y, sample_domain=...)``; greater is always better."""

    name: str
    X_target: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_domain: Any = None) -> float:
        """Score a fitted estimator on rows that it was not fitted on.

        Parameters
        ----------
        estimator
            An estimator of halfseen, or a pipeline that ends in one.
        X, y
            Both domains stacked; or held-out source rows, where the scorer has its target.
            Labels of target rows are not read.
        sample_domain
            One number per row of the stacked form: positive for source, negative for target.
        """
        if sample_domain is not None:
            X, y, X_target = split_stacked(X, y, sample_domain)
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
        evidence = Evidence.prepared(model.prepare, model.classes_, X, y, X_target)
        value = evaluate(model, evidence, (self.name,))[self.name]
        return value if SCORES[self.name].better == "higher" else -value

    def get_metadata_routing(self) -> MetadataRequest:
        """Ask scikit-learn for `sample_domain`."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_domain", alias=True)
        return request


def make_scorer(name: str = "dev", *, X_target: Any = None) -> LabelFreeScorer:
    """Return one of :data:`ONE_FIT_SCORES` as a scorer, for ``GridSearchCV`` and its kin.

    A score of which less is better has its sign flipped. In the stacked form, `sample_domain` is
    passed to ``fit`` of the search and routed by scikit-learn to estimator and scorer alike
    (``sklearn.set_config(enable_metadata_routing=True)``). Without routing, give the target here
    and let the search split the source alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from halfseen import AdaptationImputationClassifier
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(90, 3)), random.normal(size=(60, 2)) + 0.5
    >>> label = (source.sum(axis=1) > 0).astype(int)
    >>> model = AdaptationImputationClassifier(
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
    check_one_fit(name)
    return LabelFreeScorer(name, X_target)
