"""The model folder: tensors in safetensors, everything else in JSON, nothing executable.

A folder holds ``model.safetensors`` and ``model.json``, and may hold ``report.json``: what
``halfseen report`` shows beside the description. A model is complete without it, and loading one
never opens it; it names the SHA-256 of the tensors that it belongs to.

The format has a number. **Promise:** a version of halfseen reads every format up to its own, so a
model that was saved once can be loaded by all later versions; a folder of a newer format is
refused, never guessed at. An option that a folder does not have takes the default of
:class:`halfseen.Options`, which therefore always means what was done before the option existed. A
test keeps a folder of every format and its predictions.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from halfseen.blocks import Blocks
from halfseen.errors import HalfseenError, InputError
from halfseen.files import sync_file, sync_folder, temporary_path
from halfseen.methods import method_named
from halfseen.nets import EncoderFactory, Networks, build_networks
from halfseen.options import Options, make_options

__all__ = [
    "FORMAT",
    "Description",
    "check_replaceable",
    "library_versions",
    "read_description",
    "read_model",
    "read_report",
    "write_model",
]

FORMAT = 1
TENSORS = "model.safetensors"
DESCRIPTION = "model.json"
REPORT = "report.json"
LARGEST_DESCRIPTION = 64 * 2**20
"""Bytes of a JSON file in a folder, at most."""


class Description(BaseModel):
    """All of a model but its tensors: what ``model.json`` holds.

    Parameters
    ----------
    format
        Number of the folder's format.
    kind
        The class that was saved.
    method, options, blocks, seed
        What the networks are rebuilt from; `blocks` speaks of network inputs.
    classes
        The labels, in the order of the probabilities.
    own_encoder
        Whether the encoders are the user's own, and must be given again.
    details
        What belongs to one kind of model alone: the schema of a table, parameters of an
        estimator.
    versions
        Of halfseen and the libraries that the model was trained with.
    metrics, training_data, history
        How good it was on held-out rows, fingerprints of what it learned from, and one record
        per epoch.
    sha256
        Of the tensor file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    kind: str
    method: str
    options: dict[str, Any]
    blocks: dict[str, Any]
    seed: int
    classes: Annotated[list[Any], Field(min_length=2)]
    own_encoder: bool = False
    details: dict[str, Any] = {}
    versions: dict[str, str] = {}
    metrics: dict[str, Any] = {}
    training_data: dict[str, Any] = {}
    history: list[dict[str, Any]] = []
    sha256: str = ""

    def checked_options(self) -> Options:
        """Return the options, each one checked."""
        return make_options(self.options)


