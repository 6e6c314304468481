"""Every form of request is answered as `predict` would, and every wrong one with a sentence."""

from __future__ import annotations

import json
import re

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from local_server import ROW, scorer_of, serving

from halfseen_serve.arrow_body import ARROW
from halfseen_serve.limits import Limits
from table_models import rows_of, table_model

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client():
    limits = Limits(max_rows=1000, max_bytes=200_000)
    with serving(limits=limits) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


def stream(table: pa.Table, **options) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()


def one_row(**changes) -> pa.Table:
    values = {name: pa.array([value]) for name, value in ROW.items()} | changes
    rows = max(len(column) for column in values.values())
    return pa.table(
        {
            name: column if len(column) == rows else pa.array([ROW[name]] * rows)
            for name, column in values.items()
        }
    )


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(object).where(frame.notna(), None)


def probabilities(columns: dict[str, list[float]]) -> np.ndarray:
    return np.column_stack([columns["p_no"], columns["p_yes"]])


@pytest.fixture(scope="module")
def frame():
    return rows_of(table_model(), rows=300)


@pytest.fixture(scope="module")
def expected(frame):
    return table_model().predict_proba(frame)


def test_records_are_scored_as_predict_does(client, frame, expected):
    body = {"records": plain(frame).to_dict("records")}
    answer = client.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    scored = pd.DataFrame(answer.json()["records"])
    assert (scored[["p_no", "p_yes"]] == expected).all(axis=None)
    assert scored["prediction"].tolist() == table_model().predict(frame).tolist()


def test_columns_are_scored_as_predict_does(client, frame, expected):
    body = {"columns": plain(frame).to_dict("list")}
    answer = client.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    scored = probabilities(answer.json()["columns"])
    np.testing.assert_allclose(scored, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("batch", "compression"), [(None, None), (7, None), (None, "zstd")])
