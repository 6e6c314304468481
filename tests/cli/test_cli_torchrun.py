"""``torchrun -m halfseen fit``: the same model from two processes, also after one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from tables_cli import TINY, halfseen

from halfseen import load

# Dropout masks are each process's own; without them two processes take the steps of one.
CONFIG = TINY.replace("joint_epochs = 1", "joint_epochs = 8") + "dropout = 0\nencoder_dropout = 0\n"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.fixture(scope="module")
def arguments(tables, tmp_path_factory) -> list[str]:
    config = tmp_path_factory.mktemp("torchrun") / "fit.toml"
    config.write_text(CONFIG)
    files = (tables / "source.parquet", tables / "target.parquet")
    given = ("fit", *files, "--label", "click", "--id", "user", "--config", config)
    return [str(argument) for argument in given]


def start(arguments: list[str], model: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*TORCHRUN, "-m", "halfseen", *arguments, "-o", str(model)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200", "TERM": "dumb", "OMP_NUM_THREADS": "1"},
    )


def scores(model: Path, tables: Path) -> np.ndarray:
    rows = pyarrow.parquet.read_table(tables / "target.parquet")
    return load(model).predict_proba(rows)


def process_of(rank: int, job: subprocess.Popen[str]) -> int:
    """Return the process that torchrun started as a rank."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    of_rank = f"\0RANK={rank}\0".encode()
    (found,) = (p for p in children if of_rank in Path(f"/proc/{p}/environ").read_bytes())
    return int(found)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_two_processes_fit_the_model_of_one_also_when_one_is_killed(arguments, tables, tmp_path):
    alone, together, killed = (tmp_path / name for name in ("alone", "together", "killed"))
    run = halfseen(*arguments, "-o", alone)
    assert run.code == 0, run.err
    job = start(arguments, together)
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    assert out.count("2 processes share every batch.") == 1
    assert out.count(f"Model: {together}") == 1
    np.testing.assert_allclose(scores(together, tables), scores(alone, tables), atol=1e-4)

    job = start(arguments, killed)
    unfinished, limit = tmp_path / ".killed.unfinished", time.monotonic() + 60
    while not any(unfinished.glob("*.safetensors")):
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < limit
        time.sleep(0.01)
    os.kill(process_of(1, job), signal.SIGKILL)
    _, err = job.communicate(timeout=60)
    assert job.returncode != 0
    assert not killed.exists()
    assert [path.name for path in unfinished.iterdir() if "partial" in path.name] == []

    job = start(arguments, killed)
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    assert "Going on where an earlier fit" in out
    assert not unfinished.exists()
    np.testing.assert_array_equal(scores(killed, tables), scores(together, tables))
