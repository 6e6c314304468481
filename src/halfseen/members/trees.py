"""Trees that LightGBM grows on the observed inputs: boosted ones, and a forest.

Both learn from class probabilities, so hard and soft labels are one case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, softmax

from halfseen.arrays import Floats, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.members.tasks import Sample, Task
from halfseen.members.tree_arrays import TreeArrays
from halfseen.parallel import present_ranks, threads

if TYPE_CHECKING:
    from halfseen.graph import GraphBuilder

__all__ = ["BoostedTrees", "BoostedTreesLearner", "Forest", "ForestLearner"]

Matrix = npt.NDArray[Any]

SMALL = 1_000
"""Rows below which trees are fewer and smaller."""
MOST_ROWS = 200_000
"""Rows that trees are grown on, drawn from all: more would hardly change them."""
DOUBT = 0.005
"""What is added to a forest's probabilities: no share of some hundred trees is quite 0 or 1."""


@dataclass(frozen=True, eq=False)
class _Trees(ABC):
    """Trees on the observed inputs, and the constant that is added to their sums."""

    kind: ClassVar[str]
    trees: TreeArrays
    constant: Floats
    blocks: Blocks

    @abstractmethod
    def _logits(self, sums: Floats) -> Floats:
        """Return log-probabilities, up to a constant of each row."""

    @abstractmethod
    def _add_logits(self, builder: GraphBuilder, sums: str) -> str:
        """Add the same to an ONNX graph."""

    def log_probabilities(self, rows: Matrix) -> Floats:
        """Return log-probabilities of prepared rows; the missing block is not looked at."""
        sums = self.trees.sums(self.blocks.flat(rows, "observed"))
        found: Floats = log_softmax(self._logits(_both(sums) + self.constant), axis=1)
        return found

    def complete_log_probabilities(self, rows: Matrix) -> Floats | None:
        """Return nothing: the trees make no use of the missing block."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return how many outputs the trees have."""
        return {"outputs": self.trees.outputs}

    def tensors(self) -> dict[str, Tensor]:
        """Return the trees' arrays and the constant."""
        return {**self.trees.tensors(), "constant": self.constant}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        n_classes: int,
        **given: Any,
    ) -> Self:
        """Rebuild the trees; refuse arrays that are no trees."""
        outputs = description["outputs"]
        if outputs != (1 if n_classes == 2 else n_classes):
            raise InputError(f"its trees have {outputs} outputs for {n_classes} classes.")
        kept = dict(tensors)
        constant = kept.pop("constant", np.empty(0))
        if constant.shape != (n_classes,) or constant.dtype != np.float64:
            raise InputError(f"its trees lack a constant for each of {n_classes} classes.")
        trees = TreeArrays.restored(kept, outputs, len(blocks.observed))
        return cls(trees, constant, blocks)

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add the trees to an ONNX graph."""
        positions = builder.constant(np.array(self.blocks.observed, dtype=np.int64))
        sums = self.trees.add_to_graph(builder, builder.node("Gather", rows, positions, axis=1))
        if self.trees.outputs == 1:
            sums = builder.node("Concat", builder.node("Neg", sums), sums, axis=1)
        constant = builder.constant(self.constant.astype(np.float32))
        return self._add_logits(builder, builder.node("Add", sums, constant))


class BoostedTrees(_Trees):
    """Gradient-boosted trees: their sums are logits."""

    kind = "boosted_trees"

    def _logits(self, sums: Floats) -> Floats:
        return sums

    def _add_logits(self, builder: GraphBuilder, sums: str) -> str:
        return sums


class Forest(_Trees):
    """Randomised trees: their mean is a probability."""

    kind = "forest"

    def _logits(self, sums: Floats) -> Floats:
        logits: Floats = np.log(np.clip(sums, 0.0, 1.0) + DOUBT)
        return logits

    def _add_logits(self, builder: GraphBuilder, sums: str) -> str:
        limits = [builder.constant(np.array(limit, dtype=np.float32)) for limit in (0.0, 1.0)]
        doubt = builder.constant(np.array(DOUBT, dtype=np.float32))
        return builder.node("Log", builder.node("Add", builder.node("Clip", sums, *limits), doubt))


@dataclass(frozen=True)
class BoostedTreesLearner:
    """Boosts trees on cross-entropy with soft labels.

    Parameters
    ----------
    rounds, rate
        How many trees of each class, and how much each adds.
    """

    rounds: int = 300
    rate: float = 0.03
    name: str = BoostedTrees.kind

    def fit(self, task: Task) -> BoostedTrees:
        """Grow trees on the observed inputs; one process grows them for all."""
        return present_ranks().from_first(lambda: self._grown(task))

    def _grown(self, task: Task) -> BoostedTrees:
        import lightgbm

        rows, shares, weights = _drawn(task)
        few = len(rows) < SMALL
        settings = _common(task.seed, len(rows)) | {
            "learning_rate": self.rate,
            "num_leaves": 7 if few else 15,
            "min_data_in_leaf": 10 if few else 20,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction": 0.5,
            "lambda_l2": 1.0,
        }
        rounds = self.rounds // 2 if few else self.rounds
        if task.n_classes == 2:
            data = lightgbm.Dataset(rows, shares[:, 1], weight=weights)
            settings |= {"objective": "cross_entropy", "boost_from_average": False}
            start = _log_prior(shares, weights)
            # The prior is half of the log-odds on each side, as the sums are.
            constant = start - start.mean()
            data.set_init_score(np.full(len(rows), constant[1] - constant[0]))
            booster = lightgbm.train(settings, data, rounds, keep_training_booster=True)
            return BoostedTrees(TreeArrays.of([booster], 0.5), constant, task.blocks)
        constant = _log_prior(shares, weights)
        settings |= {
            "objective": _soft_cross_entropy(shares, weights, constant),
            "num_class": task.n_classes,
            "learning_rate": 2.0 * self.rate,  # a round grows a tree for each class
        }
        data = lightgbm.Dataset(rows, shares.argmax(1))
        booster = lightgbm.train(settings, data, rounds // 2, keep_training_booster=True)
        return BoostedTrees(TreeArrays.of([booster]), constant, task.blocks)


@dataclass(frozen=True)
class ForestLearner:
    """Grows trees apart from each other, each on a part of the rows and inputs.

    Parameters
    ----------
    size
        How many trees of each class.
    """

    size: int = 200
    name: str = Forest.kind

    def fit(self, task: Task) -> Forest:
        """Grow trees on the observed inputs; one process grows them for all."""
        return present_ranks().from_first(lambda: self._grown(task))

    def _grown(self, task: Task) -> Forest:
        import lightgbm

        rows, shares, weights = _drawn(task)
        settings = _common(task.seed, len(rows)) | {
            "boosting": "rf",
            "objective": "regression",
            "boost_from_average": False,
            "num_leaves": 256,
            "min_data_in_leaf": 3 if len(rows) < 10 * SMALL else 10,
            "min_sum_hessian_in_leaf": 1.0,
            "bagging_fraction": 0.632,
            "bagging_freq": 1,
            # A node looks at some sqrt(p) inputs, of four times as many that its tree is given.
            "feature_fraction": min(1.0, 4.0 / np.sqrt(rows.shape[1])),
            "feature_fraction_bynode": max(0.25, 1.0 / np.sqrt(rows.shape[1])),
        }
        # Two classes share one output, the second's probability less a half.
        binary = task.n_classes == 2
        middle, size = (0.5, self.size) if binary else (0.0, self.size // 2)
        data = lightgbm.Dataset(rows, shares[:, 0], weight=weights, params=settings)
        boosters = []
        for k in range(1 if binary else 0, task.n_classes):
            data.construct().set_label(shares[:, k] - middle)
            boosters.append(lightgbm.train(settings, data, size, keep_training_booster=True))
        constant = np.full(task.n_classes, middle)
        return Forest(TreeArrays.of(boosters, 1.0 / size), constant, task.blocks)


def _drawn(task: Task) -> tuple[Matrix, Floats, Floats | None]:
    """Return observed inputs, class probabilities and weights of at most so many rows."""
    source: Sample = task.source
    if len(source) > MOST_ROWS:
        source = source[np.random.default_rng(task.seed).permutation(len(source))[:MOST_ROWS]]
    rows = task.blocks.flat(source.inputs, "observed")
    return rows, source.shares(task.n_classes), source.weights


def _common(seed: int, rows: int) -> dict[str, Any]:
    return {
        "verbose": -1,
        "seed": seed % 2**31,
        "num_threads": threads(),
        "deterministic": True,
        "force_row_wise": True,
        "max_bin": 63 if rows >= 2 * SMALL else 255,  # of many rows, more take twice the time
        "use_missing": False,
    }


def _log_prior(shares: Floats, weights: Floats | None) -> Floats:
    """Return the logarithm of each class's share; of an absent one that of half a row."""
    mean = np.average(shares, axis=0, weights=weights)
    prior: Floats = np.log(np.maximum(mean, 0.5 / len(shares)))
    return prior


def _soft_cross_entropy(
    shares: Floats, weights: Floats | None, constant: Floats
) -> Callable[[Floats, Any], tuple[Floats, Floats]]:
    """Return gradient and curvature of the cross-entropy with soft labels of several classes."""
    classes = shares.shape[1]
    row_weights = 1.0 if weights is None else weights[:, None]

    def derivatives(sums: Floats, _: Any) -> tuple[Floats, Floats]:
        probability = softmax(sums + constant, axis=1)
        curvature = classes / (classes - 1) * probability * (1.0 - probability)
        return row_weights * (probability - shares), row_weights * curvature

    return derivatives


def _both(sums: Floats) -> Floats:
    """Return an output for each class: of two, one output stands for both."""
    return np.hstack([-sums, sums]) if sums.shape[1] == 1 else sums
