"""The simulator: its truth is exact, its dials move one thing each, its rows do not depend on
how they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import nbinom
from sklearn.ensemble import HistGradientBoostingClassifier

from halfseen.errors import InputError, OptionError
from halfseen_bench.data.simulator import (
    DOMAINS,
    Scenario,
    draw,
    load_pair,
    simulate,
    stream,
    yardsticks,
)
from halfseen_bench.data.simulator_world import (
    DISPERSION,
    MISSING,
    OBSERVED,
    Dials,
    World,
    entropy,
)

TARGET = World("prospecting", Dials())
SOURCE = World("retargeting", Dials())


def test_shape_is_that_of_ads_real() -> None:
    simulation = simulate(Scenario(rows=300, test_rows=200))
    pair = simulation.pair
    assert (len(OBSERVED), len(MISSING)) == (17, 12)
    assert pair.source_train.inputs.shape == pair.target_train.shape == (300, 29)
    assert pair.blocks.names_of(pair.blocks.missing) == list(MISSING)
    assert (pair.target_test[:, 17:] == 0).all()
    assert (pair.source_train.inputs[:, 17:] > 0).any()
    buckets = [10] * 16 + [6] + [7] * 12
    complete = pair.complete_target.open("test")
    for block in (pair.source_train.inputs, complete[0], complete[1]):
        assert (block >= 0).all()
        assert (block < np.array(buckets)).all()


def log_bucket(counts: np.ndarray) -> np.ndarray:
    """floor(log2(count + 1)), by bits and thus without rounding."""
    return np.frexp(counts + 1.0)[1] - 1


def test_probability_given_x1_agrees_with_brute_force() -> None:
    """Weigh draws from the prior by the likelihood of x1, with none of the world's tables."""
    world = World("prospecting", Dials(conditional_shift=0.5, label_noise=0.05))
    rows = draw(world, 0, 12, seed=3)
    generator = np.random.default_rng(0)
    size = 2_000
    for row, exact in zip(rows.observed, world.best_given_observed(rows.observed), strict=True):
        activity = row[-1]
        user = generator.choice(4, size, p=world.user[activity])
        partner = generator.choice(3, size, p=world.partner)
        intent = np.array([generator.choice(4, p=p) for p in world.intent[user, partner]])
        means = world.partner_means[:, activity, partner, intent]
        counts = generator.negative_binomial(
            DISPERSION, DISPERSION / (DISPERSION + means), (40, *means.shape)
        )
        missing = np.minimum(counts, 126).transpose(0, 2, 1).reshape(-1, 12)
        missing = log_bucket(missing)
        copies = np.broadcast_to(row, (len(missing), 17))
        click = world.best_given_all(copies, missing).reshape(40, -1).mean(axis=0)
        success = DISPERSION / (DISPERSION + world.user_means[:, activity, :])
        low = 2 ** row[:16] - 1
        high = np.where(row[:16] == 9, np.inf, 2 * low)
        likelihood = nbinom.cdf(high[:, None], DISPERSION, success) - nbinom.cdf(
            low[:, None] - 1, DISPERSION, success
        )
        weight = likelihood.prod(axis=0)[user]
        estimate = (weight * click).sum() / weight.sum()
        spread = np.sqrt((weight**2 * (click - estimate) ** 2).sum()) / weight.sum()
        assert abs(estimate - exact) < 4.5 * spread + 1e-3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"activity_shift": 0.0},
        {"click_rate_shift": -1.0},
        {"conditional_shift": 1.0},
        {"predictability": 0.0},
        {"predictability": 1.0},
        {"label_noise": 0.2},
    ],
    ids=str,
)
def test_expected_cross_entropy_agrees_with_labels(options: dict[str, object]) -> None:
    lines = yardsticks(Scenario(seed=1, **options), check_rows=60_000)
    for line in lines:
        # twice the variance: p(y|x1) has a sampled expectation too
        assert abs(line.expected - line.monte_carlo) < 4 * np.sqrt(2) * line.standard_error
    values = [line.expected for line in lines]
    assert values == sorted(values)
    assert values[1] - values[0] > 0.01  # x2 matters
    assert values[2] - values[1] > 0.01  # x1 matters


def test_probability_given_x1_is_calibrated() -> None:
    rows = draw(TARGET, 0, 100_000, part="check")
    probability = TARGET.best_given_observed(rows.observed)
    groups = np.digitize(probability, np.quantile(probability, np.linspace(0, 1, 11)[1:-1]))
    for group in range(10):
        inside = probability[groups == group]
        error = np.sqrt((inside * (1 - inside)).sum()) / len(inside)
        assert abs(rows.labels[groups == group].mean() - inside.mean()) < 4 * error


