"""What data sets there are, where each comes from, and where they lie on this machine."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from halfseen.errors import OptionError
from halfseen_bench.data.official import OfficialFile


@dataclass(frozen=True)
class Remote:
    """One file to fetch."""

    path: str  # where it goes, relative to the data folder
    addresses: tuple[str, ...]  # the next one is asked where one fails
    checksum: str | None = None  # of the served file, where it is not that of an OfficialFile
    unpack: tuple[str, str] | None = None  # of an archive: a path inside, and what it is here
    limit: int = 1 << 30  # the most bytes that an archive may unpack to


@dataclass(frozen=True)
class DataSet:
    """Files that are fetched and checked together; they lie in a folder of this name."""

    name: str
    family: str
    what: str
    licence: str
    page: str
    remotes: tuple[Remote, ...]

    @property
    def files(self) -> tuple[OfficialFile, ...]:
        """Return the reader's files that belong to this set."""
        every = FAMILIES[self.family].reader.FILES
        return tuple(f for f in every if f.path.startswith(f"{self.name}/"))

    def checksum(self, remote: Remote) -> str | None:
        """Return the checksum of a file as it is served, where one is known.

        It is the content's, unless the file is packed.
        """
        content = {f.path: f.sha256 for f in self.files if not f.path.endswith(".gz")}
        sha256 = content.get(remote.path)
        return remote.checksum or (f"sha256:{sha256}" if sha256 else None)


@dataclass(frozen=True)
class Family:
    """One reader, the pair that it shows by default, and whether its rows are table rows."""

    name: str
    module: str
    example: tuple[str, str]
    is_table: bool = True

    @property
    def reader(self) -> Any:
        """Return the module that reads the family: DOMAINS, FILES and load_pair."""
        return importlib.import_module(f"halfseen_bench.data.{self.module}")


FAMILIES = {
    f.name: f
    for f in (
        Family("digits", "digits", ("mnist", "usps"), is_table=False),
        Family("amazon", "amazon", ("dvd", "electronics")),
        Family("criteo", "criteo", ("retargeting", "prospecting")),
        Family("heart", "heart", ("cleveland", "hungarian")),
        Family("gas", "gas", ("batches1-2", "batch3")),
        Family("bank", "bank", ("contacted", "never")),
        Family("shoppers", "shoppers", ("returning", "new")),
        Family("ads-sim", "simulator", ("retargeting", "prospecting")),
    )
}


def _remote(path: str, *addresses: str, **given: Any) -> Remote:
    """Return a file that each address has under the name that it has here, or in full."""
    name = path.split("/")[1]
    return Remote(path, tuple(f"{a}{name}" if a.endswith("/") else a for a in addresses), **given)


def _uci(path: str, folder: str, **given: Any) -> Remote:
    return _remote(path, f"{UCI}/ml/machine-learning-databases/{folder}/", **given)


