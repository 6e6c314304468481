"""Criteo's display advertising challenge: will a shown ad be clicked (the paper's ads-kaggle).

The domains are the paper's: rows whose C17 is ``2005abd1`` never have the count I5 and stand for
users whom the advertiser does not know yet (prospecting); all others are the source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen_bench.data.criteo_file import CATEGORICAL, NUMERIC
from halfseen_bench.data.criteo_parquet import read_batches
from halfseen_bench.data.official import OfficialFile, locate, optional_module
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled, Sealed
from halfseen_bench.data.splitting import check_choice, check_domains, random_split

__all__ = [
    "DOMAINS",
    "FILES",
    "MISSING",
    "Categorical",
    "Sizes",
    "Transform",
    "load_pair",
    "transformed",
]

DOMAINS = ("retargeting", "prospecting")
FILES = (OfficialFile("criteo/train.txt.gz", instead=("criteo/train.txt",)),)
MISSING = ("I1", "I5", "I6", "I7", "I11", "I12")
"""The paper's missing block: I5 by nature, the others set to zero by hand."""
DOMAIN_COLUMN, DOMAIN_VALUE = "C17", "2005abd1"

Transform = Literal["floor_log", "floor_log_squared"]
"""``floor(log(v + 1))``, as the authors' code, or ``floor(log(v + 1)^2)``, which the feature means
printed in the paper fit."""
Categorical = Literal["none", "hash", "frequency"]
"""Whether the categories are left out, hashed into buckets, or numbered by frequency."""
Sizes = Literal["equal", "all"]
"""Whether the larger domain is cut to the size of the smaller one."""

_RARE = 10  # a category seen less often in training shares one number with its like


def load_pair(
    root: Path,
    source: str = "retargeting",
    target: str = "prospecting",
    *,
    transform: Transform = "floor_log",
    categorical: Categorical = "none",
    buckets: int = 10_000,
    domain_column: bool = False,
    sizes: Sizes = "equal",
    max_rows: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    parquet: Path | None = None,
) -> DomainPair:
    """Read the paper's pair: as many source rows as target rows, drawn at random.

    Parameters
    ----------
    root
        The data folder, with ``criteo/train.txt`` (packed or not) or ``criteo/parquet``, a
        finished conversion of it, which is preferred.
    source, target
        ``retargeting`` and ``prospecting``: the other direction lacks nothing.
    transform
        What becomes of a count; see :func:`transformed`.
    categorical, buckets
        Whether and how C1 to C26 are added as whole numbers: 0 for an absent value, then 1 to
        `buckets` (hash), or 1 for a rare value and 2 to `buckets` for the most frequent ones.
    domain_column
        Whether C17 is among them. It tells the domains apart by construction, so not by default.
    sizes
        ``equal``: as many rows of the larger domain as the smaller one has, as in the paper;
        ``all``: every row of both.
    max_rows
        At most so many rows of each domain, a seeded choice.
    test_fraction, seed
        Share of each domain held out as its test part; what fixes every random choice.
    parquet
        A finished conversion that lies elsewhere.
    """
    check_domains(source, target, DOMAINS)
    if source != "retargeting":
        raise OptionError("Prospecting rows lack inputs, so they cannot be the source.")
    check_choice("transform", transform, get_args(Transform))
    check_choice("categorical", categorical, get_args(Categorical))
    check_choice("sizes", sizes, get_args(Sizes))
    if buckets < 2:
        raise OptionError(f"buckets={buckets} leaves nothing to tell categories apart.")
    path = parquet or _located(root)
    added = () if categorical == "none" else CATEGORICAL
    if not domain_column:
        added = tuple(name for name in added if name != DOMAIN_COLUMN)

    is_target = _is_target(path)
    chosen = _drawn(is_target, sizes, max_rows, seed, path)
    raw, labels = _gathered(path, chosen, added)
    domain = is_target[chosen]
    rows = {name: np.flatnonzero(domain == (name == target)) for name in DOMAINS}
    splits = {name: random_split(len(rows[name]), test_fraction, seed) for name in DOMAINS}
    source_train, source_test = (rows[source][part] for part in splits[source])
    target_train, target_test = (rows[target][part] for part in splits[target])

    inputs = np.empty(raw.shape, dtype=np.float32)
    for column, name in enumerate(NUMERIC):
        inputs[:, column] = transformed(raw[:, column], name, transform)
    fitted = np.concatenate([source_train, target_train])
    for column in range(len(NUMERIC), raw.shape[1]):
        inputs[:, column] = _numbered(raw[:, column], fitted, categorical, buckets)

    blocks = Blocks.columns([*NUMERIC, *added], MISSING)
    split_rows = {
        f"{source} train": source_train,
        f"{source} test": source_test,
        f"{target} train": target_train,
        f"{target} test": target_test,
    }
    return DomainPair(
        name=f"{source}->{target}",
        source_train=Labelled(inputs[source_train], labels[source_train]),
        source_test=Labelled(inputs[source_test], labels[source_test]),
        target_train=blocks.hide(inputs[target_train]),
        target_test=blocks.hide(inputs[target_test]),
        target_test_labels=Sealed(labels[target_test]),
        blocks=blocks,
        classes=("no click", "click"),
        card=Card(
            what="Click or no click on an ad, learned on known users, predicted on new ones.",
            origin="Criteo Display Advertising Challenge (Kaggle, 2014), train.txt",
            licence="Criteo's terms: research use",
            counts={name: len(part) for name, part in split_rows.items()},
            missing="I5, which no prospecting row has; and I1, I6, I7, I11, I12, set to 0 by hand "
            "as in the paper.",
            notes=_notes(is_target, sizes, transform, categorical, buckets, domain_column),
        ),
        target_train_labels=Sealed(labels[target_train]),
    )


