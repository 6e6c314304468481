"""Penalised logistic regression: the baseline that every model of a table must stand beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from halfseen.arrays import Floats, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.front.scaling import likelihoods
from halfseen.members.tasks import Sample, Task
from halfseen.parallel import present_ranks

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder

__all__ = ["Regression", "RegressionLearner", "fit_regression"]

Matrix = npt.NDArray[Any]

PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""scikit-learn's C: the larger, the weaker the penalty."""
MOST_REGRESSED = 100_000
"""Rows that logistic regression is fitted on: more would not change what it says."""
MOST_COMPARED = 3_000
"""Rows among which its penalty is chosen."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Multinomial logistic regression on the observed inputs: the logits W x1 + b."""

    kind: ClassVar[str] = "regression"
    weight: Floats
    bias: Floats
    blocks: Blocks

    def log_probabilities(self, rows: Matrix) -> Floats:
        """Return log-probabilities of prepared rows; the missing block is not looked at."""
        observed = self.blocks.flat(rows, "observed").astype(np.float64)
        logits: Floats = log_softmax(observed @ self.weight.T + self.bias, axis=1)
        return logits

    def complete_log_probabilities(self, rows: Matrix) -> Floats | None:
        """Return nothing: the regression makes no use of the missing block."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return nothing: all is in the tensors."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return W and b."""
        return {"weight": self.weight, "bias": self.bias}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        n_classes: int,
        **given: Any,
    ) -> Self:
        """Rebuild the regression from its tensors."""
        shapes = {"weight": (n_classes, len(blocks.observed)), "bias": (n_classes,)}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if found != shapes:
            raise InputError(f"the tensors of the regression have shapes {found}, not {shapes}.")
        return cls(tensors["weight"], tensors["bias"], blocks)

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add W x1 + b to an ONNX graph."""
        positions = builder.constant(np.array(self.blocks.observed, dtype=np.int64))
        observed = builder.node("Gather", rows, positions, axis=1)
        learned = [builder.constant(a.astype(np.float32)) for a in (self.weight, self.bias)]
        return builder.node("Gemm", observed, *learned, transB=1)


@dataclass(frozen=True)
class RegressionLearner:
    """Fits logistic regression on the rows in memory.

    Parameters
    ----------
    penalty
        scikit-learn's C; by default it is chosen at every fit.
    """

    penalty: float | None = None
    name: str = Regression.kind

    def fit(self, task: Task) -> Regression:
        """Fit on the observed inputs; one process fits for all."""
        return present_ranks().from_first(
            lambda: fit_regression(task.source, task.blocks, task.n_classes, self.penalty)
        )

    @staticmethod
    def settled(task: Task) -> RegressionLearner:
        """Return a learner with the penalty that suits a task, for fits on parts of its rows."""
        some = np.random.default_rng(0).permutation(len(task.source))[:MOST_COMPARED]
        rows = task.blocks.flat(task.source.inputs[some], "observed").astype(np.float64)
        return RegressionLearner(_penalty(rows, task.source.hard_labels[some]))


def fit_regression(
    source: Sample, blocks: Blocks, n_classes: int, penalty: float | None = None
) -> Regression:
    """Fit logistic regression with an L2 penalty, by default chosen by likelihood over five folds.

    The chosen one is the strongest within one standard error of the best: the folds cannot tell
    the two apart, and on a shifted target the simpler one is the safer. A class that the rows lack
    gets the odds of half a row. A row with soft labels counts as one row of each class, weighted
    by that class's probability.
    """
    some = np.random.default_rng(0).permutation(len(source))[:MOST_REGRESSED]
    rows = blocks.flat(source.inputs[some], "observed").astype(np.float64)
    labels = source.labels[some]
    row_weights = None if source.weights is None else source.weights[some]
    hard = labels if labels.ndim == 1 else labels.argmax(1)
    present = np.unique(hard) if labels.ndim == 1 else np.flatnonzero(labels.sum(0) > 0)
    weight = np.zeros((n_classes, rows.shape[1]))
    bias = np.full(n_classes, np.log(0.5 / len(labels)))
    if len(present) == 1:
        bias[present] = 0.0
        return Regression(weight, bias, blocks)
    classifier = LogisticRegression(C=penalty or _penalty(rows, hard), max_iter=1000)
    if labels.ndim == 1:
        classifier.fit(rows, labels, sample_weight=row_weights)
    else:
        shares = labels[:, present] * (1.0 if row_weights is None else row_weights[:, None])
        classifier.fit(
            np.tile(rows, (len(present), 1)),
            np.repeat(present, len(rows)),
            sample_weight=shares.T.ravel(),
        )
    if len(present) == 2:  # scikit-learn keeps the difference of the two alone
        weight[present] = np.vstack([-classifier.coef_, classifier.coef_]) / 2
        bias[present] = np.concatenate([-classifier.intercept_, classifier.intercept_]) / 2
    else:
        weight[present], bias[present] = classifier.coef_, classifier.intercept_
    return Regression(weight, bias, blocks)


def _penalty(rows: Matrix, labels: Matrix) -> float:
    """Return scikit-learn's C by the one-standard-error rule.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees", 1984.
    """
    some = slice(MOST_COMPARED)  # the rows were shuffled
    if np.unique(labels[some], return_counts=True)[1].min() < 2:
        return 0.01  # nothing to compare on
    found = likelihoods(rows[some], labels[some], PENALTIES)
    mean, best = found.mean(1), found.mean(1).argmax()
    error = found[best].std(ddof=1) / np.sqrt(found.shape[1])
    return PENALTIES[int(np.flatnonzero(mean >= mean[best] - error)[0])]
