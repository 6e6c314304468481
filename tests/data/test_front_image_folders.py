"""Images as files: which there are, what they show, and what becomes of damaged ones."""

import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from halfseen import InputError
from halfseen.data import image_folders
from halfseen.data.image_folders import chosen_size, open_folder, read_mask
from halfseen.data.preprocessors import side_blocks
from image_folders import save, write_folders


def test_classes_are_folders_and_names_are_paths(tmp_path):
    source, target = write_folders(tmp_path)
    save(source / "stray.png")
    save(source / ".thumbnails" / "0.png")
    save(source / "a dark one" / "2024" / "9.jpg")
    (source / "a dark one" / "notes.txt").write_text("mine")
    found = open_folder(source, labelled=True)
    assert found.classes == ("a dark one", "ein helles, größeres")
    assert found.labels.count("a dark one") == 9
    assert "a dark one/2024/9.jpg" in found.names
    assert found.left_out == 2, "the note, and the image in no class folder"
    other = open_folder(target)
    assert other.names[0] == "0 é.png"
    assert other.names[-1] == "below/deep/5.jpeg"
    assert other.labels == ()


@pytest.mark.parametrize(
    ("prepare", "labelled", "message"),
    [
        (lambda place: None, True, "holds no image: no file in it ends in .png"),
        (lambda place: save(place / "1.png"), True, "have no labels: put those of each class"),
        (lambda place: save(place / "cat" / "1.png"), True, "holds one class, 'cat'; two or more"),
        (lambda place: (place / "1.txt").write_text("a"), False, "holds no image"),
        (lambda place: place.rmdir(), False, "does not exist"),
    ],
)
def test_folders_that_teach_nothing_are_refused(tmp_path, prepare, labelled, message):
    place = tmp_path / "folder"
    place.mkdir()
    prepare(place)
    with pytest.raises(InputError, match=message):
        open_folder(place, labelled=labelled)


def png(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds hardly any pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"plain text", "is no PNG or JPEG image"),
        (b"", "is no PNG or JPEG image"),
        (b"GIF89a\1\0\1\0\0\0\0;", "is no PNG or JPEG image"),
        (png(20_000, 20_000), "has more than 89,478,485 pixels, which are not decoded"),
        (png(12_000, 8_000), "has more than 89,478,485 pixels, which are not decoded"),
        (png(50, 50), "cannot be read: "),
        (png(50, 50)[:40], "is no PNG or JPEG|cannot be read|is damaged"),
    ],
)
def test_a_damaged_file_is_named_and_skipped_or_stops(tmp_path, content, message):
    save(tmp_path / "good.png", level=7)
    (tmp_path / "bad.png").write_bytes(content)
    refused = []
    found, pixels = open_folder(tmp_path).looked_at(refused.append).read((1, 4, 4), refused.append)
    assert found.names == ("good.png",)
    assert pixels.shape == (1, 1, 4, 4)
    assert len(refused) == 1
    assert refused[0].args[0].startswith(f"{tmp_path / 'bad.png'} ")
    with pytest.raises(InputError, match=message):
        open_folder(tmp_path).looked_at().read((1, 4, 4))


def test_a_dead_link_is_named(tmp_path):
    (tmp_path / "link.png").symlink_to(tmp_path / "gone.png")
    with pytest.raises(InputError, match=r"link\.png cannot be read: No such file"):
        open_folder(tmp_path).looked_at()


def read_one(path, shape):
    return open_folder(path).read(shape)[1][0]


def test_pixels_are_scaled_and_grey_joins_colour(tmp_path):
    path = tmp_path / "1.png"
    Image.fromarray(np.array([[0, 255], [51, 102]], np.uint8)).save(path)
    grey = read_one(path, (1, 2, 2))
    np.testing.assert_allclose(grey, [[[-1.0, 1.0], [-0.6, -0.2]]], atol=1e-6)
    assert np.array_equal(read_one(path, (3, 2, 2)), np.repeat(grey, 3, axis=0))
    colours = np.zeros((2, 2, 3), np.uint8)
    colours[..., 0] = 255
    Image.fromarray(colours).save(path)
    assert read_one(path, (3, 2, 2))[:, 0, 0].tolist() == [1.0, -1.0, -1.0]
    np.testing.assert_allclose(read_one(path, (1, 2, 2)), 76 * 2 / 255 - 1, atol=1e-6)


def test_sixteen_bits_are_scaled_and_transparent_pixels_are_white(tmp_path):
    path = tmp_path / "1.png"
    Image.fromarray(np.array([[0, 65535], [257 * 51, 257 * 102]], np.uint16)).save(path)
    assert not open_folder(path).looked_at().is_colour
    np.testing.assert_allclose(read_one(path, (1, 2, 2)), [[[-1, 1], [-0.6, -0.2]]], atol=1e-6)
    Image.fromarray(np.array([[[9, 9, 9, 0], [0, 0, 0, 255]]], np.uint8)).save(path)
    assert read_one(path, (1, 1, 2))[0, 0].tolist() == [1.0, -1.0]


