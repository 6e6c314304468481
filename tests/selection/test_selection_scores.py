from __future__ import annotations

import itertools

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen.evidence.risk import SCORES, agreement, mutual_information_score


def random_probabilities(rows: int, classes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(classes), size=rows)


def test_information_is_that_of_its_definition() -> None:
    p = random_probabilities(50, 4, 0)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    mean = p.mean(axis=0)
    assert mutual_information_score(p) == pytest.approx(-(mean * np.log(mean)).sum() - entropy)


def test_information_never_rewards_a_constant_model() -> None:
    collapsed = np.tile([0.98, 0.01, 0.01], (30, 1))
    assert mutual_information_score(collapsed) == pytest.approx(0.0, abs=1e-12)


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
    ("call", "message"),
    [
        (lambda: mutual_information_score([[2.0, -1.0]]), "no probability"),
        (lambda: mutual_information_score([0.5, 0.5]), "one column per class"),
        (lambda: mutual_information_score([[0.5, 0.6]]), "sums to 1.1"),
        (lambda: agreement([[[0.5, 0.5]]]), "at least two runs"),
        (lambda: agreement([[[0.5, 0.5]], [[0.5, 0.5]] * 2]), "same rows and classes"),
        (lambda: agreement([[[0.5, 0.5]], [[0.5, 0.7]]]), "Row 0 of run 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
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

    given = {
        ("source_loss", "weight"): ((loss(good), weight), (loss(bad), weight)),
        ("source_loss",): ((loss(good),), (loss(bad),)),
        ("target_probabilities",): ((good,), (bad,)),
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
