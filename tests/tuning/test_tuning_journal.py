"""The journal of a search: locked by its process alone, and on the disk with its name."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

optuna = pytest.importorskip("optuna")

from halfseen.errors import HalfseenError  # noqa: E402
from halfseen.tuning.journal import open_journal  # noqa: E402


def hold(path: Path, locked: Event) -> None:
    with open_journal(path) as kept:
        kept._backend._lock.acquire()
        locked.set()
        time.sleep(60)


def add_trial(path: Path) -> int:
    with open_journal(path) as kept:
        study = optuna.create_study(storage=kept, study_name="s", load_if_exists=True)
        study.tell(study.ask(), 0.5)
        return len(study.trials)


@pytest.mark.skipif(sys.platform == "win32", reason="locks there are Optuna's files")
def test_a_killed_search_leaves_no_lock(tmp_path):
    """Optuna's lock is a file; whoever came next waited for half a minute, and called it stale."""
    path = tmp_path / "trials.journal"
    add_trial(path)
    fork = multiprocessing.get_context("fork")  # a process that has everything imported already
    locked = fork.Event()
    process = fork.Process(target=hold, args=(path, locked))
    process.start()
    assert locked.wait(60)
    assert [file.name for file in tmp_path.iterdir()] == ["trials.journal"]
    process.kill()
    process.join()
    assert add_trial(path) == 2


def test_a_new_journal_reaches_the_disk_with_its_name(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda h: (synced.append(os.readlink(f"/proc/self/fd/{h}")), fsync(h))
    )
    add_trial(tmp_path / "trials.journal")
    assert str(tmp_path) in synced


def test_a_journal_that_can_no_longer_be_read_or_written_is_a_sentence(tmp_path):
    path = tmp_path / "trials.journal"

    def search_beside_somebody_who_replaces_it():
        with open_journal(path) as kept:
            study = optuna.create_study(storage=kept, study_name="s")
            path.unlink()
            path.mkdir()
            study.ask()

    with pytest.raises(HalfseenError, match=r"cannot be kept in .*: Is a dir"):
        search_beside_somebody_who_replaces_it()
