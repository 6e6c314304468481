"""What a user would pick instead: each baseline takes a pair and gives target probabilities.

All but those marked so see what the models see: the labelled source and the target's x1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.evidence import fit_density_ratio
from halfseen.options import Options
from halfseen.splitting import folds, rarest_class
from halfseen_bench import baseline_networks as networks
from halfseen_bench.data import DomainPair

Matrix = npt.NDArray[np.floating]
Labels = npt.NDArray[np.int64]

MOST_COMPARED = 2000
"""Rows of each domain that a domain classifier, or iterative imputation, is fitted on."""
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
"""Candidates for logistic regression's C."""


@dataclass(frozen=True)
class Baseline:
    """One competitor: from a pair, a seed and options of networks to target probabilities."""

    name: str
    function: Callable[[DomainPair, int, Options | None], Floats]
    uses_target_labels: bool = False  # a yardstick that no user could have
    needs: str | None = None  # a package that must be there beside halfseen's own

    def predict(self, pair: DomainPair, seed: int, options: Options | None = None) -> Floats:
        """Return class probabilities of the target test rows.

        `options` are those of the networks; baselines without one do not read them.
        """
        # skada switches metadata routing on for the whole process when anybody imports it.
        with config_context(enable_metadata_routing=False), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self.function(pair, seed, options)


@dataclass(frozen=True)
class Inputs:
    """What a classifier learns from and what it predicts."""

    train: Matrix
    test: Matrix
    weight: Floats | None = None


# --- what stands in for the missing block ----------------------------------------------------


def _ignore(pair: DomainPair, seed: int) -> Inputs:
    """x1 alone."""
    rows = pair.source_train.inputs, pair.target_test
    train, test = (_block(pair, part, "observed") for part in rows)
    return Inputs(train, test)


def _colours(pair: DomainPair, seed: int) -> Inputs:
    """x1 alone, pixels as they come, each colour a column of its own.

    Where the source is grey its colours are equal, and trees read the first of them alone.
    """
    rows = pair.source_train.inputs, pair.target_test
    train, test = (pair.blocks.flat(part, "observed").astype(np.float64) for part in rows)
    return Inputs(train, test)


def _zero(pair: DomainPair, seed: int) -> Inputs:
    """(x1, x2) on the source, (x1, fill) on the target."""
    return Inputs(_flat(pair, pair.source_train.inputs), _flat(pair, pair.target_test))


def _nan(pair: DomainPair, seed: int) -> Inputs:
    """(x1, x2) on the source, (x1, NaN) on the target."""
    return Inputs(_flat(pair, pair.source_train.inputs), _with_nan(pair, pair.target_test))


def _weighted(pair: DomainPair, seed: int) -> Inputs:
    """x1 alone, source rows counting by p_T(x1) / p_S(x1).

    Each half of the source is weighted by a ratio that was fitted on the other half.
    """
    inputs = _ignore(pair, seed)
    random = np.random.default_rng(seed)
    target = _block(pair, pair.target_train, "observed")
    target = target[random.permutation(len(target))[:MOST_COMPARED]]
    weight = np.empty(len(inputs.train))
    halves = np.array_split(random.permutation(len(inputs.train)), 2)
    for fitted, weighed in (halves, halves[::-1]):
        ratio = fit_density_ratio(inputs.train[fitted[:MOST_COMPARED]], target)
        weight[weighed] = ratio.weights(inputs.train[weighed])
    return Inputs(inputs.train, inputs.test, weight / weight.mean())


def _iterative(pair: DomainPair, seed: int) -> Inputs:
    """(x1, x2) on the source, x2 imputed column by column from the others on the target."""
    random = np.random.default_rng(seed)
    train = _flat(pair, pair.source_train.inputs)
    known = train[random.permutation(len(train))[:MOST_COMPARED]]
    lacking = _with_nan(pair, pair.target_train)
    lacking = lacking[random.permutation(len(lacking))[:MOST_COMPARED]]
    imputer = IterativeImputer(
        Ridge(1.0),
        max_iter=5,
        n_nearest_features=30 if train.shape[1] > 100 else None,
        skip_complete=True,
        random_state=seed,
    )
    scaler = StandardScaler().fit(known)
    imputer.fit(scaler.transform(np.vstack([known, lacking])))
    test = imputer.transform(scaler.transform(_with_nan(pair, pair.target_test)))
    return Inputs(train, scaler.inverse_transform(test))


