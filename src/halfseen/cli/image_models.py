"""What commands share that take folders of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from halfseen.cli.terminal import Terminal
from halfseen.errors import InputError, OptionError

if TYPE_CHECKING:
    from halfseen.data.image_folders import ImageFolder
    from halfseen.model.model import Model

MOST_NAMED = 20
"""Unreadable files that are named at the terminal; ``--json`` names all."""


def takes_images(model: object, of_tables: Mapping[str, Any]) -> TypeGuard[Model]:
    """Whether a model takes images; refuse options that only models of tables have."""
    from halfseen.data.preprocessors import ImagePreprocessor

    if not isinstance(getattr(model, "preprocessor", None), ImagePreprocessor):
        return False
    given = [name for name, value in of_tables.items() if value]
    if given:
        raise OptionError(f"{given[0]} is for models of tables, and this one takes images.")
    return True


class Skipped:
    """The images and folders left out, each as a sentence; the first one ends a strict run."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.sentences: list[str] = []
        self.notes: list[str] = []

    def __call__(self, error: InputError) -> None:
        if self.strict:
            raise error
        self.sentences.append(str(error))

    def note(self, folder: ImageFolder, terminal: Terminal) -> ImageFolder:
        """Say what a folder's listing left out."""
        if folder.notes and self.strict:
            raise InputError(folder.notes[0])
        self.notes += folder.notes
        for note in folder.notes:
            terminal.say(f"Note: {note}")
        return folder

    def tell(self, terminal: Terminal) -> None:
        for sentence in self.sentences[:MOST_NAMED]:
            terminal.say(f"Skipped: {sentence}")
        if self.sentences:
            count = len(self.sentences)
            terminal.say(
                f"{count:,} {'image was' if count == 1 else 'images were'} skipped; --strict "
                "stops instead."
            )
