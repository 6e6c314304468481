import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from halfseen import (
    AdaptationImputationClassifier,
    Blocks,
    HalfSeenClassifier,
    InputError,
    OptionError,
)
from halfseen.data import frames as reading
from tiny import EPOCHS, TINY, classifier

COLUMNS = ["age", "chol", "rate", "thal"]

# What a check asks that this kind of model does not do, and why.
ANY_ORDER = {
    "check_dataframe_column_names_consistency": "columns are found by name, in any order",
    **dict.fromkeys(
        [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
        "batches are drawn at random, so that a weight is not a repeated row",
    ),
}
NARROW = {
    check: "rows without the missing block are what the model is for, so they are no error"
    for check in ("check_transformer_general", "check_transformer_general(readonly_memmap=True)")
}
BLIND = NARROW | {
    check: "one of the check's two features is hidden, and the other does not tell its blobs apart"
    for check in (
        "check_classifiers_train",
        "check_classifiers_train(readonly_memmap=True)",
        "check_classifiers_train(readonly_memmap=True,X_dtype=float32)",
    )
}


def estimators_to_check():
    options = TINY | {
        "tables.widths": (32,),
        "tables.latent_size": 16,
        "networks.classifier_widths": (32,),
        "training.learning_rate": 1e-2,
        "training.warmup_epochs": 10,
        "training.joint_epochs": 10,
    }
    return [
        classifier(missing=[-1], options=options),
        HalfSeenClassifier(missing=[-1], effort="quick", members=["regression"]),
    ]


@pytest.mark.filterwarnings("ignore:No target was given")
@parametrize_with_checks(
    estimators_to_check(),
    expected_failed_checks=lambda model: ANY_ORDER | ({} if model.missing is None else BLIND),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def domains(rows=80, seed=0):
    random = np.random.default_rng(seed)
    source = random.normal(size=(rows, 4))
    target = random.normal(size=(rows, 4)) + 0.3
    labels = (source[:, 0] + source[:, 3] > 0).astype(int)
    return source, labels, target


def frames(kind, source, target):
    make = {
        "pandas": lambda d: pd.DataFrame(d),
        "polars": lambda d: pl.DataFrame(d),
        "arrow": lambda d: pa.table(d),
    }[kind]
    full = {name: source[:, i] for i, name in enumerate(COLUMNS)}
    partial = {name: target[:, i] for i, name in enumerate(COLUMNS[:3])}
    return make(full), make(partial)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_two_tables_with_different_columns(kind):
    source, labels, target = domains()
    whole, partial = frames(kind, source, target)
    model = classifier().fit(whole, labels, X_target=partial)
    assert model.feature_names_in_.tolist() == COLUMNS
    assert model.blocks_.names_of(model.blocks_.missing) == ["thal"]
    arrays = classifier(missing=[3]).fit(source, labels, X_target=target[:, :3])
    assert np.array_equal(model.predict_proba(partial), arrays.predict_proba(target[:, :3]))


def test_columns_of_new_rows_are_found_by_name():
    source, labels, target = domains()
    whole, partial = frames("pandas", source, target)
    model = classifier().fit(whole, labels, X_target=partial)
    expected = model.predict_proba(partial)
    assert np.array_equal(model.predict_proba(partial[COLUMNS[2::-1]]), expected)
    with_block = partial.assign(thal=np.nan)
    assert np.array_equal(model.predict_proba(with_block), expected)
    with pytest.warns(UserWarning, match=r"Columns \['extra'\] were not seen in fit"):
        assert np.array_equal(model.predict_proba(partial.assign(extra=1.0)), expected)


def test_all_three_ways_to_state_the_problem_agree():
    source, labels, target = domains()
    empty = target.copy()
    empty[:, 3] = np.nan
    by_index = classifier(missing=[3]).fit(source, labels, target)
    by_emptiness = classifier().fit(source, labels, X_target=empty)
    stacked = classifier().fit(
        np.vstack([source, empty]),
        np.concatenate([labels, np.full(len(target), -1)]),
        sample_domain=np.concatenate([np.ones(len(source)), -np.ones(len(target))]),
    )
    expected = by_index.predict_proba(target)
    assert np.array_equal(by_emptiness.predict_proba(empty), expected)
    assert np.array_equal(stacked.predict_proba(empty), expected)


def test_labels_of_target_rows_are_never_read():
    source, labels, target = domains()
    target[:, 3] = np.nan
    X = np.vstack([source, target])
    domain = np.concatenate([np.ones(80), -np.ones(80)])
    results = []
    for hint in (np.full(80, -1), np.arange(80) % 2, np.full(80, 7)):
        model = classifier(model="Adaptation-IgnoreComponent", refine=True)
        model.fit(X, np.concatenate([labels, hint]), sample_domain=domain)
        results.append(model.predict_proba(target))
        assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize(
    "names", [["no", "yes"], [3, 8], [False, True], ["a", "b", "c"], [1.0, 2.0]]
)
def test_labels_of_any_kind(names):
    source, _, target = domains()
    labels = np.array(names)[np.arange(80) % len(names)]
    model = classifier(missing=[3]).fit(source, labels, target)
    assert model.classes_.tolist() == sorted(names)
    assert set(model.predict(target)) <= set(names)
    probability = model.predict_proba(target)
    assert probability.shape == (80, len(names))
    assert np.allclose(probability.sum(1), 1)
    assert 0 <= model.score(target, labels) <= 1


def test_small_images_have_an_encoder_that_fits_them():
    images = np.random.default_rng(0).normal(size=(40, 1, 16, 16)).astype(np.float32)
    model = AdaptationImputationClassifier(
        missing="bottom", options={"training.joint_epochs": 1}, random_state=0
    )
    model.fit(images, np.arange(40) % 2, X_target=images)
    assert model.options_.images.padding == "same"
    assert model.predict_proba(images).shape == (40, 2)


def test_images_with_a_missing_half_and_an_encoder_of_ones_own():
    random = np.random.default_rng(0)
    images = random.normal(size=(40, 1, 12, 12)).astype(np.float32)
    labels = np.arange(40) % 2
    images[labels == 1, :, :6] += 1.0
    own = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    own(torch.zeros(1, 1, 12, 12))
    model = classifier(image=True, missing="bottom", encoder=own)
    model.fit(images, labels, X_target=images[:30])
    assert model.blocks_ == Blocks.rows((1, 12, 12), side="bottom")
    assert model.transform(images[:3]).shape == (3, 10)
    hidden = images.copy()
    hidden[:, :, 6:] = np.nan
    assert np.array_equal(model.predict_proba(hidden), model.predict_proba(images))
    found = classifier(image=True, encoder=own).fit(images[:, 0], labels, hidden)
    assert found.blocks_.missing == tuple(range(6, 12))
    factory = classifier(
        image=True,
        model="Adaptation-IgnoreComponent",
        missing="top",
        encoder=lambda shape: nn.Sequential(nn.Flatten(), nn.LazyLinear(4)),
    )
    assert factory.fit(images, labels, images).transform(images).shape == (40, 4)


def test_images_of_bytes_are_scaled_at_fit_and_predict_alike():
    bytes_ = np.random.default_rng(0).integers(0, 256, (40, 1, 12, 12), dtype=np.uint8)
    scaled = bytes_.astype(np.float32) * np.float32(2 / 255) - 1
    labels = np.arange(40) % 2

    def fitted(source, target):
        return classifier(image=True, missing="bottom").fit(source, labels, X_target=target)

    model, same = fitted(bytes_, bytes_), fitted(scaled, scaled)
    answers = model.predict_proba(bytes_)
    assert np.array_equal(answers, same.predict_proba(scaled))
    assert np.array_equal(answers, model.predict_proba(scaled))
    far = bytes_.astype(float)
    for estimator in (model, same):
        with pytest.raises(InputError, match=r"and the model was fitted on numbers from -1 to 1"):
            estimator.predict_proba(far)
    with pytest.raises(InputError, match="and the model was fitted on numbers from -1 to 1"):
        fitted(bytes_, far)
    with pytest.raises(InputError, match="X holds bytes, and the model was fitted on numbers"):
        same.predict_proba(bytes_)
    own = fitted(far, far)
    assert own.predict_proba(far).shape == (40, 2)
    with pytest.raises(InputError, match="X holds bytes, and the model was fitted on numbers"):
        own.predict_proba(bytes_)


def test_no_model_sees_the_targets_missing_block():
    source, labels, target = domains()
    changed = target.copy()
    changed[:, 3] += 5
    with pytest.raises(OptionError, match="Full models are for benchmarks"):
        classifier(model="Adaptation-Full").fit(source, labels, X_target=target)
    for view in ("ZeroImputation", "IgnoreComponent"):
        model = classifier(model=f"Adaptation-{view}", missing=[3])
        model.fit(source, labels, X_target=target)
        assert np.array_equal(model.predict_proba(target), model.predict_proba(changed))


def test_clone_pipeline_and_grid_search():
    source, labels, target = domains()
    target[:, 3] = np.nan
    X = np.vstack([source, target])
    y = np.concatenate([labels, np.full(80, -1)])
    domain = np.concatenate([np.ones(80), -np.ones(80)])
    model = clone(classifier(missing=[3]))
    pipeline = make_pipeline(StandardScaler(), model)
    pipeline.fit(X, y, adaptationimputationclassifier__sample_domain=domain)
    assert pipeline.predict(target).shape == (80,)
    grid = {"training__learning_rate": [1e-3, 1e-2], "refine": [True]}
    search = GridSearchCV(model, grid, cv=2).fit(source, labels, X_target=target[:50])
    assert search.best_params_["training__learning_rate"] in (1e-3, 1e-2)
    assert search.best_estimator_.history_[-1]["phase"] == "refine"


def test_fitting_leaves_global_state_alone():
    source, labels, target = domains()
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    for random_state in (None, 0, np.random.RandomState(1)):
        classifier(random_state=random_state, missing=[3]).fit(source, labels, target)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_a_fit_interrupted_and_started_again_gives_the_same_model(tmp_path):
    source, labels, target = domains()
    settings = {"missing": [3]}

    def interrupt(objective, record):
        if record["phase"] == "joint":
            raise KeyboardInterrupt

    path = tmp_path / "unfinished"
    with pytest.raises(KeyboardInterrupt):
        classifier(**settings, checkpoint=path, on_epoch=interrupt).fit(source, labels, target)
    resumed = classifier(**settings, checkpoint=path)
    resumed.fit(source, labels, target)
    whole = classifier(**settings).fit(source, labels, target)
    assert np.array_equal(resumed.predict_proba(target), whole.predict_proba(target))


def test_a_missing_target_is_said_aloud():
    source, labels, target = domains()
    with pytest.warns(UserWarning, match="No target was given"):
        classifier(missing=[3]).fit(source, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(missing=[3]).fit(source, labels, target)


def test_unfitted_models_say_so():
    with pytest.raises(NotFittedError):
        HalfSeenClassifier().predict(np.zeros((2, 4)))


@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
@pytest.mark.parametrize("divergence", ["adversarial", "transport"])
def test_every_preset_runs_on_tables(preset, divergence):
    source, labels, target = domains()
    sizes = {"training.batch_size": 16, "training.warmup_batch_size": 16}
    model = AdaptationImputationClassifier(
        preset=preset, divergence=divergence, missing=[3], refine=True, members=["networks"],
        device="cpu", random_state=0, options=EPOCHS | sizes,
    )  # fmt: skip
    model.fit(source, labels, target)
    assert {record["phase"] for record in model.history_} == {"warm-up", "joint", "refine"}
    assert np.isfinite(model.predict_proba(target)).all()


def test_progress_bar_names_phases_and_losses(capsys):
    source, labels, target = domains()
    classifier(missing=[3], verbose=1).fit(source, labels, target)
    shown = capsys.readouterr().err
    assert "Adaptation-Imp" in shown
    assert "imputation 1." in shown


def test_seeds_that_are_none_are_refused():
    source, labels, target = domains()
    for wrong, message in (
        ({"random_state": 10**30}, "The seed 1000.* must be a whole number from 0 to 4294967295"),
        ({"random_state": -1}, "The seed -1 must be"),
    ):
        with pytest.raises(OptionError, match=message):
            classifier(missing=[3], **wrong).fit(source, labels, target)


def mixed(rows=120, seed=0):
    """Return tables as people have them: texts, categories, booleans, gaps."""
    random = np.random.default_rng(seed)
    age, dose = random.normal(50, 10, rows), random.exponential(size=rows)
    frame = pd.DataFrame(
        {
            "age": np.where(random.random(rows) < 0.1, np.nan, age),
            "city": pd.Categorical(random.choice(["Oslo", "Rome"], rows)),
            "shop": random.choice(np.array(["a", "b", None], dtype=object), rows),
            "smoker": random.random(rows) < 0.5,
            "dose": dose,
        }
    )
    labels = np.where(age + 10 * dose + 3 * frame["smoker"] > 58, "sick", "well")
    return frame, labels, frame.drop(columns="dose").assign(age=frame["age"] + 3)


def test_texts_categories_booleans_and_gaps_are_taken():
    source, labels, target = mixed()
    model = classifier().fit(source, labels, X_target=target)
    assert model.model_.schema.inputs[:2] == ("age", "age is missing")
    assert model.predict_proba(target).shape == (120, 2)
    assert set(model.predict(target)) <= {"sick", "well"}
    unseen = target.assign(city="Bern", shop=None)
    assert np.isfinite(model.predict_proba(unseen)).all()


def test_options_of_groups_are_parameters():
    model = classifier().set_params(training__learning_rate=0.5, refine=True)
    assert model.get_params()["training__learning_rate"] == 0.5
    settings = model.settings_of_fit()
    assert settings.options_for(settings.variants("table")[0]).training.learning_rate == 0.5
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(OptionError, match=r"no option 'training\.speed'"):
        model.set_params(training__speed=1)
    with pytest.raises(OptionError, match=r"images\.channels.* does not apply to tables"):
        model.set_params(images__channels=(4,)).settings_of_fit().check()


def test_members_are_checked_and_weighed():
    source, labels, target = domains(120)
    model = HalfSeenClassifier(missing=[3], options=TINY, random_state=0)
    model.fit(source, labels, target)
    kinds = ["networks", "boosted_trees", "forest", "regression"]
    assert list(model.model_.metrics["weights"]) == kinds
    assert 0.0 < sum(model.model_.weights.members) <= 1.0 + 1e-9
    for members in ([], ["trees"], ["networks", "networks"]):
        with pytest.raises(OptionError, match="members="):
            classifier(missing=[3], members=members).fit(source, labels, target)


def test_sparse_rows_are_taken_where_their_zeros_fit(monkeypatch):
    random = np.random.default_rng(0)
    dense = random.normal(size=(60, 3)) * (random.random((60, 3)) < 0.5)
    y = np.arange(60) % 2
    model, same = classifier(missing=[2]), classifier(missing=[2])
    model.fit(csr_array(dense), y, X_target=csr_array(dense))
    same.fit(dense, y, X_target=dense)
    assert (model.predict_proba(csr_array(dense)) == same.predict_proba(dense)).all()
    monkeypatch.setattr(reading, "LARGEST_BATCH", 100)
    with pytest.raises(InputError, match=r"The source is sparse and takes 0 MiB .*TruncatedSVD"):
        model.fit(csr_array(dense), y, X_target=dense)


def test_latents_have_names_and_can_be_a_data_frame():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = classifier(missing=[2]).fit(rows, np.arange(60) % 2, X_target=rows)
    frame = model.set_output(transform="pandas").transform(rows)
    assert list(frame.columns) == list(model.get_feature_names_out())
    assert frame.columns[0] == "observed0"
    assert frame.columns[-1] == "imputed3"
