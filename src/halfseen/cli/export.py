"""`halfseen export`: a model folder as one ONNX graph with a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.atomic_files import write_text
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import installed_by
from halfseen.outputs import Output, check_outputs, derived_path, head

_PRODUCER = b"\x12\x08halfseen"
"""The producer's name, as it stands at the beginning of a graph."""


def export(
    model: Annotated[Path, typer.Argument(help="Model folder, as halfseen fit writes it.")],
    onnx: Annotated[Path, typer.Option("--onnx", help="Where to write the graph.")],
    card: Annotated[
        Path | None,
        typer.Option(help="Where to write the model card; by default beside the graph, as .md."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model as one ONNX graph, from raw columns or pixels to probabilities.

    ONNX Runtime runs it without halfseen and without torch. Before it is written, it is compared
    with the model. A model of several missing patterns becomes a graph for each: model-1.onnx, ...

    Example: halfseen export model/ --onnx model.onnx
    """
    from halfseen.saving import read_patterns

    card = derived_path(onnx, ".md") if card is None else card
    parts = [(model, onnx, card)]
    if patterns := read_patterns(model):
        parts = [
            (part, onnx.with_stem(f"{onnx.stem}-{n}"), card.with_stem(f"{card.stem}-{n}"))
            for n, part in enumerate(patterns, start=1)
        ]
    outputs = [
        output
        for _, graph, its_card in parts
        for output in (
            Output(graph, "the graph", lambda path: _PRODUCER in head(path)[:64], "--onnx"),
            Output(its_card, "the card", lambda p: head(p).startswith(b"# Model card:"), "--card"),
        )
    ]
    check_outputs(outputs, {"the model": model}, force=force)
    terminal = Terminal(as_json=as_json)
    written = [_written(*part, terminal) for part in parts]
    terminal.document(written[0] if len(written) == 1 else {"parts": written})


def _written(model: Path, onnx: Path, card: Path, terminal: Terminal) -> dict[str, Any]:
    with installed_by("onnx", "Export"):
        from halfseen.export import onnx as onnx_export
        from halfseen.export.model_card import model_card
        from halfseen.model.loading import load
    loaded = load(model)
    graph = onnx_export.onnx_model(loaded)
    difference = onnx_export.check_parity(loaded, graph)
    write_text(card, model_card(loaded, onnx.name))
    onnx_export.write_onnx(graph, onnx)
    size = onnx.stat().st_size
    terminal.result(f"Graph: {onnx} ({size:,} bytes)")
    terminal.result(f"Card:  {card}")
    terminal.say(f"Graph and model differ by at most {difference:.1e} on made-up rows.")
    return {"graph": onnx, "bytes": size, "card": card, "largest_difference": difference}
