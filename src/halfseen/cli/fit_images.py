"""`halfseen fit-images`: two folders of images in, a model folder out."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from halfseen.cli.fit_config import (
    Set,
    check_place,
    going_on,
    option_of,
    parsed_options,
    save_model,
    split_names,
)
from halfseen.cli.inputs import Skipped
from halfseen.cli.printing import image_sentence, print_metrics
from halfseen.cli.terminal import Force, Json, Terminal
from halfseen.errors import InputError, OptionError
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.blocks import Blocks
    from halfseen.data.image_folders import ImageFolder
    from halfseen.data.preprocessors import ImagePreprocessor
    from halfseen.model.model import Model

MOST_BYTES = 4 * 2**30
"""Prepared images of both folders, which are held in memory."""

Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop at an image or a folder that would be skipped."),
]


def fit_images(
    source: Annotated[
        Path, typer.Argument(help="Folder of complete images: one folder inside for each class.")
    ],
    target: Annotated[Path, typer.Argument(help="Folder of unlabelled images.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write the model into.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="SIDE:FRACTION",
            help="What the target lacks: top, bottom, left or right, and how much of the image.",
        ),
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(help="An image whose white pixels are what the target lacks.")
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(min=8, max=256, help="Side that images are resized to; 16, 32 or 64 if not."),
    ] = None,
    strict: Strict = False,
    models: option_of("models") = None,  # type: ignore[valid-type]
    effort: option_of("effort") = None,  # type: ignore[valid-type]
    seed: option_of("seed") = None,  # type: ignore[valid-type]
    seeds: option_of("seeds") = None,  # type: ignore[valid-type]
    time_limit: option_of("time_limit") = None,  # type: ignore[valid-type]
    set_: Set = None,
    dry_run: Annotated[bool, typer.Option(help="Say what was understood, and stop.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn from complete, labelled images for others that lack a part and labels.

    Images are PNG and JPEG files of any size, grey or coloured. What lies in the missing part of
    the target's images is hidden before they are resized, and not looked at.

    Example: halfseen fit-images source/ target/ --missing bottom:0.5 -o model/
    """
    if (missing is None) == (mask is None):
        raise OptionError(
            "Say what the target lacks: either --missing SIDE:FRACTION, as in bottom:0.5, or "
            "--mask IMAGE."
        )
    _check_apart(source.resolve(), target.resolve())
    read = {"the source folder": source, "the target folder": target, "the mask": mask}
    check_place(output, read, dry_run=dry_run, force=force)
    from halfseen.data.image_folders import open_folder

    started = time.perf_counter()
    terminal = Terminal(as_json=as_json)
    skipped = Skipped(strict=strict)
    listed = [
        skipped.note(folder, terminal)
        for folder in (open_folder(source, labelled=True), open_folder(target))
    ]
    with terminal.status("Looking at the images"):
        looked = [folder.looked_at(skipped) for folder in listed]
    hidden = _hidden(looked, missing, mask, size)
    folders = looked[0].large_enough(hidden, skipped), looked[1].large_enough(hidden, skipped)
    _check_enough(*folders, listed[0].classes)
    preprocessor = _preprocessor(*folders, hidden)
    named = {"effort": effort, "seed": seed, "seeds": seeds, "time_limit": time_limit}
    given = {name: value for name, value in named.items() if value is not None}
    if models:
        given["models"] = tuple(dict.fromkeys(split_names(models)))
    settings = FitSettings(**given, options=parsed_options(set_ or []))
    settings.check("image")
    for title, folder in zip(("Source", "Target"), folders, strict=True):
        terminal.say(f"{title}: {_described(folder)}.")
    terminal.say(f"{image_sentence(preprocessor)}.")
    variants = [variant.name for variant in settings.variants("image")]
    together = ", which answer together" if len(variants) > 1 else ""
    terminal.say(f"Models: {' and '.join(variants)}{together}; seed {settings.seed}.")
    document: dict[str, Any] = {
        "source": {"path": source, "images": len(folders[0].files)},
        "target": {"path": target, "images": len(folders[1].files)},
        "classes": {name: folders[0].labels.count(name) for name in folders[0].classes},
        "shape": preprocessor.blocks.shape,
        "missing_pixels": int(preprocessor.blocks.mask.sum()),
        "skipped": skipped.sentences,
        "notes": skipped.notes,
        "model": None,
    }
    if dry_run or output is None:
        skipped.tell(terminal)
    else:
        model = _fit(folders, preprocessor, settings, output, terminal, skipped)
        print_metrics(model.metrics, terminal.console)
        document |= {"method": model.title, "metrics": model.metrics}
        document |= save_model(model, output, started, terminal)
    terminal.document(document)


