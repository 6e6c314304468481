"""What is hidden of a picture reaches nothing: whatever is painted there, every bit is the same."""

import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from halfseen import InputError
from halfseen.blocks import Blocks
from halfseen.data.image_folders import hidden_pixels, mixed_cells, open_folder, read_mask
from halfseen.data.preprocessors import SIDES, side_blocks
from image_folders import save

LENGTHS = st.one_of(st.integers(1, 12), st.integers(13, 150))
SIDE = st.integers(8, 40)
FRACTIONS = st.decimals("0.02", "0.9", places=2).map(str)
TURNS = {1: None, 3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90}
"""What a file holds of a picture that its EXIF orientation will turn back."""


def overlapping(mask, height, width):
    """Return which of (height, width) pixels overlap a true one of a mask of another size."""

    def lines(of, parts):
        ends = [(Fraction(k, of), Fraction(k + 1, of)) for k in range(of)]
        others = [(Fraction(k, parts), Fraction(k + 1, parts)) for k in range(parts)]
        return np.array([[a < d and c < b for c, d in others] for a, b in ends], dtype=int)

    rows, columns = lines(height, mask.shape[0]), lines(width, mask.shape[1])
    return rows @ mask @ columns.T > 0


def missing_of_side(name, fraction, height, width):
    """Return which pixels a side's fraction touches."""
    is_upright, share = name in ("top", "bottom"), Fraction(fraction)
    length, other = (height, width) if is_upright else (width, height)
    touched = np.array([k < share * length for k in range(length)])
    lines = (touched if name in ("top", "left") else touched[::-1])[:, None].repeat(other, axis=1)
    return lines if is_upright else lines.T


def write(path, pixels, mode, turn):
    """Write a picture that stands as `pixels` are, in colours, grey or half transparent."""
    shown = pixels if mode in ("RGB", "RGBA") else pixels[..., 0]
    if mode in ("LA", "RGBA"):
        shown = np.dstack([shown, np.full(pixels.shape[:2], 90, np.uint8)])
    image = Image.fromarray(shown)
    exif = Image.Exif()
    exif[0x0112] = turn
    image = image if TURNS[turn] is None else image.transpose(TURNS[turn])
    image.save(path, exif=exif)


def pixels_of(path, shape, hidden):
    refused = []
    _, pixels = open_folder(path).read(shape, refused.append, hidden)
    assert len(refused) + len(pixels) == 1
    return pixels


def is_blind(pixels, painted, missing, side, mode, turn):
    """Whether two pictures that differ in what is missing are read as the same."""
    shape = (3, side, side) if mode == "RGB" else (1, side, side)
    with tempfile.TemporaryDirectory() as folder:
        read = []
        for number, shown in enumerate((pixels, painted)):
            path = Path(folder, f"{number}.png")
            write(path, shown, mode, turn)
            read.append(pixels_of(path, shape, Blocks.pixels(shape, missing)))
    return np.array_equal(*read)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(SIDES), FRACTIONS, SIDE, LENGTHS, LENGTHS,
    st.sampled_from(["L", "RGB", "LA", "RGBA"]), st.sampled_from(list(TURNS)), st.integers(0, 99),
)  # fmt: skip
def test_a_missing_side_may_show_anything(name, fraction, side, height, width, mode, turn, seed):
    try:
        missing = side_blocks((1, side, side), f"{name}:{fraction}").mask
    except InputError:  # of so few rows the fraction touches all
        return
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (height, width, 3)).astype(np.uint8)
    painted = pixels.copy()
    touched = missing_of_side(name, fraction, height, width)
    painted[touched] = random.choice([0, 255, int(random.integers(256))])
    assert is_blind(pixels, painted, missing, side, mode, turn)


@settings(deadline=None, max_examples=100)
@given(SIDE, LENGTHS, LENGTHS, LENGTHS, LENGTHS, st.integers(0, 99))
def test_what_a_mask_touches_may_show_anything(side, height, width, tall, wide, seed):
    random = np.random.default_rng(seed)
    white = np.zeros((tall, wide), dtype=bool)
    white.flat[random.integers(0, white.size, 3)] = True
    with tempfile.TemporaryDirectory() as folder:
        Image.fromarray(white).save(Path(folder, "mask.png"))
        missing = read_mask(Path(folder, "mask.png"), side)
    if missing.all():
        return
    pixels = random.integers(0, 256, (height, width, 3)).astype(np.uint8)
    painted = pixels.copy()
    painted[overlapping(white, height, width)] = 255
    assert is_blind(pixels, painted, missing, side, "RGB", 1)


@settings(deadline=None, max_examples=200)
@given(SIDE, LENGTHS, LENGTHS, st.integers(0, 9999))
def test_cells_that_resizing_mixes_with_the_missing_part_are_missing(side, height, width, seed):
    random = np.random.default_rng(seed)
    missing = np.zeros((side, side), dtype=bool)
    missing.flat[random.integers(0, side * side, 3)] = True
    hidden = hidden_pixels(missing, (width, height))
    assert np.array_equal(hidden, overlapping(missing, height, width))
    pixels = random.integers(0, 256, (height, width)).astype(np.uint8)
    painted = np.where(hidden, 255 - pixels, pixels)
    first, second = (
        np.asarray(Image.fromarray(shown).resize((side, side), Image.Resampling.BILINEAR))
        for shown in (pixels, painted)
    )
    mixed = mixed_cells(missing, [(width, height)])
    assert np.array_equal(first[~mixed], second[~mixed])
    if min(height, width) >= side:
        assert np.array_equal(mixed, mixed_cells(missing)), "no reduction mixes more than another"


@pytest.mark.parametrize(
    ("size", "side", "rows"),
    [(16, 16, 9), (8, 16, 9), (128, 64, 33), (28, 32, 17), (4, 32, 20), (17, 16, 9)],
)
def test_the_border_that_counts_as_missing_is_narrow(size, side, rows):
    missing = side_blocks((1, side, side), "bottom").mask
    assert mixed_cells(missing, [(size, size)]).all(axis=1).sum() == rows


def test_jpeg_is_decoded_whole(tmp_path):
    """At a fraction of its size JPEG would mix each block of 8 pixels, hidden or not."""
    save(tmp_path / "1.jpg", size=(130, 140), mode="RGB")
    with Image.open(tmp_path / "1.jpg") as image:
        image.save(tmp_path / "2.png")
    hidden = side_blocks((3, 16, 16), "left:0.4")
    first, second = (pixels_of(tmp_path / name, (3, 16, 16), hidden) for name in ("1.jpg", "2.png"))
    assert np.array_equal(first, second)


def test_a_picture_of_which_nothing_is_left_is_refused(tmp_path):
    save(tmp_path / "1.png", size=(5, 1))
    with pytest.raises(InputError, match=r"1\.png is too small: each of its pixels is missing"):
        open_folder(tmp_path).read((1, 8, 8), hidden=side_blocks((1, 8, 8), "top"))


def test_pictures_that_would_hide_much_of_all_others_are_refused(tmp_path):
    save(tmp_path / "1.png", size=(3, 3))
    save(tmp_path / "2.png", size=(8, 8))
    refused = []
    hidden = side_blocks((1, 64, 64), "bottom")
    found = open_folder(tmp_path).looked_at().large_enough(hidden, refused.append)
    assert found.names == ("2.png",)
    assert "1.png of 3 × 3 pixels is too small for 64 × 64" in str(refused[0])
