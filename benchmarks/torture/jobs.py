"""Things that are written, each with a check: what kills, faults and power cuts are tried on.

A job begins with something at its place, is done once, and may then have been interrupted: either
the former thing is there or the new one, whole.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from pathlib import Path

import pyarrow.parquet
import torch

from halfseen.data.table_files import open_table
from halfseen.model.table_scoring import score_table
from halfseen.networks.loop import Checkpoint, read_checkpoint, write_checkpoint
from torture.kit import Kit, written


class Job(ABC):
    """Something that is written.

    Parameters
    ----------
    kit
        The models.
    folder
        Where it is written; what is in there belongs to the job.
    """

    what: str

    def __init__(self, kit: Kit, folder: Path) -> None:
        self.kit = kit
        self.folder = folder

    def begin(self) -> None:
        """Put the former thing at its place, and nothing else."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.write(0)

    def at(self, folder: Path) -> Job:
        """Return the same job elsewhere."""
        return type(self)(self.kit, folder)

    @abstractmethod
    def write(self, number: int = 1) -> None:
        """Write the former thing (0), or the new one (1) in its place."""

    @abstractmethod
    def found(self) -> int:
        """Return which of both is there; raise where neither is, or more than one."""


class SavedModel(Job):
    """A model folder that takes the place of another."""

    what = "a model is saved"

    def write(self, number: int = 1) -> None:
        self.kit.save(self.folder / "model", number)

    def found(self) -> int:
        return self.kit.which(self.folder / "model")


class KeptCheckpoint(Job):
    """A checkpoint that takes the place of another."""

    what = "a checkpoint is kept"

    def write(self, number: int = 1) -> None:
        write_checkpoint(self.folder / "run.safetensors", checkpoint_of(self.kit, number))

    def found(self) -> int:
        found = read_checkpoint(self.folder / "run.safetensors", "run")
        if found is None:
            raise AssertionError("no checkpoint is there")
        check_checkpoint(self.kit, found)
        return found.epoch


class WrittenScores(Job):
    """Scores of a table that take the place of others."""

    what = "scores are written"

    def write(self, number: int = 1) -> None:
        rows = self.kit.frame.head(40 if number else 7)
        table = self.kit.work / f"rows{number}.csv"
        if not table.exists():
            table.write_bytes(written(rows, "csv"))
        score_table(self.kit.loaded, open_table(table), self.folder / "scores.parquet")

    def found(self) -> int:
        scores = pyarrow.parquet.read_table(self.folder / "scores.parquet").to_pandas()
        number = {7: 0, 40: 1}[len(scores)]
        known = self.kit.answers[0][: len(scores)]
        if abs(scores[["p_no", "p_yes"]].to_numpy() - known).max() > 1e-5:
            raise AssertionError("other scores are there")
        return number


JOBS: tuple[type[Job], ...] = (SavedModel, KeptCheckpoint, WrittenScores)


def checkpoint_of(kit: Kit, number: int) -> Checkpoint:
    """Return a checkpoint with the tensors of one of the models."""
    tensors = {name: torch.tensor(values) for name, values in kit.models[number][1].items()}
    moments = {f"exp_avg/{name}": tensor.clone() for name, tensor in tensors.items()}
    return Checkpoint("run", 0, number, tensors, moments, [{"epoch": number, "loss": 0.5}])


def check_checkpoint(kit: Kit, found: Checkpoint) -> None:
    """Refuse a checkpoint that is neither of the two."""
    for name, tensor in checkpoint_of(kit, found.epoch).model.items():
        if not torch.equal(found.model[name], tensor):
            raise AssertionError("another checkpoint was read")
