"""Classes: answers are log-probabilities, mixed as probabilities, measured by cross-entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from halfseen.arrays import Floats, Integers, normalized
from halfseen.errors import InputError, OptionError
from halfseen.logistic import fit_logistic, likelihoods
from halfseen.metrics import (
    Expected,
    Labels,
    Measure,
    accuracy,
    auc,
    expected_calibration_error,
    metrics_of,
    row_losses,
    weighted_auc,
)
from halfseen.splitting import rarest_class

if TYPE_CHECKING:
    from halfseen.targets.regression import Look

Scalar = bool | int | float | str
"""A class label as the source's file holds it."""
ClassWeight = str | Mapping[Any, float] | None
"""``balanced``, or a weight for each class."""

PRIOR_ROWS = 30.0
"""How many rows equal shares count for: under shift the source is a partial witness."""
BIAS_RIDGE = 5.0
"""The ridge on what is added to each class's logarithm: about so many rows that speak for none."""
TURNS = 200
"""Steps of expectation and maximisation; the shares of a few members settle long before."""
DOUBT = 0.005
"""What is added to a forest's probabilities: no share of some hundred trees is quite 0 or 1."""
OTHER_ACCURACY, OTHER_CROSS_ENTROPY = 0.06, 0.15
"""What a target's accuracy and cross-entropy differ by from what its observed columns let expect:
standard deviations, found on development problems by benchmarks/interval_coverage.py."""
TOLERANCE, SMALLEST = 1e-5, 1e-12


