"""Tables and rows of a target, as they are understood and as they are scored, cell by cell too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.alarms import FEWEST_ROWS, Alarm
from halfseen.alarms.column_alarms import column_alarms, label_alarms
from halfseen.arrays import Floats, Integers, Matrix
from halfseen.data.column_spec import listed
from halfseen.data.column_types import ColumnSummary
from halfseen.data.dates import date_names
from halfseen.data.preprocessing import ReadRows, outside
from halfseen.data.schema import NumberColumn, Shape, TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.data.values import Noted, Unread, quoted

LOOKED_AT = 100_000
"""Rows of a table that may raise alarms as they are scored: the first ones."""
OUTSIDE = 0.5
"""Share of target rows that are farther from source rows than those are from each other."""
SHARES = 0.3
"""Part of the rows that would have to change class to give the source's shares."""
TOLD = ("far", "unseen")
"""Alarms of single cells that are not raised where the column as a whole has one."""
RARE = 0.2
"""A class that is rarer may well be predicted nowhere."""
COPIES = 0.05
"""Share of source rows that are copies of others."""
LEAK = 0.02
"""Part of the errors of the most frequent class that one column alone leaves."""
LEAK_ROWS = 500
"""Rows from which that is told."""
FAR = 3.0
"""How many times the range of the source's values a number is beyond them that is far outside."""


def table_alarms(tables: InferredTables) -> list[Alarm]:
    """Return what looks wrong with the target of two understood tables.

    Constant and mostly empty columns are left to
    :func:`~halfseen.data.schema_inference.infer_schema`, which asks about them.
    """
    there = {name: column.shape() for name, column in tables.target.columns.items()}
    alarms = column_alarms(tables.schema, there)
    alarms += [*unread_alarms(tables.target.unread), *label_alarms(tables.schema)]
    return [alarm for alarm in alarms if alarm.kind not in ("constant", "gaps")]


# --- rows as they are scored ----------------------------------------------------------------------


@dataclass
class CellAlarms:
    """Gathers what is strange in the cells of rows, as they are read."""

    schema: TableSchema
    unread: Unread = field(default_factory=Unread)
    strange: dict[str, Noted] = field(default_factory=dict)
    """Cells that the source never had the like of, by column."""

    def add(self, read: ReadRows) -> None:
        """Take in some rows."""
        self.unread.update(read.unread)
        for column in self.schema.observed:
            name, values = column.name, read.columns[column.name]
            places = outside(column, values, FAR)
            if len(places):
                place = int(places[0])
                is_number = isinstance(column, NumberColumn)
                shown = f"{values[place]:g}" if is_number else quoted(values[place].as_py())
                known = self.strange.get(name, Noted(0, shown, place + read.first_row))
                self.strange[name] = known._replace(cells=known.cells + len(places))

    def alarms(self) -> Iterator[Alarm]:
        """Yield what looks wrong, column by column."""
        yield from unread_alarms(self.unread)
        for column in self.schema.observed:
            noted, shape = self.strange.get(column.name), column.shape
            if noted is None or shape is None:
                continue
            if isinstance(column, NumberColumn):
                end = (
                    f", far outside what the source has ({shape.quantiles[0]:g} to "
                    f"{shape.quantiles[-1]:g}): another unit, or a slip?"
                )
                yield _of_cells("far", column.name, f"is {noted.text}", noted, "as far", end)
            else:
                end = ", which the source never had: is it spelled as there?"
                yield _of_cells("unseen", column.name, f"is {noted.text}", noted, "others", end)


def unread_alarms(unread: Unread) -> Iterator[Alarm]:
    """Yield an alarm for each column with cells that could not be read, or not as they should."""
    like = "something like it"
    for name, noted in unread.gaps.items():
        end = ", which cannot be read as the column is written: taken for a gap."
        yield _of_cells("unreadable", name, f"holds {quoted(noted.text)}", noted, like, end)
    for name, noted in unread.otherwise.items():
        end = ": read with the other decimal sign, because only so it fits what the source has."
        yield _of_cells("written otherwise", name, f"holds {quoted(noted.text)}", noted, like, end)


def _of_cells(kind: str, name: str, what: str, noted: Noted, like: str, end: str) -> Alarm:
    more = f" (and {like} in {noted.cells - 1:,} more)" if noted.cells > 1 else ""
    figures = {"rows": float(noted.cells), "row": float(noted.row)}
    return Alarm(kind, f"{name} {what} in row {noted.row}{more}{end}", (name,), figures)


