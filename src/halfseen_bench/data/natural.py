"""What the readers of natural tables share: text to numbers, and two tables to one problem."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from halfseen.blocks import Blocks
from halfseen.errors import InputError, OptionError
from halfseen.splitting import held_out_share
from halfseen_bench.data.official import OfficialFile, content, locate
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled
from halfseen_bench.data.splitting import Evaluation, check_domains, subset, target_rows

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


@dataclass(frozen=True)
class CodedTable:
    """A file with a header, whose rows are of a source that is complete or of a target."""

    file: OfficialFile
    delimiter: str
    domains: tuple[str, str]
    split: Callable[[pd.DataFrame], Sequence[pd.Series]]
    """Says which rows are the source's, and which the target's."""
    codes: Codes
    left_out: tuple[str, ...]
    """Columns that are no inputs."""
    label: str
    missing: tuple[str, ...]
    classes: tuple[str, str]
    refusal: str
    """Says why the target cannot be the source."""
    card: Mapping[str, str]
    is_complete: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The inputs."""
        return tuple(name for name in self.codes if name not in self.left_out)

    def read(self, root: Path) -> pd.DataFrame:
        """Return all rows of the file as numbers, in the columns of the codes."""
        return read_coded(locate(root, self.file.path), self.codes, delimiter=self.delimiter)

    def load_pair(
        self,
        root: Path,
        source: str | None = None,
        target: str | None = None,
        *,
        max_rows: int | None = None,
        evaluation: Evaluation = "transductive",
        test_fraction: float = 0.2,
        seed: int = 0,
    ) -> DomainPair:
        """Read both domains as one problem; the other direction lacks nothing.

        `max_rows` takes a seeded choice of each domain, for quick runs; the other options are
        those of :func:`halfseen_bench.data.heart.load_pair`.
        """
        named = source or self.domains[0], target or self.domains[1]
        check_domains(*named, self.domains)
        if named != self.domains:
            raise OptionError(self.refusal)
        table, parts = self.read(root), []
        for domain, chosen in zip(named, self.split(table), strict=True):
            rows = table[chosen]
            if rows.empty:
                raise InputError(f"The domain {domain!r} is empty: the file has no row of it.")
            rows = rows.iloc[subset(len(rows), max_rows, seed)]
            inputs, labels = rows[[*self.columns]].to_numpy(), rows[self.label].to_numpy(np.int64)
            parts.append(Labelled(inputs, labels))
        return make_pair(
            "->".join(named),
            (parts[0], parts[1]),
            blocks=Blocks.columns(self.columns, self.missing),
            classes=self.classes,
            card=Card(**self.card, counts=dict(zip(named, map(len, parts), strict=True))),
            split=(evaluation, test_fraction, seed),
            is_complete=self.is_complete,
            codes={name: self.codes[name] for name in self.columns},
        )


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
