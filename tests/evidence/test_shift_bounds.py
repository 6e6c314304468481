"""The terms of the two bounds, on Gaussians where each is known or ordered."""

import numpy as np
import pytest
from scipy import stats

from halfseen.errors import InputError
from halfseen.evidence import adaptation_bound, adaptation_effect, imputation_terms


def classes(rows, moved, seed):
    """N(-1, 1) and N(1, 1) in the first column; the domains differ in the second alone."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    latents = rng.normal(size=(rows, 2))
    latents[:, 0] += 2 * y - 1
    latents[:, 1] += moved
    return latents, y


def predict(latents):
    positive = 1 / (1 + np.exp(-2 * latents[:, 0]))
    return np.stack([1 - positive, positive], axis=1)


@pytest.mark.parametrize("moved", [0.0, 1.0])
def test_adaptation_terms_are_their_exact_values(moved):
    source, y = classes(1500, 0.0, 0)
    target, _ = classes(1500, moved, 1)
    bound = adaptation_bound(predict(source), y, predict(target), source, target)
    bayes = stats.norm.sf(1.0)
    assert bound.source_error.value == pytest.approx(bayes, abs=0.03)
    assert bound.divergence.value == pytest.approx(1 - 2 * stats.norm.sf(moved / 2), abs=0.08)
    # The model labels the target without noise, so one linear rule errs on the source alone.
    assert bound.joint_error.value == pytest.approx(bayes, abs=0.04)
    assert bound.pseudo_label_error.value == pytest.approx(bayes, abs=0.03)
    assert bound.total == pytest.approx(sum(term.value for term in bound.terms[:3]))
    assert all(term.how and term.trust for term in bound.terms)


def test_adaptation_effect_compares_inputs_with_latents():
    source, target = classes(600, 0.0, 0)[0], classes(600, 3.0, 1)[0]
    effect = adaptation_effect(source, target, source[:, :1], target[:, :1])
    assert effect.before.proxy_a_distance > 1.5
    assert effect.after.proxy_a_distance < 0.2


def test_imputation_terms_order_perfect_averaged_and_absent_imputation():
    rng = np.random.default_rng(0)
    z1, z1_target = rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2)) + 0.5

    def drawn(z1):
        return z1[:, :1] + rng.normal(size=(len(z1), 1))

    generators = (drawn, lambda z1: z1[:, :1], lambda z1: 1e-3 * z1[:, 1:])
    ratios, transfers, errors = np.transpose(
        [
            [t.value for t in imputation_terms(z1, drawn(z1), r(z1), z1_target, r(z1_target))]
            for r in generators
        ]
    )
    assert ratios[0] < 2 < ratios[1] < ratios[2]
    np.testing.assert_allclose(transfers, 1.0, atol=0.3)  # exactly 1: one r for both domains
    np.testing.assert_allclose(errors, [1.0, 0.5, 1.0], atol=0.1)


def test_shapes_that_do_not_fit_are_refused():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(InputError, match="same width"):
        imputation_terms(rows, rows, rows[:, :1], rows, rows)
    with pytest.raises(InputError, match="each row needs both"):
        adaptation_bound(predict(rows), [0, 1] * 20, predict(rows), rows[:30], rows)