def test_pictures_stand_as_a_viewer_shows_them_and_films_show_their_first_frame(tmp_path):
    image = Image.fromarray(np.repeat(np.uint8([[0], [255]]), 2, axis=1).repeat(8, 0).repeat(8, 1))
    turned = Image.Exif()
    turned[0x0112] = 3  # by half a turn
    image.save(tmp_path / "1.jpg", exif=turned, quality=100)
    shown = read_one(tmp_path / "1.jpg", (1, 16, 16))
    assert shown[0, 0].mean() > 0.9
    assert shown[0, -1].mean() < -0.9
    frames = [Image.new("L", (4, 4), level) for level in (255, 0)]
    frames[0].save(tmp_path / "2.png", save_all=True, append_images=frames[1:])
    assert (read_one(tmp_path / "2.png", (1, 4, 4)) == 1.0).all()


@pytest.mark.parametrize(
    ("sides", "expected"), [([(8, 8)], 16), ([(28, 28)], 32), ([(16, 90)], 16), ([(640, 480)], 64)]
)
def test_the_size_is_chosen_from_the_shorter_sides(tmp_path, sides, expected):
    for number, size in enumerate(sides):
        save(tmp_path / f"{number}.png", size=size)
    assert chosen_size([open_folder(tmp_path).looked_at()]) == expected


def test_links_to_folders_are_followed_and_loops_end(tmp_path):
    source = tmp_path / "source"
    save(source / "cat" / "1.png")
    save(tmp_path / "elsewhere" / "deep" / "2.png")
    (source / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "again").symlink_to(tmp_path / "elsewhere")
    (source / "cow").symlink_to(tmp_path / "gone")
    found = open_folder(source, labelled=True)
    assert found.labels == ("cat", "dog")
    assert found.names == ("cat/1.png", "dog/deep/2.png")
    assert found.notes == (
        f"{source}/cow is a link to what does not exist.",
        f"{source}/dog/again leads back to a folder that it lies in.",
    )
    (source / "up").symlink_to(tmp_path)
    assert f"{source}/up/source leads back" in " ".join(open_folder(source).notes)


def test_class_folders_without_images_are_named(tmp_path):
    for name in ("cat", "dog"):
        save(tmp_path / name / "1.png")
    (tmp_path / "empty" / ".hidden").mkdir(parents=True)
    (tmp_path / "web" / "inner").mkdir(parents=True)
    (tmp_path / "web" / "inner" / "1.webp").write_text("of another format")
    assert open_folder(tmp_path, labelled=True).notes == (
        f"The class folder {tmp_path}/empty has no PNG or JPEG image.",
        f"The class folder {tmp_path}/web has no PNG or JPEG image, but files such as .webp.",
    )


def test_class_folders_whose_names_are_no_text_are_refused(tmp_path):
    for name in (b"caf\xe9", b"caf\xe8"):
        save(tmp_path / os.fsdecode(name) / "1.png")
    with pytest.raises(InputError, match=r"The name of the class folder 'caf.' in .* is not UTF-8"):
        open_folder(tmp_path, labelled=True)


def test_a_mask_of_another_size_is_stretched_and_thin_areas_stay(tmp_path):
    path = tmp_path / "mask.png"
    shown = np.zeros((40, 20), np.uint8)
    shown[:20, :10] = 255
    Image.fromarray(shown).save(path)
    mask = read_mask(path, 4)
    assert mask.tolist() == [[True, True, False, False]] * 2 + [[False] * 4] * 2
    shown[:] = 0
    shown[:, 6] = 255
    Image.fromarray(shown).save(path)
    assert read_mask(path, 4).tolist() == [[False, True, False, False]] * 4
    Image.new("L", (3, 3)).save(path)
    with pytest.raises(InputError, match="has no white pixel"):
        read_mask(path, 4)
    with pytest.raises(InputError, match="does not exist"):
        read_mask(tmp_path / "none.png", 4)


@pytest.mark.parametrize("side", ["top", "bottom", "left", "right"])
def test_each_side_can_be_missing(side):
    mask = side_blocks((1, 8, 4), f"{side}:0.25").mask
    expected = np.zeros((8, 4), bool)
    place = {"top": np.s_[:2], "bottom": np.s_[6:], "left": np.s_[:, :1], "right": np.s_[:, 3:]}
    expected[place[side]] = True
    assert np.array_equal(mask, expected)


@pytest.mark.parametrize("side", ["middle:0.5", "top:1", "top:0", "left:half", "0.5", ""])
def test_other_words_for_a_side_are_refused(side):
    with pytest.raises(InputError, match=r"name a side .* as in 'bottom:0.5'"):
        side_blocks((1, 8, 8), side)


def test_many_files_come_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(image_folders, "FILES_AT_ONCE", 2)
    for number in range(5):
        save(tmp_path / f"{number}.png", level=number * 10)
    (tmp_path / "1.png").write_text("no image")
    places = [places for places, _ in open_folder(tmp_path).batches((1, 2, 2), lambda error: None)]
    assert places == [[0, 2], [3, 4]]