def _check_apart(source: Path, target: Path) -> None:
    """Refuse folders of which one holds the other: images would be of both."""
    if source == target:
        raise OptionError(f"{source} is the source and cannot be the target too.")
    if source in target.parents:
        raise OptionError(f"{target} lies inside {source}, where it would count as a class.")
    if target in source.parents:
        raise OptionError(f"{source} lies inside {target}, whose images would be the source's too.")


def _hidden(
    folders: Sequence[ImageFolder], missing: str | None, mask: Path | None, size: int | None
) -> Blocks:
    """Return what the target lacks, of images of the size that they are resized to."""
    from halfseen.blocks import Blocks
    from halfseen.data.image_folders import chosen_size, mixed_cells, read_mask
    from halfseen.data.preprocessors import side_blocks

    side = size or chosen_size(folders)
    shape = (3 if any(folder.is_colour for folder in folders) else 1, side, side)
    if mask is None:
        hidden = side_blocks(shape, missing or "")
    else:
        hidden = Blocks.pixels(shape, read_mask(mask, side))
    if mixed_cells(hidden.mask).all():
        raise OptionError(
            f"At {side} × {side} pixels nothing is left beside what is missing and what resizing "
            "mixes with it: give a larger --size, or a smaller part."
        )
    return hidden


def _preprocessor(source: ImageFolder, target: ImageFolder, hidden: Blocks) -> ImagePreprocessor:
    from halfseen.blocks import Blocks
    from halfseen.data.image_folders import mixed_cells
    from halfseen.data.preprocessors import ImagePreprocessor

    shape = cast(tuple[int, int, int], hidden.shape)
    count, side = len(source.files) + len(target.files), shape[-1]
    needed = 4 * count * math.prod(shape)
    if needed > MOST_BYTES:
        raise InputError(
            f"{count:,} images of {side} × {side} pixels need {needed / 2**30:.1f} GiB of memory, "
            f"and {MOST_BYTES / 2**30:.0f} are the most: give a smaller --size, or fewer images."
        )
    blocks = Blocks.pixels(shape, mixed_cells(hidden.mask, {*source.sizes, *target.sizes}))
    return ImagePreprocessor(blocks, source.classes, "bytes", hidden)


def _check_enough(source: ImageFolder, target: ImageFolder, classes: Sequence[str]) -> None:
    """Refuse what cannot be learned from: images that cannot be read do not count."""
    from halfseen.fitting.pipeline import FEWEST_TARGET_ROWS

    for name in classes:
        if source.labels.count(name) < 2:
            raise InputError(
                f"Class {name!r} of {source.path} has {source.labels.count(name)} images that can "
                "be read; each class needs two or more."
            )
    if len(target.files) < FEWEST_TARGET_ROWS:
        raise InputError(
            f"The target {target.path} has {len(target.files)} images that can be read; at least "
            f"{FEWEST_TARGET_ROWS} are needed to adapt to it."
        )


def _fit(
    folders: tuple[ImageFolder, ImageFolder], preprocessor: ImagePreprocessor,
    settings: FitSettings, output: Path, terminal: Terminal, skipped: Skipped,
) -> Model:  # fmt: skip
    import numpy as np

    from halfseen.api import ImageDomains, fit_domains
    from halfseen.fitting.member_training import Hooks
    from halfseen.members import Sample

    with terminal.status("Reading the images"):
        source, pixels = folders[0].read(preprocessor.blocks.shape, skipped)
        target, others = folders[1].read(preprocessor.blocks.shape, skipped, preprocessor.hidden)
    skipped.tell(terminal)
    classes = [str(name) for name in preprocessor.classes]
    _check_enough(source, target, classes)
    labels = np.array([classes.index(name) for name in source.labels])
    data = {"source": source.fingerprint(pixels), "target": target.fingerprint(others)}
    with going_on(output, terminal) as unfinished:
        hooks = Hooks(terminal.progress, terminal.say, unfinished)
        hidden = preprocessor.blocks.hide(others)
        return fit_domains(
            ImageDomains(preprocessor, Sample(pixels, labels), hidden, data), settings, hooks
        )


def _described(folder: ImageFolder) -> str:
    text = f"{folder.path}, {len(folder.files):,} images"
    if folder.labels:
        counts = [(name, folder.labels.count(name)) for name in folder.classes]
        shares = (f"{name} {count:,} ({count / len(folder.files):.1%})" for name, count in counts)
        text += f" of {len(counts)} classes: {', '.join(shares)}"
    if folder.left_out:
        text += f"; {folder.left_out:,} other files left alone"
    return text