def test_an_arrow_stream_is_scored_as_predict_does(client, frame, expected, batch, compression):
    table = pa.Table.from_pandas(frame)
    table = table.set_column(1, "shop", table["shop"].dictionary_encode())
    table = pa.Table.from_batches(table.to_batches(max_chunksize=batch))
    headers = {"Content-Type": ARROW, "Accept": ARROW}
    answer = client.post(
        "/predict", content=stream(table, compression=compression), headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == ARROW
    scored = pa.ipc.open_stream(answer.content).read_all()
    assert scored.column_names == ["p_no", "p_yes", "prediction"]
    np.testing.assert_allclose(probabilities(scored.to_pydict()), expected, rtol=0, atol=1e-5)


def test_a_stream_from_polars_is_understood(client, frame, expected):
    table = pl.from_pandas(frame).with_columns(pl.col("shop").cast(pl.Categorical))
    content = table.write_ipc_stream(None).getvalue()
    answer = client.post("/predict", content=content, headers={"Content-Type": ARROW})
    assert answer.status_code == 200, answer.text
    scored = probabilities(answer.json()["columns"])
    np.testing.assert_allclose(scored, expected, rtol=0, atol=1e-5)


def test_columns_that_are_not_needed_are_named(client):
    body = {"records": [ROW | {"hidden": 1.0, "secret": "x", "note": [1, {}]}]}
    assert client.post("/predict", json=body).json()["ignored"] == ["hidden", "secret", "note"]
    table = one_row().append_column("hidden", pa.array([1.0]))
    answer = client.post("/predict", content=stream(table), headers={"Content-Type": ARROW})
    assert answer.json()["ignored"] == ["hidden"]


def test_gaps_are_allowed_in_every_column(client):
    body = {"records": [dict.fromkeys(ROW)]}
    assert client.post("/predict", json=body).status_code == 200
    table = pa.table({name: pa.nulls(1) for name in ROW})
    answer = client.post("/predict", content=stream(table), headers={"Content-Type": ARROW})
    assert answer.status_code == 200


def test_the_server_describes_the_model(client):
    schema = client.get("/schema").json()
    assert [column["name"] for column in schema["columns"]] == list(ROW)
    assert schema["not_needed"] == ["hidden", "secret"]
    assert schema["answers"] == ["p_no", "p_yes", "prediction"]
    assert client.get("/health").json() == {"status": "ok"}


def body_of(**changes) -> bytes:
    return json.dumps({"records": [ROW | changes]}).encode()


def text_of(**changes: str) -> bytes:
    """Return a body with raw JSON in the place of some values."""
    fields = {name: json.dumps(value) for name, value in ROW.items()} | changes
    inside = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    return f'{{"records": [{{{inside}}}]}}'.encode()


HOSTILE_JSON = {
    "empty": (b"", 400, "not JSON"),
    "spaces": (b"   ", 400, "not JSON"),
    "truncated": (body_of()[:-3], 400, "not JSON"),
    "two documents": (body_of() + body_of(), 400, "not JSON"),
    "single quotes": (b"{'records': []}", 400, "not JSON"),
    "byte order mark": (b"\xef\xbb\xbf" + body_of(), 400, "not JSON"),
    "not UTF-8": (body_of().replace(b'"a"', b'"\xff\xfe"'), 400, "not UTF-8"),
    "UTF-16": (body_of().decode().encode("utf-16"), 400, "not UTF-8"),
    "latin-1": ('{"records": "é"}'.encode("latin-1"), 400, "not UTF-8"),
    "overlong UTF-8": (b'{"records": "\xc0\xaf"}', 400, "not UTF-8"),
    "zeros": (b"\0" * 100, 400, "not JSON"),
    "pickle": (b"\x80\x04\x95.", 400, "not UTF-8"),
    "deeply nested lists": (b"[" * 90_000, 400, "nested too deeply"),
    "deeply nested objects": (b'{"a":' * 30_000, 400, "nested too deeply"),
    "deeply nested value": (text_of(age="[" * 50_000 + "]" * 50_000), 400, "nested too deeply"),
    "NaN": (text_of(age="NaN"), 400, "holds NaN"),
    "infinity": (text_of(age="Infinity"), 400, "holds Infinity"),
    "minus infinity": (text_of(age="-Infinity"), 400, "holds -Infinity"),
    "duplicate key": (text_of(**{"note": '1, "age": 2'}), 400, "'age' twice"),
    "duplicate records": (b'{"records": [], "records": []}', 400, "'records' twice"),
    "thousands of digits": (
        text_of(age="9" * 5000),
        422,
        "'age' holds a number in row 1 that is too large",
    ),
    "null": (b"null", 422, "one key"),
    "a number": (b"3", 422, "one key"),
    "a text": (b'"records"', 422, "one key"),
    "a list": (b"[]", 422, "one key"),
    "a bare record": (json.dumps(ROW).encode(), 422, "one key"),
    "an empty object": (b"{}", 422, "one key"),
    "both forms": (b'{"records": [], "columns": {}}', 422, "one key"),
    "an unknown key": (b'{"rows": []}', 422, "'rows'"),
    "a strange key": (b'{"\\ud800\\n": []}', 422, "unknown key"),
    "no rows": (b'{"records": []}', 422, "no rows"),
    "records as object": (b'{"records": {}}', 422, "must be a list, not an object"),
    "records as null": (b'{"records": null}', 422, "must be a list, not null"),
    "a record as list": (b'{"records": [[1, 2]]}', 422, "Row 1 must be an object, not a list"),
    "a record as null": (
        b'{"records": [%s, null]}' % json.dumps(ROW).encode(),
        422,
        "Row 2 must be an object",
    ),
    "an empty record": (b'{"records": [{}]}', 422, "lacks column 'age'"),
    "a list for a number": (body_of(age=[51]), 422, "'age' holds a list"),
    "an object for a number": (body_of(age={"value": 1}), 422, "'age' holds an object"),
    "a number that overflows": (
        text_of(age="1e999"),
        422,
        "'age' holds a number in row 1 that is too large",
    ),
    "a negative overflow": (
        text_of(time="-1e400"),
        422,
        "'time' holds a number in row 1 that is too large",
    ),
    "an integer that overflows": (
        text_of(age="9" * 400),
        422,
        "'age' holds a number in row 1 that is too",
    ),
    "a list for a text": (body_of(shop=["a"]), 422, "'shop' holds a list"),
    "half a surrogate pair": (text_of(shop='"\\ud800"'), 422, "'shop' holds half of a surrogate"),
    "an overflow in a category": (text_of(grade="1e999"), 422, "'grade' holds a number"),
    "a strange column name": (text_of(**{"\\ud800": "1"}), 422, "name of a column"),
    "columns as list": (b'{"columns": []}', 422, "must be an object, not a list"),
    "no columns": (b'{"columns": {}}', 422, "lacks column 'age'"),
    "a column as number": (
        json.dumps({"columns": ROW}).encode(),
        422,
        "'age' must be a list, not a number",
    ),
    "empty columns": (json.dumps({"columns": {n: [] for n in ROW}}).encode(), 422, "no rows"),
    "ragged columns": (
        json.dumps({"columns": {n: [v] for n, v in ROW.items()} | {"grade": [1, 2]}}).encode(),
        422,
        "'grade' has 2 values",
    ),
    "too many rows": (b'{"records": [%s]}' % b",".join([b"0"] * 1001), 413, "1,000 rows"),
    "too many bytes": (b'{"records": "%s"}' % (b"x" * 200_000), 413, "200,000 bytes"),
}


def assert_sentence(answer: httpx.Response, status: int, words: str) -> None:
    content = answer.json()
    assert answer.status_code == status, answer.text
    assert set(content) == {"error", "field"}
    assert words in content["error"]
    assert re.fullmatch(r"[A-Z\"'].*[.)]", content["error"], re.DOTALL), content["error"]


@pytest.mark.parametrize("case", HOSTILE_JSON)
def test_a_wrong_json_body_gets_a_sentence(client, case):
    body, status, words = HOSTILE_JSON[case]
    assert_sentence(client.post("/predict", content=body, headers=JSON), status, words)


@pytest.mark.parametrize("field", ROW)
def test_an_absent_column_is_a_gap_and_an_alarm(client, field):
    row = {name: value for name, value in ROW.items() if name != field}
    ragged = client.post("/predict", json={"records": [ROW, row]})
    assert_sentence(ragged, 422, f"Row 2 lacks column {field!r}")
    assert ragged.json()["field"] == field
    empty = client.post("/predict", json={"records": [ROW | {field: None}]}).json()
    assert not any(alarm.startswith("absent") for alarm in empty["alarms"])
    (known,) = empty["records"]
    record = client.post("/predict", json={"records": [row]}).json()
    columns = client.post("/predict", json={"columns": {n: [v] for n, v in row.items()}}).json()
    headers = {"Content-Type": ARROW}
    arrow = client.post(
        "/predict", content=stream(one_row().drop_columns([field])), headers=headers
    ).json()
    for answer in (record, columns, arrow):
        assert f"absent: {field}" in answer.get("alarms", ()), answer
    assert record["records"] == [known]
    assert {name: value for name, (value,) in columns["columns"].items()} == known
    spelled = client.post("/predict", json={"records": [row | {field.upper(): 1}]})
    assert_sentence(spelled, 422, f"did you mean {field.upper()!r}?")


GOOD = stream(one_row())
LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), ["x" * 100_000])

