"""Commands on a whole model: `halfseen inspect`, `verify`, `report` and `export`."""

from __future__ import annotations

import webbrowser
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.cli.inputs import ModelFolder
from halfseen.cli.printing import print_model
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import InputError, installed_by
from halfseen.outputs import MODEL_FILES, Output, check_outputs, head, is_page

MODEL, PATTERNS = MODEL_FILES[0], "patterns.json"
_PRODUCER = b"\x12\x08halfseen"
"""The producer's name, as it stands at the beginning of a graph."""


def inspect(model: ModelFolder, as_json: Json = False) -> None:
    """Say what a model expects of a table or of images, what it was trained on, and its metrics.

    Example: halfseen inspect model/
    """
    from halfseen.model.loading import load
    from halfseen.model.pattern_model import PatternModel

    loaded, terminal = load(model), Terminal(as_json=as_json)
    parts = loaded.parts if isinstance(loaded, PatternModel) else (loaded,)
    if as_json:
        described = [
            part.description().model_dump(mode="json", exclude={"sha256", "seal"}) for part in parts
        ]
        terminal.document(described[0] if len(parts) == 1 else {"parts": described})
        return
    for number, part in enumerate(parts, start=1):
        if isinstance(loaded, PatternModel):
            lacks = ", ".join(loaded.patterns[number - 1])
            terminal.result(f"Part {number} of {len(parts)}, for tables that lack {lacks}:")
        print_model(part, terminal)


def verify(
    model: Annotated[Path, typer.Argument(help="Model folder, or a graph from halfseen export.")],
    as_json: Json = False,
) -> None:
    """Check a model's seal, that it holds finite numbers alone, and its answers to known rows.

    Ends with exit code 2 and one sentence where something is wrong. A seal tells damage; who wrote
    a model is told by a signature alone, as cosign or minisign make them.

    Example: halfseen verify model/
    """
    terminal, is_folder, parts = Terminal(as_json=as_json), model.is_dir(), [model]
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
    tested = "ONNX Runtime gives those of the model to known rows."
    terminal.result(f"Answers: {f'not tested. {skipped}' if skipped else tested}")
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


def report(
    path: Annotated[
        Path, typer.Argument(help="A model folder, or a folder that `halfseen bench run` wrote.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page to write; FOLDER-report.html here by default."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write one HTML page on a model or a benchmark: what is missing, what shifted, what to expect.

    The page holds everything it shows and loads nothing. A section that the folder has no data
    for says so.

    Example: halfseen report model/ -o report.html
    """
    terminal = Terminal(as_json=as_json)
    written = output or Path(f"{path.resolve().name}-report.html")
    logs = {entry.name: entry for entry in entry_points(group="halfseen.pages")}
    folder = path.parent if path.is_file() and path.name in (MODEL, PATTERNS, *logs) else path
    is_model = any((folder / name).is_file() for name in (MODEL, PATTERNS))
    places = {name: [folder / name, folder / f"{name}.gz"] for name in logs}
    inputs: dict[str, Path | None] = {"the model": folder}
    if not is_model:
        inputs = {f"the log {log.name}": log for own in places.values() for log in own}
    check_outputs([Output(written, "the report", is_page)], inputs, force=force)
    with installed_by("report", "A report"):
        from halfseen.report.html import write_page
    own_logs = [entry for name, entry in logs.items() if any(map(Path.is_file, places[name]))]
    if not is_model and not own_logs:
        what = f"has no {MODEL}, nor the log of a benchmark" if path.exists() else "does not exist"
        raise InputError(
            f"{path} {what}: give a folder that `halfseen fit`, `halfseen bench run` or `halfseen "
            "demo` wrote."
        )
    with terminal.status("Writing the report"):
        write_page(written, _model_page(folder) if is_model else own_logs[0].load()(folder))
    terminal.result(f"Report: {written}")
    terminal.document({"report": written})
    if open_:
        webbrowser.open(written.resolve().as_uri())


def _model_page(folder: Path) -> Any:
    from halfseen.report.model_page import model_page, patterns_page, read_subject
    from halfseen.saving import read_patterns

    if parts := read_patterns(folder):
        return patterns_page(folder.resolve().name, [read_subject(part) for part in parts])
    return model_page(read_subject(folder))


def export(
    model: ModelFolder,
    onnx: Annotated[Path, typer.Option("--onnx", help="Where to write the graph.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model as one ONNX graph, from raw columns or pixels to probabilities.

    ONNX Runtime runs it without halfseen and without torch. Before it is written, it is compared
    with the model. A model of several missing patterns becomes a graph for each: model-1.onnx, ...

    Example: halfseen export model/ --onnx model.onnx
    """
    from halfseen.saving import read_patterns

    parts = [(model, onnx)]
    if patterns := read_patterns(model):
        parts = [(part, onnx.with_stem(f"{onnx.stem}-{n}")) for n, part in enumerate(patterns, 1)]
    outputs = [
        Output(graph, "the graph", lambda path: _PRODUCER in head(path)[:64], "--onnx")
        for _, graph in parts
    ]
    check_outputs(outputs, {"the model": model}, force=force)
    terminal = Terminal(as_json=as_json)
    with installed_by("onnx", "Export"):
        from halfseen.export import onnx as onnx_export
        from halfseen.model.loading import load_one
    written: list[dict[str, Any]] = []
    for part, graph in parts:
        loaded = load_one(part)
        made = onnx_export.onnx_model(loaded)
        difference = onnx_export.check_parity(loaded, made)
        onnx_export.write_onnx(made, graph)
        size = graph.stat().st_size
        terminal.result(f"Graph: {graph} ({size:,} bytes)")
        terminal.say(f"Graph and model differ by at most {difference:.1e} on made-up rows.")
        written.append({"graph": graph, "bytes": size, "largest_difference": difference})
    terminal.document(written[0] if len(written) == 1 else {"parts": written})
