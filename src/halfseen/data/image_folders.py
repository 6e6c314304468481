"""Folders of PNG and JPEG files: which images there are, of which class, and their pixels.

Nothing is decoded before its size is known, animated files show their first frame, and pictures
stand as their EXIF orientation says. What cannot be read is handed to the caller as a sentence.

Resizing mixes neighbours. So of a picture every pixel is painted over that overlaps a missing cell
of the (side, side) grid that it is resized to, before it is resized; and the cells that a hidden
pixel is mixed into count as missing too. What is hidden then reaches no answer, whatever the sizes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Integers
from halfseen.blocks import Blocks
from halfseen.data.frames import scaled_bytes
from halfseen.errors import InputError, installed_by

with installed_by("images", "Reading images"):
    from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = (".png", ".jpg", ".jpeg")
SIZES = (16, 32, 64)
"""Sides that images are resized to where nobody names one."""
FILES_AT_ONCE = 256
GREY = ("1", "L", "LA", "La", "I", "F")
"""Pillow's modes without colour; those of 16 bits begin with I."""
ORIENTATION, LYING = 0x0112, (5, 6, 7, 8)
"""The EXIF tag that says how a picture is turned, and its values that swap width and height."""

T = TypeVar("T")
Mask = npt.NDArray[np.bool_]
Size = tuple[int, int]
"""Width and height, as Pillow has them."""
Pixels = npt.NDArray[np.float32]
Paint = Callable[[Size], Image.Image | None]
"""Gives the mask of what is painted over in pictures of a size, if anything is."""
Refuse = Callable[[InputError], None]
"""What is done about a file that cannot be read: the sentence that names it is raised, or kept."""


def stop(error: InputError) -> None:
    """Let one unreadable file end the work."""
    raise error


@dataclass(frozen=True)
class ImageFolder:
    """The PNG and JPEG files under one folder, in the order of their names.

    `labels` are the names of the folders directly under `path` that they lie in, where classes are
    asked for; `sizes` (width, height), of pictures as they stand, and `is_colour` are known once
    they were looked at.
    """

    path: Path
    files: tuple[Path, ...]
    labels: tuple[str, ...] = ()
    left_out: int = 0
    """Other files, and those in no class folder."""
    notes: tuple[str, ...] = ()
    """Sentences on folders that were left out: without images, or linked in a loop."""
    sizes: tuple[Size, ...] = ()
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
        found = list(self._read(lambda image: (_standing(image), image.mode), refuse))
        modes = [mode for _, (_, mode) in found]
        return replace(
            self._kept([place for place, _ in found]),
            sizes=tuple(size for _, (size, _) in found),
            is_colour=any(mode not in GREY and not mode.startswith("I;16") for mode in modes),
        )

    def large_enough(self, hidden: Blocks, refuse: Refuse = stop) -> ImageFolder:
        """Return the files of which resizing leaves at least half of what it leaves of large ones.

        A small picture is enlarged, and mixes what is hidden into many of the cells beside it.
        """
        left = lru_cache(lambda *sizes: int((~mixed_cells(hidden.mask, sizes)).sum()))
        kept, side = [], len(hidden.mask)
        for place, size in enumerate(self.sizes):
            if min(size) >= side or 2 * left(size) >= left():
                kept.append(place)
                continue
            refuse(
                InputError(
                    f"{_text(str(self.files[place]))} of {size[0]} × {size[1]} pixels is too small "
                    f"for {side} × {side}: resizing mixes what is missing into more than half of "
                    "what is seen of others."
                )
            )
        return self._kept(kept)

    def read(
        self, shape: tuple[int, ...], refuse: Refuse = stop, hidden: Blocks | None = None
    ) -> tuple[ImageFolder, Pixels]:
        """Return the files that can be decoded, and the pixels of all of them."""
        found = list(self.batches(shape, refuse, hidden))
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
        self, shape: tuple[int, ...], refuse: Refuse = stop, hidden: Blocks | None = None
    ) -> Iterator[tuple[list[int], Pixels]]:
        """Give (channels, height, width) images in [-1, 1], with their positions among the files.

        Images are stretched to the size, grey ones repeated in every channel of colour ones,
        coloured ones made grey where the shape has one channel, and what is transparent is white.
        What is `hidden` is painted over before that; a picture of which nothing is left is refused.
        """

        @lru_cache(maxsize=1)  # most folders have one size
        def paint(size: Size) -> Image.Image | None:
            if hidden is None:
                return None
            pixels = hidden_pixels(hidden.mask, size)
            if pixels.all():
                raise TooSmallError
            return Image.fromarray(pixels)

        read = self._read(lambda opened: _pixels(opened, shape, paint), refuse)
        while some := list(islice(read, FILES_AT_ONCE)):
            yield [place for place, _ in some], np.stack([image for _, image in some])

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


