"""Folders of PNG and JPEG files: which images there are, of which class, and their pixels.

Nothing is decoded before its size is known, animated files show their first frame, and pictures
stand as their EXIF orientation says. What cannot be read is handed to the caller as a sentence.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from halfseen.errors import InputError, installed_by

with installed_by("images", "Reading images"):
    from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = (".png", ".jpg", ".jpeg")
SIZES = (16, 32, 64)
"""Sides that images are resized to where nobody names one."""
FILES_AT_ONCE = 256
GREY = ("1", "L", "LA", "La", "I", "F")
"""Pillow's modes without colour; those of 16 bits begin with I."""

T = TypeVar("T")
Pixels = npt.NDArray[np.float32]
Refuse = Callable[[InputError], None]
"""What is done about a file that cannot be read: the sentence that names it is raised, or kept."""


def stop(error: InputError) -> None:
    """Let one unreadable file end the work."""
    raise error


@dataclass(frozen=True)
class ImageFolder:
    """The PNG and JPEG files under one folder, in the order of their names.

    `labels` are the names of the folders directly under `path` that they lie in, where classes are
    asked for; `sizes` (width, height) and `is_colour` are known once they were looked at.
    """

    path: Path
    files: tuple[Path, ...]
    labels: tuple[str, ...] = ()
    left_out: int = 0
    """Other files, and those in no class folder."""
    sizes: tuple[tuple[int, int], ...] = ()
    is_colour: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Each file by its path inside the folder, with slashes."""
        return tuple(_text(file.relative_to(self.path).as_posix()) for file in self.files)

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.labels)))

    def looked_at(self, refuse: Refuse = stop) -> ImageFolder:
        """Return the files whose heads can be read, with their sizes; no pixel is decoded."""
        found = list(self._read(lambda image: (image.size, image.mode), refuse))
        modes = [mode for _, (_, mode) in found]
        return replace(
            self._kept([place for place, _ in found]),
            sizes=tuple(size for _, (size, _) in found),
            is_colour=any(mode not in GREY and not mode.startswith("I;16") for mode in modes),
        )

    def read(self, shape: tuple[int, ...], refuse: Refuse = stop) -> tuple[ImageFolder, Pixels]:
        """Return the files that can be decoded, and the pixels of all of them."""
        found = list(self.batches(shape, refuse))
        kept = [place for places, _ in found for place in places]
        empty = np.empty((0, *shape), dtype=np.float32)
        return self._kept(kept), np.concatenate([empty, *(images for _, images in found)])

    def fingerprint(self, pixels: Pixels) -> dict[str, Any]:
        """Return the folder's name, how many images it has, and a hash of names and pixels."""
        digest = hashlib.sha256("\0".join(self.names).encode())
        digest.update(pixels.tobytes())
        return {
            "files": [{"name": self.path.resolve().name, "sha256": digest.hexdigest()}],
            "rows": len(self.files),
        }

    def batches(
        self, shape: tuple[int, ...], refuse: Refuse = stop
    ) -> Iterator[tuple[list[int], Pixels]]:
        """Give (channels, height, width) images in [-1, 1], with their positions among the files.

        Images are stretched to the size, grey ones repeated in every channel of colour ones,
        coloured ones made grey where the shape has one channel, and what is transparent is white.
        """
        places: list[int] = []
        images: list[Pixels] = []
        for place, image in self._read(lambda opened: _pixels(opened, shape), refuse):
            places.append(place)
            images.append(image)
            if len(images) == FILES_AT_ONCE:
                yield places, np.stack(images)
                places, images = [], []
        if images:
            yield places, np.stack(images)

    def _kept(self, places: Sequence[int]) -> ImageFolder:
        return replace(
            self,
            files=tuple(self.files[place] for place in places),
            labels=tuple(self.labels[place] for place in places) if self.labels else (),
            sizes=tuple(self.sizes[place] for place in places) if self.sizes else (),
        )

    def _read(self, read: Callable[[Image.Image], T], refuse: Refuse) -> Iterator[tuple[int, T]]:
        """Give what is read of each file with its position; unreadable files are refused."""
        for place, file in enumerate(self.files):
            try:
                yield place, _opened(file, read)
            except InputError as error:
                refuse(error)


