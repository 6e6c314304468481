"""Model folders: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import nn
from typer.testing import CliRunner

import halfseen
from halfseen import InputError
from halfseen.cli.app import app, main
from halfseen.saving import FORMAT, read_description, read_folder, write_folder
from tiny import classifier


def domains(rows: int = 60) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    random = np.random.default_rng(0)
    source = pd.DataFrame(random.normal(size=(rows, 4)), columns=list("abcd"))
    target = pd.DataFrame(random.normal(size=(rows, 3)) + 0.5, columns=list("abc"))
    return source, np.where(source["a"] + source["d"] > 0, "yes", "no"), target


def fitted(**given):
    source, label, target = domains()
    return classifier(**given).fit(source, label, X_target=target)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    fitted(members=["networks", "regression"]).save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """Return a model folder to be damaged: a copy of one that was fitted once."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"divergence": "transport"},
        {"model": "Adaptation-ZeroImputation"},
        {"model": "Source-IgnoreComponent"},
        {"members": ["networks", "regression"]},
        {"members": ["regression", "networks"], "refine": True},
        {"options": {"networks.normalization": "batch"}},
    ],
    ids=str,
)
def test_a_loaded_model_predicts_bit_for_bit(given, tmp_path):
    *_, target = domains()
    model = fitted(**given)
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(target), model.predict_proba(target))
    np.testing.assert_array_equal(loaded.transform(target), model.transform(target))
    assert loaded.predict(target).dtype == model.predict(target).dtype
    assert loaded.history == model.history_
    assert loaded.weights == model.model_.weights
    assert loaded.metrics == model.model_.metrics
    assert loaded.options == model.options_
    assert list(loaded.schema.order) == list("abcd")


def test_a_loaded_model_writes_the_same_folder_again(folder, tmp_path):
    halfseen.load(folder).save(tmp_path / "again")
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_images_come_back_bit_for_bit(tmp_path):
    random = np.random.default_rng(0)
    images = random.normal(size=(40, 1, 32, 32)).astype(np.float32)
    options = {"images.channels": (4, 4, 8), "networks.critic_widths": (8,)}
    model = classifier(image=True, missing="bottom", options=options)
    model.fit(images, np.arange(40) % 2, X_target=images + 0.1)
    model.save(tmp_path / "model")
    loaded = halfseen.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))


