"""Criteo's display advertising challenge: will a shown ad be clicked (the paper's ads-kaggle).

A line of ``train.txt`` is a click, 13 counts and 26 hashed categories. The domains are the
paper's: rows whose C17 is ``2005abd1`` never have the count I5 and stand for users whom the
advertiser does not know yet (prospecting); all others are the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen_bench.data.official import OfficialFile, locate
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled
from halfseen_bench.data.splitting import check_choice, check_domains, random_split

DOMAINS = ("retargeting", "prospecting")
FILES = (OfficialFile("criteo/train.txt.gz", instead=("criteo/train.txt",)),)
NUMERIC = tuple(f"I{i}" for i in range(1, 14))
FIELDS = ("label", *NUMERIC, *(f"C{i}" for i in range(1, 27)))
MISSING = ("I1", "I5", "I6", "I7", "I11", "I12")
"""The paper's missing block: I5 by nature, the others set to zero by hand."""
DOMAIN_COLUMN, DOMAIN_VALUE = "C17", "2005abd1"

Transform = Literal["floor_log", "floor_log_squared"]
"""``floor(log(v + 1))``, as the authors' code, or ``floor(log(v + 1)^2)``, which the feature means
printed in the paper fit."""


def load_pair(
    root: Path,
    source: str = "retargeting",
    target: str = "prospecting",
    *,
    transform: Transform = "floor_log",
    max_rows: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read the paper's pair: as many source rows as target rows, drawn at random.

    The other direction lacks nothing. `max_rows` are at most so many of each domain, of which
    `test_fraction` is held out as its test part; `seed` fixes every random choice.
    """
    check_domains(source, target, DOMAINS)
    if source != "retargeting":
        raise OptionError("Prospecting rows lack inputs, so they cannot be the source.")
    check_choice("transform", transform, get_args(Transform))
    path = locate(root, "criteo/train.txt")
    is_target = _is_target(path)
    chosen = _drawn(is_target, max_rows, seed, path)
    raw, labels = _gathered(path, chosen)
    inputs = np.stack(
        [transformed(raw[:, i], name, transform) for i, name in enumerate(NUMERIC)], axis=1
    )
    domain = is_target[chosen]
    part, parts = Labelled(inputs, labels), []
    for name in DOMAINS:
        rows = np.flatnonzero(domain == (name == target))
        parts.append([part[rows[half]] for half in random_split(len(rows), test_fraction, seed)])
    blocks = Blocks.columns(NUMERIC, MISSING)
    return DomainPair.hiding(
        f"{source}->{target}",
        *parts,
        blocks=blocks,
        is_complete=False,
        classes=("no click", "click"),
        card=Card(
            what="Click or no click on an ad, learned on known users, predicted on new ones.",
            origin="Criteo Display Advertising Challenge (Kaggle, 2014), train.txt",
            licence="Criteo's terms: research use",
            counts={
                f"{name} {half}": len(rows)
                for name, halves in zip(DOMAINS, parts, strict=True)
                for half, rows in zip(("train", "test"), halves, strict=True)
            },
            missing="I5, which no prospecting row has; and I1, I6, I7, I11, I12, set to 0 by hand "
            "as in the paper.",
        ),
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


def read_batches(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of the text, batch by batch: memory does not grow with the file."""
    types = {"label": pa.int8()} | dict.fromkeys(NUMERIC, pa.int32())
    try:
        yield from pa.csv.open_csv(
            path,
            # One thread, so that an error names its row.
            read_options=pa.csv.ReadOptions(column_names=FIELDS, use_threads=False),
            parse_options=pa.csv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(FIELDS, pa.string()) | types,
                include_columns=columns,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None


def _is_target(path: Path) -> npt.NDArray[np.bool_]:
    """Return, for each row of the file, whether it belongs to the target: one byte a row."""
    parts = [
        pa.compute.equal(batch[DOMAIN_COLUMN], DOMAIN_VALUE).fill_null(False).to_numpy(False)
        for batch in read_batches(path, [DOMAIN_COLUMN])
    ]
    return np.concatenate(parts)


def _drawn(
    is_target: npt.NDArray[np.bool_], max_rows: int | None, seed: int, path: Path
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
    smallest = min(*map(len, domains), max_rows or len(is_target))
    if smallest < 5:
        raise InputError(f"{smallest} rows of each domain are too few to split; 5 are needed.")
    generator = np.random.default_rng(seed)
    return np.sort(
        np.concatenate([rows[generator.choice(len(rows), smallest, False)] for rows in domains])
    )


def _gathered(
    path: Path, chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the chosen rows' counts, NaN where absent, and their labels."""
    taken, first, filled = [], 0, 0
    for batch in read_batches(path, ["label", *NUMERIC]):
        last = int(np.searchsorted(chosen, first + len(batch)))
        taken.append(batch.take(pa.array(chosen[filled:last] - first)))
        first, filled = first + len(batch), last
    table = pa.Table.from_batches(taken).to_pandas()
    strange = ~table.label.isin([0, 1])
    if strange.any():
        line = chosen[strange.to_numpy().argmax()] + 1
        raise InputError(f"{path}, line {line}: the label is neither 0 nor 1.")
    return table[list(NUMERIC)].to_numpy(np.float64), table.label.to_numpy(np.int64)