class Watch:
    """Looks at rows as they are scored, and says what looks wrong beside the source's columns.

    Single cells are looked at from the first row on, distributions where there are enough rows.
    `metrics` are those of the model, which hold the source's class shares.
    """

    def __init__(self, schema: TableSchema, metrics: Mapping[str, Any] | None = None) -> None:
        self._schema, self._metrics = schema, metrics or {}
        self._cells = CellAlarms(schema)
        self._columns = [ColumnSummary(column.name) for column in schema.observed]
        self._shown: list[Floats] = []
        self._rows = 0
        self._absent: dict[str, None] = {}

    def add(self, read: ReadRows, shown: Floats) -> None:
        """Take in some rows and their scores; distributions until :data:`LOOKED_AT` were seen."""
        self._cells.add(read)
        self._absent |= dict.fromkeys(read.absent)
        if self._rows >= LOOKED_AT:
            return
        self._rows += read.rows
        self._shown.append(shown)
        for summary, column in zip(self._columns, self._schema.observed, strict=True):
            values = read.columns[column.name]
            if isinstance(column, NumberColumn):
                summary.values = "number"
                summary.add_numbers(values)
            else:
                summary.values = "text"
                summary.add_texts(values)

    def alarms(self) -> list[Alarm]:
        absent, made = self._absent, date_names(self._schema.dates)
        if self._rows >= FEWEST_ROWS:  # empty throughout
            empty = [c.name for c in self._columns if c.gaps == c.rows]
            absent = absent | dict.fromkeys(made.get(name, name) for name in empty)
        found = absent_alarms(tuple(absent), self._schema, self._metrics)
        if self._rows >= FEWEST_ROWS:
            there = {
                c.name: c.shape() for c in self._columns if made.get(c.name, c.name) not in absent
            }
            found += column_alarms(self._schema, there)
            told = {name for alarm in found for name in alarm.columns}
            found += answer_alarms(self._schema, np.concatenate(self._shown), self._metrics)
        else:
            told = set()
        return [
            *(
                each
                for each in self._cells.alarms()
                if each.kind not in TOLD or not {*each.columns} & told
            ),
            *found,
        ]


def absent_alarms(
    absent: Sequence[str], schema: TableSchema, metrics: Mapping[str, Any]
) -> list[Alarm]:
    """Say which observed columns are not there, and what their being filled costs."""
    if not absent:
        return []
    costs, kind = metrics.get("gap_costs", {}), schema.target_type
    cost = sum(float(costs.get(name, 0.0)) for name in absent)
    several = len(absent) > 1
    says = (
        f"{listed(absent)} {'are' if several else 'is'} not there or empty throughout: "
        f"{'they are' if several else 'it is'} filled by what the other columns let expect, which "
        f"costs {'at least ' if several else ''}about {cost:.2g}{kind.unit} of "
        f"{kind.row_loss_words}. A fit for this target may do better."
    )
    return [Alarm("absent", says, tuple(absent), {"cost": cost})]


def copy_alarms(rows: Matrix, labels: npt.NDArray[Any], measured: Integers) -> list[Alarm]:
    """Say so where many source rows are copies: held-out rows are then not new to a member.

    Rows of a few categories are alike by nature. So one of the `measured` inputs must tell most
    rows apart, once copies are gone.
    """
    some = np.column_stack([rows, labels])[:LOOKED_AT]
    kept = np.unique(some, axis=0)
    share = 1 - len(kept) / len(some)
    if share < COPIES or not _tells_apart(kept, measured):
        return []
    says = (
        f"{share:.0%} of the source's rows are copies of others: rows that were held out were "
        "learned from too, and what is measured on them is too good. Keep one of each."
    )
    return [Alarm("copies", says, figures={"share": share})]


def _tells_apart(kept: Matrix, measured: Integers) -> bool:
    telling = max((len(np.unique(kept[:, place])) for place in measured), default=0)
    return len(kept) >= FEWEST_ROWS and telling >= len(kept) / 2


def target_copy_alarms(unlabelled: Matrix, target: Matrix, measured: Integers) -> list[Alarm]:
    """Say so where complete rows without a label are rows of the target, but for what it lacks."""
    known = {row.tobytes() for row in target[:LOOKED_AT]}
    copies = sum(row.tobytes() in known for row in unlabelled[:LOOKED_AT])
    if not copies or not _tells_apart(np.unique(target[:LOOKED_AT], axis=0), measured):
        return []
    says = (
        f"{copies:,} complete rows without a label are rows of the target too. They teach well if "
        "their missing columns were measured; leave them out if those were filled in."
    )
    return [Alarm("copies", says, figures={"rows": copies})]