def test_labels_keep_their_type(tmp_path):
    source, _, target = domains()
    for name, label in {"int": np.arange(60) % 3, "bool": np.arange(60) % 2 == 0}.items():
        classifier().fit(source, label, X_target=target).save(tmp_path / name)
        assert halfseen.load(tmp_path / name).predict(target).dtype == label.dtype


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
    """Change the description by hand, which breaks its seal."""
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def forge(folder: Path, changes: Callable[[dict], object]) -> None:
    """Change the description as somebody would who knows how seals are made."""
    path = folder / "model.json"
    data = json.loads(path.read_text())
    changes(data)
    data["seal"] = ""
    rest = {name: value for name, value in data.items() if name != "seal"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    data["seal"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(data))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("position", [0, 8, 100, -1])
def test_a_flipped_byte_is_noticed(folder, position):
    flip(folder / "model.safetensors", position)
    with pytest.raises(InputError, match="SHA-256"):
        halfseen.load(folder)


def test_a_flipped_bit_of_the_description_is_noticed(folder):
    """Wherever it is: the file is no JSON any more, is sealed otherwise, or says the same."""
    path = folder / "model.json"
    content, described = path.read_bytes(), read_description(folder)
    sentences = []
    for position in np.random.default_rng(0).choice(len(content), 200, replace=False):
        flip(path, int(position))
        try:
            found = read_description(folder)
        except InputError as error:
            sentences.append(str(error))
        else:
            assert found == described
        path.write_bytes(content)
    assert len(sentences) > 80
    for sentence in sentences:
        assert re.search("its SHA-256|not its JSON|format", sentence)


def test_a_number_changed_by_hand_is_noticed(folder):
    edit(folder, seed=1)
    with pytest.raises(InputError, match=r"was changed after it was written: its SHA-256"):
        halfseen.load(folder)
    edit(folder, seal=None)
    with pytest.raises(InputError, match=r"was changed after it was written"):
        halfseen.load(folder)


@pytest.mark.parametrize("length", [0, 7, 200])
def test_a_truncated_file_is_noticed(folder, length):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match="SHA-256"):
        halfseen.load(folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    forge(folder, lambda data: data.update(sha256=digest))
    with pytest.raises(InputError, match="safetensors"):
        halfseen.load(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("member", [0, 1])
def test_a_tensor_that_is_no_number_is_refused(folder, value, member):
    described, tensors = read_folder(folder)
    name = next(name for name in tensors if name.startswith(f"{member}/"))
    tensors[name].reshape(-1)[-1] = value
    write_folder(folder, described, tensors)
    with pytest.raises(InputError, match=rf"Tensor '{name}' .* no finite number: .*Fit it again"):
        halfseen.load(folder)


def networks(data: dict) -> dict:
    return data["members"][0]


REFUSED: dict[str, tuple[Callable[[dict], object], str]] = {
    "a newer format": (lambda d: d.update(format=FORMAT + 1), "update halfseen"),
    "format 0": (lambda d: d.update(format=0), "has format 0, and this version"),
    "a format in words": (lambda d: d.update(format="1"), "has format '1', and this version"),
    "a true format": (lambda d: d.update(format=True), "has format True, and this version"),
    "another preprocessor": (lambda d: d["preprocessor"].update(kind="sorcerer"), "sorcerer"),
    "no preprocessor": (
        lambda d: d.update(preprocessor={}),
        "its preprocessor lacks or misstates 'kind'",
    ),
    "another member": (lambda d: networks(d).update(kind="trees"), "no member of kind 'trees'"),
    "no members": (lambda d: d.update(members=[]), "members"),
    "a member that is no mapping": (lambda d: d.update(members=[3, 4]), "members"),
    "another method": (lambda d: networks(d).update(method="Magic"), "Magic"),
    "a surprise": (lambda d: d.update(surprise=1), "surprise"),
    "one class": (lambda d: d["preprocessor"]["schema"].update(classes=["one"]), "classes"),
    "a class twice": (
        lambda d: d["preprocessor"]["schema"].update(classes=["a", "a"]),
        r"classes \['a', 'a'\] are not two or more different ones",
    ),
    "a third class": (
        lambda d: d["preprocessor"]["schema"].update(classes=["a", "b", "c"]),
        "tensor|shape",
    ),
    "an unknown option": (lambda d: networks(d)["options"].update(no_such=1), "no_such"),
    "networks beyond any memory": (
        lambda d: networks(d)["options"]["tables"].update(widths=[10**12]),
        "tensor|shape|understood",
    ),
    "no columns": (lambda d: d["preprocessor"]["schema"].update(columns=[]), "columns|understood"),
    "half a column": (
        lambda d: d["preprocessor"]["schema"]["columns"][0].pop("mean"),
        r"schema\.columns\.0.*mean",
    ),
    "a column less": (lambda d: d["preprocessor"]["schema"]["columns"].pop(0), "shape"),
    "images instead": (
        lambda d: d.update(
            preprocessor={"kind": "image", "blocks": {"shape": [1, 9, 9]}, "classes": ["a", "b"]}
        ),
        "understood",
    ),
    "images beyond any memory": (
        lambda d: d.update(
            preprocessor={
                "kind": "image",
                "blocks": {"shape": [1, 10**6, 10**6]},
                "classes": ["a", "b"],
            }
        ),
        "too large",
    ),
    "a seed in words": (lambda d: d.update(seed="x"), "seed"),
    "no hash": (lambda d: d.update(sha256=""), "SHA-256"),
    "too many weights": (
        lambda d: d["weights"].update(members=[1, 1, 1]),
        "it has 6 members and 3 weights",
    ),
    "no weights": (lambda d: d.update(weights={}), "'members'"),
    "a weight that is no number": (
        lambda d: d["weights"].update(members=[1.0, float("nan")]),
        "weights",
    ),
    "shares beyond the whole": (
        lambda d: d["weights"].update(members=[2 * w for w in d["weights"]["members"]]),
        "no shares of a whole",
    ),
    "a share below nothing": (
        lambda d: d["weights"].update(members=[-w for w in d["weights"]["members"]]),
        "no shares of a whole",
    ),
    "a member less": (lambda d: d["members"].pop(), "unexpected tensor '[0-9]/"),
    "members the other way round": (lambda d: d["members"].reverse(), "understood"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_description_that_does_not_fit_is_refused(folder, name):
    changes, message = REFUSED[name]
    forge(folder, changes)
    with pytest.raises(InputError, match=message) as caught:
        halfseen.load(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


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


def first_format(folder: Path) -> Path:
    kept = Path(__file__).parent / "format-1"
    (folder / "model").mkdir()
    for name in ("model.json", "model.safetensors"):
        (folder / "model" / name).write_bytes((kept / name).read_bytes())
    return folder / "model"


REFUSAL = (
    f"has format 1, and this version of halfseen reads format {FORMAT}: update halfseen if a newer "
    "one wrote it, or else fit the model again."
)


def test_a_folder_of_the_first_format_is_refused_with_a_sentence(tmp_path):
    """This folder was written by halfseen 0.1."""
    with pytest.raises(InputError, match=re.escape(REFUSAL)):
        halfseen.load(first_format(tmp_path))


@pytest.mark.parametrize("command", ["predict", "export", "report", "serve", "inspect"])
def test_commands_refuse_the_first_format_with_the_same_sentence(
    command, tmp_path, capsys, monkeypatch
):
    folder = first_format(tmp_path)
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")
    rest = {
        "predict": [tmp_path / "new.csv", "-o", tmp_path / "scores.csv"],
        "export": ["--onnx", tmp_path / "model.onnx"],
        "report": ["-o", tmp_path / "report.html"],
    }.get(command, [])
    monkeypatch.setattr(sys, "argv", ["halfseen", command, str(folder), *map(str, rest)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert " ".join(capsys.readouterr().err.split()) == f"error: {folder / 'model.json'} {REFUSAL}"


@pytest.mark.parametrize("members", [["networks"], ["networks", "regression"]])
def test_commands_take_a_model_that_python_saved(members, tmp_path):
    _, _, target = domains()
    model = fitted(members=members)
    model.save(tmp_path / "model")
    target.to_csv(tmp_path / "new.csv", index=False)

    def halfseen(*arguments: object) -> str:
        done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "Trained on source in memory: 60 rows, SHA-256" in halfseen(
        "inspect", tmp_path / "model"
    )
    assert json.loads(halfseen("inspect", tmp_path / "model", "--json"))["seed"] == 0
    halfseen("predict", tmp_path / "model", tmp_path / "new.csv", "-o", tmp_path / "scores.csv")
    scores = pd.read_csv(tmp_path / "scores.csv")
    expected = model.predict_proba(target)
    np.testing.assert_allclose(scores[["p_no", "p_yes"]], expected, rtol=0, atol=1e-6)
    halfseen("export", tmp_path / "model", "--onnx", tmp_path / "model.onnx")
