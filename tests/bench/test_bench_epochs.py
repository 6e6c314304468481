from dataclasses import replace

import numpy as np
import pytest
from small_pair import small_pair

from halfseen import InputError
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options
from halfseen.presets import preset
from halfseen.selection import SCORES
from halfseen_bench.data import Sealed
from halfseen_bench.metrics import measured
from halfseen_bench.models import EPOCH_SCORES, chosen_epochs, evidence_of, fit_and_measure

IMPUTATION = variant_named("Adaptation-Imputation")
OPTIONS = make_options(
    {"training.warmup_epochs": 1, "training.joint_epochs": 4, "refinement.epochs": 2},
    preset("default", inputs="table"),
)


def run(pair, method=IMPUTATION, options=OPTIONS):
    return fit_and_measure(pair, method, options, seed=0, scores=EPOCH_SCORES, score_rows=50)


def test_label_free_choices_do_not_see_target_labels():
    pair = small_pair()
    truth = pair.target_test_labels.open("test")
    turned = replace(pair, target_test_labels=Sealed(1 - truth), target_train_labels=None)
    records, history = run(pair)
    others, other_history = run(turned)
    assert [h.get("scores") for h in history] == [h.get("scores") for h in other_history]
    for one, other in zip(records, others, strict=True):
        assert one["epoch_choice"] == other["epoch_choice"]
        assert one["accuracy"] == pytest.approx(1 - other["accuracy"]) or (
            one["epoch_choice"] == "oracle"
        )
        if one["epoch_choice"] != "oracle":
            assert one["epoch"] == other["epoch"]


def test_records_state_every_choice_and_agree_with_the_history():
    records, history = run(small_pair())
    for refined, phase, epochs in ((False, "joint", 4), (True, "refine", 2)):
        found = {r["epoch_choice"]: r for r in records if r["refined"] == refined}
        assert set(found) == {"last", "oracle", *EPOCH_SCORES}
        measured_epochs = [h for h in history if h["phase"] == phase]
        assert found["last"]["epoch"] == epochs == len(measured_epochs)
        accuracies = [h["target_test"]["accuracy"] for h in measured_epochs]
        assert found["oracle"]["accuracy"] == max(accuracies)
        for name in EPOCH_SCORES:
            best = SCORES[name].best([h["scores"][name] for h in measured_epochs])
            assert found[name]["epoch"] == best + 1
            assert found[name]["cross_entropy"] == pytest.approx(
                measured_epochs[best]["target_test"]["cross_entropy"]
            )


def test_looking_changes_nothing():
    """Measuring with and without label-free scores ends with the same model."""
    pair = small_pair()
    plain, _ = fit_and_measure(pair, IMPUTATION, OPTIONS, seed=0)
    scored, _ = run(pair)
    last = [r for r in scored if r["epoch_choice"] == "last"]
    assert [r["cross_entropy"] for r in plain if r["epoch_choice"] == "last"] == [
        r["cross_entropy"] for r in last
    ]


@pytest.mark.parametrize("method", VARIANTS, ids=lambda m: m.name)
def test_every_model_has_its_evidence(method):
    pair = small_pair(count=40)
    evidence = evidence_of(pair, method, 30, seed=0)
    parts = (evidence.held_out, evidence.target, evidence.training)
    assert [len(part) for part in parts] == [30, 30, 30]
    known = np.isfinite(evidence.target).all() and evidence.target[:, -1].any()
    assert bool(known) == method.needs_complete_target


def test_the_oracle_follows_its_metric():
    epochs = [
        {"target_test": {"accuracy": a, "cross_entropy": c}, "scores": {}}
        for a, c in ((0.5, 0.4), (0.9, 0.9), (0.6, 0.3))
    ]
    assert chosen_epochs(epochs, (), "accuracy") == {"last": 2, "oracle": 1}
    assert chosen_epochs(epochs, (), "cross_entropy") == {"last": 2, "oracle": 2}
    assert chosen_epochs([], (), "accuracy") == {}


def test_full_models_need_a_complete_target():
    pair = replace(small_pair(), complete_target=None)
    with pytest.raises(InputError, match="nobody measured those of here->there"):
        run(pair, variant_named("Adaptation-Full"))


def test_cross_entropy_is_exact_and_binary_metrics_are_known():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 1001)
    p = random.uniform(0.05, 0.95, 1001)
    found = measured(np.stack([1 - p, p], axis=1), y)
    by_hand = -np.mean(np.where(y == 1, np.log(p), np.log(1 - p)))
    assert found["cross_entropy"] == pytest.approx(by_hand, rel=1e-12)
    share = y.mean()
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert found["normalised_cross_entropy"] == pytest.approx(by_hand / entropy)
    pairs = p[y == 1][:, None] > p[y == 0]
    assert found["auc"] == pytest.approx(pairs.mean())
    assert measured(np.full((3, 3), 1 / 3), [0, 1, 2])["auc"] == 0.5
    assert measured(np.full((3, 3), 1 / 3), [0, 1, 1])["auc"] is None