def test_click_rate_is_the_mean_over_rows() -> None:
    rows = draw(TARGET, 0, 100_000)
    probability = TARGET.best_given_all(rows.observed, rows.missing)
    assert TARGET.click_rate() == pytest.approx(probability.mean(), abs=4e-3)
    assert TARGET.best_cross_entropy() == pytest.approx(entropy(probability).mean(), abs=4e-3)


def test_buckets_have_the_probabilities_of_counts_with_the_formulas_mean() -> None:
    """The share of rows without any count is that of a negative binomial of that mean."""
    world = World("retargeting", Dials(predictability=0.0))
    rows = draw(world, 0, 200_000)
    active = rows.observed[:, -1] >= 4  # the two busiest levels
    levels = rows.observed[active, -1]
    feature = OBSERVED.index("user_sales_day")
    none = (1 + world.user_means[feature] / DISPERSION) ** -DISPERSION
    expected = (world.user[levels] * none[levels]).sum(axis=1).mean()
    assert (rows.observed[active, feature] == 0).mean() == pytest.approx(expected, abs=0.01)
    column = MISSING.index("partner_products_month")
    weight = np.einsum("g,gm->gm", world.partner, world.intent[0])
    none = (1 + world.partner_means[column, 0] / DISPERSION) ** -DISPERSION
    expected = (weight * none).sum()
    assert (rows.missing[:, column] == 0).mean() == pytest.approx(expected, abs=0.01)


def test_activity_shift_moves_the_inputs_alone() -> None:
    rows = draw(TARGET, 0, 2_000)
    assert not np.allclose(TARGET.activity, SOURCE.activity)
    np.testing.assert_array_equal(
        TARGET.best_given_observed(rows.observed), SOURCE.best_given_observed(rows.observed)
    )
    np.testing.assert_array_equal(TARGET.intent, SOURCE.intent)
    less_active = draw(TARGET, 0, 20_000).observed[:, -1].mean()
    assert less_active < draw(SOURCE, 0, 20_000).observed[:, -1].mean() - 0.5


def test_conditional_shift_moves_x2_given_x1_alone() -> None:
    dials = Dials(activity_shift=0.0, conditional_shift=1.0)
    source, target = World("retargeting", dials), World("prospecting", dials)
    rows = draw(target, 0, 2_000)
    np.testing.assert_array_equal(source.activity, target.activity)
    np.testing.assert_array_equal(
        source.best_given_all(rows.observed, rows.missing),
        target.best_given_all(rows.observed, rows.missing),
    )
    np.testing.assert_array_equal(
        source.user_posterior(rows.observed), target.user_posterior(rows.observed)
    )
    difference = source.best_given_observed(rows.observed) - target.best_given_observed(
        rows.observed
    )
    assert np.abs(difference).mean() > 0.02


def test_click_rate_shift_moves_the_label_alone() -> None:
    dials = Dials(activity_shift=0.0, click_rate_shift=-1.0)
    source, target = World("retargeting", dials), World("prospecting", dials)
    for name in ("activity", "user", "intent", "user_counts", "partner_counts"):
        np.testing.assert_array_equal(getattr(source, name), getattr(target, name))
    assert target.click_rate() < source.click_rate() - 0.05


def test_by_default_only_the_activity_shifts() -> None:
    default = Dials()
    assert default.activity_shift > 0
    assert default.click_rate_shift == default.conditional_shift == default.label_noise == 0


def test_x2_given_x1_has_several_modes() -> None:
    rows = draw(TARGET, 0, 5_000)
    intent = np.einsum(
        "nu,g,ugm->nm", TARGET.user_posterior(rows.observed), TARGET.partner, TARGET.intent
    )
    assert ((intent > 0.1).sum(axis=1) >= 2).mean() > 0.95
    # the modes are far apart: each pair differs threefold in at least three counts
    means = TARGET.partner_means[:, 3, 0]
    for first in range(4):
        for second in range(first):
            ratio = means[:, first] / means[:, second]
            assert (np.maximum(ratio, 1 / ratio) > 3).sum() >= 3


def test_the_label_needs_both_blocks() -> None:
    values = np.array([-1.0, 1.0])
    click = TARGET.click_probability(values[:, None], values[None, :])
    log_odds = np.log(click / (1 - click))
    assert (np.diff(log_odds, axis=0) != 0).all()
    assert (np.diff(log_odds, axis=1) != 0).all()
    interaction = log_odds[1, 1] - log_odds[1, 0] - log_odds[0, 1] + log_odds[0, 0]
    assert abs(interaction) > 0.5


def test_predictability_goes_from_independence_to_the_user_kind() -> None:
    free = World("prospecting", Dials(predictability=0.0))
    assert (free.intent == free.intent[0]).all()
    assert np.allclose(free.partner_means, free.partner_means[:, :1])
    bound = World("prospecting", Dials(predictability=1.0))
    assert np.isin(bound.intent, (0.0, 1.0)).all()
    gaps = []
    for predictability in (0.0, 0.5, 1.0):
        world = World("prospecting", Dials(predictability=predictability))
        rows = draw(world, 0, 20_000)
        given_x1 = entropy(world.best_given_observed(rows.observed)).mean()
        gaps.append(given_x1 - world.best_cross_entropy())
    assert gaps[0] > gaps[1] > gaps[2] > 0


