"""Files and folders are written whole or not at all, and never destroy what a command reads.

A temporary name is drawn, because containers that share a folder have the same process ids, and
locked while its process lives, so that the next one knows what a killed one has left. Whoever puts
something at its place holds a lock on the folder around it: of two writers, the later one wins.
Symbolic links are not followed: the place itself must be named. Every command that writes says so
through :func:`check_outputs`, before it does anything else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from halfseen.errors import HalfseenError, OptionError, reason

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and nothing left by others removed
    fcntl = None  # type: ignore[assignment]

_LONGEST = 200
"""Bytes of a name that its temporary name repeats; file systems take 255 at most."""
_HERE, _EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; it becomes `path` when the block ends well.

    It does so when its content has reached the disk: after a power cut, too, there is the old
    file or the new one.
    """
    with _temporary(path, is_folder=False) as partial:
        yield partial
        sync(partial)
        os.replace(partial, path)
        sync(path.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path`; it takes the place of `path` when the block ends well.

    Linux exchanges two folders in one step. Elsewhere the old one is first moved aside, and
    :func:`recover` moves it back if the process is killed just then.
    """
    with _temporary(path, is_folder=True) as partial:
        yield partial
        for file in partial.rglob("*"):
            sync(file)
        sync(partial)
        with locked(path.parent):
            if not path.exists():
                os.rename(partial, path)
            elif not _exchanged(partial, path):
                former = _temporary_path(path, "former")
                os.rename(path, former)
                os.rename(partial, path)
                os.rename(former, partial)
        sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one piece."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8")


def recover(path: Path) -> None:
    """Put a folder back that a process was killed while replacing, where nothing stands now."""
    with suppress(OSError), locked(path.parent):
        _put_back(path)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files and folders of `path` whose process is gone."""
    if fcntl is None:
        return
    with suppress(OSError), locked(path.parent):
        _put_back(path)
        for leftover in _leftovers(path, "partial|former"):
            with suppress(OSError):
                handle = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW)
                if _lock(handle, wait=False):
                    _remove(leftover)
                os.close(handle)


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot do that for folders
            raise
    finally:
        os.close(handle)


def _put_back(path: Path) -> None:
    for former in _leftovers(path, "former"):
        if not path.exists():
            os.rename(former, path)


@contextmanager
def _temporary(path: Path, *, is_folder: bool) -> Iterator[Path]:
    """Give a locked temporary place; tell what the system refuses, and leave nothing behind."""
    partial, handle = _temporary_path(path, "partial"), None
    try:
        if path.is_symlink():
            raise HalfseenError(f"{path} is a symbolic link; name the place itself.")
        _make_folder(path.parent)
        remove_leftovers(path)
        with locked(path.parent):  # nobody takes it for a leftover before it is locked itself
            if is_folder:
                partial.mkdir()
            else:
                partial.touch(exist_ok=False)
            if fcntl is not None:
                handle = os.open(partial, os.O_RDONLY)
                _lock(handle)
        yield partial
    except OSError as error:
        raise HalfseenError(f"{path} could not be written: {reason(error)}") from error
    finally:
        _remove(partial)  # what it is by now: half of the new, or all of the old
        if handle is not None:
            os.close(handle)


def _make_folder(path: Path) -> None:
    """Make a folder and those above it, each with its name on the disk."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def _temporary_path(path: Path, kind: str) -> Path:
    """Return a hidden name beside `path`; the ending stays last, as some writers go by it."""
    return path.with_name(f".{secrets.token_hex(6)}.{kind}.{_tail(path)}")


def _tail(path: Path) -> str:
    return os.fsdecode(os.fsencode(path.name)[-_LONGEST:])


def _leftovers(path: Path, kind: str) -> list[Path]:
    name = re.compile(rf"\.[0-9a-f]{{12}}\.({kind})\.{re.escape(_tail(path))}", re.DOTALL)
    with os.scandir(path.parent) as entries:
        return [Path(entry.path) for entry in entries if name.fullmatch(entry.name)]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a folder or a file; it ends with its process, and no file is needed for it."""
    if fcntl is None:
        yield
        return
    # Some file systems lock only what may be written.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file; return False where another has it, or the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _exchanged(first: Path, second: Path) -> bool:
    """Let two names change places in one step; return False where the system cannot."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if call(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):  # older kernels, some file systems
        return False
    raise OSError(code, os.strerror(code), str(second))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


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