HOSTILE_ARROW = {
    "empty": (b"", 422, "no rows"),
    "truncated schema": (GOOD[:50], 400, "not a readable Arrow"),
    "schema alone": (stream(one_row().slice(0, 0)), 422, "no rows"),
    "truncated batch": (GOOD[:-60], 400, "not a readable Arrow"),
    "JSON": (body_of(), 400, "not a readable Arrow"),
    "noise": (bytes(range(256)) * 8, 400, "not a readable Arrow"),
    "zeros": (b"\0" * 1000, 422, "no rows"),
    "a length of many gigabytes": (b"\xff\xff\xff\xff\xff\xff\xff\x7f", 400, "not a readable"),
    "negative length": (b"\xff\xff\xff\xff\x00\x00\x00\x80", 400, "not a readable"),
    "Arrow file": (b"ARROW1\0\0" + GOOD, 400, "not a readable"),
    "a compressed bomb": (
        stream(one_row(shop=pa.array(["a" * 2_000_000])), compression="zstd"),
        413,
        "unpacks to more than 800,000 bytes",
    ),
    "a compressed dictionary": (
        stream(one_row(shop=pa.array(["a" * 2_000_000]).dictionary_encode()), compression="lz4"),
        413,
        "unpacks to more than 800,000 bytes",
    ),
    "a bomb in a column that is ignored": (
        stream(one_row(more=pa.array(["a" * 2_000_000])), compression="zstd"),
        413,
        "unpacks to more than 800,000 bytes",
    ),
    "a bomb of nulls": (stream(pa.table({n: pa.nulls(10**9) for n in ROW})), 413, "1,000 rows"),
    "a dictionary bomb": (stream(one_row(shop=LONG)), 413, "unpacks to more than 800,000 bytes"),
    "too many rows in batches": (
        stream(pa.concat_tables([one_row()] * 1001)),
        413,
        "larger than|rows",
    ),
    "an infinity": (stream(one_row(age=pa.array([np.inf]))), 422, "'age'"),
    "a date": (stream(one_row(age=pa.array([0], pa.date32()))), 422, "'age'"),
    "a list": (stream(one_row(age=pa.array([[1.0]]))), 422, "'age'"),
    "a struct": (stream(one_row(shop=pa.array([{"a": 1}]))), 422, "'shop'"),
    "bytes": (stream(one_row(shop=pa.array([b"a"]))), 422, "'shop'"),
    "a dictionary of lists": (
        stream(
            one_row(
                age=pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([[1.0] * 9]))
            )
        ),
        422,
        "'age'",
    ),
    "a column twice": (
        stream(one_row().append_column("age", pa.array([1.0]))),
        422,
        "'age' 2 times",
    ),
    "run ends": (
        stream(one_row(age=pa.RunEndEncodedArray.from_arrays(pa.array([1]), pa.array([1.0])))),
        422,
        "'age'",
    ),
}


