"""Where a fit of tables or of images writes its model, and what it keeps until it is finished."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from halfseen.cli.terminal import Terminal, plain
from halfseen.errors import OptionError
from halfseen.outputs import Output, check_outputs, head


def check_place(
    output: Path | None, read: Mapping[str, Path | None], *, dry_run: bool, force: bool
) -> None:
    """Refuse a place for the model that would destroy something, and none where one is needed."""
    from halfseen.saving import DESCRIPTION, PATTERNS, check_replaceable

    if output is None:
        if dry_run:
            return
        raise OptionError("Say where to write the model: -o FOLDER (or --dry-run to see the plan).")
    if output.name in ("", ".."):
        raise OptionError(f"{output} is no folder of the model's own; name one with -o.")

    def is_model(folder: Path) -> bool:
        check_replaceable(folder)
        described = any(b'"format"' in head(folder / name) for name in (DESCRIPTION, PATTERNS))
        return described or not any(folder.iterdir())

    def is_unfinished(folder: Path) -> bool:
        return all("safetensors" in file.name for file in folder.iterdir())

    places = [
        Output(output, "the model", is_model, is_folder=True),
        Output(_unfinished(output), "the unfinished model", is_unfinished, is_folder=True),
    ]
    check_outputs(places, read, force=force)


@contextmanager
def going_on(output: Path, terminal: Terminal) -> Iterator[Path]:
    """Give the folder that keeps the state of an unfinished fit, and say what it is good for."""
    unfinished = _unfinished(output)
    if unfinished.is_dir():
        terminal.say(f"Going on where an earlier fit of the same model stopped ({unfinished}).")
    try:
        yield unfinished
    except KeyboardInterrupt:
        kept = unfinished.is_dir() and any(unfinished.iterdir())
        plain(
            terminal.errors,
            "The same command goes on from the last finished epoch."
            if kept
            else "Nothing was kept: the same command starts anew.",
        )
        raise


def save_model(model: Any, output: Path, started: float, terminal: Terminal) -> dict[str, Any]:
    """Write a model and tell so; return what a document says of it."""
    model.save(output)
    shutil.rmtree(_unfinished(output), ignore_errors=True)
    seconds = time.perf_counter() - started
    terminal.detail(f"{seconds:.1f} s in all.")
    terminal.result(f"Model: {output}")
    return {"model": output, "seconds": round(seconds, 3)}


def _unfinished(output: Path) -> Path:
    return output.with_name(f".{output.name}.unfinished")
