"""What is written is there whole: through kills, full disks, power cuts and a second writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from halfseen import outputs
from halfseen.errors import HalfseenError
from halfseen.outputs import atomic_folder, atomic_write, recover, remove_leftovers

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged there")


def write_folder(path: Path, text: str) -> None:
    with atomic_folder(path) as partial:
        for name in ("one", "two"):
            (partial / name).write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@LINUX
def test_a_folder_is_never_absent_while_it_is_replaced(tmp_path):
    """Two renames left a moment without a model, for good if the process was killed in it."""
    write_folder(tmp_path / "model", "0")
    done = threading.Event()

    def write() -> None:
        for number in range(100):
            write_folder(tmp_path / "model", str(number))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    looks = absent = 0
    while not done.is_set():
        absent += not (tmp_path / "model").exists()
        looks += 1
    writer.join()
    assert looks > 100
    assert absent == 0
    assert names(tmp_path) == ["model"]
    assert (tmp_path / "model" / "two").read_text() == "99"


def test_two_writers_leave_one_whole_folder(tmp_path):
    failures = []

    def write(who: int) -> None:
        try:
            for number in range(30):
                write_folder(tmp_path / "model", f"{who} {number}")
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not failures
    assert names(tmp_path) == ["model"]
    texts = {(tmp_path / "model" / name).read_text() for name in ("one", "two")}
    assert len(texts) == 1
    assert texts.pop().endswith(" 29")


KILLED = """
import sys, time
from pathlib import Path
from halfseen.outputs import atomic_folder, atomic_write
with atomic_write(Path(sys.argv[1]) / "file") as one:
    with atomic_folder(Path(sys.argv[1]) / "model") as two:
        one.write_text("half")
        (two / "one").write_text("half")
        print("writing", flush=True)
        time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_nothing_of_a_living_one(tmp_path):
    write_folder(tmp_path / "model", "old")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    remove_leftovers(tmp_path / "file")
    write_folder(tmp_path / "model", "new")
    assert len(names(tmp_path)) == 3, "the other process still writes"
    process.send_signal(signal.SIGKILL)
    process.wait()
    remove_leftovers(tmp_path / "file")
    write_folder(tmp_path / "model", "newer")
    assert names(tmp_path) == ["model"]
    assert (tmp_path / "model" / "one").read_text() == "newer"


def test_names_that_only_look_alike_are_left_alone(tmp_path):
    others = ["a.partial.model", ".0123456789ab.partial.other", ".partial.model", ".x.former.model"]
    for name in others:
        (tmp_path / name).write_text("mine")
    write_folder(tmp_path / "model", "new")
    assert names(tmp_path) == sorted([*others, "model"])


def test_where_folders_cannot_be_exchanged_a_kill_is_made_good(tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "_exchanged", lambda first, second: False)
    model = tmp_path / "model"
    write_folder(model, "old")
    write_folder(model, "new")
    assert (model / "one").read_text() == "new"
    assert names(tmp_path) == ["model"]
    model.rename(tmp_path / ".0123456789ab.former.model")  # as a kill between two renames leaves it
    recover(model)
    assert (model / "one").read_text() == "new"
    model.rename(tmp_path / ".0123456789ab.former.model")
    write_folder(model, "newer")
    assert (model / "one").read_text() == "newer"
    assert names(tmp_path) == ["model"]


def test_content_reaches_the_disk_before_its_name_and_its_name_before_the_end(
    tmp_path, monkeypatch
):
    """So a power cut finds the old file or the new one; unsynced writes are the ones it drops."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}"[:10])
        fsync(handle)

    def replaced(first: Path, second: Path) -> None:
        steps.append("rename")
        replace(first, second)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with atomic_write(tmp_path / "file") as partial:
        partial.write_text("new")
    assert [step.split()[0] for step in steps] == ["sync", "rename", "sync"]
    assert steps[2] == f"sync {tmp_path.name}"[:10]


def test_a_link_is_not_written_through_nor_replaced(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(HalfseenError, match="is a symbolic link"), atomic_write(tmp_path / "link"):
        pass
    with pytest.raises(HalfseenError, match="is a symbolic link"):
        write_folder(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["n" * 251 + ".csv", "ü" * 125 + ".csv"])
def test_every_name_that_the_file_system_takes_can_be_written(tmp_path, name):
    """A temporary name that is longer than the name itself is too long too soon."""
    with atomic_write(tmp_path / name) as partial:
        partial.write_text("new")
        assert partial.suffix == ".csv"
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("n" * 300, "File name too long; choose a shorter name"),
        ("file/inside", "could not be written: (Not a directory|File exists)"),
    ],
)
def test_what_the_system_refuses_is_a_sentence(tmp_path, name, message):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HalfseenError, match=message), atomic_write(tmp_path / name):
        pass
    assert names(tmp_path) == ["file"]


def test_what_is_left_is_removed_even_if_old(tmp_path):
    leftover = tmp_path / ".0123456789ab.partial.file"
    leftover.write_text("half")
    os.utime(leftover, (time.time() - 1e6,) * 2)
    with atomic_write(tmp_path / "file") as partial:
        partial.write_text("new")
    assert names(tmp_path) == ["file"]


def test_new_folders_reach_the_disk_with_what_is_written_in_them(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync

    def watched(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    with atomic_write(tmp_path / "new" / "newer" / "file") as partial:
        partial.write_text("whole")
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "newer"} <= set(synced)
