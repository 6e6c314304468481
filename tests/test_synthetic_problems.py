"""Where imputation must help, and where it must not: problems whose truth is known.

No method beats p(y|x1) on the target. Imputation earns its place as what the source's extra
columns teach about x1: with few rows and noisy labels, an x2 that x1 largely determines says more
per row than the label does.
"""

import numpy as np
import pytest

from halfseen import HalfSeenClassifier

OBSERVED, MISSING, LABEL_NOISE = 20, 4, 0.25
SEEDS = range(3)
MARGIN = 0.03
"""How far imputation must stay ahead of ignoring, on average over the seeds."""


def draw(random, direction, rows, shift, *, related):
    """Two modes of x2; they follow x1 when `related`, and a coin otherwise."""
    observed = random.normal(size=(rows, OBSERVED)) + shift
    side = np.sign(observed @ direction + 0.1 * random.normal(size=rows))
    mode = side if related else random.choice([-1.0, 1.0], size=rows)
    missing = mode[:, None] + 0.5 * random.normal(size=(rows, MISSING))
    flip = np.where(random.random(rows) < LABEL_NOISE, -1, 1)
    return np.hstack([observed, missing]), (flip * side > 0).astype(int)


def problem(seed, *, related):
    """Few labelled source rows, a slightly shifted target, and a large test set of it."""
    random = np.random.default_rng(seed)
    direction = random.normal(size=OBSERVED)
    direction /= np.linalg.norm(direction)
    source, labels = draw(random, direction, 100, 0.0, related=related)
    target, _ = draw(random, direction, 1000, 0.2, related=related)
    test, truth = draw(random, direction, 4000, 0.2, related=related)
    return source, labels, target, test, truth


def fitted_score(model, seed, *, related):
    """Accuracy on the test set of the model that imputes or of the one that ignores x2."""
    source, labels, target, test, truth = problem(seed, related=related)
    estimator = HalfSeenClassifier(
        models=model,
        members=["networks"],
        missing=list(range(OBSERVED, OBSERVED + MISSING)),
        random_state=seed,
        device="cpu",
        options={"training.joint_epochs": 30},
    )
    return estimator.fit(source, labels, X_target=target).score(test, truth)


def gains(*, related):
    """Accuracy of imputation minus that of ignoring, per seed."""
    scores = [
        [fitted_score(model, seed, related=related) for seed in SEEDS]
        for model in ("Adaptation-Imputation", "Adaptation-IgnoreComponent")
    ]
    return np.subtract(*scores)


@pytest.mark.slow
def test_imputation_helps_where_the_missing_block_teaches_more_than_the_label():
    found = gains(related=True)
    assert found.mean() > MARGIN, found
    assert (found > 0).all(), found


@pytest.mark.slow
def test_imputation_does_not_help_where_the_missing_block_is_unrelated():
    found = gains(related=False)
    standard_error = found.std(ddof=1) / np.sqrt(len(found))
    assert found.mean() < MARGIN / 2 + standard_error, found
    assert found.mean() > -MARGIN, found