@pytest.mark.parametrize("case", HOSTILE_ARROW)
def test_a_wrong_arrow_body_gets_a_sentence(client, case):
    body, status, words = HOSTILE_ARROW[case]
    answer = client.post("/predict", content=body, headers={"Content-Type": ARROW})
    assert answer.status_code == status, answer.text
    assert re.search(words, answer.json()["error"]), answer.text


@pytest.mark.parametrize(
    ("given", "meant", "alarms"),
    [
        ({"age": "51.5"}, {}, []),
        ({"age": "old"}, {"age": None}, ["unreadable: age in row 1"]),
        ({"age": "n/a"}, {"age": None}, []),
        ({"age": True}, {"age": 1}, []),
        ({"smoker": "true"}, {}, []),
        ({"smoker": "yes"}, {"smoker": None}, ["unreadable: smoker in row 1"]),
        ({"shop": 3}, {"shop": "3"}, []),
        ({"grade": "2.0"}, {}, []),
        ({"member": "False"}, {}, []),
        ({"member": 0}, {"member": "0"}, []),
    ],
)
def test_a_value_of_another_type_is_read_by_the_schema_in_every_form(client, given, meant, alarms):
    (name,) = given
    table = one_row(**{name: pa.array([given[name]])})
    arrow = client.post("/predict", content=stream(table), headers={"Content-Type": ARROW}).json()
    plain = client.post("/predict", json={"columns": {n: [v] for n, v in (ROW | given).items()}})
    assert plain.json() == arrow
    expected = client.post("/predict", json={"columns": {n: [v] for n, v in (ROW | meant).items()}})
    assert (arrow["columns"], arrow["alarms"]) == (expected.json()["columns"], alarms)