def open_folder(path: Path, *, labelled: bool = False, fewest: int = 2) -> ImageFolder:
    """List the images of a folder; where they are `labelled`, those of its class folders.

    Links to folders are followed, and what begins with a dot belongs to a system, such as the
    previews of another. There must be the `fewest` class folders.
    """
    if path.is_file() and not labelled:
        return ImageFolder(path.parent, (path,))
    if not path.is_dir():
        what = "is a file, not a folder of images" if path.exists() else "does not exist"
        raise InputError(f"{path} {what}.")
    images: list[Path] = []
    others: list[Path] = []
    notes: list[str] = []
    for folder, subfolders, names in os.walk(path, onerror=_cannot_list, followlinks=True):
        above = [parent for parent in Path(folder).parents if parent.is_relative_to(path)]
        if os.path.realpath(folder) in map(os.path.realpath, above):
            notes.append(f"{_text(folder)} leads back to a folder that it lies in.")
            subfolders.clear()
            continue
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for file in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
            is_image = file.suffix.lower() in ENDINGS and _may_be_read(file)
            (images if is_image else others).append(file)
            if not is_image and file.is_symlink() and not file.exists():
                notes.append(f"{_text(str(file))} is a link to what does not exist.")
    if not images:
        raise InputError(f"{path} holds no image: no file in it ends in {', '.join(ENDINGS)}.")
    if not labelled:
        return ImageFolder(path, tuple(images), left_out=len(others), notes=tuple(notes))
    inside = [file for file in images if file.parent != path]
    if not inside:
        raise InputError(
            f"The images of {path} have no labels: put those of each class into a folder of its "
            f"own, as in {path / 'cat' / images[0].name}."
        )
    labels = [file.relative_to(path).parts[0] for file in inside]
    for name in sorted(set(labels)):
        if _text(name) != name:
            raise InputError(
                f"The name of the class folder {_text(name)!r} in {path} is not UTF-8: rename it."
            )
    if len(set(labels)) < fewest:
        raise InputError(
            f"{path} holds one class, {labels[0]!r}; two or more folders are needed to learn a "
            "classifier."
        )
    for entry in sorted(path.iterdir()):
        if entry.name not in labels and not entry.name.startswith(".") and entry.is_dir():
            endings = {file.suffix or file.name for file in others if entry in file.parents}
            instead = f", but files such as {_text(min(endings))}" if endings else ""
            notes.append(f"The class folder {_text(str(entry))} has no PNG or JPEG image{instead}.")
    left_out = len(others) + len(images) - len(inside)
    return ImageFolder(path, tuple(inside), tuple(labels), left_out, tuple(notes))


def chosen_size(folders: Sequence[ImageFolder]) -> int:
    """Return the side to resize to: the smallest usual one that keeps what most images show.

    It is that which is not below the median of the shorter sides, of the folder with the larger
    images, and the largest of :data:`SIZES` at most.
    """
    side = max(median(min(size) for size in folder.sizes) for folder in folders)
    return next((size for size in SIZES if size >= side), SIZES[-1])


def read_mask(path: Path, size: int) -> Mask:
    """Return which pixels of (size, size) images are missing: what a picture shows white in any."""
    if not path.is_file():
        raise InputError(f"The mask {path} does not exist.")
    white = _opened(path, lambda image: np.asarray(_upright(image).convert("L")) > 127)
    if not white.any():
        raise InputError(f"The mask {path} has no white pixel: nothing would be missing.")
    return cells_of_mask(white, size)


