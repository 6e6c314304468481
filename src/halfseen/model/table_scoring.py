"""Scores of a whole table, streamed from file to file."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from halfseen.alarms import Alarm, refuse
from halfseen.alarms.table_alarms import Watch
from halfseen.arrays import Floats
from halfseen.atomic_files import atomic_write
from halfseen.data.arrow_columns import check_text_bytes
from halfseen.data.column_spec import similar
from halfseen.data.label_column import some_labels
from halfseen.data.preprocessing import ReadRows, inputs_of
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.data.table_files import FORMATS, TableFiles, column_names
from halfseen.errors import InputError
from halfseen.model.evaluation import evaluation
from halfseen.model.model import Model

if TYPE_CHECKING:  # which needs Pillow
    from halfseen.data.image_folders import ImageFolder, Refuse

PREDICTION, FILE = "prediction", "file"


@dataclass(frozen=True)
class Scored:
    """What came of scoring a table.

    Parameters
    ----------
    rows, seconds
        How many, and how long it took.
    notes
        Sentences for the user.
    alarms
        What looks wrong with the rows (the first 100,000) and with their scores.
    """

    rows: int
    seconds: float
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()


def score_table(
    model: Model,
    table: TableFiles,
    output: Path,
    *,
    use_missing: bool = False,
    target_prior: npt.ArrayLike | None = None,
    strict: bool = False,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Scored:
    """Write one row of scores for each row of the table, in its order, whole or not at all.

    The output holds the model's id columns as they are, the probability of each class c as
    ``p_c``, and the most probable class as ``prediction``; or the ``amount``, with the ends of its
    interval as ``low`` and ``high``.

    Parameters
    ----------
    model, table
        What scores what.
    output
        A file that ends in .parquet, .csv or .arrow.
    use_missing
        Whether rows that have the missing block are scored with it.
    target_prior
        Known class proportions of the table that the probabilities are corrected for.
    strict
        Whether an alarm is an error, so that nothing is written.
    on_rows
        Told after each batch how many rows it had.
    """
    check_output(output, table)
    scorer = TableScorer.of(
        model,
        table.names,
        use_missing=use_missing,
        target_prior=target_prior,
        where=str(table.path),
    )
    rows, started = 0, time.perf_counter()
    watch = Watch(model.schema, model.metrics)
    with atomic_write(output) as partial:
        with _writer(partial) as write:
            for batch in table.batches(scorer.columns):
                shown, read = scorer.scored(batch, first_row=rows + 1)
                write(scorer.columns_of(batch, shown))
                watch.add(read, shown)
                rows += batch.num_rows
                on_rows(batch.num_rows)
        alarms = watch.alarms()
        if strict:
            refuse(alarms)
    notes = (*table.notes, *scorer.notes)
    return Scored(rows, time.perf_counter() - started, notes, tuple(alarms))


def evaluate_table(model: Model, table: TableFiles, label: str | None = None) -> dict[str, Any]:
    """Measure a model on a table's labelled rows (:meth:`Model.evaluate`); others are left out.

    `label` is the column of the labels, by default the one that the model was fitted on.
    """
    name = model.schema.label if label is None else label
    if name not in table.names:
        raise InputError(
            f"{table.where} has no column {name!r} to take labels from"
            f"{similar(name, table.names)}: --label names another."
        )
    scorer = TableScorer.of(model, table.names, where=table.where)
    watch = Watch(model.schema, model.metrics)
    rows, prepared, labels = 0, [], []
    for batch in table.batches(list(dict.fromkeys([*scorer.inputs, name]))):
        found = some_labels(model.schema, batch.column(name), name, table.where)
        known = model.target_type.known(found)
        shown, read = scorer.scored(batch, first_row=rows + 1)
        watch.add(read, shown)
        prepared.append(inputs_of(model.schema, read)[known])
        labels.append(found[known])
        rows += batch.num_rows
    known_rows = np.concatenate(prepared)
    measured = model.evaluate_rows(known_rows, np.concatenate(labels))
    return measured | {"unlabelled": rows - len(known_rows), "alarms": watch.alarms()}


def score_images(
    model: Model,
    folder: ImageFolder,
    output: Path,
    *,
    refuse: Refuse,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Scored:
    """Write one row of scores for each image of a folder that can be read, in the files' order.

    The output holds the path inside the folder as ``file``, then the same as :func:`score_table`.
    """
    batches = image_batches(model, folder, refuse)
    names, rows, started = folder.names, 0, time.perf_counter()
    with atomic_write(output) as partial, _writer(partial) as write:
        for places, images in batches:
            files = {FILE: pa.array([names[place] for place in places])}
            write(pa.table(files | model.target_type.columns(model.predictions(images))))
            rows += len(places)
            on_rows(len(places))
        if not rows:
            raise InputError(f"No image of {folder.path} can be read.")
    return Scored(rows, time.perf_counter() - started)


def image_batches(
    model: Model, folder: ImageFolder, refuse: Refuse
) -> Iterator[tuple[list[int], Any]]:
    """Give the images of a folder as the model learned from such, with their positions."""
    preprocessor = model.preprocessor
    if not (isinstance(preprocessor, ImagePreprocessor) and preprocessor.scale == "bytes"):
        raise InputError(
            "The model was fitted in Python on numbers, whose scale files do not have: score "
            "arrays with halfseen.load, or fit it on bytes (uint8)."
        )
    hidden = None if model.needs_complete_target else preprocessor.hidden or preprocessor.blocks
    return folder.batches(preprocessor.blocks.shape, refuse, hidden)


def evaluate_images(model: Model, folder: ImageFolder, refuse: Refuse) -> dict[str, Any]:
    """Measure a model on a folder of class folders (:meth:`Model.evaluate`)."""
    shown, labels = [], []
    positions = model.positions(folder.labels)
    for places, images in image_batches(model, folder, refuse):
        shown.append(model.predictions(images))
        labels.append(positions[places])
    if not shown:
        raise InputError(f"No image of {folder.path} can be read.")
    measured = evaluation(
        np.concatenate(shown), np.concatenate(labels), model.metrics, model.target_type
    )
    return measured | {"unlabelled": 0, "alarms": ()}


@dataclass(frozen=True)
class TableScorer:
    """A model that scores the batches of one table: Arrow in, Arrow out.

    Parameters
    ----------
    model
        What scores.
    ids, inputs
        Columns that are carried through, and those that are looked at.
    use_missing
        Whether rows that have the missing block are scored with it.
    target_prior
        The class shares that probabilities shall speak of, where they are not the source's.
    where
        What messages call the table.
    notes
        Sentences for the user.
    """

    model: Model
    ids: tuple[str, ...]
    inputs: tuple[str, ...]
    use_missing: bool = False
    target_prior: npt.ArrayLike | None = None
    where: str = "the table"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        model: Model,
        names: Sequence[str],
        *,
        use_missing: bool = False,
        target_prior: npt.ArrayLike | None = None,
        where: str = "the table",
    ) -> TableScorer:
        """Return the scorer for a table with columns of these names, or say what it lacks."""
        schema = model.schema
        inputs = list(schema.cells())
        absent = [name for name in inputs if name not in names]
        if absent:
            raise InputError(
                f"{where} lacks column {absent[0]!r}, which the model observes"
                + (f" (and {len(absent) - 1} more)" if len(absent) > 1 else "")
                + _meant(absent[0], names)
            )
        if use_missing:
            whole = schema.cells(complete=True)
            blocks = [name for name in whole if name in names and name not in inputs]
            if not blocks:
                raise InputError(
                    f"{where} has no column of the missing block, so there is nothing to use."
                )
            inputs += blocks
        ids = [name for name in schema.id if name in names]
        notes = _notes(model, names, used={*inputs, *ids})
        return cls(model, tuple(ids), tuple(inputs), use_missing, target_prior, where, notes)

    @property
    def columns(self) -> list[str]:
        """The columns that a batch must have."""
        return list(dict.fromkeys([*self.ids, *self.inputs]))

    def __call__(self, batch: Any, *, first_row: int = 1) -> Any:
        """Return the scores of a record batch or table, as a table."""
        return self.columns_of(batch, self.scored(batch, first_row=first_row)[0])

    def scored(self, batch: Any, *, first_row: int) -> tuple[Floats, ReadRows]:
        """Return probabilities, or amounts with their intervals; and the rows as they were read."""
        shown, read = self.model.scored(
            batch,
            use_missing=self.use_missing,
            target_prior=self.target_prior,
            where=self.where,
            first_row=first_row,
        )
        assert read is not None
        return shown, read

    def columns_of(self, batch: Any, shown: Floats) -> Any:
        """Return ids and what is shown of each row, as a table."""
        columns = {name: self._plain(batch.column(name), name) for name in self.ids}
        return pa.table(columns | self.model.target_type.columns(shown))

    def _plain(self, column: Any, name: str) -> Any:
        """Return an id column as its values: dictionaries may differ from batch to batch."""
        if not pa.types.is_dictionary(column.type):
            return column
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        check_text_bytes(whole, name, self.where)
        return whole.cast(column.type.value_type)


def check_output(output: Path, table: TableFiles | None = None) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if FORMATS.get(output.suffix.lower(), "Excel") == "Excel":
        raise InputError(f"{output} must end in .parquet, .csv or .arrow.")
    if output.is_dir():
        raise InputError(f"{output} is a folder; name a file in it.")
    if table is not None and output.resolve() in [file.resolve() for file in table.files]:
        raise InputError(f"{output} is the table itself; name another file for the scores.")


def is_scores(path: Path) -> bool:
    """Whether a file has the columns that :func:`score_table` writes."""
    try:
        *_, first, second, last = column_names(path)
    except ValueError:  # not a table, or one of fewer columns
        return False
    return (first, second, last) == ("amount", "low", "high") or (
        first.startswith("p_") and second.startswith("p_") and last == PREDICTION
    )


def _notes(model: Model, names: Sequence[str], used: set[str]) -> tuple[str, ...]:
    schema = model.schema
    notes = []
    missing = [column.name for column in schema.missing]
    unused = [name for name in missing if name in names and name not in used]
    if unused:
        how = " (--use-missing scores with them where a row has them all)"
        names_of_them = f"{', '.join(unused)}{how if model.imputes else ''}"
        notes.append(f"Not looked at, because the model takes them for missing: {names_of_them}.")
    expected = {*missing, *schema.dropped, schema.label}
    extra = [name for name in names if name not in used and name not in expected]
    if extra:
        shown = ", ".join(extra[:8]) + (f" and {len(extra) - 8} more" if len(extra) > 8 else "")
        notes.append(f"Ignored, because the model does not know them: {shown}.")
    absent = [name for name in schema.id if name not in names]
    if absent:
        notes.append(f"Not there to be carried through: {', '.join(absent)}.")
    clashing = [name for name in schema.id if name in score_names(model)]
    if clashing:
        raise InputError(f"The id column {clashing[0]!r} has the name of a column of scores.")
    return tuple(notes)


def _meant(name: str, names: Sequence[str]) -> str:
    """Return the end of a sentence on an absent column: one that is spelled alike, if any."""
    close = difflib.get_close_matches(name.casefold(), [n.casefold() for n in names], n=1)
    found = [other for other in names if other.casefold() in close]
    return f"; did you mean {found[0]!r}? --rename '{found[0]}={name}'." if found else "."


def score_names(model: Model) -> list[str]:
    """Return the columns of scores."""
    kind = model.target_type
    return list(kind.columns(kind.to_predictions(np.empty((0, kind.outputs)), model.metrics)))


@contextmanager
def _writer(path: Path) -> Iterator[Callable[[Any], None]]:
    """Give a function that writes a table as the next rows of a file."""
    kind = FORMATS[path.suffix.lower()]
    writers: list[Any] = []
    schemas: list[Any] = []

    def write(table: Any) -> None:
        if not writers:
            schemas.append(table.schema)
            make = {
                "CSV": pa.csv.CSVWriter,
                "Parquet": pa.parquet.ParquetWriter,
                "Arrow": pa.ipc.new_file,
            }[kind]
            writers.append(make(str(path), table.schema))
        writers[0].write_table(table.cast(schemas[0]))  # files may differ in the type of an id

    try:
        yield write
    except pa.ArrowException as error:
        text = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"The scores cannot be written as {kind}: {text[:300]}.") from None
    finally:
        for writer in writers:
            writer.close()
