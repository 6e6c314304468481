"""Compiled sums of trees are those of LightGBM's walk, to the last bit."""

import sys

import numpy as np
import pytest

from halfseen.blocks import Blocks
from halfseen.members import BoostedTreesLearner, ForestLearner, Sample, TrainingJob, tree_arrays
from halfseen.members.tree_arrays import TreeArrays
from halfseen.targets import ClassTarget, RegressionTarget

fast_trees = pytest.importorskip("halfseen.members.compiled_trees")
LEARNERS = (BoostedTreesLearner(rounds=40, rate=0.3), ForestLearner(size=8))


def grown(learner, outputs, rows=3000):
    random = np.random.default_rng(outputs)
    inputs = random.normal(size=(rows, 5)).astype(np.float32)
    score = inputs[:, 0] * inputs[:, 1] + inputs[:, 2]
    ranks = np.argsort(np.argsort(score))
    kind, labels = (
        (RegressionTarget(), score.astype(np.float64))
        if outputs == 1
        else (ClassTarget.of(outputs), ranks * outputs // rows)
    )
    task = TrainingJob(Blocks((5,), (4,)), kind, Sample(inputs, labels), inputs, 0)
    return learner.fit(task).trees


def made_up(random, trees, leaves, features=3, outputs=1):
    """Trees of any form, whose thresholds are few numbers that inputs hit."""
    parts = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    sizes = random.integers(0, leaves, trees)
    for size in sizes:
        free, left, right = [], np.zeros(size, int), np.zeros(size, int)
        for node in range(size):
            if node:
                children, parent = free.pop(random.integers(len(free)))
                children[parent] = node
            free += [(left, node), (right, node)]
        for leaf, (children, parent) in enumerate(free):
            children[parent] = -1 - leaf
        parts["left"].append(left)
        parts["right"].append(right)
        parts["feature"].append(random.integers(0, features, size))
        parts["threshold"].append(random.choice(ODD[np.isfinite(ODD)], size))
        parts["value"].append(random.normal(size=size + 1))
    tensors = {k: np.concatenate(v).astype(tree_arrays._TYPES[k]) for k, v in parts.items()}
    tensors["nodes"] = sizes.astype(np.int32)
    return TreeArrays.restored(tensors, outputs, features)


ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 0.5, -2.0])
ODD = np.concatenate([ODD, [1e-300, fast_trees.ZERO, np.nextafter(0.5, 1.0), 1e300]])


def both(trees, rows, monkeypatch):
    """Return the compiled sums and LightGBM's."""
    monkeypatch.setattr(tree_arrays, "MANY", 0)
    assert trees._fast is not None
    compiled = trees.sums(rows)
    monkeypatch.setattr(tree_arrays, "MANY", sys.maxsize)
    return compiled, trees.sums(rows)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_sums_of_grown_trees_are_those_of_the_walk(learner, outputs, monkeypatch):
    trees = grown(learner, outputs)
    random = np.random.default_rng(0)
    # As they come, and on the thresholds themselves.
    rows = random.normal(size=(700, 4))
    rows[350:] = random.choice(trees.threshold, (350, 4))
    for given in (rows, rows.astype(np.float32), np.asfortranarray(rows), rows[::2]):
        compiled, walked = both(trees, given, monkeypatch)
        assert compiled.shape == (len(given), trees.outputs)
        assert np.array_equal(compiled, walked)


@pytest.mark.parametrize("leaves", [1, 2, 9, 40, 600])
def test_sums_of_any_trees_and_rows_are_those_of_the_walk(leaves, monkeypatch):
    random = np.random.default_rng(leaves)
    trees = made_up(random, 12, leaves, outputs=2)
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore"):
            rows = random.choice(ODD, (fast_trees.BLOCK + 45, 3)).astype(dtype)
        assert np.array_equal(*both(trees, rows, monkeypatch))


def test_chains_and_columns_of_many_thresholds(monkeypatch):
    """The deepest tree there is, on either side; a byte does not number its thresholds."""
    size = tree_arrays.MOST_LEAVES - 1
    onward, ends = np.r_[1:size, -1 - size], -1 - np.arange(size)
    random = np.random.default_rng(0)
    rows = random.normal(size=(500, 1))
    for left, right in ((onward, ends), (ends, onward)):
        cuts = np.sort(random.normal(size=size))[:: -1 if left is onward else 1]
        arrays = np.zeros(size), cuts, left, right, random.normal(size=size + 1)
        names = ("feature", "threshold", "left", "right", "value")
        tensors = {
            name: array.astype(tree_arrays._TYPES[name])
            for name, array in zip(names, arrays, strict=True)
        }
        tensors["nodes"] = np.array([size], dtype=np.int32)
        trees = TreeArrays.restored(tensors, 1, 1)
        compiled, walked = both(trees, rows, monkeypatch)
        assert np.array_equal(compiled, walked)
        assert len(np.unique(compiled)) > 200


def test_sums_depend_neither_on_other_rows_nor_on_threads(monkeypatch):
    trees = grown(LEARNERS[0], 2)
    rows = np.random.default_rng(0).normal(size=(2 * fast_trees.SHARE + 3, 4))
    monkeypatch.setattr(tree_arrays, "MANY", 0)
    whole = trees.sums(rows)
    for part in (rows[:0], rows[:1], rows[:300], rows[: fast_trees.SHARE + 1]):
        assert np.array_equal(trees.sums(part), whole[: len(part)])
    for number in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", number)
        assert np.array_equal(trees.sums(rows), whole)


def test_without_numba_and_for_few_rows_lightgbm_walks(monkeypatch):
    trees = grown(LEARNERS[1], 2)
    rows = np.random.default_rng(0).normal(size=(64, 4))
    trees.sums(rows)
    assert "_fast" not in vars(trees)  # few rows load nothing
    compiled, walked = both(trees, rows, monkeypatch)
    again = TreeArrays.restored(trees.tensors(), 1, 4)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "halfseen.members.compiled_trees")
    monkeypatch.setattr(tree_arrays, "MANY", 0)
    assert again._fast is None
    assert np.array_equal(again.sums(rows), compiled)
    assert np.array_equal(walked, compiled)


def test_trees_of_too_many_leaves_are_walked(monkeypatch):
    monkeypatch.setattr(tree_arrays, "MOST_LEAVES", 3)
    assert grown(LEARNERS[0], 2)._fast is None


def test_the_kernel_needs_no_folder_to_be_kept_in(monkeypatch):
    asked = []

    def without_folder(*, cache=False, **how):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(fast_trees.numba, "njit", without_folder)
    assert fast_trees._compiled(len) is len
    assert asked == [True, False]
