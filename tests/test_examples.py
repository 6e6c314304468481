"""Every example runs, at a small budget."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import sklearn

from halfseen_bench.data import demo

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SAYS = {
    "diabetes": r"100 charts and everybody's blood +AUC 0\.7",
    "drift": r"boosted trees +\d.* on the target",
    "grid_search": r"The chosen one is right on \d",
    "hospitals": r"halfseen: \d.* on the target",
    "onnx_scoring": r"Server: \{'p_0': 0\.\d+",
    "own_divergence": r"mmd: \d.* right; latents .* AUC [01]\.\d",
    "own_encoder": r"latents of 128 numbers\n\d",
    "with_skada": r"halfseen: entropy .* of the target right",
}

OF_NETWORKS = ("own_divergence", "own_encoder")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_runs(path, small_budget, capsys, monkeypatch):
    monkeypatch.delenv("HALFSEEN_DATA", raising=False)
    monkeypatch.setattr(demo, "SOURCE_TEST", 1_200)  # which leaves few digits to train on
    assert len(path.read_text().splitlines()) < 80
    if path.stem == "with_skada":
        pytest.importorskip("skada", reason="pip install 'halfseen-bench[baselines]'")
    with sklearn.config_context():  # skada changes the configuration when it is imported
        runpy.run_path(str(path))["main"](1 if path.stem in OF_NETWORKS else "quick")
    assert re.search(SAYS[path.stem], capsys.readouterr().out)
