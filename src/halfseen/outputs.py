"""Outputs never destroy inputs: what a command will write, held against what it reads.

Every command that writes says so through :func:`check_outputs`, before it does anything else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
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

    def refused(self, reason: str, remedy: str) -> OptionError:
        """Return the sentence that says why it cannot go there."""
        what = self.what[0].upper() + self.what[1:]
        return OptionError(f"{what} would go to {self.path}, which {reason}: {remedy}.")


def check_outputs(
    outputs: Sequence[Output], inputs: Mapping[str, Path | None], *, force: bool = False
) -> None:
    """Refuse outputs that would destroy something, before any work is done.

    An output may not be an input, lie inside one or contain one, lie in a model folder, be a
    symbolic link, or be another output of the command; `force` changes none of this. Where
    something exists already, it must be from a former run of the same command, or `force` be given.
    `inputs` are what is read, by the words that messages call it.
    """
    try:
        for output in outputs:
            remove_leftovers(output.path)  # of a run that was killed
            _check_kind(output)
        for first, second in combinations(outputs, 2):
            _check_apart(first, second)
        for output in outputs:
            for name, path in inputs.items():
                if path is not None:
                    _check_spared(output, name, path)
            _check_new(output, force)
    except OSError as error:
        raise OptionError(f"{error.filename} cannot be written: {reason(error)}") from None


def derived_path(output: Path, ending: str) -> Path:
    """Return the name beside an output that differs from it by the ending."""
    if not output.name or output.is_dir():
        raise OptionError(f"{output} is a folder; name a file in it.")
    return output.with_suffix(ending)


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


def _check_kind(output: Output) -> None:
    """Refuse a link, and a file where a folder is due, or the other way round."""
    path, option = output.path, output.option
    if path.is_symlink():
        raise output.refused("is a symbolic link", f"name the place itself with {option}")
    if not path.exists() or (path.is_dir() if output.is_folder else path.is_file()):
        return
    if output.is_folder:
        raise output.refused("is a file and no folder", f"name a folder with {option}")
    if path.is_dir():
        raise output.refused("is a folder", f"name a file in it with {option}")
    raise output.refused("is neither a file nor a folder", f"name a file with {option}")


def _check_apart(first: Output, second: Output) -> None:
    one, other = _real(first.path), _real(second.path)
    reason = None
    if one == other or _is_same(first.path, second.path):
        reason = f"is also the place of {second.what}"
    elif one in other.parents or other in one.parents:
        reason = f"cannot stand beside {second.path}, the place of {second.what}"
    if reason:
        raise first.refused(reason, f"name another with {first.option}")


def _check_spared(output: Output, name: str, path: Path) -> None:
    """Refuse an output that is an input, lies inside it or contains it."""
    place = _real(output.path)
    # What is read, and the link to it where it is one: neither may go.
    read = {_real(path), _real(path.parent) / path.name}
    elsewhere = f"name another place with {output.option}"
    if place in read or _is_same(output.path, path):
        raise output.refused(f"is {name} itself", elsewhere)
    if read & set(place.parents):
        raise output.refused(f"lies inside {name} {path}", elsewhere)
    if any(place in those.parents for those in read):
        raise output.refused(f"holds {name} {path}", elsewhere)
    if output.path.is_file() and path.is_dir():
        for file in path.rglob("*"):
            if _is_same(output.path, file):
                raise output.refused(f"is {file} of {name}", elsewhere)


def _check_new(output: Output, force: bool) -> None:
    """Refuse a place in a model folder, and one where something stands that is not ours."""
    path = output.path
    for folder in _real(path).parents:
        if all(os.path.isfile(folder / name) for name in MODEL_FILES):
            remedy = f"name a place outside with {output.option}"
            raise output.refused(f"lies inside the model folder {folder}", remedy)
    if not path.exists() or (path.is_file() and not path.stat().st_size) or output.ours(path):
        return
    remedy = f"name another with {output.option}"
    if not output.is_continued:
        remedy += ", or replace it with --force"
    if output.is_continued or not force:
        raise output.refused("exists and was not written by this command", remedy)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_same(path: Path, other: Path) -> bool:
    """Whether both are one file, by whatever name; a hard link is another name."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
