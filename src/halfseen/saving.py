"""The model folder: tensors in safetensors, everything else in JSON, nothing executable.

A folder holds ``model.safetensors`` and ``model.json``, and may hold ``report.json``: what
``halfseen report`` shows beside the description. A model is complete without it, and loading one
never opens it; it names the SHA-256 of the tensors that it belongs to. ``model.json`` carries the
SHA-256 of the tensors and a seal over itself, so that one changed bit anywhere is noticed.

A model of several missing patterns is a folder of such folders (``part-1``, ``part-2``, ...), each
a model by itself, and of ``patterns.json``.

The format has a number: a folder of another format is refused with a sentence, never guessed at.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from halfseen.arrays import Tensor
from halfseen.errors import InputError, first_fault, reason
from halfseen.outputs import atomic_folder, recover

FORMAT = 4
TENSORS = "model.safetensors"
DESCRIPTION = "model.json"
REPORT = "report.json"
PATTERNS = "patterns.json"
"""Names the parts of a model of several missing patterns, each a model folder of its own."""
LARGEST_DESCRIPTION = 64 * 2**20
"""Bytes of a JSON file in a folder, at most."""


class Description(BaseModel):
    """All of a model but its tensors: what ``model.json`` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    preprocessor: dict[str, Any]
    """How rows become inputs: the schema of a table, or the blocks of images."""
    members: Annotated[list[dict[str, Any]], Field(min_length=1)]
    """What learned, each with its kind and settings."""
    weights: dict[str, Any]
    """How much each counts."""
    seed: int
    metrics: dict[str, Any] = {}
    """How good it was on held-out rows."""
    training_data: dict[str, Any] = {}
    """Fingerprints of what it learned from."""
    versions: dict[str, str] = {}
    """Of halfseen and the libraries that the model was trained with."""
    sha256: str = ""
    """Of the tensor file."""
    seal: str = ""
    """SHA-256 of all of the above."""

    @property
    def networks(self) -> dict[str, Any]:
        """What is said of the member that has latents; empty where there is none."""
        return next((m for m in self.members if m.get("kind") == "networks"), {})

    @property
    def method(self) -> str:
        """Which of the paper's models the networks are; all that answer together."""
        methods = [str(m.get("method", "")) for m in self.members if m.get("kind") == "networks"]
        return " and ".join(dict.fromkeys(methods))

    def sealed(self, sha256: str) -> Description:
        described = self.model_copy(
            update={"sha256": sha256, "versions": self.versions or library_versions(), "seal": ""}
        )
        return described.model_copy(update={"seal": _seal(described.model_dump(mode="json"))})


