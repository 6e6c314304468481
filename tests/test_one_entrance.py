"""Every entrance gives the same model for the same domains and settings, defaults included."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

import halfseen
from halfseen import AdaptationImputationClassifier, HalfSeenClassifier, HalfSeenRegressor
from halfseen.cli.app import app
from halfseen.settings import FitSettings

ROWS = 150


def tables():
    random = np.random.default_rng(0)
    source = pd.DataFrame(random.normal(size=(ROWS, 4)), columns=list("abcd"))
    source["shop"] = random.choice(["x", "y", None], ROWS)
    target = source[:100].drop(columns="d").assign(a=lambda rows: rows["a"] + 0.4)
    source["y"] = np.where(source["a"] + source["d"] > 0, "yes", "no")
    return source, target


def command(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("amounts", [False, True])
def test_tables_from_files_frames_and_estimators_give_one_model(tmp_path, amounts):
    source, target = tables()
    if amounts:
        source["y"] = source["a"] + 2 * source["d"]
    source.to_csv(tmp_path / "source.csv", index=False)
    target.to_csv(tmp_path / "target.csv", index=False)
    files = tmp_path / "source.csv", tmp_path / "target.csv"
    command("fit", *files, "--label", "y", "-o", tmp_path / "model")
    estimator = HalfSeenRegressor if amounts else HalfSeenClassifier
    models = {
        "command": halfseen.load(tmp_path / "model"),
        "files": halfseen.fit(*files, "y"),
        "frames": halfseen.fit(source, target, "y"),
        "estimator": estimator(random_state=0)
        .fit(source.drop(columns="y"), source["y"], X_target=target)
        .model_,
    }
    answers = {name: model.predictions(target) for name, model in models.items()}
    expected = answers.pop("command")
    assert [name for name, answer in answers.items() if (answer != expected).any()] == []
    kinds = {name: [m.kind for m in model.members] for name, model in models.items()}
    assert set(map(tuple, kinds.values())) == {("boosted_trees", "forest", "regression")}


def test_folders_of_images_and_arrays_give_one_model(tmp_path):
    random = np.random.default_rng(0)
    labels = np.arange(48) % 2
    source = random.integers(0, 256, (48, 1, 16, 16), dtype=np.uint8)
    source[labels == 1, :, :8] //= 3
    target = source[::-1][:24] // 2
    for number, (image, label) in enumerate(zip(source, labels, strict=True)):
        place = tmp_path / "source" / str(label)
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0]).save(place / f"{number:03d}.png")
    (tmp_path / "target").mkdir()
    for number, image in enumerate(target):
        Image.fromarray(image[0]).save(tmp_path / "target" / f"{number:03d}.png")
    few = {"training.joint_steps": 6, "training.warmup_epochs": 1, "images.channels": (4, 8)}
    options = [f"--set={name}={list(v) if isinstance(v, tuple) else v}" for name, v in few.items()]
    folders = tmp_path / "source", tmp_path / "target"
    command("fit-images", *folders, "--missing", "bottom:0.5", "-o", tmp_path / "model", *options)
    files = halfseen.load(tmp_path / "model")
    order = np.argsort(labels, kind="stable")  # as folders list them
    estimator = HalfSeenClassifier(missing=files.blocks, options=few, random_state=0)
    estimator.fit(source[order], labels[order].astype(str), X_target=target)
    model = estimator.model_
    assert files.title == model.title == "Adaptation-Imputation and Adaptation-IgnoreComponent"
    assert (files.predict_proba(target) == model.predict_proba(target)).all()


def test_the_papers_method_always_trains_its_networks():
    source, target = tables()
    model = AdaptationImputationClassifier(options={"training.joint_epochs": 1}, random_state=0)
    model.fit(source.drop(columns="y"), source["y"], X_target=target)
    assert [member.kind for member in model.model_.members] == ["networks"]
    assert model.transform(target).shape == (100, model.networks_.latent_size)
    assert model.history_[-1]["phase"] == "joint"
    with pytest.raises(halfseen.OptionError, match="use HalfSeenClassifier"):
        model.set_params(members=["forest"]).fit(source, source["y"], X_target=target)


def test_settings_are_declared_once():
    fields = FitSettings.model_fields
    for estimator in (HalfSeenClassifier, HalfSeenRegressor, AdaptationImputationClassifier):
        defaults = inspect.signature(estimator).parameters
        shared = [
            name for name in defaults if name in fields and defaults[name].default is not None
        ]
        assert "effort" in shared
        named = {"members"} if estimator is AdaptationImputationClassifier else set()
        different = {n for n in shared if defaults[n].default != fields[n].default}
        assert different == named
        assert all(f"{name} : default" in estimator.__doc__ for name in defaults)
    assert all(field.description for field in fields.values())


def test_a_former_name_works_and_says_so():
    source, target = tables()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = halfseen.AdaptationImputationRegressor(effort="quick", random_state=0)
        model.fit(source[list("abcd")], source["a"], X_target=target[list("abc")])
    assert any(isinstance(each.message, FutureWarning) for each in told)
