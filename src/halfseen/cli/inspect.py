"""`halfseen inspect`: what a model expects, what it was trained on, how good it was."""

from __future__ import annotations

from typing import Any

from halfseen.cli.fit_config import ModelFolder
from halfseen.cli.fit_images import image_sentence
from halfseen.cli.printing import print_columns, print_metrics
from halfseen.cli.terminal import Json, Terminal


def inspect(
    model: ModelFolder,
    as_json: Json = False,
) -> None:
    """Say what a model expects of a table or of images, what it was trained on, and its metrics.

    Example: halfseen inspect model/
    """
    from halfseen.model.pattern_model import PatternModel, load

    loaded = load(model)
    terminal = Terminal(as_json=as_json)
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
        _show(part, terminal)


def _show(loaded: Any, terminal: Terminal) -> None:
    from halfseen.data.label_column import label_words
    from halfseen.data.preprocessors import ImagePreprocessor

    preprocessor = loaded.preprocessor
    terminal.result(f"{loaded.title}, trained with seed {loaded.seed}.")
    if isinstance(preprocessor, ImagePreprocessor):
        terminal.result(f"Predicts the class: {', '.join(map(str, preprocessor.classes))}.")
        origin = {
            "bytes": "from files or bytes",
            "unit": "given as numbers from -1 to 1",
            "own": "given as numbers, as in training",
        }[preprocessor.scale]
        terminal.result(f"{image_sentence(preprocessor)}; {origin}.")
    else:
        names = ", ".join(preprocessor.schema.class_names) or label_words(preprocessor.schema, ())
        terminal.result(f"Predicts {preprocessor.schema.label}: {names}.")
        print_columns(preprocessor.schema, terminal.results)
    for role, table in loaded.training_data.items():
        files = table["files"] or [{"name": "in memory", "sha256": table["sha256"]}]
        names = ", ".join(file["name"] for file in files)
        hashes = ", ".join(file["sha256"][:12] for file in files)
        terminal.result(f"Trained on {role} {names}: {table['rows']:,} rows, SHA-256 {hashes}.")
    if loaded.metrics:
        print_metrics(loaded.metrics, terminal.results)
    versions = ", ".join(f"{name} {version}" for name, version in loaded.versions.items())
    terminal.result(f"Versions: {versions}.")
    for networks in loaded.networks_members[:1]:
        terminal.settings(networks.options)
