"""Trees that LightGBM grows on the observed inputs: boosted ones, and a forest.

Both learn from what an answer should be, class probabilities or an amount, so hard and soft labels
are one case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from halfseen.arrays import Floats, Integers, Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.members.linear import Regression, fit_regression
from halfseen.members.protocol import Member, Sample, TrainingJob
from halfseen.members.tree_arrays import TreeArrays
from halfseen.parallel import run_parallel, threads
from halfseen.splitting import folds, rarest_class
from halfseen.targets import TargetType

Matrix = npt.NDArray[Any]
Settings = dict[str, Any]

FOLDS = 3
SMALL = 1_000
"""Rows below which trees are fewer and smaller."""
START = "start/"
"""Before the names of the tensors of what trees start with."""
MOST_ROWS = 200_000
"""Rows that trees are grown on, drawn from all: more would hardly change them."""
MOST_COMPARED = 5_000
"""Rows that large trees are compared with small ones on."""
CLEAR = 2.0
"""Standard errors by which large trees must be better."""
MOST_LEVELS, BINS = 255, 127
"""Values up to which a column's are kept apart, and bins of a column of many rows that has more."""


@dataclass(frozen=True, eq=False)
class _Trees(Member):
    """Trees on the observed inputs, and the constant that is added to their sums."""

    kind: ClassVar[str]
    trees: TreeArrays
    constant: Floats
    blocks: Blocks
    target_type: TargetType
    start: Regression | None = None
    """What trees of amounts begin with: beyond the source's rows they know no slope."""

    def raw_prediction(self, rows: Matrix) -> Floats:
        sums = self.trees.sums(self.blocks.flat(rows, "observed"))
        if self.mirrored:
            sums = np.hstack([-sums, sums])
        if self.start is not None:
            sums = sums + self.start.raw_prediction(rows)
        return self._answer(sums + self.constant)

    def _answer(self, sums: Floats) -> Floats:
        """Return the answer that sums are: of boosted trees logits, or amounts."""
        return self.target_type.answers(sums)

    @property
    def mirrored(self) -> bool:
        """Whether one output stands for both of two classes."""
        return self.trees.outputs < len(self.constant)

    def describe(self) -> dict[str, Any]:
        return {"outputs": self.trees.outputs}

    def tensors(self) -> dict[str, Tensor]:
        start = {} if self.start is None else self.start.tensors()
        named = {f"{START}{name}": tensor for name, tensor in start.items()}
        return {**self.trees.tensors(), "constant": self.constant, **named}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        target_type: TargetType,
        **given: Any,
    ) -> Self:
        """Rebuild the trees; refuse arrays that are no trees."""
        outputs, wanted = description["outputs"], target_type.outputs
        if type(outputs) is not int or outputs != (1 if wanted == 2 else wanted):
            raise InputError(f"its trees have {outputs} outputs for {wanted} of an answer.")
        kept, line = dict(tensors), {}
        if target_type.bounds_inputs:
            line = {n.removeprefix(START): kept.pop(n) for n in tensors if n.startswith(START)}
        start = Regression.restored({}, line, blocks, target_type) if line else None
        constant = kept.pop("constant", np.empty(0))
        if constant.shape != (wanted,) or constant.dtype != np.float64:
            raise InputError(f"its trees lack a constant for each of {wanted} outputs.")
        trees = TreeArrays.restored(kept, outputs, len(blocks.observed))
        return cls(trees, constant, blocks, target_type, start)


class BoostedTrees(_Trees):
    """Gradient-boosted trees: their sums are logits, or amounts."""

    kind = "boosted_trees"


class Forest(_Trees):
    """Randomised trees: their mean is a probability, or an amount."""

    kind = "forest"

    def _answer(self, sums: Floats) -> Floats:
        return self.target_type.answers_of_means(sums)


