from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_selection_models import learner

from halfseen import HalfSeenClassifier, InputError, OptionError
from halfseen.selection import SCORES, Evidence, evaluate, make_scorer


def stacked(rows: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    X = random.normal(size=(2 * rows, 4))
    y = (X[:, 0] + X[:, 3] > 0).astype(int)
    domain = np.repeat([1, -1], rows)
    X[domain < 0] += 0.3
    X[domain < 0, 3] = np.nan
    y[domain < 0] = -1
    order = random.permutation(2 * rows)
    return X[order], y[order], domain[order]


def score_model(estimator, X, y, X_target, *, score):
    """Return a score by its definition, without a scorer."""
    model = estimator.model_
    evidence = Evidence.prepared(model.prepare, model.target_type, X, y, X_target)
    return evaluate(model, evidence, (score,))[score]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def requesting(**settings) -> HalfSeenClassifier:
    return learner(**settings).set_fit_request(sample_domain=True)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("score", ["dev", "mutual_information"])
def test_grid_search_on_stacked_domains(score):
    X, y, domain = stacked(200)
    search = GridSearchCV(
        requesting(options={"training.joint_epochs": 6}),
        {"training__learning_rate": [1e-9, 1e-2]},
        scoring=make_scorer(score),
        cv=StratifiedKFold(2),
    )
    search.fit(X, y, sample_domain=domain)
    assert search.best_params_ == {"training__learning_rate": 1e-2}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.usefixtures("routing")
def test_the_scorer_gives_the_score_with_greater_better_and_reads_no_target_label():
    X, y, domain = stacked()
    model = requesting().fit(X, y, sample_domain=domain)
    source, target = X[domain > 0], X[domain < 0]
    for name in SCORES:
        value = score_model(model, source, y[domain > 0], target, score=name)
        sign = 1 if SCORES[name].better == "higher" else -1
        assert make_scorer(name)(model, X, y, sample_domain=domain) == sign * value
        wrong = np.where(domain < 0, np.arange(len(y)), y)
        assert make_scorer(name)(model, X, wrong, sample_domain=domain) == sign * value


def test_a_pipeline_is_scored_on_what_its_last_step_sees():
    X, y, domain = stacked()
    pipeline = make_pipeline(StandardScaler(), learner())
    pipeline.fit(X, y, adaptationimputationclassifier__sample_domain=domain)
    source, target = X[domain > 0], X[domain < 0]
    given = make_scorer("dev", X_target=target)(pipeline, source, y[domain > 0])
    scale = pipeline[0].transform
    expected = score_model(pipeline[1], scale(source), y[domain > 0], scale(target), score="dev")
    assert given == -expected


@pytest.mark.usefixtures("routing")
def test_skada_splits_the_domains():
    splitting = pytest.importorskip("skada.model_selection")
    X, y, domain = stacked()
    model = requesting(missing=[3])
    found = cross_validate(
        model,
        np.nan_to_num(X),  # skada refuses NaN
        y,
        params={"sample_domain": domain},
        cv=splitting.StratifiedDomainShuffleSplit(n_splits=2, test_size=0.4, random_state=0),
        scoring=make_scorer("importance_weighted"),
        error_score="raise",
    )
    assert found["test_score"].shape == (2,)
    assert (found["test_score"] < 0).all(), "a risk is positive, and its sign is flipped"


def test_what_a_scorer_cannot_do_is_said():
    X, y, domain = stacked()
    model = learner().fit(X, y, sample_domain=domain)
    with pytest.raises(InputError, match="route sample_domain"):
        make_scorer("dev")(model, X, y)
    with pytest.raises(OptionError, match="'agreement' is unknown"):
        make_scorer("agreement")
    with pytest.raises(OptionError, match="'accuracy' is unknown"):
        make_scorer("accuracy")


def test_a_model_without_networks_is_scored_by_its_observed_columns():
    X, y, domain = stacked()
    model = HalfSeenClassifier(members=["regression"], random_state=0)
    model.fit(X, y, sample_domain=domain)
    source, target = X[domain > 0], X[domain < 0]
    score = make_scorer("dev", X_target=target)(model, source, y[domain > 0])
    assert -1.0 < score < 0.0