class TooSmallError(Exception):
    """A picture has too few pixels to show anything but what is missing."""


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
    except TooSmallError:
        reason = "is too small: each of its pixels is missing in part"
    except OSError as error:
        reason = f"cannot be read: {' '.join(str(error.strerror or error).split())}"
    except Exception as error:  # damaged files make decoders stumble in many ways
        reason = f"is damaged ({type(error).__name__})"
    raise InputError(f"{_text(str(path))} {reason}.")


def _pixels(image: Image.Image, shape: tuple[int, ...], paint: Paint) -> Pixels:
    channels, height, width = shape
    mode = "L" if channels == 1 else "RGB"
    shown = _upright(image)
    shown = shown if shown.mode == mode else shown.convert(mode)
    if (mask := paint(shown.size)) is not None:
        shown.paste("grey", mask=mask)
    resized = np.asarray(shown.resize((width, height), Image.Resampling.BILINEAR))
    return scaled_bytes(resized.reshape(height, width, channels)).transpose(2, 0, 1)


def _standing(image: Image.Image) -> Size:
    """Return width and height of a picture as it will stand, without decoding it."""
    turned = Image.Image.getexif(image).get(ORIENTATION) in LYING  # that of PNG would decode it
    width, height = image.size
    return (height, width) if turned else (width, height)


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


# --- which pixels and cells resizing mixes ------------------------------------------------------


def hidden_pixels(missing: Mask, size: Size) -> Mask:
    """Return which pixels of a picture overlap a missing cell, as (height, width)."""
    rows, columns = missing.shape
    return _any_in(missing, _overlapped(size[1], rows), _overlapped(size[0], columns))


def cells_of_mask(picture: Mask, side: int) -> Mask:
    """Return which cells of a (side, side) grid overlap a true pixel of a mask of any size."""
    height, width = picture.shape
    return _any_in(picture, _overlapped(side, height), _overlapped(side, width))


def mixed_cells(missing: Mask, sizes: Iterable[Size] = ()) -> Mask:
    """Return the missing cells, and those that a hidden pixel is mixed into by resizing.

    It is so of pictures of the `sizes`, and of all that are not smaller than the grid: reduced
    by any factor, a cell is mixed with those next to it, and with no other.
    """
    rows, columns = missing.shape
    found = np.zeros_like(missing)
    for width, height in {(columns, rows), *sizes}:
        wide = 2 * columns if width >= columns else width
        tall = 2 * rows if height >= rows else height
        found |= _any_in(missing, _mixed(tall, rows), _mixed(wide, columns))
    return found


def _overlapped(parts: int, of: int) -> Integers:
    """Return which of `of` parts of a line each of so many others overlaps: first and last + 1."""
    part = np.arange(parts)
    return np.stack([part * of // parts, -(-(part + 1) * of // parts)], axis=1)


def _mixed(pixels: int, cells: int) -> Integers:
    """Return which cells share pixels with the support of each, where so many pixels are resized.

    As the first and last + 1. The support is that of Pillow's bilinear filter.
    """
    scale = pixels / cells
    reach, centre = max(scale, 1.0), (np.arange(cells) + 0.5) * scale
    first = np.floor(centre - reach + 0.5).clip(0).astype(np.int64)
    last = np.floor(centre + reach + 0.5).clip(None, pixels).astype(np.int64)
    return np.stack([first * cells // pixels, -(-last * cells // pixels)], axis=1)


def _any_in(mask: Mask, rows: Integers, columns: Integers) -> Mask:
    """Return for each span of rows and each of columns whether the mask is true within both."""
    mask = mask.T
    for spans in (columns, rows):
        # Neighbours mostly have the same span, of which a large picture has few.
        different, place = np.unique(spans, axis=0, return_inverse=True)
        found = np.stack([mask[first:last].any(axis=0) for first, last in different])
        mask = found[place.reshape(-1)].T
    return mask.T
