from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from halfseen.errors import InputError
from halfseen.evidence import domain_separation, feature_shift, population_stability
from halfseen.evidence.features import adjusted_p_values


def test_the_table_names_the_shifted_input_and_no_other() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(1000, 4)), rng.normal(size=(800, 4))
    target[:, 2] = 2.0 + 3.0 * target[:, 2]
    rows = feature_shift(source, target, ["a", "b", "c", "d"])
    assert [row.name for row in rows if row.p_value < 0.01] == ["c"]
    shifted = rows[2]
    assert shifted.source_mean == pytest.approx(0.0, abs=0.15)
    assert shifted.target_mean == pytest.approx(2.0, abs=0.4)
    assert (
        shifted.population_stability
        > 0.25
        > 0.1
        > max(row.population_stability for row in rows if row.name != "c")
    )


def test_twenty_equal_inputs_raise_few_false_alarms() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(40):
        rows = feature_shift(rng.normal(size=(200, 20)), rng.normal(size=(200, 20)))
        alarms += any(row.p_value < 0.05 for row in rows)
    assert alarms <= 7  # 2 expected; more than 7 has a chance below 0.001


def test_adjusted_p_values_are_those_of_their_definition() -> None:
    p = np.array([0.02, 0.01, 0.5, 0.03])
    np.testing.assert_allclose(adjusted_p_values(p), [0.06, 0.04, 0.5, 0.06])


def test_population_stability_of_a_gaussian_shift_is_its_closed_form() -> None:
    rng = np.random.default_rng(2)
    edges = stats.norm.ppf(np.arange(1, 10) / 10)
    share = np.diff(np.concatenate([[0], stats.norm.cdf(edges - 0.5), [1]]))
    exact = ((share - 0.1) * np.log(share / 0.1)).sum()
    estimated = population_stability(rng.normal(size=100_000), rng.normal(0.5, 1, 100_000))
    assert estimated == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("value", [-1.0, 1.0])
def test_a_column_that_is_constant_on_the_source_still_shows_its_shift(value: float) -> None:
    assert population_stability(np.zeros(500), np.zeros(500)) == 0.0
    assert population_stability(np.zeros(500), np.full(500, value)) > 1.0


def test_a_codes_new_frequency_is_seen() -> None:
    source, target = np.repeat([0.0, 1.0], [490, 10]), np.repeat([0.0, 1.0], [400, 100])
    exact = (0.2 - 0.02) * np.log(0.2 / 0.02) + (0.8 - 0.98) * np.log(0.8 / 0.98)
    assert population_stability(source, target) == pytest.approx(exact, rel=0.1)


def test_empty_cells_are_left_out() -> None:
    source = np.array([[1.0], [np.nan], [3.0], [5.0]])
    (row,) = feature_shift(source, np.array([[3.0], [3.0], [3.0]]))
    assert (row.source_mean, row.target_mean) == (3.0, 3.0)


def test_a_column_that_the_target_never_measured_is_sent_to_the_missing_block() -> None:
    target = np.array([[1.0, np.nan]] * 3)
    with pytest.raises(InputError, match="Every target cell of 'thal' is empty"):
        feature_shift(np.ones((3, 2)), target, ["age", "thal"])


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0])
def test_separation_of_gaussians_is_near_its_closed_forms(distance: float) -> None:
    rng = np.random.default_rng(3)
    target = rng.normal(size=(1000, 3))
    target[:, 0] += distance
    found = domain_separation(rng.normal(size=(2000, 3)), target)
    assert found.auc == pytest.approx(stats.norm.cdf(distance / np.sqrt(2)), abs=0.03)
    best_error = stats.norm.cdf(-distance / 2)
    assert found.proxy_a_distance == pytest.approx(2 * (1 - 2 * best_error), abs=0.12)
    assert found.overlap == pytest.approx(np.exp(-(distance**2)), abs=0.1)


def test_disjoint_domains_do_not_overlap_even_where_all_weights_are_equal() -> None:
    rng = np.random.default_rng(4)
    source, target = rng.normal(size=(300, 1)), rng.normal(20, 1, (300, 1))
    for classifier in (None, DecisionTreeClassifier(max_depth=1)):
        found = domain_separation(source, target, classifier=classifier)
        assert found.auc > 0.999
        assert found.proxy_a_distance == pytest.approx(2.0, abs=0.01)
        assert found.overlap < 0.01


def test_a_change_of_spread_alone_separates() -> None:
    rng = np.random.default_rng(5)
    found = domain_separation(rng.normal(size=(1000, 1)), 3 * rng.normal(size=(1000, 1)))
    assert found.auc > 0.7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: feature_shift(x, x, ["a"]), "1 names for 2 columns"),
        (lambda x: feature_shift(x, x[:, :1]), "2 columns and the target 1"),
        (lambda x: feature_shift(x / 0.0, x), "infinite"),
        (lambda x: domain_separation(x, x[:14]), "The target has 14 rows"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_cannot_be_compared_is_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(np.ones((30, 2)))
