"""A penalised linear model: the baseline that every model of a table must stand beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.members.protocol import Member, Sample, TrainingJob
from halfseen.targets import TargetType

Matrix = npt.NDArray[Any]

PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""As scikit-learn's C: the larger, the weaker the penalty."""
MOST_REGRESSED = 100_000
"""Rows that a regression is fitted on: more would not change what it says."""
BEYOND = 1.0
"""Standard deviations beyond the source's least and greatest value to which a line goes on."""
MOST_COMPARED = 3_000
"""Rows among which its penalty is chosen."""


@dataclass(frozen=True, eq=False)
class Regression(Member):
    """Logistic or ridge regression on the observed inputs: the logits, or amounts, W x1 + b.

    Where amounts are predicted each input is taken for `low` at least and `high` at most: a
    straight line goes on a little beyond the source's rows, and no further.
    """

    kind: ClassVar[str] = "regression"
    weight: Floats
    bias: Floats
    blocks: Blocks
    target_type: TargetType
    low: Floats | None = None
    high: Floats | None = None

    def raw_prediction(self, rows: Matrix) -> Floats:
        return self.answer_observed(self.blocks.flat(rows, "observed"))

    def answer_observed(self, observed: Matrix) -> Floats:
        """Return the answer about rows that hold the observed inputs alone."""
        observed = observed.astype(np.float64)
        if self.low is not None:
            observed = np.clip(observed, self.low, self.high)
        # Input by input: how a product of matrices rounds depends on how many rows it has.
        sums = np.repeat(self.bias[:, None], len(observed), axis=1)
        for column, slopes in zip(observed.T, self.weight.T, strict=True):
            sums += np.outer(slopes, column)
        return self.target_type.answers(np.ascontiguousarray(sums.T))

    def describe(self) -> dict[str, Any]:
        return {}

    def tensors(self) -> dict[str, Tensor]:
        names = ("weight", "bias") if self.low is None else ("weight", "bias", "low", "high")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        target_type: TargetType,
        **given: Any,
    ) -> Self:
        outputs, inputs = target_type.outputs, len(blocks.observed)
        shapes = {"weight": (outputs, inputs), "bias": (outputs,)}
        if target_type.bounds_inputs:
            shapes |= {"low": (inputs,), "high": (inputs,)}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if found != shapes:
            raise InputError(f"the tensors of the regression have shapes {found}, not {shapes}.")
        return cls(**tensors, blocks=blocks, target_type=target_type)


@dataclass(frozen=True)
class RegressionLearner:
    """Fits logistic or ridge regression on the rows in memory."""

    penalty: float | None = None
    """As scikit-learn's C; by default it is chosen at every fit."""
    name: str = Regression.kind

    def fit(self, task: TrainingJob) -> Regression:
        """Fit on the observed inputs."""
        return fit_regression(task.source, task.blocks, task.target_type, self.penalty)

    @staticmethod
    def tuned(task: TrainingJob) -> RegressionLearner:
        """Return a learner with the penalty that suits a task, for fits on parts of its rows."""
        some = np.random.default_rng(0).permutation(len(task.source))[:MOST_COMPARED]
        rows = task.blocks.flat(task.source.inputs[some], "observed").astype(np.float64)
        return RegressionLearner(_penalty(rows, task.source.labels[some], task.target_type))


def fit_regression(
    source: Sample, blocks: Blocks, target_type: TargetType, penalty: float | None = None
) -> Regression:
    """Fit a linear model with an L2 penalty, by default chosen by likelihood over five folds.

    The chosen one is the strongest within one standard error of the best: the folds cannot tell
    the two apart, and on a shifted target the simpler one is the safer.
    """
    some = np.random.default_rng(0).permutation(len(source))[:MOST_REGRESSED]
    rows = blocks.flat(source.inputs[some], "observed").astype(np.float64)
    labels = source.labels[some]
    weights = None if source.weights is None else source.weights[some]
    chosen = penalty or _penalty(rows, labels, target_type)
    fitted = Regression(*target_type.fit_linear(rows, labels, weights, chosen), blocks, target_type)
    if not target_type.bounds_inputs:
        return fitted
    further = BEYOND * rows.std(0)
    return replace(fitted, low=rows.min(0) - further, high=rows.max(0) + further)


def _penalty(rows: Matrix, labels: Matrix, target_type: TargetType) -> float:
    """Return the penalty by the one-standard-error rule.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees", 1984.
    """
    some = slice(MOST_COMPARED)  # the rows were shuffled
    found = target_type.linear_scores(rows[some], labels[some], PENALTIES)
    if not found.size:
        return 0.01  # nothing to compare on
    mean, best = found.mean(1), found.mean(1).argmax()
    error = found[best].std(ddof=1) / np.sqrt(found.shape[1])
    return PENALTIES[int(np.flatnonzero(mean >= mean[best] - error)[0])]
