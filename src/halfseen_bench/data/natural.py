"""What the readers of natural tables share: text to numbers, and two tables to one problem."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.splitting import held_out_share
from halfseen_bench.data.official import content
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled
from halfseen_bench.data.splitting import Evaluation, subset, target_rows

Codes = Mapping[str, tuple[str, ...] | None]
"""The categories of each column of a file, in order; None for a column of numbers."""


def make_pair(
    name: str,
    parts: tuple[Labelled, Labelled],
    *,
    blocks: Blocks,
    classes: tuple[str, ...],
    card: Card,
    split: tuple[Evaluation, float, int],
    is_complete: bool = False,
    codes: Codes | None = None,
) -> DomainPair:
    """Return the problem of two labelled tables with the same columns, source and target.

    `split` is how the target is used, which share of the source is held out, and a seed. What
    `blocks` lacks is hidden on the target here; `is_complete` says that it was measured all the
    same. `codes` are what categorical columns are exported as.
    """
    (source, target), (evaluation, test_fraction, seed) = parts, split
    held_out = held_out_share(source.labels, test_fraction, seed)
    return DomainPair.hiding(
        name,
        [source[rows] for rows in held_out],
        [target[rows] for rows in target_rows(len(target), evaluation, seed)],
        blocks=blocks,
        is_complete=is_complete,
        classes=classes,
        card=card,
        categories={n: names for n, names in (codes or {}).items() if names is not None},
    )


def labelled_part(
    domain: str,
    table: pd.DataFrame,
    *,
    columns: Sequence[str],
    label: str,
    max_rows: int | None,
    seed: int,
) -> Labelled:
    """Return some columns of a domain's rows as inputs, and another one as labels."""
    if table.empty:
        raise InputError(f"The domain {domain!r} is empty: the file has no row of it.")
    rows = table.iloc[subset(len(table), max_rows, seed)]
    return Labelled(rows[list(columns)].to_numpy(), rows[label].to_numpy(np.int64))


def read_text(path: Path, columns: Sequence[str], *, delimiter: str, header: bool) -> pd.DataFrame:
    """Return a delimited file's fields as text, indexed by line; its columns must be these."""
    try:
        table = pd.read_csv(
            io.BytesIO(content(path)),
            sep=delimiter,
            header=None,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            skipinitialspace=True,
        )
    except ValueError as error:  # what pandas raises on fields that do not fit, and no text
        raise InputError(f"{path} cannot be read: {error}.") from None
    table.index += 1
    table = table[(table != "").any(axis=1)]
    if header and list(table[:1].to_numpy().ravel()) != list(columns):
        raise InputError(
            f"{path}, line 1: the columns are not {', '.join(columns)}, as in the official file."
        )
    table = table[1:] if header else table
    if table.empty:
        raise InputError(f"{path} holds no rows.")
    if table.shape[1] != len(columns):
        raise InputError(
            f"{path} has {table.shape[1]} fields in a line; {len(columns)} are needed."
        )
    return table.set_axis(list(columns), axis=1)


def read_coded(path: Path, codes: Codes, *, delimiter: str) -> pd.DataFrame:
    """Return a delimited file with a header as float32, one column for each of `codes`.

    A category becomes its position in `codes`: 0, 1, 2, ...
    """
    table = read_text(path, list(codes), delimiter=delimiter, header=True)
    columns = {
        name: numbers(path, table[name])
        if known is None
        else positions(path, table[name], {word: place for place, word in enumerate(known)})
        for name, known in codes.items()
    }
    return pd.DataFrame(columns)


def numbers(path: Path, column: pd.Series, unknown: str | None = None) -> Inputs:
    """Return a column of text as numbers, NaN where it holds the word for `unknown`."""
    found = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
    _refuse(path, column, ~np.isfinite(found) & (column != unknown), "a number")
    rounded: Inputs = found.astype(np.float32)
    return rounded


def positions(path: Path, column: pd.Series, known: Mapping[Any, int]) -> Inputs:
    """Return the position of each value among the known ones; NaN stays NaN."""
    found = column.map(known)
    words = f"one of {', '.join(map(str, known))}"
    _refuse(path, column, found.isna() & column.notna(), words)
    places: Inputs = found.to_numpy(np.float32)
    return places


def _refuse(path: Path, column: pd.Series, bad: pd.Series, wanted: str) -> None:
    """Name the first line that is bad."""
    if bad.any():
        line = bad.idxmax()
        raise InputError(
            f"{path}, line {line}, column {column.name!r}: '{column[line]}' is not {wanted}."
        )