def _ridge(pair: DomainPair, seed: int) -> Inputs:
    """(x1, x2) on the source, x2 regressed on x1 by ridge on the target."""
    inputs = _ignore(pair, seed)
    regression = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 5, 13)))
    missing = _block(pair, pair.source_train.inputs, "missing")
    regression.fit(inputs.train, missing)
    imputed = regression.predict(inputs.test).reshape(len(inputs.test), -1)
    return Inputs(np.hstack([inputs.train, missing]), np.hstack([inputs.test, imputed]))


FILLS: dict[str, Callable[[DomainPair, int], Inputs]] = {
    "ignore": _ignore,
    "colours": _colours,
    "zero": _zero,
    "NaN": _nan,
    "weighted": _weighted,
    "iterative": _iterative,
    "ridge": _ridge,
}


# --- classifiers ---------------------------------------------------------------------------------


def _logistic(labels: Labels, seed: int) -> Pipeline:
    """Logistic regression; folds of the source choose its C and whether columns are scaled.

    Scaling is a choice because projections of words carry meaning in their variance.
    """
    if rarest_class(labels) < 2:
        return make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
    steps = [("scale", StandardScaler()), ("logistic", LogisticRegression(max_iter=300))]
    search = GridSearchCV(
        Pipeline(steps),
        {"scale": [StandardScaler(), StandardScaler(with_std=False)], "logistic__C": STRENGTHS},
        scoring="neg_log_loss",
        cv=folds(labels, 5 if len(labels) < 500 else 3, seed),
    )
    return make_pipeline(search)


def _forest(labels: Labels, seed: int) -> Pipeline:
    return make_pipeline(RandomForestClassifier(300, min_samples_leaf=3, random_state=seed))


def _boosted(labels: Labels, seed: int) -> Pipeline:
    return make_pipeline(HistGradientBoostingClassifier(max_iter=60, random_state=seed))


Classifier = Callable[[Labels, int], Pipeline]
CLASSIFIERS: dict[str, Classifier] = {
    "Logistic regression": _logistic,
    "Random forest": _forest,
    "Gradient-boosted trees": _boosted,
}


def _fit(model: Pipeline, inputs: Matrix, labels: Labels, weight: Floats | None = None) -> Pipeline:
    """Fit a pipeline; weights go to its classifier, inside a search as well."""
    if weight is not None:
        name, last = model.steps[-1]
        inner = "logistic__" if isinstance(last, GridSearchCV) else ""
        return model.fit(inputs, labels, **{f"{name}__{inner}sample_weight": weight})
    return model.fit(inputs, labels)


def _predicted(model: Pipeline, inputs: Matrix, classes: int) -> Floats:
    """Return probabilities of all classes, also of those that the training rows lacked."""
    found = np.zeros((len(inputs), classes))
    found[:, model.classes_] = model.predict_proba(inputs)
    return found


def _plain(classifier: str, fill: str) -> Baseline:
    def predict(pair: DomainPair, seed: int, options: Options | None) -> Floats:
        inputs, labels = FILLS[fill](pair, seed), pair.source_train.labels
        model = _fit(CLASSIFIERS[classifier](labels, seed), inputs.train, labels, inputs.weight)
        return _predicted(model, inputs.test, len(pair.classes))

    return Baseline(f"{classifier}, {fill}", predict)


# --- yardsticks and distillation --------------------------------------------------------------


def _constant(
    name: str, labels_of: Callable[[DomainPair], Labels], known: bool = False
) -> Baseline:
    def predict(pair: DomainPair, seed: int, options: Options | None) -> Floats:
        labels = labels_of(pair)
        share = np.bincount(labels, minlength=len(pair.classes)) / len(labels)
        return np.tile(share, (len(pair.target_test), 1))

    return Baseline(f"Constant: {name}", predict, uses_target_labels=known)


def _sealed(pair: DomainPair) -> Labels:
    return pair.target_test_labels.open("the constant that knows the target")


