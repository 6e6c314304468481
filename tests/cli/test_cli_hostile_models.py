"""Whatever is wrong with a model's folder: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables_cli import check_refused, halfseen

from tiny import classifier

pytestmark = pytest.mark.filterwarnings("error")  # a warning would be a second line


def flipped(position: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / "model.safetensors").read_bytes())
        content[position] ^= 255
        (folder / "model.safetensors").write_bytes(content)

    return change


def truncated(name: str, share: float) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return change


def edited(**changes: object) -> Callable[[Path], None]:
    """Change fields as somebody would who knows nothing of the seal."""

    def change(folder: Path) -> None:
        data = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(data | changes))

    return change


def forged(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change the description and seal it again, so that what it says is looked at."""

    def change(folder: Path) -> None:
        data = json.loads((folder / "model.json").read_text())
        edit(data)
        del data["seal"]
        text = json.dumps(data, sort_keys=True, ensure_ascii=False)
        data["seal"] = hashlib.sha256(text.encode()).hexdigest()
        (folder / "model.json").write_text(json.dumps(data))

    return change


def linked(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        outside = folder.parent / f"outside-{name}"
        (folder / name).rename(outside)
        (folder / name).symlink_to(outside)

    return change


MODELS: dict[str, tuple[Callable[[Path], None], str]] = {
    **{f"flipped {p}": (flipped(p), "SHA-256") for p in (0, 8, 40, -1)},
    **{f"tensors cut {s}": (truncated("model.safetensors", s), "SHA-256") for s in (0, 0.5, 0.99)},
    **{f"JSON cut {s}": (truncated("model.json", s), "description") for s in (0, 0.5, 0.99)},
    "newer": (edited(format=999), "update halfseen"),
    "no format": (edited(format=None), "has format None"),
    "older": (edited(format=1), "fit the model again"),
    "edited": (edited(seed=77), "was changed after it was written"),
    "no seal": (edited(seal=None), "was changed after it was written"),
    "other kind": (forged(lambda data: data["members"][0].update(kind="spell")), "spell"),
    "other preprocessor": (forged(lambda data: data["preprocessor"].update(kind="spell")), "spell"),
    "unknown field": (forged(lambda data: data.update(magic=1)), "magic"),
    "unknown method": (forged(lambda data: data["members"][0].update(method="Magic")), "Magic"),
    "huge networks": (
        forged(lambda data: data["members"][0]["options"]["tables"].update(widths=[10**9] * 9)),
        "the networks described",
    ),
    "no members": (forged(lambda data: data.update(members=[])), "members"),
    "too few weights": (forged(lambda data: data["weights"]["members"].pop()), "members and"),
    "no schema": (forged(lambda data: data["preprocessor"].pop("schema")), "schema"),
    "another schema": (
        forged(lambda data: data["preprocessor"]["schema"]["columns"].pop(0)),
        "what fills gaps has the shapes",
    ),
    "linked tensors": (linked("model.safetensors"), "link out"),
    "linked JSON": (linked("model.json"), "link out"),
    "no tensors": (lambda f: (f / "model.safetensors").unlink(), "no model.safetensors"),
    "no JSON": (lambda f: (f / "model.json").unlink(), "no model.json"),
}


@pytest.mark.parametrize("command", ["predict", "inspect"])
@pytest.mark.parametrize("name", MODELS)
def test_model_folders(name, command, tables, tmp_path, out, predict):
    change, says = MODELS[name]
    folder = tmp_path / "model"
    shutil.copytree(tables / "model", folder)
    change(folder)
    if command == "predict":
        run = predict(tables / "target.parquet", model=folder)
    else:
        run = halfseen("inspect", folder)
    check_refused(run, out, says)


def test_a_model_of_images_is_told_apart(tmp_path, tables, out, predict):
    inputs = np.random.default_rng(0).random((40, 1, 8, 8), dtype=np.float32)
    options = {"images.channels": (2,), "images.kernel_size": 3, "images.pools": 1}
    model = classifier(image=True, missing=range(4, 8), options=options)
    model.fit(inputs, np.arange(40) % 2, X_target=inputs).save(tmp_path / "model")
    run = predict(tables / "target.parquet", model=tmp_path / "model")
    check_refused(run, out, "fitted in Python on numbers, whose scale files do not have")
    run = halfseen("inspect", tmp_path / "model")
    assert run.code == 0, run.err
    assert "Images of 8 x 8 pixels" in run.out.replace("×", "x")


def test_a_model_of_arrays_asks_for_its_columns(tmp_path, tables, out, predict):
    """A model that Python fitted is one like any other; arrays name columns by their numbers."""
    inputs = np.random.default_rng(0).normal(size=(40, 3))
    model = classifier(missing=[2]).fit(inputs, np.arange(40) % 2, X_target=inputs + 1)
    model.save(tmp_path / "model")
    run = predict(tables / "target.parquet", model=tmp_path / "model")
    check_refused(run, out, "lacks column")
    run = halfseen("inspect", tmp_path / "model")
    assert run.code == 0, run.err
    assert "Adaptation-Imputation" in run.out
    assert "Trained on all source rows." in run.out
    assert "Held-out" not in run.out