def class_name(value: Scalar) -> str:
    """Return a class as text, the way categories are written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def near_shares(count: int, start: Sequence[float] | None) -> Floats:
    """Return the shares that fitted ones are held near: equal ones, unless others are given."""
    return np.full(count, 1.0 / count) if start is None else np.array(start) / np.sum(start)


@dataclass(frozen=True)
class ClassTarget:
    """One of several classes."""

    task: ClassVar[str] = "classification"
    loss: ClassVar[str] = "cross_entropy"
    """The measure that models are compared by; lower is better."""
    row_loss_words: ClassVar[str] = "cross-entropy"
    """What a row costs, in words; differences of its mean are told."""
    unit: ClassVar[str] = " nats"
    linear_words: ClassVar[str] = "logistic regression"
    baseline_words: ClassVar[str] = "the source's class shares"
    own_words: ClassVar[str] = "these rows' own class shares"
    """The simplest predictions, the same for every row: the source's, and the rows' own."""
    measures: ClassVar[Mapping[str, Measure]] = {
        "accuracy": Measure("accuracy", accuracy),
        "auc": Measure("AUC", auc),
        "cross_entropy": Measure("cross-entropy", lambda p, y: float(row_losses(p, y).mean())),
        "calibration_error": Measure("calibration error", expected_calibration_error),
    }
    constant_name: ClassVar[str] = "class_prior"
    """Where a model's metrics keep the source's."""
    graph_output: ClassVar[str] = "probabilities"
    """What an exported graph calls what is shown."""
    networks: ClassVar[bool] = True
    """Whether the paper's networks predict it."""
    answers_tell: ClassVar[bool] = True
    """Whether answers alone tell which model, or map of drifted columns, is plausible."""
    bounds_inputs: ClassVar[bool] = False
    """Whether a straight line would run away beyond the source's rows."""
    values: tuple[Scalar, ...]
    """The class labels, in the order of the probabilities."""

    @classmethod
    def of(cls, count: int) -> ClassTarget:
        """Return so many classes that are called by their positions."""
        return cls(tuple(range(count)))

    @property
    def outputs(self) -> int:
        """How many classes there are."""
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """The classes as text."""
        return tuple(class_name(value) for value in self.values)

    # --- labels -------------------------------------------------------------------------

    def targets(self, labels: Labels) -> Floats:
        """Return each row's class probabilities: those of hard labels are 0 and 1."""
        if labels.ndim == 2:
            return labels.astype(np.float64)
        return np.eye(self.outputs)[labels]

    def strata(self, labels: Labels) -> Integers:
        """Return the classes: every split has them in proportion."""
        return labels.astype(np.int64)

    def counts(self, labels: Labels) -> tuple[int, ...]:
        """Return how many rows each class has."""
        return tuple(np.bincount(labels, minlength=self.outputs).tolist())

    def class_weights(
        self, labels: Labels, weights: Floats | None, given: ClassWeight
    ) -> Floats | None:
        """Return rows' weights times those of their classes, with mean one.

        >>> target = ClassTarget(("no", "yes"))
        >>> target.class_weights(np.array([0, 0, 0, 1]), None, "balanced").round(2)
        array([0.67, 0.67, 0.67, 2.  ])
        """
        if given is None:
            return weights
        if given == "balanced":
            found = 1.0 / np.maximum(self.constant(labels, weights), SMALLEST)
        elif isinstance(given, Mapping):
            said = {class_name(np.array(name).item()): value for name, value in given.items()}
            unknown = [name for name in said if name not in self.names]
            if unknown:
                raise OptionError(
                    f"class_weight names {unknown[0]!r}, which is none of the classes "
                    f"{', '.join(self.names)}."
                )
            found = np.array([said.get(name, 1.0) for name in self.names], dtype=np.float64)
            if not np.isfinite(found).all() or (found <= 0).any():
                raise OptionError(
                    f"class_weight={dict(given)} must be positive numbers; to do without a class, "
                    "leave its rows out."
                )
        else:
            raise OptionError(f"class_weight={given!r} must be 'balanced' or a mapping of classes.")
        whole = found[labels] * (1.0 if weights is None else weights)
        counted: Floats = whole / whole.mean()
        return counted

    def known(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """Say which rows have a class; the others have a negative position."""
        known: npt.NDArray[np.bool_] = labels >= 0
        return known

    def read(self, labels: Any) -> Integers:
        """Return labels as positions among the classes."""
        position = {name: k for k, name in enumerate(self.names)}
        names = [class_name(label) for label in np.asarray(labels).tolist()]
        unknown = [name for name in names if name not in position]
        if unknown:
            raise InputError(
                f"The label {unknown[0]!r} is none of the model's classes: {', '.join(position)}."
            )
        return np.array([position[name] for name in names], dtype=np.int64)

    # --- a linear model -----------------------------------------------------------------

    def fit_linear(
        self, rows: Floats, labels: Labels, weights: Floats | None, penalty: float
    ) -> tuple[Floats, Floats]:
        """Fit multinomial logistic regression; `penalty` is scikit-learn's C.

        A class that the rows lack gets the odds of half a row. A row with soft labels counts as
        one row of each class, weighted by that class's probability.
        """
        shares = self.targets(labels)
        if weights is not None:
            shares = shares * weights[:, None]
        present = np.flatnonzero(shares.any(axis=0))
        slopes = np.zeros((self.outputs, rows.shape[1]))
        bias = np.full(self.outputs, np.log(0.5 / len(labels)))
        if len(present) == 1:
            bias[present] = 0.0
            return slopes, bias
        found = fit_logistic(rows, shares[:, present], penalty)
        if len(found) == 1:  # of two classes the difference alone
            found = np.vstack([-found, found]) / 2
        slopes[present], bias[present] = found[:, :-1], found[:, -1]
        return slopes, bias

    def linear_scores(self, rows: Floats, labels: Labels, penalties: Sequence[float]) -> Floats:
        """Return the mean log-likelihood of each fold; none where classes are too rare."""
        hard = labels if labels.ndim == 1 else labels.argmax(1)
        if rarest_class(hard) < 2 or (hard == hard[0]).all():
            return np.empty((len(penalties), 0))
        return likelihoods(rows, hard, penalties)

    # --- answers ------------------------------------------------------------------------

    def answers(self, sums: Floats) -> Floats:
        """Return log-probabilities of logits."""
        found: Floats = log_softmax(sums, axis=1)
        return found

    def answers_of_means(self, means: Floats) -> Floats:
        """Return log-probabilities of shares, none of them quite 0 or 1."""
        return self.answers(np.log(np.clip(means, 0.0, 1.0) + DOUBT))

    def mixed(self, shares: Floats, answers: Floats) -> Floats:
        """Return the mixture Σ w_m p_m(y | x1)."""
        with np.errstate(divide="ignore"):  # a share of nothing
            parts = answers + np.log(shares)[:, None, None]
        most = parts.max(axis=0)
        mixed: Floats = most + np.log(np.exp(parts - most).sum(axis=0))  # SciPy's takes 3.5 times
        return mixed

    def multiplied(self, shares: Floats, answers: Floats) -> Floats:
        """Return the product Π p_m(y | x1)^w_m."""
        return self.answers(np.tensordot(shares, answers, 1))

    def shifted(self, answer: Floats, bias: Floats) -> Floats:
        """Return the answer with something added to each class's logarithm."""
        return self.answers(answer + bias)

    def fit_shares(
        self,
        answers: Sequence[Floats],
        labels: Labels,
        start: Sequence[float] | None = None,
        weights: Floats | None = None,
    ) -> tuple[float, ...]:
        """Return the shares with the highest likelihood on held-out rows, held near equal ones.

        Expectation and maximisation with :data:`PRIOR_ROWS` rows that every member explains
        equally well: where few rows speak, none is left out. Members were not fitted on the rows;
        `start` are shares to be held near instead of equal ones.

        >>> rng = np.random.default_rng(0)
        >>> labels = rng.integers(0, 2, 500)
        >>> right = rng.random(500) < 0.8
        >>> knows = np.log(np.where((labels == np.arange(2)[:, None]) == right, 0.8, 0.2)).T
        >>> torn = np.log(np.full((500, 2), 0.5))
        >>> first, second = ClassTarget.of(2).fit_shares([torn, knows], labels)
        >>> first < 0.3 < second, round(first + second, 6)
        (True, 1.0)
        """
        rows = np.arange(len(labels))
        likelihood = np.exp(np.stack([answer[rows, labels] for answer in answers]))
        likelihood = np.maximum(likelihood, 1e-300)
        near = near_shares(len(likelihood), start)
        counted = np.ones(len(labels)) if weights is None else weights / weights.mean()
        shares = near
        for _ in range(TURNS):
            explained = shares[:, None] * likelihood
            explained /= explained.sum(axis=0)
            shares = explained @ counted + PRIOR_ROWS * near
            shares /= shares.sum()
        return tuple(float(share) for share in shares)

    def fit_bias(self, answer: Floats, labels: Labels) -> tuple[float, ...]:
        """Return what to add to each class's logarithm for the highest likelihood, held at zero.

        Where p(x | y) is the same in both domains, this is the logarithm of how much more frequent
        the class is on the target.

        >>> torn, labels = np.full((4000, 2), np.log(0.5)), np.repeat([0, 1], [3000, 1000])
        >>> bias = ClassTarget.of(2).fit_bias(torn, labels)
        >>> round(bias[0] - bias[1], 1)  # log 3
        1.1
        """
        from scipy.optimize import minimize

        rows = np.arange(len(labels))

        def loss(bias: Floats) -> tuple[float, Floats]:
            fitted = log_softmax(answer + bias, axis=1)
            error = np.exp(fitted)
            error[rows, labels] -= 1.0
            value = BIAS_RIDGE * (bias @ bias) / 2 - fitted[rows, labels].sum()
            return float(value), error.sum(axis=0) + BIAS_RIDGE * bias

        found = minimize(loss, np.zeros(answer.shape[1]), jac=True, method="BFGS").x
        return tuple(float(value) for value in found - found.mean())

    # --- what is shown and measured -----------------------------------------------------

    def to_predictions(self, answer: Floats, metrics: Mapping[str, Any] | None = None) -> Floats:
        """Return probabilities."""
        return normalized(np.exp(answer)) if len(answer) else np.empty((0, self.outputs))

    def raw_prediction_of(self, shown: Floats) -> Floats:
        """Return log-probabilities, none of them of nothing."""
        return np.log(np.maximum(shown, 1e-30))

    def row_losses(self, shown: Floats, labels: Labels) -> Floats:
        """Return the cross-entropy of each row, in nats."""
        return row_losses(shown, labels)

    def metrics_of(self, shown: Floats, labels: Labels) -> dict[str, Any]:
        """Return accuracy, cross-entropy and AUC."""
        return metrics_of(shown, labels)

    def expected(self, shown: Floats, labels: Labels) -> dict[str, Expected]:
        """Return accuracy, from the share of errors, and cross-entropy."""
        wrong = (shown.argmax(1) != labels).astype(np.float64)
        return {
            "accuracy": Expected(wrong, OTHER_ACCURACY, lambda error: 1.0 - min(error, 1.0)),
            "cross_entropy": Expected(row_losses(shown, labels), OTHER_CROSS_ENTROPY, float),
        }

    def risks(self, shown: Floats, labels: Labels, weights: Floats) -> dict[str, float]:
        """Return what weighted rows cost, the lower the better: of AUC and accuracy the lack."""
        found = {"cross_entropy": float(np.average(row_losses(shown, labels), weights=weights))}
        if self.outputs == 2:
            found["auc"] = 1.0 - weighted_auc(shown[:, 1], labels, weights)
        wrong = shown.argmax(1) != labels
        return found | {"accuracy": float(np.average(wrong, weights=weights))}

    def moved(self, before: Floats, after: Floats) -> Floats:
        """Return by how much each row's answer moved: KL(after || before), in nats."""
        ratio = np.log(np.maximum(after, SMALLEST)) - np.log(np.maximum(before, SMALLEST))
        moved: Floats = (after * ratio).sum(1)
        return moved

    def constant(self, labels: Labels, weights: Floats | None = None) -> Floats:
        """Return the classes' shares."""
        counts = np.bincount(labels, weights=weights, minlength=self.outputs)
        shares: Floats = counts / counts.sum()
        return shares

    def learned(self, shown: Floats, labels: Labels, look: Look) -> dict[str, Any]:
        """Return nothing: probabilities say how sure they are."""
        return {}

    def recalibrated(
        self, answer: Floats, labels: Labels, metrics: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return nothing: what is added to the classes' logarithms calibrates them."""
        return {}

    def normalized(self, shown: npt.NDArray[Any]) -> Floats:
        """Return probabilities of sum one."""
        return normalized(shown)

    def tolerance(self, shown: Floats) -> float:
        """Return a difference that no probability shows."""
        return TOLERANCE

    def explained(self, answer: Floats) -> Floats:
        """Return the logarithm of p / (1 - p) for each class.

        >>> ClassTarget.of(3).explained(np.log([[0.5, 0.25, 0.25]])).round(3)
        array([[ 0.   , -1.099, -1.099]])
        """
        others = [logsumexp(np.delete(answer, c, axis=1), axis=1) for c in range(self.outputs)]
        found: Floats = answer - np.stack(others, axis=1)
        return found

    def columns(self, shown: Floats) -> dict[str, Any]:
        """Return each class's probability as ``p_CLASS``, and the most probable class."""
        import pyarrow as pa

        named = {f"p_{name}": column for name, column in zip(self.names, shown.T, strict=True)}
        best = pa.array(self.values).take(pa.array(shown.argmax(1)))
        return named | {"prediction": best}

    def predicted(self, shown: Floats) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        predicted: npt.NDArray[Any] = np.array(self.values)[shown.argmax(1)]
        return predicted
