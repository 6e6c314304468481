"""The official files of MNIST, USPS and SVHN, read as they are distributed.

Every reader returns images ``(n, channels, height, width)`` and labels 0 to 9. Images are uint8
in 0..255, or float32 in 0..1 where the file holds real numbers.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import numpy.typing as npt
import scipy.io
from sklearn.datasets import load_svmlight_file

from halfseen.errors import InputError
from halfseen_bench.data.official import content, locate

Split = Literal["train", "test"]
Images = npt.NDArray[np.uint8] | npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the array of unsigned bytes that an idx file holds, gzipped or not."""
    data, header = content(path), 4 + 4 * dimensions
    magic, *shape = struct.unpack(f">{1 + dimensions}I", data[:header].ljust(header, b"\0"))
    if magic != 0x0800 + dimensions:
        raise InputError(
            f"{path} starts with magic number {magic}, not {0x0800 + dimensions}: it is not an idx "
            f"file of unsigned bytes in {dimensions} dimension{'s' if dimensions > 1 else ''}."
        )
    announced, found = int(np.prod(shape, dtype=np.int64)), len(data) - header
    if found != announced:
        raise InputError(
            f"{path} is {'truncated' if found < announced else 'too long'}: its header announces "
            f"{announced} bytes of data, it holds {max(found, 0)}. Fetch the file again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)


def read_mnist(root: Path, split: Split) -> tuple[Images, Labels]:
    """Read MNIST's images (28x28, grey) and labels."""
    prefix = {"train": "train", "test": "t10k"}[split]
    images_path = locate(root, f"mnist/{prefix}-images-idx3-ubyte")
    labels_path = locate(root, f"mnist/{prefix}-labels-idx1-ubyte")
    images = read_idx(images_path, dimensions=3)[:, None]
    return images, _checked_labels(read_idx(labels_path, dimensions=1), len(images), labels_path)


def read_usps(root: Path, split: Split) -> tuple[Images, Labels]:
    """Read USPS (16x16, grey) from the HDF5 file, else from the libsvm text files."""
    text = {"train": "usps/usps.bz2", "test": "usps/usps.t.bz2"}[split]
    path = locate(root, "usps/usps.h5", text)
    images, labels = _read_usps_hdf5(path, split) if path.suffix == ".h5" else _read_libsvm(path)
    if images.shape[1:] != (256,):
        raise InputError(f"{path} holds rows of {images.shape[1]} values; USPS has 256 (16x16).")
    return images.reshape(-1, 1, 16, 16), _checked_labels(labels, len(images), path)


def read_svhn(root: Path, split: Split) -> tuple[Images, Labels]:
    """Read SVHN's cropped digits (32x32, colour); its label 10 means the digit 0."""
    path = locate(root, f"svhn/{split}_32x32.mat")
    try:
        file = scipy.io.loadmat(path)
        images, labels = file["X"], file["y"].reshape(-1).astype(np.int64)
    except Exception as error:  # scipy raises many kinds on a damaged file
        raise InputError(
            f"{path} cannot be read as a MATLAB file ({error}). Fetch the file again."
        ) from error
    if images.ndim != 4 or images.shape[:3] != (32, 32, 3) or images.dtype != np.uint8:
        raise InputError(
            f"{path}: 'X' must be 32x32x3xN unsigned bytes, not {images.dtype} "
            f"of shape {images.shape}."
        )
    labels[labels == 10] = 0
    return images.transpose(3, 2, 0, 1), _checked_labels(labels, images.shape[3], path)


def _read_usps_hdf5(path: Path, split: Split) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    try:
        with h5py.File(path, "r") as file:
            return file[f"{split}/data"][:].astype(np.float32), file[f"{split}/target"][:]
    except (OSError, KeyError) as error:
        raise InputError(f"{path} cannot be read as HDF5: {error}. Fetch it again.") from error


def _read_libsvm(path: Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Read ``label index:value ...`` lines: labels 1..10 for digits 0..9, values in -1..1."""
    try:
        matrix, labels = load_svmlight_file(io.BytesIO(content(path)), n_features=256)
    except ValueError as error:
        raise InputError(
            f"{path} has a line that is not 'label index:value ...': {error}."
        ) from None
    images = matrix.toarray().astype(np.float32)
    images += 1.0
    images /= 2.0
    return images, labels.astype(np.int64) - 1


def _checked_labels(labels: npt.NDArray[Any], count: int, path: Path) -> Labels:
    """Return the labels as int64; there is one for each image, and each is a digit."""
    if count == 0:
        raise InputError(f"{path} holds no digits.")
    if len(labels) != count:
        raise InputError(f"{path} holds {len(labels)} labels for {count} images.")
    outside = np.flatnonzero((labels < 0) | (labels > 9))
    if outside.size:
        row = int(outside[0])
        raise InputError(f"{path}, row {row}: label {int(labels[row])} is not a digit.")
    return labels.astype(np.int64)
