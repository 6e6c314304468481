"""What cases are made of: a model in all its forms, rows, damage, and processes of their own."""

from __future__ import annotations

import io
import os
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import torch

import halfseen
from halfseen import HalfSeenClassifier, HalfseenError, load
from halfseen.export.onnx import onnx_model, write_onnx
from halfseen.export.onnx_session import open_graph
from halfseen.saving import read_folder, write_folder

TINY = {
    "tables.widths": (8,), "tables.latent_size": 4, "generator.widths": (8,),
    "networks.classifier_widths": (8,), "networks.critic_widths": (8,),
    "training.warmup_epochs": 1, "training.joint_epochs": 1,
}  # fmt: skip

Case = Callable[[random.Random], None]
"""One case; raises what is wrong, after noting its input in `Kit.input`."""


@dataclass
class Kit:
    """Two models in all their forms, and the answers that they give to some rows."""

    root: Path
    answers: list[Any] = field(default_factory=list)
    input: bytes = b""

    def __post_init__(self) -> None:
        """Fit two models, and write them in every form."""
        torch.set_num_threads(1)
        source, label = made_up_rows(120)
        self.frame = made_up_rows(40)[0].drop(columns="spend")
        self.models = []
        for seed in range(2):
            model = HalfSeenClassifier(
                members=["networks", "regression"], options=TINY, random_state=seed, device="cpu"
            )
            model.fit(source, label, X_target=self.frame)
            model.save(self.root / f"model{seed}")
            self.models.append(read_folder(self.root / f"model{seed}"))
            self.answers.append(model.predict_proba(self.frame))
        # And one of two missing patterns, in two parts.
        self.several = [self.frame, self.frame.drop(columns="visits")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # alarms: all rows are of one class
            parts = halfseen.fit(
                source.assign(label=label),
                self.several,
                "label",
                members=["regression"],
                report=False,
            )
        parts.save(self.root / "several")
        self.answers += [parts.predict_proba(frame) for frame in self.several]
        self.files = {path.name: path.read_bytes() for path in (self.root / "model0").iterdir()}
        write_onnx(onnx_model(load(self.root / "model0")), self.root / "model.onnx")
        self.graph = open_graph(self.root / "model.onnx")
        self.loaded = load(self.root / "model0")
        self.work = self.root / "work"
        self.work.mkdir()

    def check_same(self, probabilities: Any, number: int = 0) -> None:
        """Refuse another answer."""
        if not np.allclose(probabilities, self.answers[number], rtol=0, atol=1e-5):
            raise AssertionError("another answer was given")

    def which(self, folder: Path) -> int:
        """Return which of the two models a folder holds."""
        found = load(folder).predict_proba(self.frame)
        for number, known in enumerate(self.answers[: len(self.models)]):
            if np.allclose(found, known, rtol=0, atol=1e-6):
                return number
        raise AssertionError("neither model is there")

    def save(self, folder: Path, number: int) -> None:
        """Write one of the models into a folder."""
        write_folder(folder, *self.models[number])

    def check_folder(self, folder: Path) -> None:
        """Refuse anything but one of the models, and anything beside it after the next save."""
        self.which(folder)
        self.save(folder, 0)
        others = [path.name for path in folder.parent.iterdir() if path != folder]
        if others:
            raise AssertionError(f"something was left: {others}")

    def place_of(self, name: str) -> Path:
        """Return a folder for one class of cases, with a model in it."""
        folder = self.work / name / "model"
        if not folder.exists():
            self.save(folder, 0)
        return folder


def made_up_rows(rows: int) -> tuple[pd.DataFrame, Any]:
    """Return a table with numbers, categories, booleans and gaps, and labels."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({
        "age": draw.normal(50, 9, rows), "visits": draw.poisson(3, rows).astype(float),
        "shop": draw.choice(["north", "south", "ünder"], rows), "member": draw.random(rows) < 0.4,
        "spend": draw.normal(20, 5, rows),
    })  # fmt: skip
    frame.loc[draw.random(rows) < 0.1, "age"] = np.nan
    return frame, np.where(frame["spend"] + 2 * frame["visits"] > 26, "yes", "no")


def written(frame: pd.DataFrame, kind: str) -> bytes:
    """Return a table as the bytes of a file."""
    table, sink = pa.Table.from_pandas(frame), io.BytesIO()
    if kind == "csv":
        pa.csv.write_csv(table, sink)
    elif kind == "parquet":
        pa.parquet.write_table(table, sink, row_group_size=30)
    else:
        new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with new(sink, table.schema) as writer:
            writer.write_table(table, 30)
    return sink.getvalue()


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return bytes with some flipped, cut off, doubled, overwritten or moved."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        place = draw.randrange(max(1, len(found)))
        how = draw.randrange(8)
        if how < 4 and found:
            found[place % len(found)] ^= 1 << draw.randrange(8)
        elif how == 4:
            del found[place:]
        elif how == 5:
            found[place:place] = found[place : place + draw.randrange(1, 64)]
        elif how == 6:
            found[place : place + 4] = draw.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"])
        else:
            del found[place : place + draw.randrange(1, 16)]
    return bytes(found)


def forked(work: Callable[[], Any]) -> int:
    """Run something in a process of its own; return its id. It ends with 3 after a sentence."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        work()
        code = 0
    except HalfseenError:
        code = 3
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process; return how it ended, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
