"""A power cut: what a process wrote is rebuilt as a disk may hold it that lost what was not synced.

Calls are recorded and played on a file system of dictionaries. A file's content is on the disk
once it was synced; so are the names in a folder. What came later is there or not: of a file any
beginning of it, of a folder the names as they stood after any of the steps since.
"""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from torture.jobs import JOBS, Job
from torture.kit import Case, Kit
from torture.traced import Call, bytes_of, inside, text_of, traced


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file, one for each job."""
    return {
        f"power cut while {kind.what}": partial(
            cut, kind(kit, kit.work / "power" / kind.__name__), {}
        )
        for kind in JOBS
    }


@dataclass
class File:
    """A file's content, and how much of it is on the disk."""

    content: bytes = b""
    synced: bytes = b""

    def after_a_cut(self, draw: random.Random | None) -> bytes:
        """Return what is left of it; without a draw, what is certain."""
        if draw is None or draw.random() < 0.5:
            return self.synced
        kept = len(self.synced) if self.content.startswith(self.synced) else 0
        return self.content[: draw.randrange(kept, len(self.content) + 1)]


@dataclass
class Folder:
    """The names in a folder, now and after every step since they were synced."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    since: list[dict[str, File | Folder]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take what is there for synced."""
        self.sync()

    def step(self) -> None:
        """Note that names were changed."""
        self.since.append(dict(self.names))

    def sync(self) -> None:
        """Forget how it came to what it is now."""
        self.since = [dict(self.names)]


class Disk:
    """Plays recorded calls on a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._tree = _read(root)

    def play(self, call: Call) -> None:
        """Do what a call did."""
        if call.result < 0:
            return
        texts = [text_of(t) for t in re.findall(r'"([^"]*)"', call.arguments)]
        handle = text_of(m[1]) if (m := re.match(r"\d+<([^>]*)>", call.arguments)) else ""
        if call.name in ("write", "pwrite64"):
            content = bytes_of(re.findall(r'"([^"]*)"', call.arguments)[0])
            self._file(handle).content += content[: call.result]
        elif call.name == "ftruncate":
            file = self._file(handle)
            file.content = file.content[: int(call.arguments.rpartition(", ")[2])]
        elif call.name in ("fsync", "fdatasync"):
            node = self._node(handle)
            if isinstance(node, File):
                node.synced = node.content
            else:
                node.sync()
        elif call.name == "openat":
            self._open(call)
        elif call.name in ("mkdir", "mkdirat"):
            self._change({texts[0]: Folder()})
        elif call.name in ("unlink", "unlinkat", "rmdir"):
            self._change({self._full(call, texts[0]): None})
        elif call.name == "renameat2" and "EXCHANGE" in call.arguments:
            first, second = texts
            self._change({first: self._node(second), second: self._node(first)})
        elif call.name.startswith("rename"):
            self._change({texts[0]: None, texts[1]: self._node(texts[0])})
        elif call.name not in ("flock", "close"):
            raise NotImplementedError(call.name)

    def _open(self, call: Call) -> None:
        place, flags = call.path, call.arguments
        if "O_CREAT" in flags and not self._exists(place):
            self._change({place: File()})
        elif "O_TRUNC" in flags:
            self._file(place).content = b""

    def _full(self, call: Call, name: str) -> str:
        """Return the path of a name that may be relative to an open folder."""
        if name.startswith("/"):
            return name
        found = re.match(r"\w+<([^>]*)>", call.arguments)
        return f"{text_of(found[1])}/{name}" if found else name

    def _parts(self, place: str) -> tuple[str, ...]:
        return Path(place).relative_to(self._root).parts

    def _node(self, place: str) -> File | Folder:
        node: File | Folder = self._tree
        for part in self._parts(place):
            assert isinstance(node, Folder)
            node = node.names[part]
        return node

    def _exists(self, place: str) -> bool:
        try:
            self._node(place)
        except KeyError:
            return False
        return True

    def _file(self, place: str) -> File:
        node = self._node(place)
        assert isinstance(node, File), place
        return node

    def _change(self, nodes: dict[str, File | Folder | None]) -> None:
        """Give names to other things, or to nothing, in one step of each folder."""
        parents = {}
        for place, node in nodes.items():
            parent = parents[str(Path(place).parent)] = self._node(str(Path(place).parent))
            assert isinstance(parent, Folder), place
            parent.names.pop(Path(place).name, None)
            if node is not None:
                parent.names[Path(place).name] = node
        for parent in parents.values():
            parent.step()

    def written_after_a_cut(self, folder: Path, draw: random.Random | None) -> None:
        """Write what is on the disk after a power cut; without a draw, what is certain to be."""
        shutil.rmtree(folder, ignore_errors=True)
        _write(self._tree, folder, draw)


def _read(folder: Path) -> Folder:
    found = Folder()
    for path in folder.iterdir():
        content = b"" if path.is_dir() else path.read_bytes()
        found.names[path.name] = _read(path) if path.is_dir() else File(content, content)
    found.sync()
    return found


def _write(tree: Folder, folder: Path, draw: random.Random | None) -> None:
    folder.mkdir(parents=True)
    names = tree.since[0] if draw is None else draw.choice(tree.since)
    for name, node in names.items():
        if isinstance(node, Folder):
            _write(node, folder / name, draw)
        else:
            (folder / name).write_bytes(node.after_a_cut(draw))


def cut(job: Job, recorded: dict[str, list[Call]], draw: random.Random) -> None:
    """Cut the power after some call; the former thing or the new one is there, whole."""
    job.begin()
    disk = Disk(job.folder)
    if not recorded:
        code, calls = traced(job.write)
        if code != 0:
            raise AssertionError(f"undisturbed, it ended with {code}")
        recorded["calls"] = [call for call in calls if inside(call, job.folder)]
    calls = recorded["calls"]
    when = draw.randrange(len(calls) + 1)
    is_certain = draw.random() < 0.3
    job.kit.input = f"power cut after call {when} of {len(calls)}".encode()
    for call in calls[:when]:
        disk.play(call)
    left = job.at(job.folder.with_name(f"{job.folder.name} after"))
    disk.written_after_a_cut(left.folder, None if is_certain else draw)
    found = left.found()
    if when == len(calls) and found != 1:
        raise AssertionError("what was said to be written is not there")
