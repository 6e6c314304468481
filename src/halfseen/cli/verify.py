"""`halfseen verify`: whether a model is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halfseen.cli.terminal import Json, Terminal
from halfseen.errors import InputError, installed_by


def verify(
    model: Annotated[Path, typer.Argument(help="Model folder, or a graph from halfseen export.")],
    as_json: Json = False,
) -> None:
    """Check a model's seal, that it holds finite numbers alone, and its answers to known rows.

    Ends with exit code 2 and one sentence where something is wrong. A seal tells damage; who wrote
    a model is told by a signature alone, as cosign or minisign make them.

    Example: halfseen verify model/
    """
    terminal = Terminal(as_json=as_json)
    is_folder = model.is_dir()
    parts = [model]
    if is_folder or not model.exists():
        from halfseen.model.loading import load
        from halfseen.saving import read_patterns

        load(model)
        parts = read_patterns(model) or parts
        terminal.result("Seal: model.json and the tensors are as they were written.")
        terminal.result("Numbers: every tensor is finite, and fits the description.")
    skipped = next(filter(None, [_self_test(part, is_folder) for part in parts]), "")
    if not is_folder:
        terminal.result("Seal: the graph is as it was written.")
    if skipped:
        terminal.result(f"Answers: not tested. {skipped}")
    else:
        terminal.result("Answers: ONNX Runtime gives those of the model to known rows.")
    terminal.document({"model": model, "sealed": True, "answers_tested": not skipped})


def _self_test(model: Path, is_folder: bool) -> str:
    """Run the rows whose answers are known; return why that is not possible, where it is not."""
    try:
        with installed_by("onnx", "Running a graph"):
            from halfseen.export.onnx_session import open_graph
        open_graph(model)
    except InputError as error:
        # What has no graph cannot be run as one; the folder itself has been loaded by now.
        if is_folder and "known rows" not in str(error):
            return str(error)
        raise
    return ""
