"""A row's answer depends on the row and the model: never on its neighbours, format or entrance.

Random tables of what is easily misread are handed to a saved model: as files to the command line,
as frames to Python, as JSON and Arrow to the server. Each table goes through all three in one of
the ways that each has, each time as some of its rows in another order, so that over many tables
every way has met every other. HALFSEEN_TABLES says how many are drawn; 100,000 were, in two runs.
"""

import asyncio
import csv
import io
import json
import os
import re
import shutil
import unicodedata
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from datetime import UTC, datetime
from types import NoneType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import halfseen
from halfseen.alarms import sentences
from halfseen.alarms.table_alarms import Watch
from halfseen.cli.predict import predict
from halfseen.data.column_spec import ColumnSpec
from halfseen.data.dates import expanded, read_dates
from halfseen.data.preprocessing import labelled_rows
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.errors import AlarmWarning, HalfseenError
from halfseen.members.linear import RegressionLearner
from halfseen.members.protocol import Sample, TrainingJob
from halfseen.members.trees import ForestLearner
from halfseen.model.model import Model
from halfseen.saving import library_versions
from halfseen.targets import IntervalReach
from halfseen.weights import Weights
from halfseen_serve.app import create_app
from halfseen_serve.arrow_body import ARROW, write_arrow
from halfseen_serve.scorer import open_scorers

TABLES = int(os.environ.get("HALFSEEN_TABLES", "100"))
NUMBER_LIKE = [
    *re.split(" ", "1.10 1.1 1.0 1 01 001 2.0.1 1E5 12E3 1e5 100000 5E400 0x10 +1 -1 1% 5€ $3 1e"),
    *re.split(" ", "1,234 1.234 26,249 26.249 1.234,5 (1.2) 0.1 .5 5. 1_000 ٣ 1E inf -inf"),
    *("1\u00a0234", "99999999999999999999", "12345678901234567", "12345678901234568"),
]
TOKENS = [
    *NUMBER_LIKE,
    *re.split(" ", "NA N/A None NULL nan NaN null - ? True true FALSE 10:30 10:30:00 02.01.2024"),
    *re.split(
        " ", "2024-01-02 1/2/24 café cafe\u0301 x X é \u200bx \ufeffy Ａ semi;colon comma,d '"
    ),
    *(" x", "a b", 'quote"d', "two\nlines", "tab\tbed"),
]
LATE = ["noon", "n/a", "2024-02-31", "31.12.2023 23:30", "2024-05-17T13:45Z", "10:30", "7"]
STRAYS = ["old", "n/a", "-", "1 234", "5 kg", "true", "2024-01-02", " 7 ", "1e3", "٣", "é"]
VERSIONS = library_versions()  # asked for once, which takes its time
ZONES = ("Europe/Berlin", "America/New_York", "UTC")
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
TYPES = {
    "text": pa.string(), "code": pa.string(), "float": pa.float64(), "integer": pa.int64(),
    "category": pa.int64(), "boolean": pa.bool_(), "stray": pa.float64(),
}  # fmt: skip
KINDS = (*TYPES, "time", "late")


