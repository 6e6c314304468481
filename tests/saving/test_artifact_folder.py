"""Model folders: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import nn

import halfseen
from halfseen import AdaptationImputationClassifier, DomainAdaptationClassifier, InputError
from halfseen.saving.folder import FORMAT

SMALL = {
    "tables.widths": (8,),
    "tables.latent_size": 4,
    "generator.widths": (8,),
    "networks.classifier_widths": (8,),
    "networks.critic_widths": (8,),
    "training.warmup_epochs": 1,
}


def domains(rows: int = 60) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    random = np.random.default_rng(0)
    source = pd.DataFrame(random.normal(size=(rows, 4)), columns=list("abcd"))
    target = pd.DataFrame(random.normal(size=(rows, 3)) + 0.5, columns=list("abc"))
    return source, np.where(source["a"] + source["d"] > 0, "yes", "no"), target


def fitted(make=AdaptationImputationClassifier, **given):
    source, label, target = domains()
    model = make(joint_epochs=1, options=SMALL, random_state=0, **given)
    return model.fit(source, label, X_target=target)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fitted().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "model",
    [
        AdaptationImputationClassifier(),
        AdaptationImputationClassifier(divergence="transport"),
        DomainAdaptationClassifier(view="zero"),
        DomainAdaptationClassifier(view="ignore", adapt=False),
    ],
)
def test_a_loaded_estimator_predicts_bit_for_bit(model, tmp_path):
    source, label, target = domains()
    model.set_params(joint_epochs=1, options=SMALL, random_state=0)
    model.fit(source, label, X_target=target)
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(target), model.predict_proba(target))
    np.testing.assert_array_equal(loaded.transform(target), model.transform(target))
    assert loaded.predict(target).dtype == model.predict(target).dtype
    assert loaded.history_ == model.history_
    assert list(loaded.feature_names_in_) == list("abcd")


def test_a_stochastic_generator_gives_the_same_noise(tmp_path):
    source, label, target = domains()
    options = SMALL | {"generator.noise_size": 3, "generator.prediction_samples": 4}
    model = AdaptationImputationClassifier(joint_epochs=1, options=options, random_state=3)
    model.fit(source, label, X_target=target).save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(target), model.predict_proba(target))


def test_images_come_back_bit_for_bit(tmp_path):
    random = np.random.default_rng(0)
    images = random.normal(size=(40, 1, 32, 32)).astype(np.float32)
    model = AdaptationImputationClassifier(
        missing="bottom",
        joint_epochs=1,
        options={
            "images.channels": (4, 4, 8),
            "training.warmup_epochs": 0,
            "networks.critic_widths": (8,),
        },
        random_state=0,
    ).fit(images, np.arange(40) % 2, X_target=images + 0.1)
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))


def test_labels_keep_their_type(tmp_path):
    source, _, target = domains()
    for name, label in {"int": np.arange(60) % 3, "bool": np.arange(60) % 2 == 0}.items():
        model = AdaptationImputationClassifier(joint_epochs=1, options=SMALL, random_state=0)
        model.fit(source, label, X_target=target).save(tmp_path / name)
        assert halfseen.load(tmp_path / name).predict(target).dtype == label.dtype


def test_a_loaded_estimator_can_be_fitted_again(folder):
    source, label, target = domains()
    loaded = halfseen.load(folder)
    before = loaded.predict_proba(target)
    np.testing.assert_array_equal(loaded.fit(source, label, target).predict_proba(target), before)


def test_an_encoder_of_ones_own_is_asked_for(tmp_path):
    def encoder(shape: tuple[int, ...]) -> nn.Module:
        return nn.Sequential(nn.Linear(shape[0], 5), nn.Tanh())

    model = fitted(encoder=encoder)
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="encoder of your own"):
        halfseen.load(tmp_path / "model")
    target = domains()[2]
    loaded = halfseen.load(tmp_path / "model", encoder=encoder)
    np.testing.assert_array_equal(loaded.predict_proba(target), model.predict_proba(target))
    with pytest.raises(InputError, match=r"tensor|shape"):
        halfseen.load(tmp_path / "model", encoder=lambda shape: nn.Linear(shape[0], 7))


def test_saving_replaces_a_model_but_nothing_else(folder, tmp_path):
    before = (folder / "model.json").read_bytes()
    fitted(divergence="transport").save(folder)
    assert (folder / "model.json").read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (folder / "thesis.doc").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.doc"):
        fitted().save(folder)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        fitted().save(tmp_path / "file")


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    model = fitted()

    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(halfseen.HalfseenError, match="No space left"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def edit(folder: Path, **changes: object) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("position", [0, 8, 100, -1])
def test_a_flipped_byte_is_noticed(folder, position):
    flip(folder / "model.safetensors", position)
    with pytest.raises(InputError, match="SHA-256"):
        halfseen.load(folder)


@pytest.mark.parametrize("length", [0, 7, 200])
def test_a_truncated_file_is_noticed(folder, length):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="SHA-256"):
        halfseen.load(folder)
    import hashlib

    edit(folder, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(InputError, match="safetensors"):
        halfseen.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": FORMAT + 1}, "update halfseen"),
        ({"format": 0}, "does not exist"),
        ({"format": "1"}, "does not exist"),
        ({"format": True}, "does not exist"),
        ({"kind": "sorcerer"}, "sorcerer"),
        ({"method": "Magic"}, "Magic"),
        ({"surprise": 1}, "surprise"),
        ({"classes": ["one"]}, "classes"),
        ({"options": {"no_such": 1}}, "no_such"),
        ({"options": {"tables.widths": [10**12]}}, "tensor|shape|understood"),
        ({"blocks": {"shape": [4]}}, "understood"),
        ({"blocks": {"shape": [9], "missing": [1], "names": None, "fill": 0}}, "shape"),
        ({"details": {}}, "details"),
        ({"seed": "x"}, "seed"),
        ({"sha256": ""}, "SHA-256"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises(InputError, match=message):
        halfseen.load(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"a"', "{}", "\0", "[" * 100_000])
def test_what_is_not_the_json_is_refused(folder, text):
    (folder / "model.json").write_text(text)
    with pytest.raises(InputError, match="not the description"):
        halfseen.load(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_link_out_of_the_folder_is_refused(folder, tmp_path, name):
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(InputError, match="link out of"):
        halfseen.load(folder)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_an_absent_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        halfseen.load(folder)


def test_an_absent_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="There is no model folder"):
        halfseen.load(tmp_path / "nowhere")


def test_a_folder_of_the_first_format_is_read_and_predicts_as_it_did(tmp_path):
    """The promise of the format: this folder was written once and must load for ever."""
    kept = Path(__file__).parent / "format-1"
    for name in ("model.json", "model.safetensors"):
        (tmp_path / name).write_bytes((kept / name).read_bytes())
    expected = json.loads((kept / "expected.json").read_text())
    loaded = halfseen.load(tmp_path)
    found = loaded.predict_proba(pd.DataFrame(expected["rows"]))
    np.testing.assert_allclose(found, expected["probabilities"], atol=1e-5)