def test_a_text_among_numbers_changes_no_other_row(client):
    rows = [ROW | {"age": age} for age in (51.5, "old", 12.25, None)]
    found = client.post("/predict", json={"records": rows}).json()
    alone = [client.post("/predict", json={"records": [row]}).json() for row in rows]
    assert found["alarms"] == ["unreadable: age in row 2"]
    assert [r["prediction"] for r in found["records"]] == [
        each["records"][0]["prediction"] for each in alone
    ]
    shown = [[r["p_yes"] for r in answer["records"]] for answer in (found, *alone)]
    np.testing.assert_allclose(shown[0], np.concatenate(shown[1:]), rtol=0, atol=1e-6)


def test_a_stream_with_any_byte_changed_never_breaks_the_server(client):
    random = np.random.default_rng(0)
    table = one_row(shop=pa.array(["a", "b", None]).dictionary_encode())
    for original in (GOOD, stream(table), one_polars_stream()):
        for _ in range(150):
            body = bytearray(original)
            body[random.integers(len(body))] = random.integers(256)
            answer = client.post("/predict", content=bytes(body), headers={"Content-Type": ARROW})
            assert answer.status_code in (200, 400, 413, 415, 422), answer.text
    assert client.get("/health").status_code == 200


def one_polars_stream() -> bytes:
    frame = pl.DataFrame({name: [value] * 3 for name, value in ROW.items()})
    return (
        frame.with_columns(pl.lit("a text longer than twelve").alias("shop"))
        .write_ipc_stream(None)
        .getvalue()
    )


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Content-Type": "text/plain"}, "text/plain"),
        ({"Content-Type": "text/csv"}, "text/csv"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "urlencoded"),
        ({"Content-Type": "multipart/form-data; boundary=x"}, "multipart"),
        ({"Content-Type": ""}, "content type"),
        ({"Content-Type": "application/json2"}, "json2"),
        ({"Content-Type": ";;=,"}, "content type"),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, "gzip"),
        ({"Content-Type": "application/json", "Content-Encoding": "br, gzip"}, "br, gzip"),
    ],
)
def test_another_type_of_body_gets_a_sentence(client, headers, words):
    assert_sentence(client.post("/predict", content=body_of(), headers=headers), 415, words)


def test_a_type_may_have_parameters(client):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/predict", content=body_of(), headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/predict", 405),
        ("PUT", "/predict", 405),
        ("DELETE", "/schema", 405),
        ("POST", "/health", 405),
        ("GET", "/", 404),
        ("GET", "/predict/../../etc/passwd", 404),
        ("GET", "/%00%ff", 404),
    ],
)
def test_other_paths_and_methods_get_a_sentence(client, method, path, status):
    assert_sentence(client.request(method, path), status, "see /openapi.json")


def test_an_unseen_category_is_no_mistake(client):
    for text in ("never seen", "a\0b", "😀" * 1000, "a "):
        assert client.post("/predict", content=body_of(shop=text), headers=JSON).status_code == 200


def test_a_chunked_body_is_stopped_at_the_limit():
    sent = 0

    def endless():
        nonlocal sent
        while sent < 2**26:
            sent += 2**16
            yield b" " * 2**16

    with serving(limits=Limits(max_bytes=100_000)) as url:
        try:
            answer = httpx.post(f"{url}/predict", content=endless(), headers=JSON)
            assert_sentence(answer, 413, "100,000 bytes")
        except httpx.TransportError:
            pass  # the server may hang up before the client has read why
        assert sent < 2**26
        assert httpx.get(f"{url}/health").status_code == 200


def test_any_schema_served_is_one_that_predict_agrees_with():
    model = table_model(classes=(0, 1, 2), seed=3)
    frame = rows_of(model, rows=20, seed=5)
    with serving(scorer_of(model)) as url:
        body = {"columns": plain(frame).to_dict("list")}
        answer = httpx.post(f"{url}/predict", json=body).json()["columns"]
    assert answer["prediction"] == model.predict(frame).tolist()
    scored = np.column_stack([answer[f"p_{number}"] for number in range(3)])
    np.testing.assert_allclose(scored, model.predict_proba(frame), rtol=0, atol=1e-5)