def leak_alarms(schema: TableSchema, rows: Matrix, labels: npt.NDArray[Any]) -> list[Alarm]:
    """Say so where one observed column alone tells the class of nearly every source row."""
    some = np.random.default_rng(0).permutation(len(rows))[:LEAK_ROWS]
    rows, labels = rows[some], labels[some]
    if schema.amounts is not None or len(rows) < 2 * FEWEST_ROWS:
        return []
    from sklearn.tree import DecisionTreeClassifier

    allowed = LEAK * (len(rows) - np.bincount(labels).max())
    alarms, start = [], 0
    for column in schema.columns:
        own = rows[:, start : start + len(column.inputs)]
        start += len(column.inputs)
        if column.role == "missing":
            continue
        tree = DecisionTreeClassifier(max_leaf_nodes=len(schema.classes), random_state=0)
        wrong = int((tree.fit(own, labels).predict(own) != labels).sum())
        if wrong <= allowed:
            says = (
                f"{column.name} alone tells the class of {1 - wrong / len(rows):.1%} of the "
                "source's rows: was it known before the label, and does it mean the same on the "
                "target? If not, drop it."
            )
            alarms.append(Alarm("leak", says, (column.name,), {"wrong": wrong / len(rows)}))
    return alarms


def drift_alarms(distance: float, outside: float) -> list[Alarm]:
    """Say so where target rows are far (:func:`halfseen.members.aligned.distance_of`)."""
    if outside < OUTSIDE:
        return []
    says = (
        f"Target rows are {distance:.1f} times as far from source rows as those are from each "
        "other: the model guesses where it has seen nothing. Look for columns that mean something "
        "else on the target, and label some of its rows to measure (`halfseen evaluate`)."
    )
    return [Alarm("drift", says, figures={"distance": distance, "outside": outside})]


def answer_alarms(schema: TableSchema, shown: Floats, metrics: Mapping[str, Any]) -> list[Alarm]:
    """Compare what is predicted with what the source holds, classes or amounts."""
    if schema.amounts is not None:
        return amount_alarms(shown[:, 0], schema.amounts)
    prior = metrics.get("class_prior")
    return [] if prior is None else prediction_alarms(shown, prior, schema.class_names)


def amount_alarms(amounts: Floats, source: Shape) -> list[Alarm]:
    """Say so where predicted amounts are on average beyond nine tenths of the source's."""
    if len(amounts) < FEWEST_ROWS or len(source.quantiles) < 3:
        return []
    mean, low, high = float(amounts.mean()), source.quantiles[1], source.quantiles[-2]
    if low <= mean <= high:
        return []
    says = (
        f"The predicted amounts average {mean:.4g}, and nine tenths of the source's lie between "
        f"{low:.4g} and {high:.4g}: look at the columns' units and gaps before using this."
    )
    return [Alarm("amounts", says, figures={"mean": mean, "low": low, "high": high})]


def prediction_alarms(
    probability: Floats, prior: Sequence[float], names: Sequence[str]
) -> list[Alarm]:
    """Compare predicted classes with the source's class shares."""
    rows = len(probability)
    if rows < FEWEST_ROWS:
        return []
    share = np.asarray(prior, dtype=np.float64)
    counts = np.bincount(probability.argmax(1), minlength=len(share))
    most = int(counts.argmax())
    if counts[most] == rows and 1 - share[most] > RARE:
        says = (
            f"All {rows:,} rows are predicted to be {names[most]!r}, which {share[most]:.0%} of "
            "the source's rows are: look at the columns' units and gaps before using this."
        )
        return [Alarm("one class", says, figures={"rows": rows, "source": float(share[most])})]
    estimated = probability.mean(0)
    moved = float(np.abs(estimated - share).sum() / 2)
    if moved <= SHARES:
        return []
    k = int(np.abs(estimated - share).argmax())
    says = (
        f"Class {names[k]!r} is estimated to have {estimated[k]:.0%} of these rows, and has "
        f"{share[k]:.0%} of the source's: if nothing explains that, do not trust the scores; label "
        "some rows to measure (`halfseen evaluate`)."
    )
    figures = {"estimated": float(estimated[k]), "source": float(share[k])}
    return [Alarm("class shares", says, figures=figures)]