@st.composite
def columns(draw, kind, rows):
    """Return cells of a column, some of them empty, as its type has them."""
    if kind == "text":
        few = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4, unique=True)
        pool = draw(few) + draw(st.lists(st.text(max_size=3).map(printable), max_size=1))
    elif kind == "code":  # looks like numbers, and may be one kind of text alone
        pool = draw(st.lists(st.sampled_from(NUMBER_LIKE), min_size=2, max_size=5, unique=True))
    elif kind in ("float", "stray"):
        finite = st.floats(-1e6, 1e6, allow_subnormal=False)
        pool = draw(st.lists(finite, min_size=2, max_size=8, unique=True))
    elif kind in ("integer", "category"):
        whole = st.integers(-999, 99_999) | st.sampled_from(
            [2**53 + 1, 12345678901234567, -(2**60)]
        )
        pool = draw(st.lists(whole, min_size=2, max_size=6, unique=True))
    elif kind == "boolean":
        pool = [True, False]
    else:
        zone = draw(st.sampled_from(ZONES))
        hours = draw(st.lists(st.integers(0, 20_000), min_size=2, max_size=8, unique=True))
        start = datetime(2023, 1, 1, tzinfo=UTC)
        pool = [pd.Timestamp(start).tz_convert(zone) + pd.Timedelta(hours=h) for h in hours]
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    cells = [[*pool, None][place] for place in random.integers(0, len(pool) + 1, rows)]
    for place, value in zip(range(0, rows - 1, max(1, rows // len(pool))), pool, strict=False):
        cells[place] = value  # each occurs
    return cells


def printable(text):
    """Return a text that every format can hold: Excel knows no control characters."""
    kept = "".join(c for c in text if c.isprintable())
    return "" if kept.startswith(("=", "#", "_x")) else kept


LABELS = {
    "two": lambda rows: ["no", "yes"] * (rows // 2) + ["no"] * (rows % 2),
    "three": lambda rows: [f"{1 + k % 3}.10" for k in range(rows)],
    "amount": lambda rows: [1.0 + k * k % 11 / 3 for k in range(rows)],
}


@st.composite
def problems(draw):
    """Return a source, a target that lacks a column, new rows as cells, and the columns' kinds.

    A source of texts has decimal points or commas, and then all texts have.
    """
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    names = {f"{kind} é{number}": kind for number, kind in enumerate(kinds)}
    rows, others = draw(st.integers(20, 26)), draw(st.integers(11, 24))
    cells = {name: draw(columns(kind, rows + others)) for name, kind in names.items()}
    types = {
        name: TYPES.get(kind) or pa.timestamp("us", tz=str(next(filter(None, cells[name])).tz))
        for name, kind in names.items()
    }
    whole = pa.table({name: pa.array(cells[name], types[name]) for name in names})
    source = whole.slice(0, rows)
    source = source.append_column("hidden", pa.array(np.arange(rows) % 7 + 0.5))
    task = draw(st.sampled_from(list(LABELS)))
    source = source.append_column("y", pa.array(LABELS[task](rows)))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    ids = [[*TOKENS, None][place] for place in random.integers(0, len(TOKENS) + 1, others)]
    target = whole.slice(rows).append_column("row", pa.array(ids, pa.string()))
    new = {name: cells[name][rows:] for name in names} | {"row": ids}
    for place, row in enumerate(zip(*new.values(), strict=True)):
        if all(cell in (None, "") for cell in row):  # which is no row to Excel
            ids[place] = "x"
    for name, kind in names.items():
        if kind in ("stray", "late"):  # texts where numbers or dates belong
            pool = STRAYS if kind == "stray" else LATE
            strays = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
            for place, text in zip(random.permutation(others), strays, strict=False):
                new[name][place] = text
            types[name] = pa.string()
    decimal = draw(st.sampled_from([None, None, ".", ","]))
    new_rows = Rows(new, types | {"row": pa.string()}, decimal or ".")
    return source, target, new_rows, names, task, decimal is not None


class Rows:
    """Rows as Python has them, so that each format can be given what it can hold."""

    def __init__(self, cells, types, decimal="."):
        self.cells, self.types, self.decimal = cells, types, decimal

    def __len__(self):
        return len(self.cells["row"])

    def taken(self, places):
        cells = {n: [own[k] for k in places] for n, own in self.cells.items()}
        return Rows(cells, self.types, self.decimal)

    @property
    def decomposed(self):
        """The rows with their columns named in the other Unicode form."""
        cells, types = (
            {unicodedata.normalize("NFD", name): own for name, own in each.items()}
            for each in (self.cells, self.types)
        )
        return Rows(cells, types, self.decimal)

    @property
    def written(self):
        """The rows with numbers as texts, where they are not written with a point."""
        types = {n: pa.string() if t == pa.float64() else t for n, t in self.types.items()}
        return self if self.decimal == "." else Rows(self.cells, types, self.decimal)

    def text(self, cell):
        return str(cell).replace(".", self.decimal) if isinstance(cell, float) else str(cell)

    @property
    def columns(self):
        """The columns as Arrow has them: those with texts among numbers are of texts."""
        found = {}
        for name, own in self.cells.items():
            kind = self.types[name]
            if kind == pa.string():
                own = [None if cell is None else self.text(cell) for cell in own]
            found[name] = pa.array(own, kind)
        return found

    @property
    def table(self):
        return pa.table(self.columns)

    @property
    def frame(self):
        """The rows as pandas: a column with texts among numbers is one of objects."""
        frame = self.table.to_pandas(integer_object_nulls=True)
        mixed = {n: own for n, own in self.cells.items() if len({*map(type, own)} - {NoneType}) > 1}
        return frame.assign(**{name: pd.Series(own, dtype=object) for name, own in mixed.items()})

    @property
    def plain(self):
        """The columns as JSON has them."""
        return {
            name: [str(c) if isinstance(c, datetime) else c for c in own]
            for name, own in self.cells.items()
        }

    @property
    def records(self):
        rows = zip(*self.plain.values(), strict=True)
        return [dict(zip(self.cells, row, strict=True)) for row in rows]


# --- ways to hand rows over -----------------------------------------------------------------------


def write_csv(rows, path, delimiter=","):
    """Write rows as other programs do: numbers bare, texts as they are, nothing for a gap."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(rows.cells)
        for row in zip(*rows.cells.values(), strict=True):
            writer.writerow(["" if cell is None else rows.text(cell) for cell in row])


def write_pandas(rows, path):
    """Write rows as pandas does, which knows the decimal sign of columns of numbers alone."""
    frame = rows.table.to_pandas(integer_object_nulls=True)
    frame.to_csv(path, index=False, decimal=rows.decimal)


def write_excel(rows, path):
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(list(rows.cells))
    for row in zip(*rows.plain.values(), strict=True):
        sheet.append([cell if is_kept_by_excel(cell) else str(cell) for cell in row])
    book.save(path)


def is_kept_by_excel(cell):
    """Say whether openpyxl, which writes sixteen digits, keeps a cell as it is."""
    if not isinstance(cell, int | float):
        return True
    return float(f"{cell:.16g}") == cell and (isinstance(cell, float) or abs(cell) < 2**53)


def body_of(**content):
    return json.dumps(content).encode(), "application/json"


FILES = {
    "a.csv": write_csv,
    "b.csv": write_pandas,
    "c.csv": lambda rows, path: pyarrow.csv.write_csv(rows.decomposed.written.table, path),
    "d.csv": lambda rows, path: write_csv(rows, path, ";"),
    "e.tsv": lambda rows, path: write_csv(rows, path, "\t"),
    "f.csv.gz": write_pandas,
    "g.parquet": lambda rows, path: pyarrow.parquet.write_table(rows.table, path),
    "h.arrow": lambda rows, path: pyarrow.feather.write_feather(rows.decomposed.table, path),
    "i.xlsx": lambda rows, path: write_excel(rows.decomposed, path),
}
FRAMES = {
    "Arrow": lambda rows: rows.table,
    "batch": lambda rows: rows.decomposed.table.to_batches()[0],
    "chunks": lambda rows: pa.concat_tables([rows.table.slice(0, 1), rows.table.slice(1)]),
    "dictionaries": lambda rows: pa.table(
        {name: column.dictionary_encode() for name, column in rows.columns.items()}
    ),
    "pandas": lambda rows: rows.frame,
    "pandas of Arrow": lambda rows: rows.table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas of records": lambda rows: pd.DataFrame(rows.decomposed.records, dtype=object),
    "polars": lambda rows: pl.from_arrow(rows.table),
}
BODIES = {
    "JSON records": lambda rows: body_of(records=rows.records),
    "JSON columns": lambda rows: body_of(columns=rows.decomposed.plain),
    "Arrow stream": lambda rows: (write_arrow(rows.decomposed.columns), ARROW),
}


class Opened:
    """A saved model as each entrance opens it."""

    def __init__(self, folder):
        self.folder = folder
        self.model = halfseen.load(folder / "model")
        self._app = create_app(open_scorers(folder / "model"))

    def answered(self, way, rows, output):
        """Return outputs, predictions, ids and alarms of rows handed over in one way."""
        if way in FILES:
            return self.by_command(way, rows, output)
        return self.by_python(way, rows) if way in FRAMES else self.by_server(way, rows, output)

    def by_command(self, name, rows, output):
        FILES[name](rows, self.folder / name)
        scores, printed = self.folder / f"scores.{output}", io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            predict(self.folder / "model", self.folder / name, scores, as_json=True, force=True)
        found = pa.Table.from_batches(open_table(scores).batches())
        alarms = json.loads(printed.getvalue())["alarms"]
        outputs, predictions = self.columns(found.drop_columns("row"))
        told = [(each["kind"], *each["columns"]) for each in alarms]
        return outputs, predictions, found.column("row").to_pylist(), told

    def by_python(self, way, rows):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            outputs = self.model.predictions(FRAMES[way](rows))
        says = [str(each.message) for each in told if each.category is AlarmWarning]
        predictions = self.model.target_type.predicted(outputs)
        return outputs, list(map(str, predictions.tolist())), None, says

    def by_server(self, way, rows, output):
        body, media = BODIES[way](rows)
        accept = ARROW if output == "arrow" else "application/json"
        status, content = asyncio.run(asked(self._app, body, media, accept))
        if status != 200:
            assert status == 422, content
            raise HalfseenError(json.loads(content)["error"])
        if output == "arrow":
            return *self.columns(pa.ipc.open_stream(content).read_all()), None, None
        answer = json.loads(content)
        told = [tuple(re.split(": |, ", re.sub(r" in row \d+$", "", a))) for a in answer["alarms"]]
        cells = answer.get("columns") or pd.DataFrame(answer["records"]).to_dict("list")
        return *self.columns(pa.table(cells)), None, told

    @staticmethod
    def columns(table):
        """Return outputs, and predictions as texts, of columns as `predict` has them."""
        *outputs, last = table.columns
        predictions = last.cast(pa.string()).to_pylist()
        if "amount" in table.column_names:
            outputs, predictions = (
                table.columns,
                list(map(str, map(float, table["amount"].to_pylist()))),
            )
        shown = [c.cast(pa.float64()).to_numpy() for c in outputs]
        return np.column_stack(shown), predictions

    def expected(self, rows):
        """Return what each way must say of rows, and the sentences of its alarms."""
        shown, read = self.model.scored(rows.table)
        watch = Watch(self.model.schema, self.model.metrics)
        watch.add(read, shown)
        predictions = list(map(str, self.model.target_type.predicted(shown).tolist()))
        return shown, predictions, watch.alarms()


async def asked(app, body, media, accept):
    """Return status and content of the server's answer to one request."""
    headers = {"content-type": media, "accept": accept, "content-length": str(len(body))}
    scope = {
        "type": "http", "method": "POST", "path": "/predict", "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:])


# --- the model ------------------------------------------------------------------------------------


def saved(source, target, rows, names, task, from_text, with_trees, folder):
    """Fit a model to two files, where they can be understood, and save it."""
    dates = read_dates(
        {n: ["hour", "month"] for n, kind in names.items() if kind in ("time", "late")}
    )
    spec = ColumnSpec(
        "y",
        id=("row",),
        keep=tuple(expanded(list(names), dates)),
        missing=("hidden",),
        categorical=tuple(name for name, kind in names.items() if kind == "category"),
        dates=dates,
        task="regression" if task == "amount" else "classification",
    )
    paths = []
    for name, table in (("source", source), ("target", target)):
        paths.append(folder / f"{name}.{'csv' if from_text else 'arrow'}")
        if from_text:
            cells = {
                n: c.to_pylist() for n, c in zip(table.column_names, table.columns, strict=True)
            }
            write_csv(Rows(cells, {}, rows.decimal), paths[-1])
        else:
            pyarrow.feather.write_feather(table, paths[-1])
    opened = [open_table(path) for path in paths]
    try:
        found = infer_schema(*opened, spec)
    except HalfseenError:
        reject()
    assert isinstance(found, InferredTables)
    schema, preprocessor = found.schema, TablePreprocessor(found.schema)
    (batch,) = opened[0].batches()
    inputs, labels = labelled_rows(schema, batch, where="the source")
    kind, sample = schema.target_type, Sample(inputs, labels)
    job = TrainingJob(preprocessor.blocks, kind, sample, inputs, seed=0)
    learners = [RegressionLearner(0.1), *([ForestLearner(4)] if with_trees else [])]
    members = tuple(learner.fit(job) for learner in learners)
    metrics = {"class_prior": kind.constant(labels).tolist()}
    if task == "amount":
        metrics = {"interval": asdict(IntervalReach((2.0, 3.0), (0.1, 0.3), (0.7, 0.2)))}
    weights = Weights.equal(len(members))
    model = Model(preprocessor, members, weights, 0, metrics, versions=VERSIONS)
    model.save(folder / "model")


@settings(max_examples=TABLES, deadline=None, suppress_health_check=QUIET)
@given(
    problem=problems(),
    with_trees=st.sampled_from([False] * 9 + [True]),
    ways=st.tuples(*map(st.sampled_from, (list(FILES), list(FRAMES), list(BODIES)))),
    output=st.sampled_from(["csv", "parquet", "arrow"]),
    seed=st.integers(0, 2**16),
)
def test_every_way_gives_every_row_its_own_answer(
    tmp_path_factory, problem, with_trees, ways, output, seed
):
    _, _, rows, *_ = problem
    random = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("ways", numbered=True)
    try:
        saved(*problem, with_trees, folder)
        opened = Opened(folder)
        try:
            whole, predictions, _ = opened.expected(rows)
        except HalfseenError:
            for way in ways:
                with pytest.raises(HalfseenError):
                    opened.answered(way, rows, output)
            return
        for way in ways:
            places = random.permutation(len(rows))[: random.integers(1, len(rows) + 1)].tolist()
            some = rows.taken(places)
            _, _, alarms = opened.expected(some)
            told = sentences(alarms) if way in FRAMES else [(a.kind, *a.columns) for a in alarms]
            outputs, predicted, ids, raised = opened.answered(way, some, output)
            assert len(outputs) == len(places), (way, some.cells)
            pairs = enumerate(zip(outputs, whole[places], strict=True))
            wrong = [row for row, (a, b) in pairs if a.tobytes() != b.tobytes()]
            assert not wrong, (way, some.taken(wrong[:1]).cells, outputs[wrong[0]])
            assert predicted == [predictions[k] for k in places], way
            assert ids in (None, some.cells["row"]), way
            assert raised in (None, told), way
    finally:
        shutil.rmtree(folder)