@dataclass(frozen=True)
class BoostedTreesLearner:
    """Boosts trees on cross-entropy, or on squared error, with soft labels."""

    rounds: int = 300
    """How many trees of each class."""
    rate: float = 0.03
    """How much each adds."""
    large: bool = False
    """Whether trees have many leaves of few rows and see most inputs: where rows come in groups
    that a number tells apart, small ones do not find them."""
    name: str = BoostedTrees.kind

    def selected(self, task: TrainingJob) -> BoostedTreesLearner:
        """Return it with large trees, if those are clearly better on rows held out of a task."""
        source, kind = task.source, task.target_type
        source = source[np.random.default_rng(task.seed).permutation(len(source))[:MOST_COMPARED]]
        strata = kind.strata(source.labels)
        if rarest_class(strata) < FOLDS:
            return self
        splits = list(folds(strata, FOLDS, task.seed).split(strata, strata))
        splits = splits if len(source) < FOLDS * SMALL else splits[:1]

        def losses(split: tuple[Integers, Integers], large: bool) -> Floats:
            training, others = split
            grown = replace(self, large=large).fit(replace(task, source=source[training]))
            held_out = source[others]
            return kind.row_losses(
                kind.to_predictions(grown.raw_prediction(held_out.inputs)), held_out.labels
            )

        pairs = [(split, large) for large in (False, True) for split in splits]
        measured = run_parallel([partial(losses, *pair) for pair in pairs])
        small, large = map(np.concatenate, (measured[: len(splits)], measured[len(splits) :]))
        gain = small - large
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        return replace(self, large=bool(gain.mean() > CLEAR * error))

    def fit(self, task: TrainingJob) -> BoostedTrees:
        """Grow trees on the observed inputs."""
        (rows, shares, weights), start = _drawn(task), None
        if task.target_type.bounds_inputs:
            start = fit_regression(task.source, task.blocks, task.target_type)
            shares = shares - start.answer_observed(rows)
        few = len(rows) < SMALL and not self.large
        leaves, least_rows = (31, 5) if self.large else (7, 10) if few else (15, 20)
        settings = _common(task.seed, rows) | {
            "learning_rate": self.rate,
            "num_leaves": leaves,
            "min_data_in_leaf": least_rows,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "feature_fraction": 0.8 if self.large else 0.5,
            "lambda_l2": 1.0,
        }
        rounds = self.rounds // 2 if few else self.rounds
        trees, constant = _boosted(rows, shares, weights, settings, rounds)
        return BoostedTrees(trees, constant, task.blocks, task.target_type, start)


def _boosted(
    rows: Matrix, shares: Floats, weights: Floats | None, settings: Settings, rounds: int
) -> tuple[TreeArrays, Floats]:
    """Boost trees of an amount, of the log-odds of two classes, or of the logits of several.

    They start from the mean amount (or what a line leaves of it), or from the classes' shares.
    """
    import lightgbm

    outputs, scale = shares.shape[1], 1.0
    settings = settings | {"boost_from_average": False}
    if outputs == 1:
        constant = np.average(shares, axis=0, weights=weights)
        data = lightgbm.Dataset(rows, shares[:, 0] - constant[0], weight=weights)
        settings["objective"] = "regression"
    elif outputs == 2:
        data = lightgbm.Dataset(rows, shares[:, 1], weight=weights)
        settings["objective"] = "cross_entropy"
        start = _log_prior(shares, weights)
        # The prior is half of the log-odds on each side, as the sums are.
        constant, scale = start - start.mean(), 0.5
        data.set_init_score(np.full(len(rows), constant[1] - constant[0]))
    else:
        constant = _log_prior(shares, weights)
        data = lightgbm.Dataset(rows, shares.argmax(1))
        settings["objective"] = _soft_cross_entropy(shares, weights, constant)
        settings["num_class"] = outputs
        # A round grows a tree for each class.
        settings["learning_rate"] *= 2.0
        rounds //= 2
    booster = lightgbm.train(settings, data, rounds, keep_training_booster=True)
    return TreeArrays.of([booster], scale), constant


@dataclass(frozen=True)
class ForestLearner:
    """Grows trees apart from each other, each on a part of the rows and inputs."""

    size: int = 64
    """How many trees of each class."""
    name: str = Forest.kind

    def fit(self, task: TrainingJob) -> Forest:
        """Grow trees on the observed inputs."""
        import lightgbm

        rows, shares, weights = _drawn(task)
        settings = _common(task.seed, rows) | {
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
        # Two classes share one output, the second's probability less a half; an amount is grown
        # less its mean.
        outputs = task.target_type.outputs
        middle = {1: np.average(shares[:, 0], weights=weights), 2: 0.5}.get(outputs, 0.0)
        size = self.size if outputs <= 2 else self.size // 2
        data = lightgbm.Dataset(rows, shares[:, 0], weight=weights, params=settings)
        boosters = []
        for k in range(1 if outputs == 2 else 0, outputs):
            data.construct().set_label(shares[:, k] - middle)
            boosters.append(lightgbm.train(settings, data, size, keep_training_booster=True))
        trees = TreeArrays.of(boosters, 1.0 / size)
        return Forest(trees, np.full(outputs, middle), task.blocks, task.target_type)


def _drawn(task: TrainingJob) -> tuple[Matrix, Floats, Floats | None]:
    """Return observed inputs, what answers should be, and weights of at most so many rows."""
    source: Sample = task.source
    if len(source) > MOST_ROWS:
        source = source[np.random.default_rng(task.seed).permutation(len(source))[:MOST_ROWS]]
    rows = task.blocks.flat(source.inputs, "observed")
    return rows, task.target_type.targets(source.labels), source.weights


def _common(seed: int, rows: Matrix) -> dict[str, Any]:
    return {
        "verbose": -1,
        "seed": seed % 2**31,
        "num_threads": threads(),
        "deterministic": True,
        "force_row_wise": True,
        "max_bin_by_feature": [_bins(column) for column in rows[:MOST_COMPARED].T],
        "use_missing": False,
    }


def _bins(column: Matrix) -> int:
    """Return how finely a column is divided: codes exactly, amounts so that it takes no longer."""
    levels = len(np.unique(column))
    return MOST_LEVELS if len(column) < 2 * SMALL or levels <= MOST_LEVELS else BINS


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