UCI = "https://archive.ics.uci.edu"
MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
SVHN = "http://ufldl.stanford.edu/housenumbers"
BERKELEY = ".eecs.berkeley.edu/Research/Projects/CS/vision/grouping"
REVIEWS = "www.cs.jhu.edu/~mdredze/datasets/sentiment"
CRITEO = (
    "https://go.criteo.net/criteo-research-kaggle-display-advertising-challenge-dataset.tar.gz",
    "https://s3-eu-west-1.amazonaws.com/kaggle-display-advertising-challenge-dataset/dac.tar.gz",
)
_MNIST = {
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_USPS = {
    "usps.bz2": "ec16c51db3855ca6c91edd34d0e9b197",
    "usps.t.bz2": "8ea070ee2aca1ac39742fdd1ef5ed118",
}
_SVHN = {
    "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
}
DATA_SETS = {
    d.name: d
    for d in (
        DataSet(
            "mnist",
            "digits",
            "handwritten digits, 60,000 + 10,000 of 28x28",
            "CC BY-SA 3.0",
            "http://yann.lecun.com/exdb/mnist",
            tuple(
                _remote(f"mnist/{stem}-ubyte.gz", *MNIST, checksum=f"sha256:{sha256}")
                for stem, sha256 in _MNIST.items()
            ),
        ),
        DataSet(
            "usps",
            "digits",
            "handwritten digits of postal codes, 7,291 + 2,007 of 16x16",
            "none stated; research use",
            f"{USPS}.html#usps",
            tuple(
                _remote(f"usps/{name}", f"{USPS}/", checksum=f"md5:{md5}")
                for name, md5 in _USPS.items()
            ),
        ),
        DataSet(
            "svhn",
            "digits",
            "house numbers in photos, cropped digits, 73,257 + 26,032 of 32x32",
            "non-commercial use",
            SVHN,
            tuple(
                _remote(f"svhn/{part}_32x32.mat", f"{SVHN}/", checksum=f"sha256:{sha256}")
                for part, sha256 in _SVHN.items()
            ),
        ),
        DataSet(
            "bsds500",
            "digits",
            "200 photos: the backgrounds that MNIST-M is made with",
            "non-commercial research and education",
            f"https://www2{BERKELEY}/resources.html",
            (
                _remote(
                    "bsds500/BSR_bsds500.tgz",
                    f"https://www2{BERKELEY}/BSR/",
                    f"https://www{BERKELEY}/BSR/",
                    unpack=("BSR/BSDS500/data/images/train", "bsds500/train"),
                ),
            ),
        ),
        DataSet(
            "amazon",
            "amazon",
            "product reviews of four kinds, 2,000 labelled each",
            "research use",
            f"https://{REVIEWS}",
            (
                _remote(
                    "amazon/processed_acl.tar.gz",
                    f"https://{REVIEWS}/",
                    f"http://{REVIEWS}/",
                    unpack=("processed_acl", "amazon/processed_acl"),
                ),
            ),
        ),
        DataSet(
            "criteo",
            "criteo",
            "a week of ads shown, clicked or not, 45.8 million (4.3 GB to fetch)",
            "Criteo's terms; research use",
            "https://ailab.criteo.com/ressources",
            (_remote("criteo/dac.tar.gz", *CRITEO, unpack=(".", "criteo"), limit=16 << 30),),
        ),
        DataSet(
            "heart",
            "heart",
            "patients of four hospitals, 303 + 294 + 123 + 200, 13 columns",
            "CC BY 4.0",
            f"{UCI}/dataset/45/heart+disease",
            tuple(
                _uci(f"heart/processed.{hospital}.data", "heart-disease")
                for hospital in ("cleveland", "hungarian", "switzerland", "va")
            ),
        ),
        DataSet(
            "gas",
            "gas",
            "six gases by 16 drifting sensors, batches 1 to 6 of three years, 5,933",
            "CC BY 4.0; research use asked",
            f"{UCI}/dataset/270",
            (_uci("gas/driftdataset.zip", "00270", unpack=(".", "gas")),),
        ),
        DataSet(
            "bank",
            "bank",
            "calls of a bank's campaign, 8,257 to customers called before + 36,954 to others",
            "CC BY 4.0",
            f"{UCI}/dataset/222",
            (_uci("bank/bank.zip", "00222", unpack=(".", "bank")),),
        ),
        DataSet(
            "shoppers",
            "shoppers",
            "visits to a shop on the web, 10,551 of returning + 1,694 of new visitors",
            "CC BY 4.0",
            f"{UCI}/dataset/468",
            (
                _uci(
                    "shoppers/online_shoppers_intention.csv",
                    "00468",
                    checksum="sha256:"
                    "b3055ee355f59134d851d32641183cb4a8b45def7124d2f50442a042f358e0d9",
                ),
            ),
        ),
    )
}


def data_folder(given: Path | None = None) -> Path:
    """Return `given`, else what ``HALFSEEN_DATA`` names, else the user cache directory's folder."""
    named = given or os.environ.get("HALFSEEN_DATA")
    if named:
        return Path(named).expanduser()
    return platformdirs.user_cache_path("halfseen") / "data"


def family(name: str) -> Family:
    """Return a family by its name, or by the name of a set that belongs to it."""
    _check(name)
    return FAMILIES[DATA_SETS[name].family if name in DATA_SETS else name]


def data_sets(name: str | None = None) -> Iterator[DataSet]:
    """Yield the sets of that name or of the family of that name; all of them without a name."""
    if name is not None:
        _check(name)
    yield from (d for d in DATA_SETS.values() if name is None or name in (d.name, d.family))


def parse_pair(pair: str | None, of: Family) -> tuple[str, str]:
    """Return (source, target) of ``source:target`` or ``source->target``."""
    if pair is None:
        return of.example
    parts = re.split(r"\s*(?:->|→|:)\s*", pair.strip())
    if len(parts) != 2 or not all(parts):
        raise OptionError(
            f"{pair!r} is not a pair: write source:target, as in {':'.join(of.example)}."
        )
    return parts[0], parts[1]


def _check(name: str) -> None:
    if name not in FAMILIES and name not in DATA_SETS:
        known = ", ".join(dict.fromkeys([*FAMILIES, *DATA_SETS]))
        raise OptionError(f"No data set is called {name!r}; there are {known}.")
