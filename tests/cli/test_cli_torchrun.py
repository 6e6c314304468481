"""``torchrun -m halfseen fit``: the same model from two processes, also after one was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
import torch
from tables_cli import TINY, halfseen, source_table, target_table, write

from halfseen import load
from halfseen.cli import main

# Dropout masks are each process's own; without them two processes take the steps of one.
NO_DROPOUT = "[options]\nnetworks.classifier_dropout = 0\ntables.dropout = 0\n"
CONFIG = (
    TINY.replace("[options]\n", NO_DROPOUT)
    + "augmentation = 'none'\nbatch_size = 151\nwarmup_batch_size = 200\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Tables with rows enough for one part to be held out, and the model of one process."""
    folder = tmp_path_factory.mktemp("torchrun")
    write(source_table(1000), folder / "source.parquet", row_group_size=150)
    write(target_table(800), folder / "target.parquet", row_group_size=150)
    config = CONFIG.replace("joint_epochs = 1", "joint_epochs = 6")
    (folder / "fit.toml").write_text(config)
    (folder / "streamed.toml").write_text("memory_mib = 0\n" + config)
    run = halfseen(*arguments(folder, "alone"))
    assert run.code == 0, run.err
    return folder


def arguments(folder: Path, model: str, config: str = "fit.toml") -> list[str]:
    tables = (folder / "source.parquet", folder / "target.parquet")
    given = ("fit", *tables, "--label", "click", "--id", "user", "--config", folder / config)
    return [str(argument) for argument in (*given, "-o", folder / model)]


def as_rank(rank: int, port: int, words: list[str], out: str) -> None:
    """Be one of two processes that torchrun would start."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "TORCHELASTIC_RUN_ID": "here"}
    sys.argv = ["halfseen", *words]
    with Path(f"{out}-{rank}").open("w") as file, contextlib.redirect_stdout(file):
        main()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def in_two(folder: Path, model: str, config: str = "fit.toml") -> Path:
    """Fit in two processes that have everything imported already."""
    given = (free_port(), arguments(folder, model, config), str(folder / "printed"))
    torch.multiprocessing.start_processes(as_rank, given, nprocs=2, start_method="fork")
    return folder / model


@pytest.fixture(scope="module")
def together(folder) -> Path:
    """The model of two processes."""
    return in_two(folder, "together")


def scores(model: Path) -> np.ndarray:
    rows = pyarrow.parquet.read_table(model.parent / "target.parquet")
    return load(model).predict_proba(rows)


def test_two_processes_fit_the_model_of_one(folder, together):
    printed = [(folder / f"printed-{rank}").read_text() for rank in range(2)]
    assert "2 processes share every batch." in printed[0]
    assert f"Model: {together}" in printed[0].replace("\n", "")
    assert printed[1] == "", "the first one speaks for both"
    np.testing.assert_allclose(scores(together), scores(folder / "alone"), atol=1e-4)
    losses = [
        [record["classification"] for record in load(folder / name).history]
        for name in ("together", "alone")
    ]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert not list(folder.glob(".*unfinished"))


def test_two_processes_read_a_streamed_table_between_them(folder, together):
    streamed = load(in_two(folder, "streamed", "streamed.toml"))
    assert "streamed from disk" in (folder / "printed-0").read_text()
    # Other batches than in memory, and not fewer.
    phases = [record["phase"] for record in streamed.history]
    assert phases == [record["phase"] for record in load(together).history]
    losses = [record["classification"] for record in streamed.history]
    assert losses[-1] < losses[0]


def torchrun(words: list[str]) -> subprocess.Popen[str]:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "halfseen", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200", "TERM": "dumb", "OMP_NUM_THREADS": "1"},
    )


def process_of(rank: int, job: subprocess.Popen[str]) -> int:
    """Return the process that torchrun started as a rank."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    of_rank = f"\0RANK={rank}\0".encode()
    (found,) = (p for p in children if of_rank in Path(f"/proc/{p}/environ").read_bytes())
    return int(found)


@pytest.mark.engines
def test_a_killed_process_ends_the_job_and_the_next_goes_on(folder, together):
    job = torchrun(arguments(folder, "killed"))
    unfinished, limit = folder / ".killed.unfinished", time.monotonic() + 120
    while not any(unfinished.glob("*.safetensors")):
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.kill(process_of(1, job), signal.SIGKILL)
    job.communicate(timeout=120)
    assert job.returncode not in (0, None)
    assert not (folder / "killed").exists()
    assert not [path for path in unfinished.iterdir() if "partial" in path.name]

    job = torchrun(arguments(folder, "killed"))
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err
    assert "Going on where an earlier fit" in out
    assert not unfinished.exists()
    np.testing.assert_array_equal(scores(folder / "killed"), scores(together))
