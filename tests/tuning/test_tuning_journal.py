"""The journal of a search: never locked for long, and on the disk with its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

optuna = pytest.importorskip("optuna")

from halfseen.tuning import journal  # noqa: E402
from halfseen.tuning.journal import open_journal  # noqa: E402


def add_trial(path: Path) -> int:
    study = optuna.create_study(storage=open_journal(path), study_name="s", load_if_exists=True)
    study.tell(study.ask(), 0.5)
    return len(study.trials)


def test_a_lock_that_a_killed_process_left_is_waited_for_and_removed(tmp_path, monkeypatch):
    path = tmp_path / "trials.journal"
    add_trial(path)
    (tmp_path / "trials.journal.lock").touch()
    monkeypatch.setattr(journal, "_PATIENCE", 3)
    assert add_trial(path) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["trials.journal"]


def test_a_new_journal_reaches_the_disk_with_its_name(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda h: (synced.append(os.readlink(f"/proc/self/fd/{h}")), fsync(h))
    )
    add_trial(tmp_path / "trials.journal")
    assert str(tmp_path) in synced
