"""Scores of a whole table or a folder of images, streamed from file to file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
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
from halfseen.data.arrow_columns import check_text_bytes
from halfseen.data.column_spec import similar
from halfseen.data.label_column import some_labels
from halfseen.data.preprocessing import ReadRows, absent_columns
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.data.table_files import FORMATS, TableFiles, column_names
from halfseen.errors import InputError, OptionError, one_line
from halfseen.model.evaluation import evaluation
from halfseen.model.model import Model
from halfseen.outputs import atomic_write

if TYPE_CHECKING:  # which needs Pillow
    from halfseen.data.image_folders import ImageFolder, Refuse
    from halfseen.explain import Explanation

PREDICTION, FILE, WORTH = "prediction", "file", "surer_by"


@dataclass(frozen=True)
class Scored:
    """What came of scoring a table or a folder of images."""

    rows: int
    seconds: float
    notes: tuple[str, ...] = ()
    """Sentences for the user."""
    alarms: tuple[Alarm, ...] = ()
    """What looks wrong with the rows (the first 100,000) and with their scores."""
    class_shares: dict[str, float] | None = None
    """That the probabilities were corrected for."""


def score_table(
    model: Model,
    table: TableFiles,
    output: Path,
    *,
    class_shares: Mapping[str, float] | None = None,
    strict: bool = False,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Scored:
    """Write one row of scores for each row of the table, in its order, whole or not at all.

    The output holds the model's id columns as they are, the probability of each class c as
    ``p_c``, and the most probable class as ``prediction``; or the ``amount``, with the ends of its
    interval as ``low`` and ``high``.
    """
    check_output(output, table)
    shares = None if class_shares is None else _all_shares(model, class_shares)
    prior = None if shares is None else list(shares.values())
    scorer, watch = TableScorer(model, table), Watch(model.schema, model.metrics)

    def scores() -> Iterator[pa.Table]:
        for batch, shown, read in scorer.scored(target_prior=prior):
            watch.add(read, shown)
            yield scorer.with_ids(batch, shown)
        if strict:
            refuse(watch.alarms())

    started = time.perf_counter()
    rows = _write(output, scores(), on_rows)
    seconds = time.perf_counter() - started
    notes = (*table.notes, *scorer.notes)
    return Scored(rows, seconds, notes, tuple(watch.alarms()), shares)


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
    watch = Watch(model.schema, model.metrics)
    rows, prepared, labels = 0, [], []
    for batch, shown, read in TableScorer(model, table).scored(name):
        found = some_labels(model.schema, batch.column(name), name, table.where)
        known = model.target_type.known(found)
        watch.add(read, shown)
        prepared.append(model.tables.inputs(read)[known])
        labels.append(found[known])
        rows += batch.num_rows
    known_rows = np.concatenate(prepared)
    measured = model.evaluate_rows(known_rows, np.concatenate(labels))
    return measured | {"unlabelled": rows - len(known_rows), "alarms": watch.alarms()}


def rank_table(model: Model, table: TableFiles, output: Path, columns: Sequence[str]) -> int:
    """Write the rows that are worth measuring most first, and how much surer that makes them.

    The output holds each row's place in the table as ``row``, the model's id columns, and what
    :meth:`Model.value_by_row_of` says as ``surer_by``. Return how many rows there are.
    """
    check_output(output, table)
    scorer, parts, first = TableScorer(model, table), [], table.first_row
    for batch in table.batches([*scorer.ids, *scorer.inputs]):
        value = model.value_by_row_of(batch, columns)
        rows = pa.array(range(first, first + len(value)))
        parts.append(pa.table({"row": rows} | scorer.columns_of_ids(batch) | {WORTH: value}))
        first += len(value)
    ranked = pa.concat_tables(parts).sort_by([(WORTH, "descending")])
    return _write(output, iter([ranked]), lambda rows: None)


def is_worth(path: Path) -> bool:
    """Whether a file has the columns that :func:`rank_table` writes."""
    try:
        first, *_, last = column_names(path)
    except ValueError:
        return False
    return (first, last) == ("row", WORTH)


def explain_table(model: Model, table: TableFiles, *, rows: int, seed: int = 0) -> Explanation:
    """Explain the first `rows` of a table (:meth:`Model.explain`)."""
    scorer = TableScorer(model, table)
    known = _first(table.batches(scorer.inputs), rows)
    return model.explain(known, seed=seed, where=table.where)


def _first(batches: Iterator[Any], rows: int) -> pa.Table:
    taken = []
    for batch in batches:
        taken.append(batch.slice(0, rows))
        rows -= taken[-1].num_rows
        if rows <= 0:
            break
    return pa.Table.from_batches(taken)


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
    check_output(output)
    names, kind, started = folder.names, model.target_type, time.perf_counter()
    scores = (
        pa.table(
            {FILE: pa.array([names[place] for place in places])}
            | kind.columns(model.predictions(images))
        )
        for places, images in image_batches(model, folder, refuse)
    )
    rows = _write(output, scores, on_rows)
    return Scored(rows, time.perf_counter() - started)


def evaluate_images(model: Model, folder: ImageFolder, refuse: Refuse) -> dict[str, Any]:
    """Measure a model on a folder of class folders (:meth:`Model.evaluate`)."""
    positions = model.positions(folder.labels)
    batches = [
        (model.predictions(images), positions[places])
        for places, images in image_batches(model, folder, refuse)
    ]
    shown, labels = (np.concatenate(each) for each in zip(*batches, strict=True))
    measured = evaluation(shown, labels, model.metrics, model.target_type)
    return measured | {"unlabelled": 0, "alarms": ()}


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
    hidden = preprocessor.hidden or preprocessor.blocks
    batch = None
    for batch in folder.batches(preprocessor.blocks.shape, refuse, hidden):
        yield batch
    if batch is None:
        raise InputError(f"No image of {folder.path} can be read.")


class TableScorer:
    """A model that scores one table, or says what it lacks."""

    def __init__(self, model: Model, table: TableFiles) -> None:
        self.model, self.table = model, table
        absent = absent_columns(model.schema, table.names, str(table.path))
        self.inputs = [name for name in model.schema.cells() if name not in absent]
        self.ids = [name for name in model.schema.id if name in table.names]
        self.notes = _notes(model, table.names, used={*self.inputs, *self.ids})

    def scored(
        self, *more: str, target_prior: npt.ArrayLike | None = None
    ) -> Iterator[tuple[Any, Floats, ReadRows]]:
        """Give each batch, with some columns more; its predictions, and the rows as read."""
        first, where = 1, str(self.table.path)
        for batch in self.table.batches(list(dict.fromkeys([*self.ids, *self.inputs, *more]))):
            shown, read = self.model.scored(
                batch, target_prior=target_prior, where=where, first_row=first
            )
            assert read is not None
            yield batch, shown, read
            first += batch.num_rows

    def with_ids(self, batch: Any, shown: Floats) -> pa.Table:
        """Return ids and what is shown of each row, as a table."""
        return pa.table(self.columns_of_ids(batch) | self.model.target_type.columns(shown))

    def columns_of_ids(self, batch: Any) -> dict[str, Any]:
        """Return the columns that are carried through."""
        columns = {name: batch.column(name) for name in self.ids}
        for name, column in columns.items():
            if pa.types.is_dictionary(column.type):  # which may differ from batch to batch
                check_text_bytes(column, name, self.table.where)
                columns[name] = column.cast(column.type.value_type)
        return columns


def _all_shares(model: Model, given: Mapping[str, float]) -> dict[str, float]:
    """Return the share of each class: those given, and the rest as on the source."""
    names = model.schema.class_names
    if not names:
        raise OptionError("Shares are of classes, and this model predicts amounts.")
    for name, share in given.items():
        if name not in names or not 0.0 <= share <= 1.0:
            raise OptionError(
                f"The class share {name}={share:g} is not one of a class of the model "
                f"({', '.join(names)}) and a share from 0 to 1."
            )
    source = dict(zip(names, model.class_prior.tolist(), strict=True))
    others = {name: share for name, share in source.items() if name not in given}
    rest = 1.0 - sum(given.values())
    if rest < -1e-6 or (not others and rest > 1e-6):
        raise OptionError(f"The class shares sum to {1.0 - rest:.4g}, not to 1.")
    scale = max(rest, 0.0) / max(sum(others.values()), 1e-300)
    return {name: given.get(name, source[name] * scale) for name in names}


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
        listed = ", ".join(unused)
        notes.append(f"Not looked at, because the model takes them for missing: {listed}.")
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


def score_names(model: Model) -> list[str]:
    """Return the columns of scores."""
    kind = model.target_type
    return list(kind.columns(kind.to_predictions(np.empty((0, kind.outputs)), model.metrics)))


def _write(output: Path, tables: Iterator[pa.Table], on_rows: Callable[[int], None]) -> int:
    """Write tables as the rows of one file, whole or not at all; return how many there are."""
    kind, rows = FORMATS[output.suffix.lower()], 0
    new: Any = {
        "CSV": pa.csv.CSVWriter,
        "Parquet": pa.parquet.ParquetWriter,
        "Arrow": pa.ipc.new_file,
    }[kind]
    with atomic_write(output) as partial, ExitStack() as opened:
        writer = schema = None
        try:
            for table in tables:
                if writer is None:
                    schema = table.schema
                    writer = opened.enter_context(new(str(partial), schema))
                writer.write_table(table.cast(schema))  # files may differ in the type of an id
                rows += table.num_rows
                on_rows(table.num_rows)
        except pa.ArrowException as error:
            raise InputError(
                f"The scores cannot be written as {kind}: {one_line(error)}."
            ) from None
    return rows
