"""Damaged and forged files of halfseen's own: models, graphs, checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
from functools import partial
from typing import Any

from halfseen import HalfseenError, load
from halfseen.export.onnx_session import open_graph
from halfseen.networks.loop import read_checkpoint, write_checkpoint
from torture.jobs import check_checkpoint, checkpoint_of
from torture.kit import Case, Kit, damaged

STRANGE = [None, -1, 0, 10**9, 10**30, 1e300, -0.5, "", "x" * 50, [], {}, [10**9], True]


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file."""
    return {
        "damaged model.json": partial(damage_model, kit, "model.json"),
        "damaged model.safetensors": partial(damage_model, kit, "model.safetensors"),
        "forged model.json": partial(forge_description, kit),
        "damaged part of several": partial(damage_part, kit),
        "damaged checkpoint": partial(damage_checkpoint, kit),
        "damaged graph": partial(damage_graph, kit),
    }


def damage_model(kit: Kit, name: str, draw: random.Random) -> None:
    """See that a damaged model is refused, or says the very same."""
    kit.input = damaged(kit.files[name], draw)
    with contextlib.suppress(HalfseenError):
        kit.check_same(model_with(kit, name).predict_proba(kit.frame))


def model_with(kit: Kit, name: str) -> Any:
    """Load a model in which one file is the input of this case."""
    folder = kit.work / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kit.root / "model0", folder)
    (folder / name).write_bytes(kit.input)
    return load(folder)


def damage_part(kit: Kit, draw: random.Random) -> None:
    """See that a model of several patterns is refused if a part is damaged, gone or exchanged."""
    folder = kit.work / "several"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kit.root / "several", folder)
    part, other = draw.sample([folder / "part-1", folder / "part-2"], 2)
    path = draw.choice([folder / "patterns.json", *sorted(part.iterdir())])
    how = draw.randrange(8)
    if how == 0:
        shutil.rmtree(part)
    elif how == 1:
        path.unlink()
    elif how == 2:
        shutil.rmtree(part)
        shutil.copytree(other, part)
    elif how == 3 and path.parent == part:
        shutil.copy(other / path.name, path)
    else:
        kit.input = damaged(path.read_bytes(), draw)
        path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        found = load(folder)
        for number, frame in enumerate(kit.several):
            kit.check_same(found.predict_proba(frame), number + len(kit.models))


def forge_description(kit: Kit, draw: random.Random) -> None:
    """See that what somebody changed and sealed again is refused, or predicts within bounds."""
    data = json.loads(kit.files["model.json"])
    place: Any = data
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw.choice(keys)
        if not isinstance(place[key], dict | list) or not place[key] or draw.random() < 0.1:
            break
        place = place[key]
    place[key] = draw.choice(STRANGE)
    rest = {k: v for k, v in data.items() if k != "seal"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    data["seal"] = hashlib.sha256(text.encode()).hexdigest()
    kit.input = json.dumps(data).encode()
    with contextlib.suppress(HalfseenError):
        model_with(kit, "model.json").predict_proba(kit.frame)


def damage_graph(kit: Kit, draw: random.Random) -> None:
    """See that a damaged graph is refused."""
    whole = (kit.root / "model.onnx").read_bytes()
    kit.input = damaged(whole, draw)
    path = kit.work / "damaged.onnx"
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        open_graph(path)
        if kit.input != whole:
            raise AssertionError("a damaged graph was served")


def damage_checkpoint(kit: Kit, draw: random.Random) -> None:
    """See that a damaged checkpoint is refused, or is the very same."""
    path = kit.work / "damaged.safetensors"
    path.unlink(missing_ok=True)
    write_checkpoint(path, checkpoint_of(kit, 0))
    kit.input = damaged(path.read_bytes(), draw)
    path.write_bytes(kit.input)
    with contextlib.suppress(HalfseenError):
        check_checkpoint(kit, read_checkpoint(path, "run"))
