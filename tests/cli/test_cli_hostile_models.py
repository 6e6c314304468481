"""Whatever is wrong with a model's folder: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tables_cli import check_refused, halfseen

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
    def change(folder: Path) -> None:
        data = json.loads((folder / "model.json").read_text())
        (folder / "model.json").write_text(json.dumps(data | changes))

    return change


def without_schema(folder: Path) -> None:
    edited(details={})(folder)


def other_schema(folder: Path) -> None:
    data = json.loads((folder / "model.json").read_text())
    del data["details"]["schema"]["columns"][0]
    (folder / "model.json").write_text(json.dumps(data))


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
    "no format": (edited(format=None), "does not exist"),
    "other kind": (edited(kind="spell"), "spell"),
    "unknown field": (edited(magic=1), "magic"),
    "unknown method": (edited(method="Magic"), "Magic"),
    "huge networks": (edited(options={"tables.widths": [10**9] * 9}), "model"),
    "no schema": (without_schema, "schema"),
    "another schema": (other_schema, "schema"),
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


def test_a_model_of_arrays_is_told_apart(tmp_path, tables, out, predict):
    from halfseen import DomainAdaptationClassifier

    inputs = np.random.default_rng(0).normal(size=(40, 3))
    options = {"tables.widths": (4,), "training.warmup_epochs": 0}
    model = DomainAdaptationClassifier(missing=[2], joint_epochs=1, options=options, random_state=0)
    model.fit(inputs, np.arange(40) % 2, inputs + 1).save(tmp_path / "model")
    check_refused(predict(tables / "target.parquet", model=tmp_path / "model"), out, "arrays")