def library_versions() -> dict[str, str]:
    """Return the versions that a model is trained with."""
    versions = {"python": platform.python_version()}
    for name in ("halfseen", "torch", "numpy", "scikit-learn", "pyarrow"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def write_folder(
    folder: str | Path,
    description: Description,
    tensors: Mapping[str, Tensor],
    *,
    report: Mapping[str, Any] | None = None,
) -> None:
    """Write the folder whole or not at all; an older model of that name is replaced.

    `report` is plain data for ``report.json``, where something is kept for a report.
    """
    check_replaceable(Path(folder))
    with atomic_folder(Path(folder)) as partial:
        _fill(partial, description, tensors, report)


def write_patterns(
    folder: str | Path,
    parts: Sequence[tuple[Description, Mapping[str, Tensor], Mapping[str, Any] | None]],
    patterns: Sequence[Sequence[str]],
) -> None:
    """Write a model of several missing patterns, each part with its report, whole or not at all."""
    check_replaceable(Path(folder))
    with atomic_folder(Path(folder)) as partial:
        listed = []
        for number, (part, lacks) in enumerate(zip(parts, patterns, strict=True), start=1):
            place = partial / f"part-{number}"
            place.mkdir()
            described = _fill(place, *part)
            listed.append({"folder": place.name, "lacks": lacks, "seal": described.seal})
        _write_json(partial / PATTERNS, {"format": 1, "parts": listed})


def _fill(
    folder: Path,
    description: Description,
    tensors: Mapping[str, Tensor],
    report: Mapping[str, Any] | None,
) -> Description:
    """Write a model's files into a folder that nobody reads yet; return the sealed description."""
    content = save_tensors({n: np.asarray(tensor, order="C") for n, tensor in tensors.items()})
    described = description.sealed(hashlib.sha256(content).hexdigest())
    (folder / TENSORS).write_bytes(content)
    _write_json(folder / DESCRIPTION, described.model_dump(mode="json"))
    if report is not None:
        _write_json(folder / REPORT, {**report, "model": described.sha256}, indent=None)
    return described


def _write_json(path: Path, data: Any, indent: int | None = 2) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_folder(folder: str | Path) -> tuple[Description, dict[str, Tensor]]:
    """Read a folder and verify it; return its description and tensors."""
    folder = Path(folder)
    description = read_description(folder)
    content = _inside(folder, TENSORS).read_bytes()
    if hashlib.sha256(content).hexdigest() != description.sha256:
        raise InputError(
            f"{folder / TENSORS} is not the file that {DESCRIPTION} describes: its SHA-256 "
            "differs, so it was damaged or exchanged. Copy the folder again."
        )
    try:
        tensors = load_tensors(content)
    except (SafetensorError, KeyError) as error:  # a KeyError names a type that no array has
        raise InputError(f"{folder / TENSORS} cannot be read as safetensors: {error}.") from None
    for name, tensor in tensors.items():
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InputError(
                f"Tensor {name!r} of {folder / TENSORS} holds a value that is no finite number: "
                "the model cannot predict. Fit it again."
            )
    return description, tensors


def read_description(folder: str | Path) -> Description:
    """Return what a folder says of its model, without opening the tensors."""
    folder = Path(folder)
    if not folder.exists():
        recover(folder)
    if not folder.is_dir():
        raise InputError(f"There is no model folder {folder}.")
    if (folder / PATTERNS).is_file():
        parts = ", ".join(str(part) for part in sorted(folder.glob("part-*")))
        raise InputError(
            f"{folder} holds one model for each missing pattern; name one of its parts: {parts}."
        )
    path = _inside(folder, DESCRIPTION)
    data = _read_json(path)
    if not isinstance(data, dict) or "format" not in data:
        raise InputError(f"{path} is not the description of a model: it is not its JSON.")
    version = data["format"]
    if type(version) is not int or version != FORMAT:
        raise InputError(
            f"{path} has format {version!r}, and this version of halfseen reads format {FORMAT}: "
            "update halfseen if a newer one wrote it, or else fit the model again."
        )
    if _seal(data) != data.get("seal"):
        raise InputError(
            f"{path} was changed after it was written: its SHA-256 is not the one in its seal. "
            "Copy the folder again, or fit the model again."
        )
    try:
        return Description.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{path} cannot be understood: {first_fault(error)}.") from None


def read_report(folder: str | Path, description: Description) -> dict[str, Any] | None:
    """Return what a folder keeps for a report, or None; refuse what belongs to another model."""
    if not os.path.lexists(Path(folder, REPORT)):
        return None
    path = _inside(Path(folder), REPORT)
    data = _read_json(path)
    if not isinstance(data, dict) or data.get("model") != description.sha256:
        raise InputError(
            f"{path} does not belong to the model beside it: it names other tensors. Delete it, "
            "or copy the folder again."
        )
    return data


def check_replaceable(folder: Path) -> None:
    """Refuse a place where a model cannot be written without touching other things."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link; name the folder itself for the model.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; a model needs a folder of its own.")
    own = {TENSORS, DESCRIPTION, REPORT, PATTERNS}
    try:
        others = {path.name for path in folder.iterdir() if not _is_part(path)} - own
    except OSError as error:
        raise InputError(f"{folder} cannot be looked into: {reason(error)}") from error
    if others:
        raise InputError(
            f"{folder} holds other things ({sorted(others)[0]}); a model needs a folder of its own."
        )


def _is_part(path: Path) -> bool:
    """Whether a path is the folder of a part, with nothing else in it."""
    if not re.fullmatch(r"part-\d+", path.name) or path.is_symlink() or not path.is_dir():
        return False
    return {inside.name for inside in path.iterdir()} <= {TENSORS, DESCRIPTION, REPORT}


def read_patterns(folder: str | Path) -> list[Path] | None:
    """Return the parts of a model of several missing patterns, or None where it is one model."""
    folder = Path(folder)
    if not folder.exists():
        recover(folder)
    if not os.path.lexists(folder / PATTERNS):
        return None
    path = _inside(folder, PATTERNS)
    data = _read_json(path)
    try:
        seals = {str(part["folder"]): str(part["seal"]) for part in data["parts"]}
        known = data["format"] == 1 and len(seals) > 1
    except (KeyError, TypeError):
        known, seals = False, {}
    if not known or list(seals) != [f"part-{number}" for number in range(1, len(seals) + 1)]:
        raise InputError(f"{path} does not name the parts of a model; copy the folder again.")
    for name, seal in seals.items():
        if (folder / name).is_symlink() or read_description(folder / name).seal != seal:
            raise InputError(
                f"{folder / name} is not the part that {PATTERNS} names: it was exchanged. Copy "
                "the folder again, or fit the model again."
            )
    return [folder / name for name in seals]


def _seal(data: Mapping[str, Any]) -> str:
    """Hash a description but for its seal, independent of the order of keys and of spaces."""
    rest = {name: value for name, value in data.items() if name != "seal"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read_json(path: Path) -> Any:
    if path.stat().st_size > LARGEST_DESCRIPTION:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes; that is no description.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not the description of a model: it is not its JSON.") from None


def _inside(folder: Path, name: str) -> Path:
    """Return a file of the folder, which may not be a link to somewhere else."""
    path = folder / name
    if path.resolve().parent != folder.resolve():
        raise InputError(f"{path} is a link out of the model folder; put the file itself there.")
    if not path.is_file():
        raise InputError(f"{folder} is not a model folder: it has no {name}.")
    return path
