"""`halfseen verify`: seal, numbers and answers; exit code 2 where one of them is wrong."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from tables_cli import check_refused, halfseen


def test_a_whole_model_and_its_graph(tables, tmp_path):
    graph = tmp_path / "model.onnx"
    assert halfseen("export", tables / "model", "--onnx", graph).code == 0
    for path in (tables / "model", graph):
        run = halfseen("verify", path)
        assert run.code == 0, run.err
        assert "Seal: " in run.out
        assert "gives those of the model to known rows" in run.out
        found = json.loads(halfseen("verify", path, "--json").out)
        assert found.pop("model") == str(path)
        assert found == {"sealed": True, "answers_tested": True}


@pytest.mark.parametrize("name", ["model.json", "model.safetensors", "model.onnx"])
def test_a_changed_byte(name, tables, tmp_path, out):
    folder = shutil.copytree(tables / "model", tmp_path / "model")
    path = folder / name
    if name == "model.onnx":
        path = tmp_path / name
        assert halfseen("export", folder, "--onnx", path).code == 0
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    check_refused(halfseen("verify", path if name == "model.onnx" else folder), out)


def test_nothing_there(tmp_path, out):
    check_refused(halfseen("verify", tmp_path / "none"), out, "There is no model folder")


def test_without_what_runs_a_graph_it_says_that_answers_were_not_tested(tables, monkeypatch):
    monkeypatch.setitem(sys.modules, "halfseen.export.onnx_session", None)
    run = halfseen("verify", tables / "model")
    assert run.code == 0, run.err
    assert "not tested. Running a graph needs more libraries" in run.out
    assert "pip install 'halfseen[onnx]'" in run.out
