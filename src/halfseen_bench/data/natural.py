"""What the readers of natural tables share: text to numbers, and two tables to one problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.splitting import held_out_share
from halfseen_bench.data.official import content
from halfseen_bench.data.pairs import Card, DomainPair, Inputs, Labelled, Sealed
from halfseen_bench.data.splitting import Evaluation, subset, target_rows

__all__ = ["Codes", "evaluation_note", "labelled_part", "make_pair", "read_coded", "text_lines"]

Codes = Mapping[str, tuple[str, ...] | None]
"""The categories of each column of a file, in order; None for a column of numbers."""


def make_pair(
    source: str,
    target: str,
    *,
    source_part: Labelled,
    target_part: Labelled,
    blocks: Blocks,
    classes: tuple[str, ...],
    card: Card,
    evaluation: Evaluation,
    test_fraction: float,
    seed: int,
    is_complete: bool = False,
    codes: Codes | None = None,
) -> DomainPair:
    """Return the problem of two labelled tables with the same columns.

    Parameters
    ----------
    source, target
        Names of the domains.
    source_part, target_part
        Their rows. What `blocks` lacks is hidden on the target here.
    blocks, classes, card
        As in :class:`DomainPair`.
    evaluation, test_fraction, seed
        How the target is used, and which share of the source is held out.
    is_complete
        Whether the target's missing block was measured all the same, and hidden by hand.
    codes
        What the codes of categorical columns stand for, where they should be exported as text.
    """
    train, test = held_out_share(source_part.labels, test_fraction, seed)
    adapted, predicted = target_rows(len(target_part), evaluation, seed)
    complete, labels = target_part.inputs, target_part.labels
    hidden = blocks.hide(complete)
    return DomainPair(
        name=f"{source}->{target}",
        source_train=Labelled(source_part.inputs[train], source_part.labels[train]),
        source_test=Labelled(source_part.inputs[test], source_part.labels[test]),
        target_train=hidden[adapted],
        target_test=hidden[predicted],
        target_test_labels=Sealed(labels[predicted]),
        blocks=blocks,
        classes=classes,
        card=card,
        complete_target=Sealed((complete[adapted], complete[predicted])) if is_complete else None,
        target_train_labels=Sealed(labels[adapted]),
        categories={n: names for n, names in (codes or {}).items() if names is not None},
    )


def labelled_part(
    domain: str,
    table: Inputs,
    is_part: npt.NDArray[np.bool_],
    codes: Codes,
    *,
    columns: Sequence[str],
    label: str,
    max_rows: int | None,
    seed: int,
) -> Labelled:
    """Return one domain's rows of a table with the columns of `codes`: some columns, and labels."""
    rows = table[is_part]
    if not len(rows):
        raise InputError(f"The domain {domain!r} is empty: none of {len(table)} rows is in it.")
    rows = rows[subset(len(rows), max_rows, seed)]
    position = {name: column for column, name in enumerate(codes)}
    inputs = rows[:, [position[name] for name in columns]]
    return Labelled(inputs, rows[:, position[label]].astype(np.int64))


def evaluation_note(evaluation: Evaluation) -> str:
    """Return what a card says of the target's rows."""
    if evaluation == "transductive":
        return "The whole target is adapted on without labels, and predicted."
    return "A seeded half of the target is adapted on, the other half predicted."


def text_lines(path: Path) -> list[tuple[str, str]]:
    """Return each line that is not empty, after the words that say where it stands."""
    lines = content(path).decode("ascii", errors="replace").splitlines()
    return [(f"{path}, line {n}", line) for n, line in enumerate(lines, start=1) if line.strip()]


def read_coded(path: Path, codes: Codes, *, delimiter: str) -> Inputs:
    """Return a delimited file with a header as numbers, one column for each of `codes`.

    A category becomes its position in `codes`: 0, 1, 2, ...
    """
    (where, header), *lines = text_lines(path) or [(str(path), "")]
    names = next(csv.reader(io.StringIO(header), delimiter=delimiter), [])
    if names != list(codes):
        wrong = set(codes) ^ set(names)
        raise InputError(
            f"{where}: the columns are not those of the official file; "
            f"{min(wrong)!r} is {'not there' if min(wrong) in codes else 'not known'}."
            if wrong
            else f"{where}: the columns are not in the order of the official file."
        )
    if not lines:
        raise InputError(f"{path} holds no rows.")
    positions = {
        name: None if categories is None else {c: float(i) for i, c in enumerate(categories)}
        for name, categories in codes.items()
    }
    table = np.empty((len(lines), len(codes)), dtype=np.float32)
    fields = csv.reader((line for _, line in lines), delimiter=delimiter)
    for row, ((where, _), values) in enumerate(zip(lines, fields, strict=True)):
        if len(values) != len(codes):
            raise InputError(f"{where} has {len(values)} fields; {len(codes)} are needed.")
        table[row] = [
            _number(value, known, f"{where}, column {name!r}")
            for value, (name, known) in zip(values, positions.items(), strict=True)
        ]
    return table


def _number(value: str, known: Mapping[str, float] | None, where: str) -> float:
    if known is None:
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            return number
        raise InputError(f"{where}: {value!r} is not a number.")
    if value not in known:
        raise InputError(f"{where}: {value!r} is not one of {', '.join(known)}.")
    return known[value]