def library_versions() -> dict[str, str]:
    """Return the versions that a model is trained with."""
    found = {"python": platform.python_version()}
    for name in ("halfseen", "torch", "numpy", "scikit-learn", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_model(
    folder: str | Path,
    description: Description,
    networks: nn.Module,
    *,
    report: Mapping[str, Any] | None = None,
) -> None:
    """Write the folder whole or not at all; an older model of that name is replaced.

    `report` is plain data for ``report.json``, where something is kept for a report.
    """
    folder = Path(folder)
    check_replaceable(folder)
    tensors = {n: t.detach().cpu().contiguous() for n, t in networks.state_dict().items()}
    content = save_tensors(tensors)
    described = description.model_copy(
        update={
            "sha256": hashlib.sha256(content).hexdigest(),
            "versions": description.versions or library_versions(),
        }
    )
    partial, former = temporary_path(folder, "partial"), temporary_path(folder, "former")
    try:
        partial.mkdir(parents=True)
        (partial / TENSORS).write_bytes(content)
        text = json.dumps(described.model_dump(mode="json"), indent=2, ensure_ascii=False)
        (partial / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        if report is not None:
            facts = json.dumps({**report, "model": described.sha256}, ensure_ascii=False)
            (partial / REPORT).write_text(facts + "\n", encoding="utf-8")
        for file in partial.iterdir():
            sync_file(file)
        sync_folder(partial)
        if folder.is_dir():
            os.replace(folder, former)
        os.replace(partial, folder)
        sync_folder(folder.parent)
    except OSError as error:
        if former.is_dir() and not folder.exists():
            os.replace(former, folder)
        raise HalfseenError(f"The model could not be written to {folder}: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(former, ignore_errors=True)


def read_model(
    folder: str | Path, encoder: nn.Module | EncoderFactory | None = None
) -> tuple[Description, Networks]:
    """Read a folder, verify it, and return what it describes with the networks rebuilt."""
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
    except SafetensorError as error:
        raise InputError(f"{folder / TENSORS} cannot be read as safetensors: {error}.") from None
    if description.own_encoder and encoder is None:
        raise InputError(
            f"The model in {folder} has an encoder of your own, which a folder does not hold: "
            "give it again, as in halfseen.load(folder, encoder=MyEncoder)."
        )
    return description, _rebuilt(folder, description, tensors, encoder)


def read_description(folder: str | Path) -> Description:
    """Return what a folder says of its model, without opening the tensors."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no model folder {folder}.")
    path = _inside(folder, DESCRIPTION)
    data = _read_json(path)
    try:
        found = data["format"]
    except (KeyError, TypeError):
        raise InputError(f"{path} is not the description of a model: it is not its JSON.") from None
    if type(found) is not int or found < 1:
        raise InputError(f"{path} has format {found!r}, which does not exist.")
    if found > FORMAT:
        raise InputError(
            f"{path} has format {found}, and this version of halfseen reads up to {FORMAT}: "
            "update halfseen."
        )
    try:
        return Description.model_validate(data)
    except ValidationError as error:
        raise InputError(f"{path} cannot be understood: {_first_problem(error)}.") from None


def read_report(folder: str | Path, description: Description) -> dict[str, Any] | None:
    """Return what a folder keeps for a report, or None; refuse what belongs to another model."""
    folder = Path(folder)
    if not (folder / REPORT).is_symlink() and not (folder / REPORT).exists():
        return None
    path = _inside(folder, REPORT)
    data = _read_json(path)
    if not isinstance(data, dict) or data.get("model") != description.sha256:
        raise InputError(
            f"{path} does not belong to the model beside it: it names other tensors. Delete it, "
            "or copy the folder again."
        )
    return data


def _read_json(path: Path) -> Any:
    if path.stat().st_size > LARGEST_DESCRIPTION:
        raise InputError(f"{path} has {path.stat().st_size:,} bytes; that is no description.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not the description of a model: it is not its JSON.") from None


def _rebuilt(
    folder: Path,
    description: Description,
    tensors: Mapping[str, Tensor],
    encoder: nn.Module | EncoderFactory | None,
) -> Networks:
    def build() -> Networks:
        return build_networks(blocks, method, len(description.classes), options, encoder)

    path = folder / DESCRIPTION
    try:
        options = description.checked_options()
        method = method_named(description.method)
        blocks = Blocks.from_dict(description.blocks)
        if encoder is None:
            # Shapes first, without memory: what JSON says must not allocate what no tensor fills.
            with torch.device("meta"):
                _check_same(folder, build().state_dict(), tensors)
        with torch.random.fork_rng(devices=[]):
            networks = build()
    except HalfseenError as error:
        raise InputError(f"{path} cannot be understood: {error}") from None
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise InputError(f"{path} cannot be understood: {error!r}.") from None
    _check_same(folder, networks.state_dict(), tensors)
    networks.load_state_dict(tensors)
    return networks.eval()


def _check_same(
    folder: Path, expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    for name in expected.keys() ^ tensors.keys():
        side = "lacks" if name in expected else "has an unexpected"
        raise InputError(f"{folder / TENSORS} {side} tensor {name!r} for the model described.")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise InputError(
                f"Tensor {name!r} of {folder / TENSORS} is {tensor.dtype} of shape "
                f"{tuple(tensor.shape)}; the model described needs {expected[name].dtype} of "
                f"shape {tuple(expected[name].shape)}."
            )


def _inside(folder: Path, name: str) -> Path:
    """Return a file of the folder, which may not be a link to somewhere else."""
    path = folder / name
    if path.resolve().parent != folder.resolve():
        raise InputError(f"{path} is a link out of the model folder; put the file itself there.")
    if not path.is_file():
        raise InputError(f"{folder} is not a model folder: it has no {name}.")
    return path


def check_replaceable(folder: Path) -> None:
    """Refuse a place where a model cannot be written without touching other things."""
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link; name the folder itself for the model.")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; a model needs a folder of its own.")
    others = {path.name for path in folder.iterdir()} - {TENSORS, DESCRIPTION, REPORT}
    if others:
        raise InputError(
            f"{folder} holds other things ({sorted(others)[0]}); a model needs a folder of its own."
        )


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