def transformed(counts: npt.NDArray[np.float64], name: str, transform: Transform) -> Inputs:
    """Return the paper's feature of raw counts; NaN, an absent count, is taken as 0.

    A count v gives ``floor(log(v + 1))`` or ``floor(log(v + 1)^2)``. I2 has negative counts:
    under ``floor_log`` it is shifted by 3 instead of 1. A count that would still leave a
    logarithm of less than 1 gives 0.

    Examples
    --------
    >>> transformed(np.array([np.nan, 0, 1, 100]), "I1", "floor_log").tolist()
    [0.0, 0.0, 0.0, 4.0]
    >>> transformed(np.array([-3, -2, 0, 100]), "I2", "floor_log").tolist()
    [0.0, 0.0, 1.0, 4.0]
    >>> transformed(np.array([-2, 0, 1, 100]), "I2", "floor_log_squared").tolist()
    [0.0, 0.0, 0.0, 21.0]
    """
    shift = 3.0 if name == "I2" and transform == "floor_log" else 1.0
    logarithm = np.log(np.maximum(np.nan_to_num(counts) + shift, 1.0))
    power = 1 if transform == "floor_log" else 2
    return np.asarray(np.floor(logarithm**power), dtype=np.float32)


def _located(root: Path) -> Path:
    converted = Path(root) / "criteo" / "parquet"
    return converted if converted.is_dir() else locate(root, "criteo/train.txt")


