"""A row's answer depends on the row and the model: never on its neighbours, format or entrance.

Random tables of what is easily misread are written in every format. HALFSEEN_TABLES says how many
are drawn; 100,000 were, once.
"""

import csv
import os
import re
import shutil
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.dates import expanded, read_dates
from halfseen.data.frames import read_frame
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.errors import HalfseenError

TABLES = int(os.environ.get("HALFSEEN_TABLES", "150"))
NUMBER_LIKE = [
    *re.split(" ", "1.10 1.1 1.0 1 01 001 2.0.1 1E5 12E3 1e5 100000 5E400 0x10 +1 -1 1% 5€ $3 1e"),
    *re.split(" ", "1,234 1.234 26,249 26.249 1.234,5 (1.2) 0.1 .5 5. 1_000 ٣ 1E inf -inf"),
    *("1\u00a0234", "99999999999999999999"),
]
TOKENS = [
    *NUMBER_LIKE,
    *re.split(" ", "NA N/A None NULL nan NaN null - ? True true FALSE 10:30 10:30:00 02.01.2024"),
    *re.split(
        " ", "2024-01-02 1/2/24 café cafe\u0301 x X é \u200bx \ufeffy Ａ semi;colon comma,d '"
    ),
    *(" x", "a b", 'quote"d', "two\nlines", "tab\tbed"),
]
ZONES = ("Europe/Berlin", "America/New_York", "UTC")
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@st.composite
def columns(draw, kind, rows):
    """Return cells of a column, some of them empty, as its type has them."""
    if kind == "text":
        few = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4, unique=True)
        pool = draw(few) + draw(st.lists(st.text(max_size=3).map(printable), max_size=1))
    elif kind == "code":  # looks like numbers, and may be one kind of text alone
        pool = draw(st.lists(st.sampled_from(NUMBER_LIKE), min_size=2, max_size=5, unique=True))
    elif kind == "float":
        finite = st.floats(-1e6, 1e6, allow_subnormal=False)
        pool = draw(st.lists(finite, min_size=2, max_size=8, unique=True))
    elif kind in ("integer", "category"):
        pool = draw(st.lists(st.integers(-999, 99_999), min_size=2, max_size=6, unique=True))
    elif kind == "boolean":
        pool = [True, False]
    else:
        zone = draw(st.sampled_from(ZONES))
        hours = draw(st.lists(st.integers(0, 20_000), min_size=2, max_size=8, unique=True))
        start = datetime(2023, 1, 1, tzinfo=UTC)
        pool = [pd.Timestamp(start).tz_convert(zone) + pd.Timedelta(hours=h) for h in hours]
    cells = draw(st.lists(st.sampled_from([*pool, None]), min_size=rows, max_size=rows))
    for place, value in zip(range(0, rows - 1, max(1, rows // len(pool))), pool, strict=False):
        cells[place] = value  # each occurs
    return cells


def printable(text):
    """Return a text that every format can hold: Excel knows no control characters."""
    kept = "".join(c for c in text if c.isprintable())
    return "" if kept.startswith(("=", "#", "_x")) else kept


KINDS = ("text", "code", "float", "integer", "category", "boolean", "time")
TYPES = {
    "text": pa.string(), "code": pa.string(), "float": pa.float64(), "integer": pa.int64(),
    "category": pa.int64(), "boolean": pa.bool_(), "id": pa.string(),
}  # fmt: skip


@st.composite
def problems(draw):
    """Return a source, a target that lacks one column, and the kinds of their columns."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    names = {f"{kind}{number}": kind for number, kind in enumerate(kinds)}
    rows, others = draw(st.integers(20, 26)), draw(st.integers(11, 14))
    cells = {name: draw(columns(kind, rows + others)) for name, kind in names.items()}
    ids = draw(st.lists(st.sampled_from(TOKENS), min_size=others, max_size=others))
    built = {
        name: pa.array(
            cells[name],
            TYPES.get(kind) or pa.timestamp("us", tz=str(next(filter(None, cells[name])).tz)),
        )
        for name, kind in names.items()
    }
    whole = pa.table(built)
    source = whole.slice(0, rows)
    source = source.append_column("hidden", pa.array(np.arange(rows) % 7 + 0.5))
    source = source.append_column("y", pa.array(["no", "yes"] * (rows // 2) + ["no"] * (rows % 2)))
    target = whole.slice(rows).append_column("row", pa.array(ids))
    return source, target, names


def spec(names):
    dates = read_dates({n: ["hour", "month"] for n, kind in names.items() if kind == "time"})
    return ColumnSpec(
        "y",
        keep=tuple(expanded(list(names), dates)),
        missing=("hidden",),
        categorical=tuple(name for name, kind in names.items() if kind == "category"),
        dates=dates,
    )


def write_csv(table, path, delimiter=","):
    """Write a table as other programs do: numbers bare, texts as they are, nothing for a gap."""
    rows = table.to_pylist()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        for row in rows:
            writer.writerow(["" if cell is None else cell for cell in row.values()])


def write_excel(table, path):
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(table.column_names)
    for row in table.to_pylist():
        sheet.append([str(c) if isinstance(c, datetime) else c for c in row.values()])
    book.save(path)


def written(table, folder):
    """Give every way in which a table can be handed over, each by its name."""
    frame = table.to_pandas(integer_object_nulls=True)
    for name, save in {
        "a.csv": lambda path: write_csv(table, path),
        "b.csv": lambda path: frame.to_csv(path, index=False),
        "c.csv": lambda path: pyarrow.csv.write_csv(table, path),
        "d.csv": lambda path: write_csv(table, path, ";"),
        "e.tsv": lambda path: write_csv(table, path, "\t"),
        "f.csv.gz": lambda path: frame.to_csv(path, index=False),
        "g.parquet": lambda path: pyarrow.parquet.write_table(table, path),
        "h.arrow": lambda path: pyarrow.feather.write_feather(table, path),
        "i.xlsx": lambda path: write_excel(table, path),
    }.items():
        save(folder / name)
        yield name, open_table(folder / name)
    texts = table.set_column(0, table.column_names[0], table.column(0).dictionary_encode())
    records = pa.Table.from_pylist(
        [
            {k: str(v) if isinstance(v, datetime) else v for k, v in row.items()}
            for row in table.to_pylist()
        ]
    )
    for name, rows in {
        "pandas": frame,
        "polars": pl.from_arrow(table),
        "arrow": table,
        "records": records,
        "dictionary": texts,
    }.items():
        yield name, read_frame(rows, "X")


def prepared(preprocessor, table):
    """Return the inputs of all rows, or the error that they raise."""
    try:
        whole = [
            preprocessor.prepare(batch)
            for batch in table.batches(list(preprocessor.schema.cells()))
        ]
    except HalfseenError as error:
        return type(error).__name__
    return np.concatenate(whole).tobytes()


def ids_of(table):
    """Return the column that is carried through, byte for byte."""
    return [cell for batch in table.batches(["row"]) for cell in batch.column("row").to_pylist()]


@settings(max_examples=TABLES, deadline=None, suppress_health_check=QUIET)
@given(problem=problems(), from_text=st.booleans(), order=st.randoms())
def test_every_format_gives_every_row_the_same_inputs(tmp_path_factory, problem, from_text, order):
    source, target, names = problem
    folder = tmp_path_factory.mktemp("formats", numbered=True)
    try:
        kind = "a.csv" if from_text else "g.parquet"
        for name, table in (("source", source), ("target", target)):
            (folder / name).mkdir()
            if from_text:
                write_csv(table, folder / name / kind)
            else:
                pyarrow.parquet.write_table(table, folder / name / kind)
        try:
            found = infer_schema(
                open_table(folder / "source" / kind),
                open_table(folder / "target" / kind),
                spec(names),
            )
        except HalfseenError:
            return
        assert isinstance(found, InferredTables)
        preprocessor = TablePreprocessor(found.schema)
        answers = {n: (prepared(preprocessor, t), ids_of(t)) for n, t in written(target, folder)}
        expected = answers["g.parquet"]
        assert expected[1] == target.column("row").to_pylist()
        assert {n: a for n, a in answers.items() if a != expected} == {}
        if isinstance(expected[0], str):
            return
        whole = preprocessor.prepare(target)
        places = list(range(target.num_rows))
        order.shuffle(places)
        some = places[: order.randint(1, len(places))]
        for name, table in written(target.take(some), folder):
            assert prepared(preprocessor, table) == whole[some].tobytes(), name
    finally:
        shutil.rmtree(folder)
