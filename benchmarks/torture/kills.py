"""Kills at random moments, a second writer, and a disk that is full after some bytes."""

from __future__ import annotations

import itertools
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from functools import partial

from halfseen.networks.loop import read_checkpoint, write_checkpoint
from torture.jobs import check_checkpoint, checkpoint_of
from torture.kit import Case, Kit, ended, forked


def classes(kit: Kit) -> dict[str, Case]:
    """Return the classes of this file."""
    return {
        "kill while a model is saved": partial(kill_while_saving, kit),
        "kill while checkpoints are kept": partial(kill_while_keeping_checkpoints, kit),
        "two writers of one model": partial(two_writers, kit),
        "full disk while a model is saved": partial(full_disk, kit),
    }


def killed(work: Callable[[], None], draw: random.Random, longest: float = 0.12) -> None:
    """Run something in a process of its own, and kill it a moment after it has begun."""
    reading, writing = os.pipe()

    def begin_and_work() -> None:
        os.close(writing)
        work()

    child = forked(begin_and_work)
    os.close(writing)
    os.read(reading, 1)  # nothing comes: the other end is closed when the child has begun
    os.close(reading)
    time.sleep(draw.random() * longest)
    os.kill(child, signal.SIGKILL)
    ended(child)


def save_in_turns(kit: Kit, folder, times: int | None = None) -> None:
    """Write one model, then the other, again and again."""
    for number in itertools.count() if times is None else range(times):
        kit.save(folder, number % 2)


def kill_while_saving(kit: Kit, draw: random.Random) -> None:
    """See that after a kill the folder is one of the two models."""
    folder = kit.place_of("killed")
    killed(partial(save_in_turns, kit, folder), draw)
    kit.check_folder(folder)


def kill_while_keeping_checkpoints(kit: Kit, draw: random.Random) -> None:
    """See that after a kill the checkpoint is one of the two."""
    path = kit.work / "kept" / "run.safetensors"
    if not path.exists():
        write_checkpoint(path, checkpoint_of(kit, 0))

    def work() -> None:
        for number in itertools.count():
            write_checkpoint(path, checkpoint_of(kit, number % 2))

    killed(work, draw)
    check_checkpoint(kit, read_checkpoint(path, "run"))


def two_writers(kit: Kit, draw: random.Random) -> None:
    """Let two processes save into one folder, and kill one of them now and then."""
    folder = kit.place_of("shared")
    children = [forked(partial(save_in_turns, kit, folder, 5)) for _ in range(2)]
    if draw.random() < 0.5:
        time.sleep(draw.random() * 0.05)
        os.kill(children[0], signal.SIGKILL)
    codes = [ended(child) for child in children]
    if codes[1] != 0 or codes[0] not in (0, -signal.SIGKILL):
        raise AssertionError(f"a writer ended with {codes}")
    kit.check_folder(folder)


def full_disk(kit: Kit, draw: random.Random) -> None:
    """Stop writing after some bytes: the former model stays, and the refusal is a sentence."""
    folder = kit.place_of("full")
    most = draw.randrange(2 * sum(map(len, kit.files.values())))

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        kit.save(folder, 1)

    code = ended(forked(work))
    if code not in (0, 3):
        raise AssertionError(f"saving ended with {code}")
    kit.check_folder(folder)