def test_label_noise_replaces_labels_by_their_opposite() -> None:
    noisy = World("prospecting", Dials(label_noise=0.2))
    rows = draw(TARGET, 0, 1_000)
    for with_noise, without in (
        (noisy.best_given_all, TARGET.best_given_all),
        (
            lambda x1, x2: noisy.best_given_observed(x1),
            lambda x1, x2: TARGET.best_given_observed(x1),
        ),
    ):
        clean = without(rows.observed, rows.missing)
        expected = 0.8 * clean + 0.2 * (1 - clean)
        np.testing.assert_allclose(with_noise(rows.observed, rows.missing), expected)


def test_rows_do_not_depend_on_chunks_or_on_how_many_follow() -> None:
    whole = draw(TARGET, 0, 1_000, seed=5)
    for chunk in (1_000, 333, 64):
        parts = list(stream(TARGET, 1_000, seed=5, chunk=chunk))
        assert (np.concatenate([p.inputs for p in parts]) == whole.inputs).all()
        assert (np.concatenate([p.labels for p in parts]) == whole.labels).all()
    assert (
        simulate(Scenario(rows=50, seed=5)).pair.target_train[:, :17] == whole.observed[:50]
    ).all()


def test_seeds_parts_and_domains_differ() -> None:
    first = draw(TARGET, 0, 200).inputs
    assert not (first == draw(TARGET, 0, 200, seed=1).inputs).all()
    assert not (first == draw(TARGET, 0, 200, part="test").inputs).all()
    unshifted = [World(domain, Dials(activity_shift=0.0)) for domain in DOMAINS]
    assert not (draw(unshifted[0], 0, 200).inputs == draw(unshifted[1], 0, 200).inputs).all()


def test_regret_is_zero_at_the_best_and_the_gap_of_a_constant() -> None:
    truth = simulate(Scenario(rows=10, test_rows=4_000)).truth
    best = truth.best_given_observed.open("test")
    assert truth.regret(best) == pytest.approx(0.0, abs=1e-12)
    assert truth.regret(np.column_stack([1 - best, best])) == pytest.approx(0.0, abs=1e-12)
    rate = best.mean()
    gap = entropy(np.array([rate]))[0] - entropy(best).mean()
    assert truth.regret(np.full(4_000, rate)) == pytest.approx(gap)
    assert "0." not in repr(truth)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full(9, 0.5), r"shape \(9,\) do not fit the 10 rows"),
        (np.full(10, 1.5), "Prediction 0 is 1.5, which is not a probability"),
        (np.full(10, np.nan), "Prediction 0 is nan"),
    ],
)
def test_regret_refuses_what_is_no_prediction(given: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(Scenario(rows=10, test_rows=10)).truth.regret(given)


def test_a_learner_nears_the_best_but_does_not_beat_it() -> None:
    """Trees that see the target's own labels come close to p(y|x1): it is reachable."""
    simulation = simulate(Scenario(rows=30_000, test_rows=20_000, seed=2))
    pair = simulation.pair
    model = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.06, random_state=0)
    model.fit(pair.target_train[:, :17], pair.target_train_labels.open("ceiling"))
    probability = model.predict_proba(pair.target_test[:, :17])
    assert 0 < simulation.truth.regret(probability) < 0.01
    labels = pair.target_test_labels.open("evaluation")
    best = simulation.truth.best_given_observed.open("evaluation")
    loss = -np.log(np.where(labels == 1, best, 1 - best))
    learned = -np.log(probability[np.arange(len(labels)), labels])
    assert learned.mean() > loss.mean() - 3 * (learned - loss).std() / np.sqrt(len(labels))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows=0: Input should be greater than or equal to 1"),
        ({"test_rows": 2.5}, "test_rows=2.5: Input should be a valid integer"),
        ({"seed": -1}, "seed=-1: Input should be greater than or equal to 0"),
        ({"predictability": 1.5}, "predictability=1.5: Input should be less than or equal to 1"),
        ({"label_noise": float("nan")}, "label_noise=nan: Input should be"),
        ({"noise": 0.1}, "The simulator has no option 'noise'; it has activity_shift"),
        ({"activity_shift": "much"}, "activity_shift='much': Input should be a valid number"),
    ],
)
def test_bad_options_get_a_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_pair(None, **options)


def test_prospecting_cannot_be_a_source() -> None:
    with pytest.raises(OptionError, match="a source needs the user-partner counts"):
        load_pair(None, "prospecting", "retargeting")
