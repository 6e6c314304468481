"""A sweep on a local Ray and a local Dask; a search that two commands share."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from halfseen.cli.app import app

pytestmark = pytest.mark.engines


@pytest.mark.parametrize(("backend", "engine"), [("ray", "ray"), ("dask", "distributed")])
def test_a_sweep_on_a_local_cluster(backend, engine, tmp_path):
    pytest.importorskip(engine)
    words = ["bench", "run", "demo", "--budget", "quick", "--models", "Source-IgnoreComponent"]
    words += ["--models", "Constant: source prior", "--seeds", "1", "--jobs", "2"]

    def accuracies(name, *more):
        folder = tmp_path / name
        done = CliRunner().invoke(app, [*words, *more, "-o", str(folder)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        lines = (folder / "runs.jsonl").read_text().splitlines()
        runs = {line["key"]: line["result"]["records"] for line in map(json.loads, lines)}
        return {key: [r["accuracy"] for r in records] for key, records in sorted(runs.items())}

    assert accuracies(backend, "--backend", backend) == accuracies("loky")
