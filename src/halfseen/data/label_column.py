"""The label column: which classes there are or that it is an amount, and each row's value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfseen.arrays import Floats
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.column_types import ColumnSummary
from halfseen.data.schema import Shape, TableSchema
from halfseen.data.tables import Table
from halfseen.data.values import as_categories, as_numbers, counts, outline, quoted
from halfseen.errors import InputError
from halfseen.targets import Scalar, class_name

MOST_CLASSES = 100
FEWEST_ROWS = 5
"""Rows that each class must have."""
FEWEST_LABELLED = 10
"""Labelled target rows below which their labels are left alone."""
NO_LABEL = -1
"""The position of a target row without a label."""
CERTAIN_AMOUNTS = 10
"""Different values, some of them no whole numbers, from which a label is an amount for sure."""

LARGEST_AMOUNT = 1e100
"""Beyond it, or closer to each other than its inverse, the squares of amounts mean nothing."""

Labels = npt.NDArray[Any]


def some_labels(schema: TableSchema, column: Any, name: str, where: str) -> Labels:
    """Return each row's class as its position, or its amount.

    Rows without a label have :data:`NO_LABEL`, or NaN.
    """
    if schema.amounts is not None:
        return as_numbers(column, name, where=where, written=schema.written.get(schema.label))
    texts = as_categories(
        column, name, where=where, stored=label_stored(schema.classes), known=schema.class_names
    )
    places = pc.index_in(texts, value_set=pa.array(schema.class_names), skip_nulls=True)
    unknown = texts.filter(pc.and_(pc.is_valid(texts), pc.is_null(places)))
    if len(unknown):
        raise InputError(
            f"The label {unknown[0].as_py()!r} is none of the model's classes: "
            f"{', '.join(schema.class_names)}."
        )
    positions: Labels = places.fill_null(NO_LABEL).to_numpy(zero_copy_only=False)
    return positions.astype(np.int64)


def used_target_labels(
    labels: Counter[Any], rows: int, classes: tuple[Scalar, ...], spec: ColumnSpec, where: str
) -> tuple[int, str]:
    """Return how many labels of the target a fit uses, and a sentence on them.

    By default those are used that some rows have and others lack; a target whose rows all have
    one is most likely there to be measured on.
    """
    there = sum(labels.values())
    evaluate = "model.evaluate" if spec.in_python else "`halfseen evaluate`"
    if not there:
        return 0, f"The label column {spec.label!r} of the target is empty in every row."
    have = f"{there:,} of the target's {rows:,} rows have a label"
    if spec.target_labels is False:
        return 0, f"{have}: they are not used, as asked; {evaluate} measures with them."
    if there == rows and not spec.target_labels:
        use = "target_labels=True" if spec.in_python else "--target-labels"
        return 0, (
            f"All {rows:,} target rows have a label: they are not used for training, so that "
            f"{evaluate} can measure with them; {use} lets the fit use them."
        )
    known = [class_name(value) for value in classes]
    unknown = [value for value in labels if known and value not in known]
    if unknown:
        raise InputError(
            f"The label {spec.label!r} of {where} has the value {unknown[0]!r}, which is none of "
            f"the source's classes ({', '.join(known)}): correct it, or empty the cell."
        )
    if there < FEWEST_LABELLED:
        return 0, f"{have}, too few to be used: label at least {FEWEST_LABELLED}."
    return there, f"{have}, and the fit uses them."


def label_stored(classes: Sequence[Scalar]) -> Literal["text", "number", "boolean"]:
    """Return what the cells of a label hold."""
    if any(isinstance(value, str) for value in classes):
        return "text"
    return "boolean" if all(isinstance(value, bool) for value in classes) else "number"


def select_target(
    labels: Counter[Any], numbers: ColumnSummary | None, spec: ColumnSpec, *, fewest: int
) -> tuple[tuple[Scalar, ...], Shape | None]:
    """Return the classes of a label, or how its amounts are distributed.

    `labels` says how often each value occurs, `numbers` sums up a label of numbers. Where the user
    leaves the task open, the label is an amount if there is no doubt.
    """
    certain = numbers is not None and not numbers.is_whole and len(labels) > CERTAIN_AMOUNTS
    if spec.task == "classification" or (spec.task == "auto" and not certain):
        return ordered_classes(labels, spec, fewest=fewest), None
    name = spec.label
    if spec.positive is not None:
        raise InputError(
            f"{spec.said('positive', spec.positive)} names a class, and the label {name!r} is an "
            "amount."
        )
    if numbers is None:
        raise InputError(
            f"The label {name!r} holds {class_name(next(iter(labels)))!r}, which is no amount: "
            "regression needs numbers."
        )
    low, high = numbers.least, numbers.most
    if max(abs(low), abs(high)) > LARGEST_AMOUNT or 0 < high - low < 1 / LARGEST_AMOUNT:
        raise InputError(
            f"The label {name!r} goes from {low:g} to {high:g}, and errors are squared: give it in "
            f"a unit in which amounts stay below {LARGEST_AMOUNT:g} and differ by more than "
            f"{1 / LARGEST_AMOUNT:g}."
        )
    if len(labels) < 2 or numbers.known < 2 * fewest:
        raise InputError(
            f"The label {name!r} has {len(labels)} different values in {numbers.known} rows; "
            f"regression needs at least {2 * fewest} rows that differ."
        )
    return (), numbers.shape()


def label_words(schema: TableSchema, counts: Sequence[int]) -> str:
    """Return what is said of a label behind its name: its classes, or its amounts."""
    if schema.amounts is not None:
        quantiles = schema.amounts.quantiles
        low, middle, high = (f"{quantiles[k]:.5g}" for k in (0, 10, 20))
        return f"an amount from {low} to {high}, median {middle}"
    total = sum(counts)
    shares = zip(schema.class_names, counts, strict=True)
    return "with classes " + ", ".join(
        f"{n} {count:,} ({count / total:.1%})" for n, count in shares
    )


def counted_rows(
    schema: TableSchema, batch: Any, labels: Labels, *, unlabelled: bool = False
) -> npt.NDArray[np.bool_]:
    """Say which source rows have a label (or none, where `unlabelled`), and a weight if any."""
    known: npt.NDArray[np.bool_] = schema.target_type.known(labels) != unlabelled
    if schema.weight is not None and schema.weight in batch.schema.names:
        known = known & counts(batch.column(schema.weight)).to_numpy(zero_copy_only=False)
    return known


def row_weights(table: Table, schema: TableSchema) -> Floats:
    """Return how much each labelled row of a table counts, by one of its columns, with mean one."""
    name, label = schema.weight or "", schema.label
    written = schema.written.get(name)
    given = [
        as_numbers(batch.column(name), name, where=table.where, written=written)[
            counted_rows(
                schema, batch, some_labels(schema, batch.column(label), label, table.where)
            )
        ]
        for batch in table.batches([name, label])
    ]
    return checked_weights(np.concatenate(given), sum(map(len, given)), f"Column {name!r}")


def checked_weights(given: Any, rows: int, called: str = "sample_weight") -> Floats:
    """Return weights of rows with mean one, or say what is wrong with them."""
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{called} holds something that is no number.") from None
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.shape != (rows,):
        raise InputError(
            f"{called} has shape {weights.shape} for {rows} source rows: give one number for each."
        )
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{called} is {weights[row]:g} in row {row}: weights are numbers that are not "
            "negative; give a row that should not count 0."
        )
    if not weights.any():
        raise InputError(f"{called} is zero in every row: no row would count.")
    counted: Floats = weights / weights.mean()
    return counted


def ordered_classes(
    labels: Counter[Any], spec: ColumnSpec, *, fewest: int = FEWEST_ROWS
) -> tuple[Scalar, ...]:
    """Return the classes of a label column in order, the positive one last."""
    name, first = spec.label, next(iter(labels))
    if len(labels) < 2:
        raise InputError(
            f"The label {name!r} has one value, {class_name(first)!r}, in every row; two or more "
            "classes are needed."
        )
    _check_spelling(labels, name)
    is_amount = all(isinstance(v, int | float) and not isinstance(v, bool) for v in labels)
    rare = is_amount and len(labels) > 10 and float(np.median(list(labels.values()))) < fewest
    broken = any(isinstance(v, float) and not v.is_integer() for v in labels)
    if rare or broken or len(labels) > MOST_CLASSES:
        advice = f"; classes are needed, at most {MOST_CLASSES}."
        if is_amount:
            how = spec.said("task", "regression")
            advice = f", as an amount has: predict it as one with {how}, or bin it into classes."
        raise InputError(
            f"The label {name!r} has {len(labels):,} different values such as {first!r}{advice}"
        )
    alone = [value for value, count in labels.items() if count == 1] if fewest > 1 else []
    if alone:
        raise InputError(
            f"Class {class_name(alone[0])!r} of label {name!r} has one row; at least 2 are needed: "
            "label another one of it, or leave the class out."
        )
    classes = sorted(labels)
    if spec.positive is None:
        return tuple(classes)
    names = [class_name(value) for value in classes]
    folded = [n for n in names if n.casefold() == spec.positive.casefold()]  # TRUE for true
    positive = folded[0] if len(folded) == 1 else spec.positive
    if positive not in names:
        raise InputError(
            f"{spec.said('positive', positive)} is no value of label {name!r}; it has "
            f"{', '.join(names)}."
        )
    if len(classes) > 2:
        raise InputError(f"--positive needs a label with two classes; {name!r} has {len(classes)}.")
    return tuple(sorted(classes, key=lambda value: class_name(value) == positive))


def _check_spelling(labels: Counter[Any], name: str) -> None:
    """Refuse classes that differ in capitals and spaces alone."""
    spelled: dict[str, str] = {}
    for text in (value for value in labels if isinstance(value, str)):
        other = spelled.setdefault(" ".join(outline(text).split()).casefold(), text)
        if other != text:
            raise InputError(
                f"The label {name!r} has the classes {quoted(other)} and {quoted(text)}, which "
                "differ in capitals or spaces alone: spell them alike."
            )
