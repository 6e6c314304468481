"""From two CSV files to a graph that ONNX Runtime scores, and to a server that runs it.

The same from a shell: `halfseen fit`, `halfseen export` and `halfseen serve`, which the package
halfseen-serve adds.

    python examples/onnx_scoring.py
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.datasets import load_breast_cancer

import halfseen
from halfseen.export.onnx import check_parity, onnx_model, write_onnx


def fit(folder: Path, effort: str) -> pd.DataFrame:
    """Write two tables, fit a model of them, write it as `model.onnx`; return target rows."""
    patients = load_breast_cancer(as_frame=True).frame
    source = patients.sample(300, random_state=0)
    target = patients.drop(source.index).loc[:, :"fractal dimension error"] * 1.1
    source.to_csv(folder / "source.csv", index=False)
    target.to_csv(folder / "target.csv", index=False)
    files = folder / "source.csv", folder / "target.csv"
    model = halfseen.fit(*files, label="target", effort=effort)
    graph = onnx_model(model)
    print(f"Graph and model differ by at most {check_parity(model, graph):.0e}.")
    write_onnx(graph, folder / "model.onnx")
    return target


def score(graph: Path, rows: pd.DataFrame) -> np.ndarray:
    """Score raw columns; this needs neither halfseen nor torch."""
    session = onnxruntime.InferenceSession(graph)
    columns = {c.name: rows[c.name].to_numpy("float64") for c in session.get_inputs()}
    probabilities, _ = session.run(None, columns)
    return probabilities


def ask_server(graph: Path, rows: pd.DataFrame) -> list[dict[str, float]]:
    """Serve the graph on a free port, send rows as JSON, and stop the server."""
    command = [sys.executable, "-m", "halfseen", "serve", str(graph), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        ready = json.loads(server.stderr.readline())
        body = json.dumps({"records": rows.to_dict("records")}).encode()
        request = urllib.request.Request(f"{ready['url']}/predict", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            records = json.load(answer)["records"]
        server.terminate()
    return records


def main(effort: str = "default") -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target = fit(folder, effort)
        probabilities = score(folder / "model.onnx", target)
        print(f"ONNX Runtime: {len(probabilities)} rows, the first {probabilities[0].round(3)}")
        for row in ask_server(folder / "model.onnx", target.head(2)):
            print(f"Server: {row}")


if __name__ == "__main__":
    main(*sys.argv[1:])
