from __future__ import annotations

import bz2
import gzip
import struct
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from PIL import Image

from halfseen.errors import InputError, OptionError
from halfseen_bench.data import digits, mnistm
from halfseen_bench.data.digit_files import read_idx, read_mnist, read_svhn, read_usps
from halfseen_bench.data.official import content_sha256

GENERATOR = np.random.default_rng(0)


def idx(array: np.ndarray, magic: int | None = None) -> bytes:
    magic = 0x0800 + array.ndim if magic is None else magic
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def some_digits(count: int, *shape: int) -> np.ndarray:
    return GENERATOR.integers(0, 256, (count, *shape), dtype=np.uint8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data folder with a few made-up digits of every domain, in the official formats."""
    for folder in ("mnist", "usps", "svhn", "bsds500/train"):
        (tmp_path / folder).mkdir(parents=True)
    for prefix, count in (("train", 30), ("t10k", 20)):
        images, labels = some_digits(count, 28, 28), np.arange(count, dtype=np.uint8) % 10
        (tmp_path / f"mnist/{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"mnist/{prefix}-labels-idx1-ubyte").write_bytes(idx(labels))
    with h5py.File(tmp_path / "usps/usps.h5", "w") as file:
        for split, count in (("train", 30), ("test", 20)):
            file[f"{split}/data"] = GENERATOR.random((count, 256), dtype=np.float32)
            file[f"{split}/target"] = np.arange(count, dtype=np.int32) % 10
    for split, count in (("train", 30), ("test", 20)):
        images = np.moveaxis(some_digits(count, 32, 32, 3), 0, -1)
        labels = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
        scipy.io.savemat(tmp_path / f"svhn/{split}_32x32.mat", {"X": images, "y": labels})
    for name in ("a.jpg", "b.jpg"):
        Image.fromarray(some_digits(48, 64, 3)).save(tmp_path / "bsds500/train" / name)
    return tmp_path


@pytest.mark.parametrize(("source", "target"), list(permutations(digits.DOMAINS, 2)))
def test_every_pair_has_the_same_shape_and_range(root, tmp_path, source, target):
    pair = digits.load_pair(root, source, target)
    coloured = {"svhn", "mnistm"} & {source, target}
    assert pair.source_train.inputs.shape == (30, 3 if coloured else 1, 32, 32)
    assert pair.blocks.shape == pair.target_test.shape[1:]
    everything = [pair.source_train.inputs, pair.source_test.inputs]
    everything += pair.complete_target.open("test")
    for inputs in everything:
        assert inputs.dtype == np.float32
        assert inputs.min() >= -1
        assert inputs.max() <= 1
        assert inputs.max() - inputs.min() > 1.5
    assert pair.card.counts[f"{source} train"] == len(pair.source_train) == 30


@pytest.mark.parametrize(("side", "seen"), [("bottom", slice(0, 22)), ("top", slice(10, 32))])
def test_missing_rows_are_filled_and_the_others_untouched(root, side, seen):
    pair = digits.load_pair(root, "svhn", "mnist", fraction=0.3, side=side, fill=-1.0)
    complete = pair.complete_target.open("test")[0]
    hidden = np.ones(32, dtype=bool)
    hidden[seen] = False
    assert (pair.target_train[:, :, hidden] == -1).all()
    np.testing.assert_array_equal(pair.target_train[:, :, seen], complete[:, :, seen])
    assert (complete[:, :, hidden] > -1).any()


def test_resizing_agrees_with_pillow():
    image = some_digits(1, 28, 28)
    ours = digits.to_canvas(image[:, None])[0, 0]
    grey = Image.fromarray(image[0].astype(np.float32))
    expected = np.asarray(grey.resize((32, 32), Image.Resampling.BILINEAR)) / 127.5 - 1
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_cropped_framing_keeps_the_middle(root):
    plain = digits.load_pair(root, "usps", "mnist")
    cropped = digits.load_pair(root, "usps", "mnist", framing="cropped")
    middle = read_mnist(root, "train")[0][:, :, 4:24, 4:24]
    np.testing.assert_array_equal(cropped.complete_target.open("test")[0], digits.to_canvas(middle))
    np.testing.assert_array_equal(cropped.source_train.inputs, plain.source_train.inputs)


def test_limits_choose_seeded_rows(root):
    first, again, other = (
        digits.load_pair(root, "usps", "mnist", max_train=7, max_test=5, seed=seed)
        for seed in (1, 1, 2)
    )
    assert len(first.source_train) == len(first.target_train) == 7
    assert len(first.source_test) == len(first.target_test) == 5
    np.testing.assert_array_equal(first.target_train, again.target_train)
    assert not np.array_equal(first.target_train, other.target_train)


def test_libsvm_text_reads_as_hdf5(root):
    images, labels = read_usps(root, "test")
    lines = []
    for image, label in zip(images.reshape(len(images), -1), labels, strict=True):
        values = " ".join(f"{i + 1}:{2 * float(v) - 1:.7f}" for i, v in enumerate(image))
        lines.append(f"{label + 1} {values}\n")
    (root / "usps/usps.t.bz2").write_bytes(bz2.compress("".join(lines).encode()))
    (root / "usps/usps.h5").unlink()
    again, labels_again = read_usps(root, "test")
    np.testing.assert_allclose(again, images, atol=1e-6)
    np.testing.assert_array_equal(labels_again, labels)


def test_mnistm_is_the_absolute_difference_with_one_patch_of_a_photo():
    photo = some_digits(40, 50, 3)
    digit = some_digits(3, 28, 28)
    made = mnistm.compose(digit, [photo], seed=[4])
    patches = np.lib.stride_tricks.sliding_window_view(photo, (28, 28), axis=(0, 1))
    for image, stroke in zip(made, digit, strict=True):
        candidates = np.abs(patches.astype(int) - stroke)
        assert (candidates == image).all(axis=(2, 3, 4)).any()


def test_mnistm_is_fixed_by_the_seed(root):
    made, again, other = (mnistm.read_mnistm(root, "train", seed=s)[0] for s in (3, 3, 4))
    np.testing.assert_array_equal(made, again)
    assert not np.array_equal(made, other)


class TestBadFiles:
    def test_truncated_idx(self, tmp_path):
        path = tmp_path / "images"
        path.write_bytes(idx(some_digits(3, 4, 4))[:-5])
        with pytest.raises(InputError, match=r"images is truncated.*announces 48 bytes.*holds 43"):
            read_idx(path, 3)

    def test_idx_without_a_whole_header(self, tmp_path):
        (tmp_path / "images").write_bytes(b"\0\0\x08\x03")
        with pytest.raises(InputError, match="is truncated: its header announces"):
            read_idx(tmp_path / "images", 3)

    def test_idx_with_something_behind_it(self, tmp_path):
        (tmp_path / "images").write_bytes(idx(some_digits(3, 4, 4)) + b"more")
        with pytest.raises(InputError, match="too long"):
            read_idx(tmp_path / "images", 3)

    def test_wrong_magic_number(self, root):
        path = root / "mnist/train-labels-idx1-ubyte"
        path.write_bytes(idx(np.zeros(30, dtype=np.uint8), magic=2051))
        with pytest.raises(InputError, match="magic number 2051, not 2049"):
            read_mnist(root, "train")

    def test_truncated_gzip(self, root):
        path = root / "mnist/train-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(InputError, match=r"idx3-ubyte.gz is truncated"):
            read_mnist(root, "train")

    def test_a_file_that_only_says_gz(self, root):
        (root / "mnist/train-images-idx3-ubyte.gz").write_bytes(b"<html>not found</html>")
        with pytest.raises(InputError, match="cannot be read: Not a gzipped file"):
            read_mnist(root, "train")

    def test_labels_that_do_not_fit_the_images(self, root):
        (root / "mnist/train-labels-idx1-ubyte").write_bytes(idx(np.zeros(29, dtype=np.uint8)))
        with pytest.raises(InputError, match="29 labels for 30 images"):
            read_mnist(root, "train")

    def test_a_label_that_is_no_digit(self, root):
        labels = np.zeros(30, dtype=np.uint8)
        labels[4] = 11
        (root / "mnist/train-labels-idx1-ubyte").write_bytes(idx(labels))
        with pytest.raises(InputError, match="row 4: label 11 is not a digit"):
            read_mnist(root, "train")

    def test_missing_file(self, tmp_path):
        with pytest.raises(InputError, match="is not in the data folder"):
            digits.load_pair(tmp_path, "mnist", "usps")

    def test_missing_key_in_hdf5(self, root):
        with h5py.File(root / "usps/usps.h5", "w") as file:
            file["train/data"] = np.zeros((2, 256))
        with pytest.raises(InputError, match=r"usps.h5 cannot be read as HDF5.*'target'"):
            read_usps(root, "train")

    def test_damaged_hdf5(self, root):
        path = root / "usps/usps.h5"
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(InputError, match="cannot be read as HDF5"):
            read_usps(root, "train")

    def test_missing_key_in_mat(self, root):
        scipy.io.savemat(root / "svhn/train_32x32.mat", {"y": np.ones(3), "pixels": np.ones(3)})
        with pytest.raises(InputError, match=r"cannot be read as a MATLAB file \('X'\)"):
            read_svhn(root, "train")

    @pytest.mark.parametrize("length", [0, 60, 400])
    def test_damaged_mat(self, root, length):
        path = root / "svhn/train_32x32.mat"
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(InputError, match="cannot be read as a MATLAB file"):
            read_svhn(root, "train")

    def test_mat_of_another_shape(self, root):
        scipy.io.savemat(root / "svhn/train_32x32.mat", {"X": np.ones((3, 3)), "y": np.ones(3)})
        with pytest.raises(InputError, match="must be 32x32x3xN unsigned bytes"):
            read_svhn(root, "train")

    def test_libsvm_line_that_is_not_one(self, root):
        (root / "usps/usps.h5").unlink()
        (root / "usps/usps.bz2").write_bytes(bz2.compress(b"1 1:0.5\n2 1:0.5 300:1\n"))
        with pytest.raises(InputError, match=r"usps.bz2 has a line that is not"):
            read_usps(root, "train")

    def test_photo_folder_with_nothing_readable(self, root, tmp_path):
        for photo in (root / "bsds500/train").iterdir():
            photo.unlink()
        (root / "bsds500/train/Thumbs.db").write_text("no photo")
        with pytest.raises(InputError, match="holds nothing readable"):
            mnistm.read_mnistm(root, "train", seed=0)

    def test_photo_that_is_none(self, root, tmp_path):
        (root / "bsds500/train/a.jpg").write_text("no photo")
        with pytest.raises(InputError, match=r"The photo .*a.jpg cannot be read"):
            mnistm.read_mnistm(root, "train", seed=0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"source": "mnsit"}, "source='mnsit' is unknown; choose one of 'mnist'"),
            ({"source": "usps"}, "both 'usps'"),
            ({"framing": "tight"}, "framing='tight' is unknown"),
            ({"max_train": 0}, "leaves nothing"),
        ],
    )
    def test_options(self, root, options, message):
        with pytest.raises(OptionError, match=message):
            digits.load_pair(root, **{"source": "mnist", "target": "usps"} | options)


@pytest.mark.data("mnist", "usps", "svhn", "bsds500")
class TestRealFiles:
    @pytest.mark.parametrize("file", [f for f in digits.FILES if f.sha256], ids=lambda f: f.path)
    def test_hashes(self, data_root, file):
        assert content_sha256(data_root / file.path) == file.sha256

    def test_mnist_has_its_published_class_counts(self, data_root):
        images, labels = read_mnist(data_root, "train")
        assert images.shape == (60000, 1, 28, 28)
        published = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert np.bincount(labels).tolist() == published

    def test_usps_has_its_published_class_counts(self, data_root):
        published = {
            "train": [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
            "test": [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
        }
        for split, counts in published.items():
            assert np.bincount(read_usps(data_root, split)[1]).tolist() == counts

    def test_svhn_pair(self, data_root):
        pair = digits.load_pair(data_root, "svhn", "mnist", max_train=500, max_test=100)
        assert pair.source_train.inputs.shape == (500, 3, 32, 32)
        assert set(pair.source_train.labels) == set(range(10))

    def test_mnistm_pair(self, data_root, tmp_path):
        pair = digits.load_pair(data_root, "mnist", "mnistm", max_train=100, max_test=50)
        colours = pair.target_test[:, :, :16].std(axis=1)
        assert pair.target_train.shape == (100, 3, 32, 32)
        assert colours.mean() > 0.05
