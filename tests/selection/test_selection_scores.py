from __future__ import annotations

import itertools

import numpy as np
import pytest

from halfseen.errors import InputError, OptionError
from halfseen.evidence.registry import SCORES
from halfseen.evidence.scores import (
    agreement,
    entropy_score,
    mutual_information_score,
    soft_neighbourhood_density,
)


def random_probabilities(rows: int, classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(classes), size=rows)


def test_entropy_and_information_are_those_of_their_definitions() -> None:
    p = random_probabilities(50, 4, 0)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    mean = p.mean(axis=0)
    assert entropy_score(p) == pytest.approx(entropy)
    assert mutual_information_score(p) == pytest.approx(-(mean * np.log(mean)).sum() - entropy)


def test_information_never_rewards_a_constant_model() -> None:
    collapsed = np.tile([0.98, 0.01, 0.01], (30, 1))
    assert mutual_information_score(collapsed) == pytest.approx(0.0, abs=1e-12)
    assert entropy_score(collapsed) < 0.12  # which entropy alone would like


@pytest.mark.parametrize("rows", [7, 1500])  # one part, and two
def test_neighbourhood_density_is_that_of_its_definition(rows: int) -> None:
    features = np.random.default_rng(1).normal(size=(rows, 5))
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    similarity = np.exp(unit @ unit.T / 0.1)
    np.fill_diagonal(similarity, 0.0)
    p = similarity / similarity.sum(axis=1, keepdims=True)
    np.fill_diagonal(p, 1.0)  # 1 log 1 = 0
    expected = -(p * np.log(p)).sum(axis=1).mean()
    assert soft_neighbourhood_density(features, 0.1) == pytest.approx(expected)


def test_neighbourhood_density_does_not_see_length_and_bears_a_zero_row() -> None:
    features = np.random.default_rng(2).normal(size=(20, 3))
    scaled = features * np.arange(1, 21)[:, None]
    assert soft_neighbourhood_density(features) == pytest.approx(soft_neighbourhood_density(scaled))
    features[0] = 0.0
    assert np.isfinite(soft_neighbourhood_density(features))


def test_dense_clusters_have_a_higher_density_than_scattered_rows() -> None:
    rng = np.random.default_rng(3)
    centres = np.eye(3)[np.arange(90) % 3]
    assert soft_neighbourhood_density(
        centres + 0.01 * rng.normal(size=(90, 3))
    ) > soft_neighbourhood_density(rng.normal(size=(90, 3)))


def test_agreement_is_the_mean_over_pairs_of_runs() -> None:
    runs = np.stack([random_probabilities(40, 3, seed) for seed in range(4)])
    chosen = runs.argmax(axis=2)
    expected = np.mean([(a == b).mean() for a, b in itertools.combinations(chosen, 2)])
    assert agreement(runs) == pytest.approx(expected)
    assert agreement([runs[0], runs[0]]) == 1.0


def test_disagreement_of_calibrated_runs_is_their_error() -> None:
    # Each run answers with a draw from p(y | x): the runs' ensemble is calibrated.
    rng = np.random.default_rng(4)
    p = random_probabilities(20_000, 3, 5)

    def draw() -> np.ndarray:
        return (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1)

    truth, runs = draw(), [draw() for _ in range(2)]
    error = np.mean([run != truth for run in runs])
    assert 1 - agreement([np.eye(3)[run] for run in runs]) == pytest.approx(error, abs=0.015)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: entropy_score([[2.0, -1.0]]), InputError, "no probability"),
        (lambda: entropy_score([0.5, 0.5]), InputError, "one column per class"),
        (lambda: mutual_information_score([[0.5, 0.6]]), InputError, "sums to 1.1"),
        (lambda: soft_neighbourhood_density(np.ones((2, 2))), InputError, "at least 3 target rows"),
        (lambda: soft_neighbourhood_density(np.ones(9)), InputError, "must be a matrix"),
        (lambda: soft_neighbourhood_density(np.eye(3), 0.0), OptionError, "temperature=0.0"),
        (lambda: agreement([[[0.5, 0.5]]]), InputError, "at least two runs"),
        (lambda: agreement([[[0.5, 0.5]], [[0.5, 0.5]] * 2]), InputError, "same rows and classes"),
        (lambda: agreement([[[0.5, 0.5]], [[0.5, 0.7]]]), InputError, "Row 0 of run 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_every_score_prefers_the_better_of_two_models() -> None:
    """A sure and right model against a vague one, on what each score needs."""
    rng = np.random.default_rng(6)
    y = np.arange(90) % 3
    good = 0.97 * np.eye(3)[y] + 0.01
    bad = rng.dirichlet(np.ones(3), size=90)
    weight = rng.uniform(0.5, 1.5, 90)

    def loss(p: np.ndarray) -> np.ndarray:
        return -np.log(p[np.arange(90), y])

    def fit_well(labelled, labels, unlabelled):
        centres = np.stack([labelled[labels == k].mean(axis=0) for k in np.unique(labels)])
        return lambda x: np.unique(labels)[
            np.square(x[:, None] - centres).sum(axis=2).argmin(axis=1)
        ]

    def fit_badly(labelled, labels, unlabelled):
        return lambda x: rng.integers(3, size=len(x))

    given = {
        ("source_loss", "weight"): ((loss(good), weight), (loss(bad), weight)),
        ("source_loss",): ((loss(good),), (loss(bad),)),
        ("target_probabilities",): ((good,), (bad,)),
        ("fit", "source", "y_source", "target"): (
            (fit_well, good, y, good),
            (fit_badly, good, y, good),
        ),
        ("probabilities_of_runs",): (([good, good],), ([bad, bad[::-1]],)),
    }
    for name, score in SCORES.items():
        values = [score.function(*arguments) for arguments in given[score.needs]]
        numbers = [getattr(value, "risk", value) for value in values]
        assert score.best(numbers) == 0, name
        assert score.best(numbers[::-1]) == 1, name


def test_nothing_to_choose_is_said() -> None:
    with pytest.raises(InputError, match="No value of dev is a number"):
        SCORES["dev"].best([float("nan")])
    with pytest.raises(InputError, match="nothing to choose"):
        SCORES["dev"].best([])
