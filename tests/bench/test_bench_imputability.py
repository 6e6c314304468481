from __future__ import annotations

import numpy as np
import pytest

from halfseen.errors import InputError
from halfseen_bench import imputability
from halfseen_bench.imputability import imputation_verdict, missing_block_dependence


def gaussian_blocks(rows: int, correlation: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """x1 and x2 whose first columns correlate; x2's best R2 is correlation² / 2."""
    rng = np.random.default_rng(seed)
    x1 = rng.normal(size=(rows, 3))
    noise = rng.normal(size=(rows, 2))
    noise[:, 0] = correlation * x1[:, 0] + np.sqrt(1 - correlation**2) * noise[:, 0]
    return x1, noise


@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_the_share_explained_is_that_of_the_gaussian(correlation: float) -> None:
    found = missing_block_dependence(*gaussian_blocks(3000, correlation))
    assert found.r2_by_regression["ridge"] == pytest.approx(correlation**2 / 2, abs=0.03)
    assert found.p_value == pytest.approx(2 / 1000)


def test_independent_blocks_are_rarely_called_dependent(monkeypatch) -> None:
    monkeypatch.setattr(imputability, "PERMUTATIONS", 99)
    monkeypatch.setattr(imputability, "_boosting", imputability._ridge)  # trees take seconds
    p_values = [missing_block_dependence(*gaussian_blocks(100, 0.0, s)).p_value for s in range(60)]
    # Half of the p-values are uniform: 6 below 0.2 expected, over 14 have a chance below 0.001.
    assert np.mean(np.array(p_values) <= 0.2) <= 14 / 60


def test_two_regressions_are_corrected_for() -> None:
    x1, x2 = gaussian_blocks(200, 0.0)
    both = missing_block_dependence(x1, x2)
    assert set(both.r2_by_regression) == {"ridge", "boosting"}
    assert both.p_value <= 1.0
    x1, x2 = gaussian_blocks(400, 0.9)
    assert missing_block_dependence(x1, x2).p_value == pytest.approx(2 / 1000)


def test_a_wide_missing_block_is_predicted_through_its_components() -> None:
    rng = np.random.default_rng(1)
    x1 = rng.normal(size=(400, 5))
    wide = np.abs(x1[:, :2]) @ rng.normal(size=(2, 40)) + 0.1 * rng.normal(size=(400, 40))
    found = missing_block_dependence(x1, wide)
    assert found.r2_by_regression["boosting"] > 0.5 > 0.2 > found.r2_by_regression["ridge"]


@pytest.mark.parametrize("seed", range(3))
def test_related_blocks_and_near_domains_let_imputation_help(seed: int) -> None:
    x1, x2 = gaussian_blocks(800, 0.7, seed)
    found = imputation_verdict(x1, x2, gaussian_blocks(500, 0.7, seed + 100)[0] + 0.5)
    assert found.verdict == "imputation can help here"
    assert found.imputation_can_help
    assert "AUC" in found.evidence


@pytest.mark.parametrize("moved", [0.5, 8.0])
def test_an_unrelated_block_is_to_be_ignored_whatever_the_overlap(moved: float) -> None:
    x1, x2 = gaussian_blocks(800, 0.0)
    found = imputation_verdict(x1, x2, gaussian_blocks(500, 0.0, 1)[0] + moved)
    assert found.verdict == "the missing block is unrelated to what you observe: ignore it"
    assert not found.imputation_can_help


@pytest.mark.parametrize("moved", [3.0, 10.0])
def test_distant_domains_barely_overlap(moved: float) -> None:
    x1, x2 = gaussian_blocks(800, 0.7)
    x1_target = gaussian_blocks(500, 0.7, 1)[0] + moved
    assert imputation_verdict(x1, x2, x1_target).verdict == "the domains barely overlap"


def test_a_trace_too_faint_to_use_is_called_unrelated() -> None:
    x1, x2 = gaussian_blocks(20_000, 0.1)
    found = imputation_verdict(x1, x2, x1[:500])
    assert found.dependence.p_value < 0.01
    assert found.verdict == "the missing block is unrelated to what you observe: ignore it"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x1": np.ones((12, 1)), "x2": np.ones((12, 1))}, "12 rows are too few"),
        ({"x2": np.ones((50, 2))}, "Every column of x2 is constant"),
        ({"x2": np.ones((49, 2))}, "x1 has 50 rows and x2 has 49"),
    ],
)
def test_what_cannot_be_tested_is_refused(options, message: str) -> None:
    x1, x2 = gaussian_blocks(50, 0.5)
    with pytest.raises(InputError, match=message):
        missing_block_dependence(**{"x1": x1, "x2": x2} | options)