def open_folder(path: Path, *, labelled: bool = False) -> ImageFolder:
    """List the images of a folder; where they are `labelled`, those of its class folders."""
    if path.is_file() and not labelled:
        return ImageFolder(path.parent, (path,))
    if not path.is_dir():
        what = "is a file, not a folder of images" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}.")
    found, others = [], 0
    for folder, subfolders, names in os.walk(path, onerror=_cannot_list):
        # What begins with a dot belongs to a system, such as the previews of another.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if name.startswith("."):
                continue
            if file.suffix.lower() in ENDINGS and _may_be_read(file):
                found.append(file)
            else:
                others += 1
    if not found:
        raise InputError(f"{path} holds no image: no file in it ends in {', '.join(ENDINGS)}.")
    if not labelled:
        return ImageFolder(path, tuple(found), left_out=others)
    inside = [file for file in found if file.parent != path]
    if not inside:
        raise InputError(
            f"The images of {path} have no labels: put those of each class into a folder of its "
            f"own, as in {path / 'cat' / found[0].name}."
        )
    labels = tuple(_text(file.relative_to(path).parts[0]) for file in inside)
    if len(set(labels)) < 2:
        raise InputError(
            f"{path} holds one class, {labels[0]!r}; two or more folders are needed to learn a "
            "classifier."
        )
    return ImageFolder(path, tuple(inside), labels, others + len(found) - len(inside))


def chosen_size(folders: Sequence[ImageFolder]) -> int:
    """Return the side to resize to: the smallest usual one that keeps what most images show.

    It is that which is not below the median of the shorter sides, of the folder with the larger
    images, and the largest of :data:`SIZES` at most.
    """
    side = max(median(min(size) for size in folder.sizes) for folder in folders)
    return next((size for size in SIZES if size >= side), SIZES[-1])


def read_mask(path: Path, size: int) -> npt.NDArray[np.bool_]:
    """Return which pixels of (size, size) images are missing: those that a picture shows white."""
    if not path.is_file():
        raise InputError(f"The mask {path} does not exist.")

    def white(image: Image.Image) -> npt.NDArray[np.bool_]:
        shown = _upright(image).convert("L").resize((size, size), Image.Resampling.NEAREST)
        return np.asarray(shown) > 127

    mask = _opened(path, white)
    if not mask.any():
        raise InputError(f"The mask {path} has no white pixel: nothing would be missing.")
    return mask


def _opened(path: Path, read: Callable[[Image.Image], T]) -> T:
    """Read something of an image file, or say in a sentence why it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG", "JPEG")) as image:
                return read(image)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        reason = f"has more than {Image.MAX_IMAGE_PIXELS or 0:,} pixels, which are not decoded"
    except UnidentifiedImageError:
        reason = "is no PNG or JPEG image, or a damaged one"
    except OSError as error:
        reason = f"cannot be read: {' '.join(str(error.strerror or error).split())}"
    except Exception as error:  # damaged files make decoders stumble in many ways
        reason = f"is damaged ({type(error).__name__})"
    raise InputError(f"{_text(str(path))} {reason}.")


def _pixels(image: Image.Image, shape: tuple[int, ...]) -> Pixels:
    channels, height, width = shape
    mode = "L" if channels == 1 else "RGB"
    if min(image.size) >= 2 * max(height, width):
        image.draft(mode, (width, height))  # JPEG can be decoded at a fraction of its size
    shown = _upright(image)
    shown = shown if shown.mode == mode else shown.convert(mode)
    resized = np.asarray(shown.resize((width, height), Image.Resampling.BILINEAR))
    scaled: Pixels = resized.reshape(height, width, channels).astype(np.float32) * (2 / 255) - 1
    return scaled.transpose(2, 0, 1)


def _upright(image: Image.Image) -> Image.Image:
    """Return an image of 8 bits as a viewer shows it: turned, and on white where transparent.

    A picture of some kilobytes can unpack to 350 MB, so it is copied as seldom as possible.
    """
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I"):  # 16 bits, which Pillow would clip and not scale
        return Image.fromarray((np.asarray(image).clip(0, 65535) // 257).astype(np.uint8))
    if not image.has_transparency_data:
        return image
    shown = image if image.mode in ("LA", "RGBA") else image.convert("RGBA")
    white = Image.new("L" if shown.mode == "LA" else "RGB", shown.size, "white")
    white.paste(shown, mask=shown.getchannel("A"))
    return white


def _may_be_read(file: Path) -> bool:
    """Whether opening a file cannot wait for ever, as it would for a pipe; a dead link says so."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return True


def _text(name: str) -> str:
    """Return a name as text, also where its bytes are none."""
    return os.fsencode(name).decode("utf-8", "replace")


def _cannot_list(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be listed: {error.strerror}.")
