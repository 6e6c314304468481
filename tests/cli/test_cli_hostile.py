"""Whatever is wrong with the input: one sentence, exit code 2, nothing half-written."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from tables_cli import check_refused, halfseen, replaced, source_table, target_table, write

from halfseen.data.arrow_columns import LARGEST_BATCH

pytestmark = pytest.mark.filterwarnings("error")  # a warning would be a second line
ROWS = 80
GOOD_SOURCE, GOOD_TARGET = source_table(ROWS), target_table(70)


# --- bytes that are no table ----------------------------------------------------------------

BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank lines": (b"\n\n\n", "is empty"),
    "header only": (b"user,visits,click\n", "no rows"),
    "header without newline": (b"user,visits,click", "no rows"),
    "short row": (b"user,visits,click\n1,2,yes\n3\n", "line 3"),
    "long row": (b"user,visits,click\n1,2,yes,4\n", "line 2"),
    "ragged late": (b"user,visits,click\n" + b"1,2,yes\n" * 999 + b"1\n", "line 1001"),
    "utf-16 without mark": ("user,visits,click\n1,2,yes\n".encode("utf-16-le"), "UTF-8"),
    "utf-32": ("user,visits,click\n1,2,yes\n".encode("utf-32"), "UTF-8"),
    "duplicate columns": (b"user,visits,visits,click\n1,2,3,yes\n", "'visits' more than once"),
    "unnamed column": (b"user,,click\n1,2,yes\n", "no name"),
    "an endless line": (b"user,visits\n1," + b"x" * 5_000_000, ""),
    "gzip": (bytes.fromhex("1f8b0800000000000003") + b"\x00\x01" * 40, ""),
    "zip": (b"PK\x03\x04" + bytes(range(256)), ""),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), ""),
    "pickle": (b"\x80\x04\x95\x10\x00\x00\x00", ""),
    "html": (b"<html>\n<body>\nNot, found\n</body>\n", ""),
    "json": (b'{"a": 1,\n"b": 2}\n', ""),
}


@pytest.mark.parametrize("side", ["source", "target", "data"])
@pytest.mark.parametrize("name", BYTES)
def test_csv_that_is_none(name, side, tmp_path, out, fit, predict):
    content, says = BYTES[name]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    run = predict(path) if side == "data" else fit(**{side: path})
    if (name, side) == ("an endless line", "data"):  # a table of one cell, which says nothing
        assert run.code == 0
        assert "cannot be read as the column is written" in run.out
        assert "basket, shop, member are not there or empty throughout" in run.out
        return
    check_refused(run, out, says)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
@pytest.mark.parametrize(
    "content", [b"", b"P", b"PAR1", b"ARROW1\0\0", b"garbage" * 99, b"\0" * 64]
)
def test_binary_files_that_are_none(content, ending, tmp_path, out, fit):
    path = tmp_path / f"bad{ending}"
    path.write_bytes(content)
    check_refused(fit(path), out, str(path))


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "zstd"])
def test_truncated_files(kind, kept, tmp_path, out, fit):
    path = tmp_path / ("bad.parquet" if kind == "parquet" else "bad.arrow")
    options = {
        "parquet": {},
        "arrow": {},
        "stream": {"stream": True},
        "zstd": {"compression": "zstd"},
    }
    write(GOOD_SOURCE, path, **options[kind])
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    check_refused(fit(path), out, str(path))


@pytest.mark.parametrize("seed", range(30))
def test_flipped_bytes_never_crash(seed, tmp_path, out, predict):
    """A flipped byte may go unseen where it only changes a value; it may not do worse."""
    random = np.random.default_rng(seed)
    ending, options = [(".arrow", {}), (".arrow", {"stream": True}), (".parquet", {})][seed % 3]
    path = write(GOOD_TARGET, tmp_path / f"bad{ending}", **options)
    content = bytearray(path.read_bytes())
    for position in random.integers(0, len(content), 8):
        content[position] ^= 1 << int(random.integers(8))
    path.write_bytes(content)
    run = predict(path)
    if run.code:
        check_refused(run, out)
    else:
        assert [file.name for file in out.iterdir()] == ["scores.parquet"]


# --- bombs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_arrow_batch_that_unpacks_to_too_much(compression, stream, tmp_path, out, fit):
    zeros = pa.table({"click": np.zeros(LARGEST_BATCH // 8 + 1, np.int8)})
    path = write(zeros, tmp_path / "bomb.arrow", compression=compression, stream=stream)
    assert path.stat().st_size < 1_000_000
    check_refused(fit(path), out, "unpacks to")


def test_a_batch_of_nothing_that_is_very_long(tmp_path, out, fit):
    path = write(pa.table({"click": pa.nulls(2**31 - 1)}), tmp_path / "bomb.arrow")
    check_refused(fit(path), out, "unpacks to")


def test_a_dictionary_of_one_long_text(tmp_path, out, predict):
    indices = pa.array(np.zeros(60_000, np.int32))
    shop = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 1_000_000]))
    table = replaced(target_table(60_000), "shop", shop)
    check_refused(predict(write(table, tmp_path / "bomb.arrow")), out, "long texts")


def test_views_of_one_long_text(tmp_path, out, predict):
    # A view is its length, its first four letters, and where in which buffer it begins.
    view = np.array([1_000_000, 0x78787878, 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, 600)), pa.py_buffer(b"x" * 1_000_000)]
    shop = pa.Array.from_buffers(pa.string_view(), 600, buffers)
    table = replaced(target_table(600), "shop", shop)
    check_refused(predict(write(table, tmp_path / "bomb.arrow")), out, "long texts")


def test_a_few_bytes_of_parquet_that_repeat_one_long_text(tmp_path, out, predict):
    """They asked for gigabytes, whether the column is used, carried through or not looked at."""
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 100_000])
    )
    for name in ("shop", "user"):
        table = replaced(target_table(20_000), name, text)
        path = write(table, tmp_path / f"{name}.parquet", store_schema=False)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        check_refused(
            predict(path), out, "repeats long texts: 20,000 rows would take 2,000,000,000"
        )
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_ids_of_one_long_text(tmp_path, out, predict):
    indices = pa.array(np.zeros(60_000, np.int32))
    user = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 100_000]))
    path = write(replaced(target_table(60_000), "user", user), tmp_path / "bomb.arrow")
    check_refused(predict(path), out, "Column 'user' of")


def test_a_row_that_is_a_very_long_list(tmp_path, out, predict):
    """It is refused by its type, before it is read."""
    lists = pa.ListArray.from_arrays(
        pa.array([0, *[60_000_000] * 70], pa.int32()), pa.array(np.zeros(60_000_000, np.int8))
    )
    path = write(replaced(GOOD_TARGET, "visits", lists), tmp_path / "bomb.parquet")
    del lists
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    check_refused(predict(path), out, "Flatten it")
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_no_flipped_bit_of_a_parquet_footer_ends_the_process(tmp_path):
    """pyarrow aborts where damaged metadata of a column are asked for; so they are not."""
    content = write(
        pa.table({"a": [1, 2], "b": ["x", None]}), tmp_path / "good.parquet"
    ).read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    code = f"""
