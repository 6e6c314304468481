from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier
from small_pair import small_pair

from halfseen import InputError
from halfseen.options import make_options
from halfseen.presets import preset
from halfseen_bench import baselines
from halfseen_bench.baselines import BASELINES
from halfseen_bench.data import Labelled
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.metrics import measured
from halfseen_bench.suites import TREES_COLOURS, TREES_IGNORE
from table_models import LEARNS_FAST

PAIR = small_pair(count=80)
TRUTH = PAIR.target_test_labels.open("test")
SHORT = make_options(
    LEARNS_FAST
    | {"training.warmup_epochs": 2, "training.joint_epochs": 5, "training.learning_rate": 0.01},
    preset("default", inputs="table", imputes=False),
)


@pytest.fixture(autouse=True)
def small_forests_and_searches(monkeypatch):
    """Grow a tenth of the trees, and choose among fewer strengths: it is done in many baselines."""
    monkeypatch.setattr(baselines, "STRENGTHS", baselines.STRENGTHS[::3])
    monkeypatch.setattr(
        baselines, "RandomForestClassifier", lambda size, **s: RandomForestClassifier(30, **s)
    )


IMAGE_ONLY = ("Source-only network on x1, augmented",)


def test_every_baseline_gives_probabilities_and_learns():
    for baseline in BASELINES.values():
        if baseline.name in IMAGE_ONLY or (baseline.needs and not find_spec(baseline.needs)):
            continue
        found = baseline.predict(PAIR, 0, SHORT)
        assert found.shape == (len(TRUTH), 2), baseline.name
        assert np.allclose(found.sum(axis=1), 1.0, atol=1e-5), baseline.name
        if baseline.name.startswith("Constant"):
            assert len(np.unique(found, axis=0)) == 1
        else:
            assert measured(found, TRUTH)["auc"] > 0.75, baseline.name


def test_constants_are_the_priors():
    source = BASELINES["Constant: source prior"].predict(PAIR, 0)
    target = BASELINES["Constant: target prior"].predict(PAIR, 0)
    assert source[0, 1] == pytest.approx(PAIR.source_train.labels.mean())
    assert target[0, 1] == pytest.approx(TRUTH.mean())
    assert measured(target, TRUTH)["normalised_cross_entropy"] == pytest.approx(1.0)


def test_only_yardsticks_may_open_target_labels():
    """Whatever the target's labels are, an honest baseline predicts the same."""

    class Locked:
        def open(self, purpose):
            raise AssertionError(f"opened for {purpose}")

    locked = replace(PAIR, target_test_labels=Locked(), target_train_labels=Locked())
    for name in ("Logistic regression, weighted", "Random forest, ridge", "Distillation, network"):
        BASELINES[name].predict(locked, 0, SHORT)
    yardsticks = {o.name for o in BASELINES.values() if o.uses_target_labels}
    assert yardsticks == {
        "Constant: target prior",
        "Ceiling: logistic regression",
        "Ceiling: random forest",
        "Ceiling: network",
    }
    for name in yardsticks:
        with pytest.raises(AssertionError, match="opened for"):
            BASELINES[name].predict(locked, 0, SHORT)


def test_a_class_with_one_row_does_not_end_a_baseline():
    labels = np.zeros(20, dtype=np.int64)
    labels[3] = 1
    few = replace(PAIR, source_train=Labelled(PAIR.source_train.inputs[:20], labels))
    for name in ("Logistic regression, ignore", "Distillation, logistic regression"):
        assert BASELINES[name].predict(few, 0).shape == (len(TRUTH), 2)


def test_transductive_ceilings_are_cross_validated():
    """A forest that had seen the labels it predicts would be all but perfect."""
    random = np.random.default_rng(0)
    noise = random.integers(0, 2, len(PAIR.target_test))
    same = replace(
        PAIR,
        target_train=PAIR.target_test,
        target_train_labels=type(PAIR.target_test_labels)(noise),
    )
    found = BASELINES["Ceiling: random forest"].predict(same, 0)
    assert measured(found, noise)["accuracy"] < 0.7
    with pytest.raises(InputError, match="no labelled target rows beside"):
        BASELINES["Ceiling: network"].predict(same, 0, SHORT)


def test_image_baselines_take_images():
    pair = demo_pair(0)
    few = replace(
        pair,
        source_train=Labelled(pair.source_train.inputs[:64], pair.source_train.labels[:64]),
        target_train=pair.target_train[:64],
        target_test=pair.target_test[:20],
    )
    options = make_options(
        {
            "images.channels": (8, 8),
            "images.kernel_size": 3,
            "images.padding": "same",
            "training.warmup_epochs": 1,
        }
        | {"training.joint_epochs": 1, "images.pools": 2},
        preset("default", imputes=False, adapts=False),
    )
    for name in ("Source-only network on x1, augmented", "Logistic regression, ignore"):
        assert BASELINES[name].predict(few, 0, options).shape == (20, 10)
    turned = replace(few, target_test=few.target_test[:, [1, 2, 0]])  # the same in grey
    for name, alike in ((TREES_IGNORE, True), (TREES_COLOURS, False)):
        found = [BASELINES[name].predict(shown, 0) for shown in (few, turned)]
        assert np.allclose(*found) == alike, name
    with pytest.raises(InputError, match="for images"):
        BASELINES["Source-only network on x1, augmented"].predict(PAIR, 0, SHORT)


def test_skada_leaves_scikit_learn_as_it_was():
    if not find_spec("skada"):
        pytest.skip("skada, an extra, is not installed")
    BASELINES["DANN, zero"].predict(PAIR, 0, SHORT)
    assert not sklearn.get_config()["enable_metadata_routing"]


def test_baselines_do_not_mind_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        found = BASELINES["Logistic regression, weighted"].predict(PAIR, 0)
    assert measured(found, TRUTH)["auc"] > 0.75
