"""A model of several missing patterns behind HTTP: the columns of a request choose the part."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from local_server import Process, serving

import halfseen
from halfseen_serve.arrow_body import ARROW, write_arrow
from halfseen_serve.scorer import open_scorers


def rows(seed: int, count: int = 90) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    found = pd.DataFrame(random.normal(size=(count, 3)), columns=["a", "b", "c"])
    found["kind"] = random.choice(["x", "y"], count)
    return found


@pytest.fixture(scope="module")
def model():
    source = rows(0)
    source["sick"] = np.where(source.a + source.b > 0, "yes", "no")
    targets = [rows(1).drop(columns="c"), rows(2).drop(columns=["b", "c"])]
    found = halfseen.fit(source, targets, "sick", members=["regression"])
    assert found.patterns == [("c",), ("b", "c")]
    return found


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sites") / "model"
    model.save(folder)
    with Process(folder) as process:
        yield f"http://127.0.0.1:{process.port}"


def ask(server: str, path: str, body: bytes | None = None, media: str = "application/json"):
    request = urllib.request.Request(f"{server}{path}", body, {"Content-Type": media})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def forms(table: pd.DataFrame) -> list[tuple[bytes, str]]:
    """Return a table as records, as columns and as an Arrow stream."""
    plain = table.astype(object).where(table.notna(), None)
    return [
        (json.dumps({"records": plain.to_dict("records")}).encode(), "application/json"),
        (json.dumps({"columns": plain.to_dict("list")}).encode(), "application/json"),
        (write_arrow({n: pa.array(v, from_pandas=True) for n, v in table.items()}), ARROW),
    ]


@pytest.mark.parametrize(
    ("change", "ignored"),
    [
        (lambda t: t.drop(columns="c"), []),
        (lambda t: t.drop(columns=["b", "c"]), []),
        (lambda t: t.drop(columns="c").assign(b=np.nan), ["b"]),  # empty is the same as absent
        (lambda t: t, ["c"]),
    ],
)
def test_each_request_is_answered_by_the_part_for_its_columns(change, ignored, model, server):
    table = change(rows(7, 5))
    known = model.predict_proba(table)
    for body, media in forms(table):
        status, found = ask(server, "/predict", body, media)
        assert (status, found["ignored"]) == (200, ignored)
        answer = found.get("columns") or pd.DataFrame(found["records"])
        np.testing.assert_allclose(answer["p_yes"], known[:, 1], atol=1e-5)


def test_other_patterns_are_filled(server):
    for body, media in forms(rows(7, 5).drop(columns=["a", "c"])):
        status, found = ask(server, "/predict", body, media)
        assert (status, found["alarms"]) == (200, ["absent: a"])
    ragged = [{"a": 1, "b": 2, "kind": "x"}, {"a": 1, "kind": "x"}]
    status, found = ask(server, "/predict", json.dumps({"records": ragged}).encode())
    assert (status, found["field"]) == (422, "b")
    assert found["error"].startswith("Row 2 lacks column 'b'")


def test_a_pattern_between_the_trained_ones_is_filled(tmp_path):
    source = rows(0).assign(sick=lambda t: np.where(t.a > 0, "yes", "no"))
    targets = [rows(1).drop(columns="b"), rows(2).drop(columns="c")]
    halfseen.fit(source, targets, "sick", members=["regression"]).save(tmp_path / "model")
    with serving(open_scorers(tmp_path / "model")) as server:
        for body, media in forms(rows(7, 5).drop(columns=["b", "c"])):
            status, found = ask(server, "/predict", body, media)
            assert status == 200
            assert found["alarms"] in (["absent: b"], ["absent: c"])


def test_the_patterns_are_told(server):
    status, found = ask(server, "/schema")
    told = [(p["not_needed"], [c["name"] for c in p["columns"]]) for p in found["patterns"]]
    assert told == [(["c"], ["a", "b", "kind"]), (["b", "c"], ["a", "kind"])]
    assert (status, found["answers"]) == (200, ["p_no", "p_yes", "prediction"])
    _, document = ask(server, "/openapi.json")
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert len(body["schema"]["anyOf"]) == 2