from pathlib import Path
from halfseen import HalfseenError
from halfseen.data.table_files import open_table
path, content = Path({str(tmp_path / "bad.parquet")!r}), {content!r}
for bit in range(8 * 90):
    damaged = bytearray(content)
    damaged[-8 - {length} + bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    try:
        list(open_table(path).batches())
    except HalfseenError:
        pass
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-500:]


@pytest.mark.parametrize("encoding", ["dictionary", "PLAIN", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("column", ["shop", "user"])
def test_texts_of_parquet_that_are_not_utf8(column, encoding, tmp_path, out, fit, predict):
    """Parquet does not look; ids went into an output that nobody could read, with exit code 0."""
    offsets = pa.array([0, *range(5, 5 * 70 + 1, 5)], pa.int32()).buffers()[1]
    content = bytearray(b"north" * 70)
    content[5 * 41] = 0xFF
    texts = pa.StringArray.from_buffers(70, offsets, pa.py_buffer(bytes(content)))
    how = {} if encoding == "dictionary" else {"column_encoding": {column: encoding}}
    path = write(
        replaced(GOOD_TARGET, column, texts),
        tmp_path / "bad.parquet",
        use_dictionary=encoding == "dictionary",
        row_group_size=30,
        **how,
    )
    says = f"Column '{column}' of {path} holds a text in row 42 that is not UTF-8"
    check_refused(predict(path), out, says)
    if column == "shop":  # a fit does not look at ids
        check_refused(fit(target=path), out, says)


# --- values that cannot be used ----------------------------------------------------------------

TWO_CLASSES = np.arange(ROWS) % 2


def some(value: object, others: object = 1.0, rows: int = ROWS) -> list[object]:
    return [value if row == 7 else others for row in range(rows)]


SOURCE_VALUES: dict[str, tuple[str, object, str]] = {
    "infinity": ("basket", some(np.inf), "infinite value in row 8"),
    "minus infinity": ("basket", some(-np.inf), "infinite"),
    "too large to scale": ("basket", some(1e308), "too large"),
    "dates": ("basket", pa.array(range(ROWS), pa.date32()), "--drop basket"),
    "timestamps": ("basket", pa.array(range(ROWS), pa.timestamp("us")), "--drop basket"),
    "times": ("basket", pa.array(range(ROWS), pa.time32("s")), "dates or times"),
    "durations": ("basket", pa.array(range(ROWS), pa.duration("s")), "holds lengths of time"),
    "lists": ("basket", [[1, 2]] * ROWS, "Flatten it"),
    "structs": ("basket", [{"a": 1}] * ROWS, "Flatten it"),
    "bytes": ("basket", [b"x"] * ROWS, "binary"),
    "identifiers": ("shop", [f"shop {row}" for row in range(ROWS)], "identifier"),
    "free text": ("shop", [f"a long remark, number {row}" for row in range(ROWS)], "free text"),
    "numbers with a stray text": (
        "basket",
        [str(r / 7) for r in range(79)] + ["x"],
        "'x' in 1 row:",
    ),
    "label empty": ("click", [None] * ROWS, "empty in every row"),
    "label with a gap": ("click", some(None, "yes"), "one value"),
    "label not a number": ("click", some(np.nan), "one value"),
    "label of one class": ("click", ["yes"] * ROWS, "one value"),
    "label continuous": ("click", [row + 0.5 for row in range(ROWS)], "Networks learn classes"),
    "label infinite": ("click", some(np.inf), "infinite value in row 8"),
    "label of many classes": ("click", list(range(ROWS)), "amount"),
    "label with a rare class": ("click", some("maybe", "yes"), "at least 2"),
    "label of dates": ("click", pa.array(TWO_CLASSES, pa.int32()).cast(pa.date32()), "dates"),
    "label of lists": ("click", [[1]] * ROWS, "Flatten it"),
    "label of bytes": ("click", [b"a", b"b"] * 40, "binary"),
}


@pytest.mark.parametrize("name", SOURCE_VALUES)
def test_source_values(name, tmp_path, out, fit):
    column, values, says = SOURCE_VALUES[name]
    path = write(replaced(GOOD_SOURCE, column, values), tmp_path / "source.parquet")
    check_refused(fit(path), out, says)


def target_values(value: object, others: object = 1.0) -> list[object]:
    return some(value, others, 70)


TARGET_VALUES: dict[str, tuple[str, object, str]] = {
    "infinity": ("basket", target_values(np.inf, 2.5), "infinite value in row 8"),
    "minus infinity": ("visits", target_values(-np.inf, 2.5), "infinite"),
    "texts for numbers": ("basket", target_values("many", "few"), "few"),
    "one text among numbers": ("basket", target_values("n/k", "1.5"), "n/k"),
    "dates": ("basket", pa.array(range(70), pa.date32()), "dates or times"),
    "timestamps": ("visits", pa.array(range(70), pa.timestamp("ns")), "dates or times"),
    "lists": ("basket", [[1, 2]] * 70, "Flatten it"),
    "structs": ("shop", [{"a": 1}] * 70, "Flatten it"),
    "bytes": ("shop", [b"north"] * 70, "binary"),
}


@pytest.mark.parametrize("command", ["fit", "predict"])
@pytest.mark.parametrize("name", TARGET_VALUES)
def test_target_values(name, command, tmp_path, out, fit, predict):
    column, values, says = TARGET_VALUES[name]
    path = write(replaced(GOOD_TARGET, column, values), tmp_path / "target.parquet")
    # What cannot be read is a gap for a model that is there, and an alarm.
    strict = ["--strict"] if "text" in name else []
    check_refused(fit(target=path) if command == "fit" else predict(path, *strict), out, says)


FIT_TARGETS: dict[str, tuple[pa.Table, str]] = {
    "constant": (replaced(GOOD_TARGET, "basket", [0.0] * 70), "--keep basket"),
    "constant text": (replaced(GOOD_TARGET, "shop", ["nowhere"] * 70), "is 'nowhere' in every"),
    "mostly empty": (replaced(GOOD_TARGET, "basket", [None] * 50 + [1.0, 2.0] * 10), "71%"),
    "nothing missing": (GOOD_SOURCE.drop_columns("click").slice(0, 60), "--missing"),
    "nothing shared": (pa.table({"other": [1.0] * 70}), "nothing to predict from"),
    "all empty": (pa.table({n: pa.nulls(70) for n in GOOD_TARGET.column_names}), "nothing to"),
    "other categories": (replaced(GOOD_TARGET, "shop", ["east", "up"] * 35), "No value of"),
    "few rows": (GOOD_TARGET.slice(0, 3), "at least 10"),
}


@pytest.mark.parametrize("name", FIT_TARGETS)
def test_targets_that_do_not_fit_the_source(name, tmp_path, out, fit):
    table, says = FIT_TARGETS[name]
    check_refused(fit(target=write(table, tmp_path / "target.parquet")), out, says)


@pytest.mark.parametrize("column", ["visits", "basket", "shop", "member"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_a_column_that_the_model_observes_is_absent(column, ending, tmp_path, out, predict):
    path = write(GOOD_TARGET.drop_columns(column), tmp_path / f"data{ending}")
    check_refused(predict(path, "--strict"), out, f"{column} is not there or empty throughout")
    run = predict(path)
    assert run.code == 0, run.err
    assert f"{column} is not there or empty throughout: it is filled" in run.out
    shutil.rmtree(out)
    out.mkdir()
    spelled = GOOD_TARGET.rename_columns({column: column.upper()})
    path = write(spelled, tmp_path / f"spelled{ending}")
    check_refused(predict(path, "--force"), out, f"lacks column '{column}'")


@pytest.mark.parametrize("ids", [[[1, 2]] * 70, [{"a": 1}] * 70], ids=["lists", "structs"])
def test_ids_that_csv_cannot_hold(ids, tmp_path, out, predict):
    path = write(replaced(GOOD_TARGET, "user", ids), tmp_path / "data.arrow")
    check_refused(predict(path, to=out / "scores.csv"), out, "as CSV")


def test_ids_that_change_their_type_between_files(tmp_path, out, predict):
    write(GOOD_TARGET, tmp_path / "data/1.parquet")
    texts = [f"user {row}" for row in range(70)]
    write(replaced(GOOD_TARGET, "user", texts), tmp_path / "data/2.parquet")
    check_refused(predict(tmp_path / "data"), out, "as Parquet")


# --- options -------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[list[str], str]] = {
    "unknown missing": (["--missing", "spent"], "did you mean 'spend'"),
    "unknown keep": (["--keep", "zzz"], "--keep"),
    "unknown categorical": (["--categorical", "visit"], "'visits'"),
    "unknown drop": (["--drop", "grades"], "'grade'"),
    "unknown id": (["--id", "users"], "'user'"),
    "missing and kept": (["--missing", "spend", "--keep", "spend"], "both"),
    "missing and dropped": (["--missing", "spend", "--drop", "spend"], "both"),
    "label dropped": (["--drop", "click"], "both"),
    "label as id": (["--id", "click"], "both"),
    "label categorical": (["--categorical", "click"], "both"),
    "everything missing": (["--missing", "visits,basket,shop,member"], "nothing to predict"),
    "everything dropped": (["--drop", "visits,basket,shop,member,spend,grade"], "nothing to"),
    "unknown positive": (["--positive", "perhaps"], "no, yes"),
    "unknown model": (["--models", "Magic"], "Magic"),
    "full and others": (
        ["--models", "Adaptation-Full,Adaptation-Imputation"],
        "are for benchmarks",
    ),
    "full without columns": (["--models", "Source-Full"], "are for benchmarks"),
    "no model": (["--models", ","], "Name at least one model"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name, out, fit):
    given, says = OPTIONS[name]
    check_refused(fit(None, None, *given), out, says)


CONFIGS: dict[str, tuple[str, str]] = {
    "not toml": ("label =", "is not TOML"),
    "unknown setting": ("lable = 'click'", "'lable', which is no setting"),
    "wrong type": ("missing = 3", "missing"),
    "unknown preset": ("preset = 'best'", "preset"),
    "unknown divergence": ("divergence = 'distance'", "distance"),
    "unknown option": ("[options]\nwidth = 3", "width"),
    "negative option": ("[options.training]\nlearning_rate = -1.0", "learning_rate"),
    "option of wrong type": ("[options.training]\nbatch_size = 'big'", "batch_size"),
    "batch larger than the table": ("[options.training]\nbatch_size = 9999", "batch"),
    "negative memory": ("memory_mib = -1", "memory_mib"),
    "negative seed": ("seed = -1", "seed"),
    "huge seed": ("seed = 99999999999999999999", "seed"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configurations(name, tables, tmp_path, out):
    text, says = CONFIGS[name]
    path = tmp_path / "bad.toml"
    path.write_text(text)
    run = halfseen("fit", tables / "source.parquet", tables / "target.parquet", "--label", "click",
                   "--id", "user", "--config", path, "-o", out / "model")  # fmt: skip
    check_refused(run, out, says)


def test_a_configuration_that_is_absent_or_no_text(tables, tmp_path, out, fit):
    check_refused(fit(None, None, "--config", tmp_path / "none.toml"), out, "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    check_refused(fit(None, None, "--config", tmp_path / "bytes.toml"), out, "not TOML")


def test_label_and_output_are_asked_for(tables, out, fit):
    check_refused(fit(label="clicked"), out, "did you mean 'click'")
    files = tables / "source.parquet", tables / "target.parquet"
    check_refused(halfseen("fit", *files, "-o", out / "m"), out, "--label")
    check_refused(halfseen("fit", *files, "--label", "click"), out, "-o FOLDER")


# --- places ------------------------------------------------------------------------------------


def test_places_that_cannot_be_read(tmp_path, tables, out, fit, predict):
    check_refused(fit(tmp_path / "nowhere.csv"), out, "There is no file")
    check_refused(predict(tmp_path / "nowhere.csv"), out, "There is no file")
    (tmp_path / "notes.docx").write_bytes(b"PK")
    check_refused(fit(tmp_path / "notes.docx"), out, "does not end in")
    empty = tmp_path / "empty"
    empty.mkdir()
    check_refused(fit(empty), out, "holds no file")
    os.mkfifo(tmp_path / "pipe.csv")
    check_refused(fit(tmp_path / "pipe.csv"), out, "neither a file nor a folder")


def test_folders_of_files_that_differ(tmp_path, out, fit):
    write(GOOD_SOURCE, tmp_path / "a/1.parquet")
    write(GOOD_SOURCE.drop_columns("shop"), tmp_path / "a/2.parquet")
    check_refused(fit(tmp_path / "a"), out, "'shop' is in only one")
    write(GOOD_SOURCE, tmp_path / "b/1.parquet")
    write(GOOD_SOURCE, tmp_path / "b/2.csv")
    check_refused(fit(tmp_path / "b"), out, "CSV and Parquet")


def test_places_that_cannot_be_written(tables, tmp_path, out, predict):
    data = tables / "target.parquet"
    check_refused(predict(data, to=out / "scores.xlsx"), out, "must end in")
    check_refused(predict(data, to=out / "scores"), out, "must end in")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    check_refused(predict(data, to=folder), out, "is a folder")
    check_refused(predict(data, to=data), out, "the table itself")
    (tmp_path / "file").write_text("")
    check_refused(predict(data, to=tmp_path / "file" / "scores.csv"), out, "could not be written")
    copied = tmp_path / "mine"
    copied.mkdir()
    (copied / "thesis.doc").write_text("mine")
    run = halfseen("fit", tables / "source.parquet", data, "--label", "click", "-o", copied)
    check_refused(run, out, "thesis.doc")
    assert (copied / "thesis.doc").read_text() == "mine"


def test_faults_of_the_system_are_sentences(tables, tmp_path, out, fit, predict):
    data = tables / "target.parquet"
    check_refused(fit(tmp_path / ("n" * 300 + ".csv")), out, "too long; choose a shorter name")
    check_refused(predict(data, to=out / ("n" * 300 + ".csv")), out, "choose a shorter name")
    check_refused(predict(data, model=tmp_path / ("n" * 300)), out, "choose a shorter name")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    check_refused(fit(tmp_path / "loop.csv"), out, "loop.csv")
    check_refused(predict(data, model=tmp_path / "loop.csv"), out, "loop.csv")


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied", "a/b"), MemoryError()])
def test_what_nobody_expected_of_the_system_is_a_sentence(error, out, predict, tables, monkeypatch):
    def failing(path):
        raise error

    monkeypatch.setattr("halfseen.model.loading.read_folder", failing)
    says = "a/b: Permission denied; name another" if error.args else "not enough memory"
    check_refused(predict(tables / "target.parquet"), out, says)


def test_there_are_enough_of_them():
    counted = 3 * len(BYTES) + 6 * 3 + 20 + 30 + len(SOURCE_VALUES) + 2 * len(TARGET_VALUES)
    counted += len(FIT_TARGETS) + 12 + len(OPTIONS) + len(CONFIGS)
    assert counted >= 200
