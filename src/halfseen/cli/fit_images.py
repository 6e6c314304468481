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
    unlabelled: Annotated[
        list[Path] | None,
        typer.Option(help="More complete images, from anywhere, without a label (repeatable)."),
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
    """Learn from complete images, labelled ones among them, for others that lack a part and labels.

    Images are PNG and JPEG files of any size, grey or coloured. What lies in the missing part of
    the target's images is hidden before they are resized, and not looked at.

    Example: halfseen fit-images source/ target/ --missing bottom:0.5 -o model/
    """
    if (missing is None) == (mask is None):
        raise OptionError(
            "Say what the target lacks: either --missing SIDE:FRACTION, as in bottom:0.5, or "
            "--mask IMAGE."
        )
    more = unlabelled or []
    _check_apart(source.resolve(), target.resolve(), [path.resolve() for path in more])
    read = {"the source folder": source, "the target folder": target, "the mask": mask}
    read |= {f"the unlabelled folder {number}": path for number, path in enumerate(more, 1)}
    check_place(output, read, dry_run=dry_run, force=force)
    from halfseen.data.image_folders import open_folder

    started = time.perf_counter()
    terminal = Terminal(as_json=as_json)
    skipped = Skipped(strict=strict)
    listed = [
        skipped.note(folder, terminal)
        for folder in (open_folder(source, labelled=True), *map(open_folder, [target, *more]))
    ]
    with terminal.status("Looking at the images"):
        looked = [folder.looked_at(skipped) for folder in listed]
    hidden = _hidden(looked, missing, mask, size)
    folders = [folder.large_enough(hidden, skipped) for folder in looked]
    _check_enough(folders, listed[0].classes)
    preprocessor = _preprocessor(folders, hidden)
    named = {"effort": effort, "seed": seed, "seeds": seeds, "time_limit": time_limit}
    given = {name: value for name, value in named.items() if value is not None}
    if models:
        given["models"] = tuple(dict.fromkeys(split_names(models)))
    settings = FitSettings(**given, options=parsed_options(set_ or []))
    settings.check("image")
    titles = ("Source", "Target", *["Without a label"] * len(more))
    for title, folder in zip(titles, folders, strict=True):
        terminal.say(f"{title}: {_described(folder)}.")
    terminal.say(f"{image_sentence(preprocessor)}.")
    variants = [variant.name for variant in settings.variants("image")]
    together = ", which answer together" if len(variants) > 1 else ""
    terminal.say(f"Models: {' and '.join(variants)}{together}; seed {settings.seed}.")
    document: dict[str, Any] = {
        "source": {"path": source, "images": len(folders[0].files)},
        "target": {"path": target, "images": len(folders[1].files)},
        "unlabelled": [
            {"path": path, "images": len(folder.files)}
            for path, folder in zip(more, folders[2:], strict=True)
        ],
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


def _check_apart(source: Path, target: Path, unlabelled: Sequence[Path]) -> None:
    """Refuse folders of which one holds the other: images would be of both."""
    if source == target:
        raise OptionError(f"{source} is the source and cannot be the target too.")
    if source in target.parents:
        raise OptionError(f"{target} lies inside {source}, where it would count as a class.")
    if target in source.parents:
        raise OptionError(f"{source} lies inside {target}, whose images would be the source's too.")
    for number, folder in enumerate(unlabelled):
        if _overlap(folder, target):
            raise OptionError(
                f"--unlabelled {folder} overlaps with the target {target}, whose images lack a "
                "part: those without a label teach only if they are complete."
            )
        for other in (source, *unlabelled[:number]):
            if _overlap(folder, other):
                raise OptionError(
                    f"--unlabelled {folder} overlaps with {other}, whose images would count twice: "
                    "name folders that lie apart."
                )


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


def _hidden(
    folders: Sequence[ImageFolder], missing: str | None, mask: Path | None, size: int | None
) -> Blocks:
    """Return what the target lacks, of images of the size that they are resized to."""
    from halfseen.blocks import Blocks
    from halfseen.data.image_folders import chosen_size, mixed_cells, read_mask
    from halfseen.data.preprocessors import side_blocks

    folders = folders[:2]  # images without a label become as these are
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


def _preprocessor(folders: Sequence[ImageFolder], hidden: Blocks) -> ImagePreprocessor:
    from halfseen.blocks import Blocks
    from halfseen.data.image_folders import mixed_cells
    from halfseen.data.preprocessors import ImagePreprocessor

    source, target, *more = folders
    shape = cast(tuple[int, int, int], hidden.shape)
    for folder in more:
        if shape[0] == 1 and folder.is_colour:
            raise InputError(
                f"The images of {folder.path} have colours, and those of source and target are "
                "grey: give grey ones."
            )
    count, side = sum(len(folder.files) for folder in folders), shape[-1]
    needed = 4 * count * math.prod(shape)
    if needed > MOST_BYTES:
        raise InputError(
            f"{count:,} images of {side} × {side} pixels need {needed / 2**30:.1f} GiB of memory, "
            f"and {MOST_BYTES / 2**30:.0f} are the most: give a smaller --size, or fewer images."
        )
    blocks = Blocks.pixels(shape, mixed_cells(hidden.mask, {*source.sizes, *target.sizes}))
    return ImagePreprocessor(blocks, source.classes, "bytes", hidden)


def _check_enough(folders: Sequence[ImageFolder], classes: Sequence[str]) -> None:
    """Refuse what cannot be learned from: images that cannot be read do not count."""
    from halfseen.fitting.pipeline import FEWEST_TARGET_ROWS

    source, target, *more = folders
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
    for folder in more:
        if not folder.files:
            raise InputError(f"No image of {folder.path} can be used: --unlabelled needs some.")


def _fit(
    folders: Sequence[ImageFolder], preprocessor: ImagePreprocessor,
    settings: FitSettings, output: Path, terminal: Terminal, skipped: Skipped,
) -> Model:  # fmt: skip
    import numpy as np

    from halfseen.api import ImageDomains, fit_domains
    from halfseen.fitting.member_training import Hooks
    from halfseen.members import Sample

    with terminal.status("Reading the images"):
        source, pixels = folders[0].read(preprocessor.blocks.shape, skipped)
        target, others = folders[1].read(preprocessor.blocks.shape, skipped, preprocessor.hidden)
        more = [folder.read(preprocessor.blocks.shape, skipped) for folder in folders[2:]]
    skipped.tell(terminal)
    classes = [str(name) for name in preprocessor.classes]
    _check_enough([source, target, *(folder for folder, _ in more)], classes)
    labels = np.array([classes.index(name) for name in source.labels])
    data = {"source": source.fingerprint(pixels), "target": target.fingerprint(others)}
    if more:
        parts = [folder.fingerprint(images) for folder, images in more]
        files = [file for part in parts for file in part["files"]]
        data["unlabelled"] = {"files": files, "rows": sum(part["rows"] for part in parts)}
    with going_on(output, terminal) as unfinished:
        hooks = Hooks(terminal.progress, terminal.say, unfinished)
        hidden = preprocessor.blocks.hide(others)
        unlabelled = np.concatenate([images for _, images in more]) if more else None
        domains = ImageDomains(preprocessor, Sample(pixels, labels), hidden, data, unlabelled)
        return fit_domains(domains, settings, hooks)


def _described(folder: ImageFolder) -> str:
    text = f"{folder.path}, {len(folder.files):,} images"
    if folder.labels:
        counts = [(name, folder.labels.count(name)) for name in folder.classes]
        shares = (f"{name} {count:,} ({count / len(folder.files):.1%})" for name, count in counts)
        text += f" of {len(counts)} classes: {', '.join(shares)}"
    if folder.left_out:
        text += f"; {folder.left_out:,} other files left alone"
    return text
