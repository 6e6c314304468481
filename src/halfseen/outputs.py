"""Outputs never destroy inputs: what a command will write, held against what it reads.

Every command that writes says so through :func:`check_outputs`, before it does anything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from halfseen.atomic_files import remove_leftovers
from halfseen.errors import OptionError, reason

MODEL_FILES = ("model.json", "model.safetensors")
"""A folder that holds both is a model, in which nothing else is written."""


@dataclass(frozen=True)
class Output:
    """One file or folder that a command will write, and what messages call it: "the scores"."""

    path: Path
    what: str
    ours: Callable[[Path], bool]
    """Whether what stands there comes from a former run of the command, so that it may be replaced;
    it may raise a sentence of its own, which holds with ``--force`` too."""
    option: str = "-o"
    """That names the place."""
    is_folder: bool = False
    is_continued: bool = False
    """Whether the command goes on with what is there: ``--force`` cannot help then."""


def check_outputs(
    outputs: Sequence[Output], inputs: Mapping[str, Path | None], *, force: bool = False
) -> None:
    """Refuse outputs that would destroy something, before any work is done.

    An output may not be an input, lie inside one or contain one, lie in a model folder or be a
    symbolic link; `force` changes none of this. Where something exists already, it must be from a
    former run of the same command, or `force` be given.
    `inputs` are what is read, by the words that messages call it.
    """
    try:
        for output in outputs:
            remove_leftovers(output.path)  # of a run that was killed
            _refuse(output, _of_another_kind(output), f"name {_kind(output)} with {output.option}")
        for output in outputs:
            elsewhere = f"name another place with {output.option}"
            for name, path in inputs.items():
                _refuse(output, path and _destroys(output.path, name, path), elsewhere)
            _refuse(output, _inside_a_model(output.path), elsewhere)
            _check_new(output, force)
    except OSError as error:
        raise OptionError(f"{error.filename} cannot be written: {reason(error)}") from None


def head(path: Path) -> bytes:
    """Return the first bytes of a file, to recognise it by; none where there is no file."""
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def is_page(path: Path) -> bool:
    """Whether a file is a page that this program wrote."""
    return b'<meta name="generator" content="halfseen' in head(path)


def _refuse(output: Output, why: object, remedy: str) -> None:
    if why:
        what = output.what[0].upper() + output.what[1:]
        raise OptionError(f"{what} would go to {output.path}, which {why}: {remedy}.")


def _kind(output: Output) -> str:
    if output.path.is_symlink():
        return "the place itself"
    if output.is_folder:
        return "a folder"
    return "a file in it" if output.path.is_dir() else "a file"


def _of_another_kind(output: Output) -> str:
    """Say of a link, and of a file where a folder is due or the other way round, what it is."""
    path = output.path
    if path.is_symlink():
        return "is a symbolic link"
    if not path.exists() or (path.is_dir() if output.is_folder else path.is_file()):
        return ""
    if output.is_folder:
        return "is a file and no folder"
    return "is a folder" if path.is_dir() else "is neither a file nor a folder"


def _destroys(output: Path, name: str, path: Path) -> str:
    """Say whether an output is an input, lies inside it or contains it."""
    place = _real(output)
    # What is read, and the link to it where it is one: neither may go.
    read = {_real(path), _real(path.parent) / path.name}
    if place in read or _is_same(output, path):
        return f"is {name} itself"
    if read & set(place.parents):
        return f"lies inside {name} {path}"
    if any(place in those.parents for those in read):
        return f"holds {name} {path}"
    if output.is_file() and path.is_dir():
        return next((f"is {f} of {name}" for f in path.rglob("*") if _is_same(output, f)), "")
    return ""


def _inside_a_model(path: Path) -> str:
    for folder in _real(path).parents:
        if all(os.path.isfile(folder / name) for name in MODEL_FILES):
            return f"lies inside the model folder {folder}"
    return ""


def _check_new(output: Output, force: bool) -> None:
    """Refuse a place where something stands that is not ours."""
    path = output.path
    if not path.exists() or (path.is_file() and not path.stat().st_size) or output.ours(path):
        return
    if output.is_continued or not force:
        forced = "" if output.is_continued else ", or replace it with --force"
        remedy = f"name another with {output.option}{forced}"
        _refuse(output, "exists and was not written by this command", remedy)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_same(path: Path, other: Path) -> bool:
    """Whether both are one file, by whatever name; a hard link is another name."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
