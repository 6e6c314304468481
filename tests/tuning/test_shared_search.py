"""A search that two commands share."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest


@pytest.mark.slow
def test_two_commands_share_a_search(tmp_path):
    """As on two machines with one file system: the same command, the same storage."""
    random = np.random.default_rng(0)
    source = pd.DataFrame(random.normal(size=(200, 4)), columns=list("abcd"))
    source[list("abc")].to_csv(tmp_path / "target.csv", index=False)
    source["y"] = (source["a"] + source["d"] > 0).astype(int)
    source.to_csv(tmp_path / "source.csv", index=False)
    (tmp_path / "tune.toml").write_text("[options.training]\nwarmup_epochs = 1\njoint_epochs = 8\n")

    def start(name):
        words = ["tune", "source.csv", "target.csv", "--label", "y", "--config", "tune.toml"]
        words += ["--score", "source_loss", "--trials", "6", "--storage", "shared.journal"]
        return subprocess.Popen(
            [sys.executable, "-m", "halfseen", *words, "-o", f"{name}.toml"],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    commands = [start("first"), start("second")]
    told = [command.communicate(timeout=300)[1] for command in commands]
    assert [command.returncode for command in commands] == [0, 0], told
    done = [text.count("source_loss") for text in told]
    assert all(done), "both had a part in it"
    assert 6 <= sum(done) <= 7  # the last trial may be begun by both at once
    tables = [list(csv.DictReader((tmp_path / f"{n}.csv").open())) for n in ("first", "second")]
    longest = max(tables, key=len)
    assert len(longest) == sum(done)
    settings = [{k: v for k, v in row.items() if k not in ("source_loss", "state")}
                for row in longest]  # fmt: skip
    assert all(settings.count(one) == 1 for one in settings), "nothing is tried twice"
