"""A small table with a learnable answer: the target is shifted and lacks two of five columns."""

import numpy as np

from halfseen.blocks import Blocks
from halfseen_bench.data import Card, DomainPair, Labelled, Sealed

BLOCKS = Blocks.columns(["a", "b", "c", "d", "e"], missing=["d", "e"])
CARD = Card("a toy", "made here", "none", {}, "d and e.")


def rows(random, count, shift):
    """x2 follows x1, and the class follows both."""
    observed = random.normal(shift, 1.0, (count, 3))
    missing = observed[:, :2] + random.normal(0.0, 0.3, (count, 2))
    score = observed[:, 0] + missing.sum(axis=1) - 3 * shift
    inputs = np.hstack([observed, missing]).astype(np.float32)
    return inputs, (score > 0).astype(np.int64)


def small_pair(seed=0, count=120):
    random = np.random.default_rng(seed)
    train, test, adapted, predicted = (rows(random, count, shift) for shift in (0.0, 0.0, 0.4, 0.4))
    return DomainPair(
        name="here->there",
        source_train=Labelled(*train),
        source_test=Labelled(*test),
        target_train=BLOCKS.hide(adapted[0]),
        target_test=BLOCKS.hide(predicted[0]),
        target_test_labels=Sealed(predicted[1]),
        target_train_labels=Sealed(adapted[1]),
        complete_target=Sealed((adapted[0], predicted[0])),
        blocks=BLOCKS,
        classes=("no", "yes"),
        card=CARD,
    )