def _ceiling(classifier: str) -> Baseline:
    """Learn on the target's own labels with x1; five-fold where its rows are also the test."""

    def predict(pair: DomainPair, seed: int, options: Options | None) -> Floats:
        if pair.target_train_labels is None:
            raise InputError(f"The labels of {pair.name}'s target training rows are not known.")
        labels = pair.target_train_labels.open("the supervised ceiling")
        model = CLASSIFIERS[classifier](labels, seed)
        train = _block(pair, pair.target_train, "observed")
        if networks.is_transductive(pair):
            found: Floats = cross_val_predict(
                model, train, labels, cv=folds(labels, 5, seed), method="predict_proba"
            )
            return found
        test = _block(pair, pair.target_test, "observed")
        return _predicted(_fit(model, train, labels), test, len(pair.classes))

    return Baseline(f"Ceiling: {classifier.lower()}", predict, uses_target_labels=True)


def _distilled_logistic(pair: DomainPair, seed: int, options: Options | None) -> Floats:
    """Teach a logistic regression on x1 by one on (x1, x2): half labels, half its opinion.

    Lopez-Paz et al., "Unifying distillation and privileged information", ICLR 2016.
    """
    labels, classes = pair.source_train.labels, len(pair.classes)
    inputs = _ignore(pair, seed)
    student = _fit(_logistic(labels, seed), inputs.train, labels)
    if rarest_class(labels) < 2:  # a class with one row: nothing to teach with
        return _predicted(student, inputs.test, classes)
    opinion = np.zeros((len(labels), classes))
    opinion[:, np.unique(labels)] = cross_val_predict(
        _logistic(labels, seed),
        _flat(pair, pair.source_train.inputs),
        labels,
        cv=folds(labels, 5, seed),
        method="predict_proba",
    )
    soft = 0.5 * np.eye(classes)[labels] + 0.5 * opinion
    # The student's strength of regularisation is that chosen on the labels; soft labels enter as
    # every row repeated once per class, weighted by that class's probability.
    taught = clone(student[-1].best_estimator_)
    rows, answers = np.nonzero(soft > 0)
    _fit(taught, inputs.train[rows], answers, soft[rows, answers])
    return _predicted(taught, inputs.test, classes)


def _flat(pair: DomainPair, inputs: npt.NDArray[np.float32]) -> Matrix:
    """Return (x1, x2) as one matrix."""
    return np.hstack([_block(pair, inputs, "observed"), _block(pair, inputs, "missing")])


def _block(
    pair: DomainPair, inputs: npt.NDArray[np.float32], block: Literal["observed", "missing"]
) -> Matrix:
    """Return one block's columns; an image's are its pixels in grey."""
    if not pair.blocks.is_table:
        inputs = inputs.mean(axis=1, keepdims=True)
    return pair.blocks.flat(inputs, block)


def _with_nan(pair: DomainPair, target: npt.NDArray[np.float32]) -> Matrix:
    flat = _flat(pair, target)
    flat[:, _block(pair, target[:1], "observed").shape[1] :] = np.nan
    return flat


BASELINES: dict[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        _constant("source prior", lambda pair: pair.source_train.labels),
        _constant("target prior", _sealed, known=True),
        *(
            _plain(classifier, fill)
            for classifier in CLASSIFIERS
            for fill in FILLS
            if (classifier, fill) != ("Logistic regression", "NaN")
            and (fill != "colours" or classifier == "Gradient-boosted trees")
        ),
        Baseline("Distillation, logistic regression", _distilled_logistic),
        Baseline("Distillation, network", networks.distilled),
        Baseline(
            "Distillation, adapting network", partial(networks.distilled, student=networks.ADAPTING)
        ),
        Baseline("Source-only network on x1, augmented", networks.augmented_source_only),
        *(
            Baseline(f"{model}, zero", partial(networks.skada, model=model), needs="skada")
            for model in ("DANN", "DeepJDOT")
        ),
        _ceiling("Logistic regression"),
        _ceiling("Random forest"),
        Baseline("Ceiling: network", networks.supervised_ceiling, uses_target_labels=True),
    )
}
"""Every baseline by name."""
