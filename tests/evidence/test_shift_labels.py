from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.errors import InputError, OptionError
from halfseen.evidence import PriorEstimate, correct_probabilities, estimate_target_prior

SWEEP = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)


def posterior(x: np.ndarray) -> np.ndarray:
    """p(y | x) for two equally frequent classes N(-1, 1) and N(1, 1)."""
    positive = 1 / (1 + np.exp(-2 * x))
    return np.stack([1 - positive, positive], axis=1)


def estimated(
    prior: float, moved: float, rows: int = 2000, seed: int = 0
) -> tuple[PriorEstimate, np.ndarray, np.ndarray]:
    """Estimate on a target with this prior and both classes `moved`; also its scores and labels."""
    rng = np.random.default_rng([seed, int(1000 * prior), int(10 * moved)])
    y = np.arange(rows) % 2
    y_target = (np.arange(rows) < prior * rows).astype(int)
    source = posterior(rng.normal(2.0 * y - 1))
    target = posterior(rng.normal(2.0 * y_target - 1 + moved))
    return estimate_target_prior(source, y, target, draws=100), target, y_target


def cross_entropy(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(predicted[np.arange(len(y)), y]).mean())


@pytest.mark.parametrize("prior", SWEEP)
def test_label_shift_is_found_trusted_and_corrected(prior: float) -> None:
    found, target, y_target = estimated(prior, moved=0.0)
    assert found.prior[1] == pytest.approx(prior, abs=0.04)
    assert found.interval[1, 0] - 0.01 < prior < found.interval[1, 1] + 0.01
    assert found.trustworthy, found.verdict
    corrected = cross_entropy(found.correct(target), y_target)
    if prior < 0.35:
        assert corrected < cross_entropy(target, y_target) - 0.005
    else:
        assert corrected < cross_entropy(target, y_target) + 0.01


@pytest.mark.parametrize("prior", SWEEP)
def test_a_shift_within_the_classes_is_noticed_and_refused(prior: float) -> None:
    found, target, _ = estimated(prior, moved=1.0)
    assert abs(found.prior[1] - prior) > 0.2  # the number is wrong
    assert not found.trustworthy
    assert "p(x | y)" in found.verdict
    with pytest.raises(InputError, match="Do not use the estimated class proportions"):
        found.correct(target)


def test_needless_refusals_are_rare_and_intervals_cover() -> None:
    found = [estimated(0.2, moved=0.0, rows=250, seed=seed)[0] for seed in range(1, 21)]
    # Two checks at 2 %: 0.8 refusals expected at most, more than 4 have a chance below 0.002.
    assert sum(not one.trustworthy for one in found) <= 4
    covered = sum(one.interval[1, 0] < 0.2 < one.interval[1, 1] for one in found)
    assert covered >= 16  # 19 expected, fewer than 16 has a chance below 0.003


def test_estimates_at_the_edge_are_refused() -> None:
    found, _, _ = estimated(0.5, moved=4.0, rows=600)
    assert found.prior[1] > 0.99
    assert any("reaches 0" in reason for reason in found.reasons)


def test_a_model_that_sees_nothing_gives_an_interval_that_says_nothing() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    weak = posterior(0.02 * y + 0.2 * rng.normal(size=400))
    found = estimate_target_prior(weak, y, posterior(0.2 * rng.normal(size=400)), draws=100)
    assert any("says next to nothing" in reason for reason in found.reasons)


def test_the_same_seed_gives_the_same_answer() -> None:
    first, _, _ = estimated(0.2, 0.0, rows=200)
    second, _, _ = estimated(0.2, 0.0, rows=200)
    assert first.interval.tolist() == second.interval.tolist()


def test_correction_is_bayes_rule_on_gaussians() -> None:
    x = np.linspace(-3, 3, 13)
    joint = np.stack([0.9 * np.exp(-((x + 1) ** 2) / 2), 0.1 * np.exp(-((x - 1) ** 2) / 2)], 1)
    np.testing.assert_allclose(
        correct_probabilities(posterior(x), [0.5, 0.5], [0.9, 0.1]),
        joint / joint.sum(axis=1, keepdims=True),
    )


def test_correction_to_the_same_prior_changes_nothing() -> None:
    p = posterior(np.array([-1.0, 0.3]))
    np.testing.assert_allclose(correct_probabilities(p, [0.3, 0.7], [0.3, 0.7]), p)


def test_a_certain_row_of_a_class_without_target_mass_stays_a_distribution() -> None:
    corrected = correct_probabilities([[0.0, 1.0]], [0.5, 0.5], [1.0, 0.0])
    np.testing.assert_allclose(corrected, [[1.0, 0.0]])


P, Y = [[0.8, 0.2], [0.7, 0.3], [0.3, 0.7], [0.2, 0.8]], [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: estimate_target_prior(P, Y, P, draws=10), OptionError, "draws=10"),
        (lambda: estimate_target_prior(P, [0] * 4, P), InputError, "Class 1 has 0 rows"),
        (lambda: estimate_target_prior(P, [0] * 3, P), InputError, "has 4 rows and y_source has 3"),
        (lambda: estimate_target_prior(P, Y, [[0.1, 0.2, 0.7]]), InputError, "same model"),
        (lambda: correct_probabilities(P, [1.0, 0.0], [0.5, 0.5]), InputError, "class 1 no mass"),
        (lambda: correct_probabilities(P, [0.5, 0.5], [0.5, 0.6]), InputError, "target_prior must"),
        (lambda: correct_probabilities(P, [1.0], [0.5, 0.5]), InputError, "source_prior must hold"),
    ],
)
def test_what_cannot_be_estimated_is_refused(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.data("heart")
@pytest.mark.parametrize(
    ("hospital", "missing", "believed"),
    [
        ("hungarian", (10, 11, 12), True),  # slope, ca, thal
        ("va", (10, 11, 12), False),
        ("switzerland", (4, 5, 11, 12), False),  # chol, fbs, ca, thal
    ],
)
def test_the_hospitals_where_the_estimate_runs_away_are_noticed(
    hospital: str, missing: tuple[int, ...], believed: bool
) -> None:
    folder = Path(os.environ.get("HALFSEEN_DATA", "")) / "heart"
    if "HALFSEEN_DATA" not in os.environ or not folder.is_dir():
        pytest.skip("the heart files are not under $HALFSEEN_DATA")
    kept = [j for j in range(13) if j not in missing]

    def read(place: str) -> tuple[np.ndarray, np.ndarray]:
        table = np.genfromtxt(folder / f"processed.{place}.data", delimiter=",", missing_values="?")
        return table[:, kept], (table[:, -1] > 0).astype(int)

    x, y = read("cleveland")
    x_target, y_target = read(hospital)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    held_out = cross_val_predict(model, x, y, cv=10, method="predict_proba")
    found = estimate_target_prior(held_out, y, model.fit(x, y).predict_proba(x_target))
    assert found.trustworthy is believed, found.verdict
    if believed:
        assert found.interval[1, 0] < y_target.mean() < found.interval[1, 1]