def _is_target(path: Path) -> npt.NDArray[np.bool_]:
    """Return, for each row of the file, whether it belongs to the target: one byte a row."""
    compute = optional_module("pyarrow.compute", "Reading Criteo's file")
    parts = [
        compute.equal(batch[DOMAIN_COLUMN], DOMAIN_VALUE).fill_null(False).to_numpy()
        for batch in read_batches(path, [DOMAIN_COLUMN])
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def _drawn(
    is_target: npt.NDArray[np.bool_], sizes: Sizes, max_rows: int | None, seed: int, path: Path
) -> npt.NDArray[np.int64]:
    """Return the rows to use, in the file's order."""
    domains = [np.flatnonzero(~is_target), np.flatnonzero(is_target)]
    for name, rows in zip(DOMAINS, domains, strict=True):
        if not len(rows):
            equal = "" if name == "prospecting" else "other than "
            raise InputError(
                f"The domain {name!r} is empty: {path} has no row with {DOMAIN_COLUMN} "
                f"{equal}{DOMAIN_VALUE}."
            )
    smallest = min(len(rows) for rows in domains)
    if max_rows is not None:
        smallest = min(smallest, max_rows)
    if smallest < 5:
        raise InputError(f"{smallest} rows of each domain are too few to split; 5 are needed.")
    most = smallest if sizes == "equal" else max_rows or len(is_target)
    generator = np.random.default_rng(seed)
    return np.sort(
        np.concatenate(
            [rows[generator.choice(len(rows), min(len(rows), most), False)] for rows in domains]
        )
    )


def _gathered(
    path: Path, chosen: npt.NDArray[np.int64], categorical: tuple[str, ...]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the chosen rows' raw values, NaN where absent, and their labels."""
    columns = (*NUMERIC, *categorical)
    raw = np.empty((len(chosen), len(columns)))
    labels = np.empty(len(chosen), dtype=np.int64)
    first = filled = 0
    for batch in read_batches(path, ["label", *columns]):
        last = int(np.searchsorted(chosen, first + len(batch)))
        taken = batch.take(chosen[filled:last] - first)
        labels[filled:last] = taken["label"].to_numpy()
        for position, name in enumerate(columns):
            values = taken[name]
            raw[filled:last, position] = (
                values.to_numpy() if name in NUMERIC else _codes(values, path)
            )
        first, filled = first + len(batch), last
    return raw, labels


def _codes(values: Any, path: Path) -> npt.NDArray[np.float64]:
    """Return categories as the 32-bit numbers that their hexadecimal names are."""
    encoded = values.combine_chunks().dictionary_encode()
    try:
        names = [int(name, 16) for name in encoded.dictionary.to_pylist()]
    except ValueError as error:
        raise InputError(f"{path}: a category is not a hexadecimal number ({error}).") from None
    table = np.array([*names, np.nan], dtype=np.float64)
    positions: npt.NDArray[np.int32] = encoded.indices.fill_null(len(names)).to_numpy()
    return table[positions]


def _numbered(
    codes: npt.NDArray[np.float64],
    fitted: npt.NDArray[np.int64],
    categorical: Categorical,
    buckets: int,
) -> npt.NDArray[np.float64]:
    """Return a small whole number for each category: 0 where there is none."""
    if categorical == "hash":
        return np.nan_to_num(codes % buckets + 1)
    values, counts = np.unique(codes[fitted][~np.isnan(codes[fitted])], return_counts=True)
    order = np.argsort(-counts, kind="stable")[: buckets - 1]
    frequent = values[order[counts[order] >= _RARE]]
    ranks = np.argsort(frequent)
    place = np.searchsorted(frequent[ranks], codes)
    numbers = np.where(np.isnan(codes), 0.0, 1.0)
    if len(frequent):
        place = np.minimum(place, len(frequent) - 1)
        found = frequent[ranks][place] == codes
        numbers[found] = 2.0 + ranks[place[found]]
    return numbers


def _notes(
    is_target: npt.NDArray[np.bool_],
    sizes: Sizes,
    transform: Transform,
    categorical: Categorical,
    buckets: int,
    domain_column: bool,
) -> tuple[str, ...]:
    formula = {
        "floor_log": "floor(log(v + 1)), I2 floor(log(v + 3))",
        "floor_log_squared": "floor(log(v + 1)^2)",
    }[transform]
    treatment = {
        "none": "The categories are not used, as in the paper.",
        "hash": f"The categories are hashed into {buckets} buckets; 0 is an absent value.",
        "frequency": f"The categories are numbered by frequency in the training rows, up to "
        f"{buckets}; 1 is a value seen fewer than {_RARE} times, 0 an absent one.",
    }[categorical]
    if categorical != "none" and not domain_column:
        treatment += f" {DOMAIN_COLUMN} is left out: it tells the domains apart by construction."
    total = int(is_target.sum())
    drawn = {
        "equal": "equally many rows of each domain are drawn",
        "all": "neither is cut to the other's size",
    }[sizes]
    return (
        f"The file holds {len(is_target)} rows, {total} of them prospecting "
        f"({DOMAIN_COLUMN} = {DOMAIN_VALUE}); {drawn}.",
        f"Counts: {formula}; an absent count is 0, and no logarithm is taken below 1.",
        treatment,
    )
