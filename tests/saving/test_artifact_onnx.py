"""An exported graph says what the model says, and needs neither halfseen nor torch."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pyarrow as pa
import pytest
from torch import nn
from typer.testing import CliRunner

from halfseen.cli.app import app
from halfseen.data import TableSchema
from halfseen.data.preprocessing import read_rows
from halfseen.errors import HalfseenError, InputError
from halfseen.export import onnx as onnx_export
from halfseen.export.onnx import graph_values
from halfseen.export.onnx_graph import GraphBuilder
from halfseen.export.onnx_session import open_graph
from halfseen.fitting import prepared_rows
from halfseen.members.linear import Regression
from halfseen.targets import ClassTarget
from halfseen.weights import Weights
from table_models import COLUMNS, MIXED, NUMERIC, category, number, rows_of, table_model

ALONE = """
import json, sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "halfseen", "pyarrow"):
            raise ImportError(name + " is blocked")


sys.meta_path.insert(0, Blocked())
import numpy, onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
columns = json.load(open(sys.argv[2]))
inputs = {
    value.name: numpy.array(
        columns[value.name], dtype=object if "string" in value.type else "float64"
    )
    for value in session.get_inputs()
}
probabilities, prediction = session.run(None, inputs)
assert not {"torch", "halfseen"} & set(sys.modules)
print(json.dumps([probabilities.tolist(), prediction.tolist()]))
"""


def session_of(model):
    content = onnx_export.onnx_model(model).SerializeToString()
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def inputs_of(model, frame):
    read = read_rows(model.schema, pa.Table.from_pandas(frame))
    return {name: graph_values(values) for name, values in read.columns.items()}


@pytest.mark.parametrize("normalization", ["none", "batch"])
@pytest.mark.parametrize(
    "method",
    ["Adaptation-Imputation", "Adaptation-IgnoreComponent", "Source-ZeroImputation"],
)
@pytest.mark.parametrize("columns", COLUMNS)
def test_graph_and_model_agree(columns, method, normalization):
    model = table_model(
        COLUMNS[columns], method=method, options={"networks.normalization": normalization}
    )
    frame = rows_of(model)
    expected = model.predict_proba(frame)
    probabilities, prediction = session_of(model).run(None, inputs_of(model, frame))
    assert expected.std(0).min() > 1e-3  # the rows do differ
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(prediction, model.predict(frame))


@pytest.mark.parametrize("weights", [(0.4, 0.6), (0.0, 1.0)])
def test_members_are_weighed_in_the_graph_as_in_the_model(weights):
    model = table_model(classes=("no", "perhaps", "yes"))
    blocks, random = model.blocks, np.random.default_rng(0)
    regression = Regression(
        random.normal(size=(3, len(blocks.observed))),
        random.normal(size=3),
        blocks,
        ClassTarget.of(3),
    )
    alone = model.predict_proba(rows_of(model))
    model.members += (regression,)
    model.weights = Weights(weights)
    frame = rows_of(model)
    expected = model.predict_proba(frame)
    assert not np.allclose(expected, alone, atol=1e-2)
    (probabilities,) = session_of(model).run(["probabilities"], inputs_of(model, frame))
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("linear_path", [True, False])
def test_with_and_without_a_linear_path(linear_path):
    model = table_model(options={"tables.linear_path": linear_path})
    frame = rows_of(model)
    (probabilities,) = session_of(model).run(["probabilities"], inputs_of(model, frame))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-5)


@pytest.mark.parametrize("columns", COLUMNS)
def test_a_process_without_torch_and_halfseen_gives_the_same(columns, tmp_path):
    model = table_model(COLUMNS[columns])
    frame = rows_of(model, rows=50)
    onnx_export.write_onnx(onnx_export.onnx_model(model), tmp_path / "model.onnx")
    values = {name: value.tolist() for name, value in inputs_of(model, frame).items()}
    (tmp_path / "prepared_rows.json").write_text(json.dumps(values))
    command = [
        sys.executable,
        "-I",
        "-c",
        ALONE,
        tmp_path / "model.onnx",
        tmp_path / "prepared_rows.json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    probabilities, prediction = json.loads(done.stdout)
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-5)
    assert prediction == model.predict(frame).tolist()


def two_tables(columns: str, rows: int = 80) -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(1)

    def table(shift: float) -> pd.DataFrame:
        age = random.normal(50 + shift, 9, rows).round(1)
        visits = random.poisson(np.exp(random.normal(1, 1, rows))).astype(float)
        gap = random.random(rows) < 0.1
        numbers = {"age": np.where(gap, np.nan, age), "visits": visits, "dose": age - visits}
        shop = random.choice(["north", "south", "é, ü"], rows)
        kind = random.choice(["a", "b", "c"], rows)
        texts = {"shop": np.where(gap, None, shop), "kind": kind, "taste": np.sort(kind)}
        frame = pd.DataFrame(
            {"numeric": numbers, "categorical": texts}.get(columns) or {**numbers, **texts}
        )
        return frame.assign(sick=np.where(age + 10 * (kind == "a") > 52, "yes", "no"))

    source, target = table(0.0), table(6.0)
    return source, target.drop(columns=["sick", "dose", "taste"], errors="ignore")


def assert_the_documented_code_gives(probabilities, folder) -> None:
    guide = Path(__file__).parents[2] / "docs" / "serving.md"
    (code,) = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        exec(code, names)
    np.testing.assert_array_equal(names["probabilities"], probabilities)


@pytest.mark.parametrize("columns", ["numeric", "categorical", "mixed"])
def test_from_two_tables_to_a_graph_that_agrees_with_predict(columns, tmp_path, monkeypatch):
    monkeypatch.setattr(prepared_rows, "SMALL", 0)  # one part held out instead of five folds
    source, target = two_tables(columns)
    source.to_csv(tmp_path / "source.csv", index=False)
    target.to_csv(tmp_path / "target.csv", index=False)
    (tmp_path / "fit.toml").write_text(
        'report_data = "none"\n[options]\ntables.widths = [8]\ntables.latent_size = 4\n'
        "generator.widths = [8]\nnetworks.classifier_widths = [8]\nnetworks.critic_widths = [8]\n"
        "training.warmup_epochs = 1\ntraining.joint_epochs = 1\n"
    )

    def halfseen(*arguments: object) -> None:
        done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
        assert done.exit_code == 0, done.output

    files = [tmp_path / "source.csv", tmp_path / "target.csv"]
    config = ["--label", "sick", "--config", tmp_path / "fit.toml"]
    halfseen("fit", *files, *config, "-o", tmp_path / "model")
    halfseen("predict", tmp_path / "model", files[1], "-o", tmp_path / "scores.csv")
    halfseen("export", tmp_path / "model", "--onnx", tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    inputs = {
        value.name: target[value.name].fillna("").to_numpy(object)
        if value.type == "tensor(string)"
        else target[value.name].to_numpy(float)
        for value in session.get_inputs()
    }
    probabilities, prediction = session.run(None, inputs)
    scores = pd.read_csv(tmp_path / "scores.csv")
    np.testing.assert_allclose(probabilities, scores[["p_no", "p_yes"]], rtol=0, atol=1e-5)
    assert prediction.tolist() == scores["prediction"].tolist()
    assert scores["p_yes"].std() > 1e-4
    assert_the_documented_code_gives(probabilities, tmp_path)


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (("no", "yes", "é"), "tensor(string)"),
        ((0, 1), "tensor(int64)"),
        ((False, True), "tensor(bool)"),
        ((0.0, 0.5), "tensor(double)"),
    ],
)
def test_predictions_have_the_type_of_the_label(classes, kind):
    model = table_model(NUMERIC, classes=classes)
    session = session_of(model)
    frame = rows_of(model)
    (prediction,) = session.run(["prediction"], inputs_of(model, frame))
    assert session.get_outputs()[1].type == kind
    assert prediction.tolist() == model.predict(frame).tolist()


def test_the_graph_describes_itself():
    model = table_model()
    metadata = session_of(model).get_modelmeta().custom_metadata_map
    assert metadata["halfseen_format"] == str(onnx_export.FORMAT) == "2"
    assert json.loads(metadata["halfseen_classes"]) == ["no", "yes"]
    assert TableSchema.model_validate_json(metadata["halfseen_schema"]) == model.schema


def test_the_inputs_are_the_observed_columns():
    inputs = {value.name: value.type for value in session_of(table_model()).get_inputs()}
    assert set(inputs) == {column.name for column in MIXED if column.role == "observed"}
    assert inputs["age"] == "tensor(double)"
    assert inputs["shop"] == "tensor(string)"


def test_an_export_is_the_same_each_time():
    first, second = (onnx_export.onnx_model(table_model()).SerializeToString() for _ in range(2))
    assert first == second


def test_the_check_of_parity_sees_a_difference():
    model = table_model()
    graph = onnx_export.onnx_model(model)
    assert onnx_export.check_parity(model, graph) < 1e-5
    weight = max(graph.graph.initializer, key=lambda constant: len(constant.raw_data))
    changed = onnx.numpy_helper.to_array(weight) + np.float32(0.5)
    weight.raw_data = changed.tobytes()
    with pytest.raises(HalfseenError, match="differs from the model by"):
        onnx_export.check_parity(model, graph)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda: table_model(method="Source-Full"), "needs the missing block at prediction"),
        (lambda: table_model((*NUMERIC, number("prediction"))), "'prediction' cannot name"),
        (lambda: table_model((*NUMERIC, category("halfseen/x"))), "'halfseen/x' cannot name"),
        (lambda: table_model((*NUMERIC, number(""))), "'' cannot name"),
    ],
)
def test_what_cannot_be_exported_says_so(model, sentence):
    with pytest.raises(InputError, match=sentence):
        onnx_export.onnx_model(model())


def test_a_layer_of_ones_own_is_refused_by_name():
    model = table_model()
    model.networks.classifier.append(nn.Softplus())
    with pytest.raises(InputError, match="type Softplus cannot be exported"):
        onnx_export.onnx_model(model)


def test_indicator_names_may_repeat_the_names_of_columns():
    columns = (number("age", indicator=True), number("age is missing"), number("z", role="missing"))
    model = table_model(columns)
    frame = rows_of(model)
    (probabilities,) = session_of(model).run(["probabilities"], inputs_of(model, frame))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=0, atol=1e-5)


def test_a_repeated_input_is_refused():
    builder = GraphBuilder()
    builder.input("age", onnx.TensorProto.FLOAT)
    with pytest.raises(InputError, match="repeated"):
        builder.input("age", onnx.TensorProto.FLOAT)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    onnx_export.write_onnx(onnx_export.onnx_model(table_model()), path)
    return path


def test_a_flipped_bit_of_a_graph_is_noticed(exported, tmp_path):
    """Without a seal, a third of them was served with other answers."""
    content = exported.read_bytes()
    open_graph(exported)
    onnx.checker.check_model(onnx.load(exported))  # the seal is metadata like any other
    path = tmp_path / "damaged.onnx"
    for position in np.random.default_rng(0).choice(8 * len(content), 200, replace=False):
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"is not as halfseen export wrote it"):
            open_graph(path)
    path.write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"is not as halfseen export wrote it"):
        open_graph(path)


def test_a_graph_that_answers_otherwise_here_is_refused(tmp_path):
    """Whatever the reason, an ONNX Runtime that computes wrongly among them."""
    graph = onnx_export.onnx_model(table_model())
    weight = max(graph.graph.initializer, key=lambda constant: len(constant.raw_data))
    weight.raw_data = (onnx.numpy_helper.to_array(weight) + np.float32(0.5)).tobytes()
    onnx_export.write_onnx(graph, tmp_path / "other.onnx")
    with pytest.raises(InputError, match="known rows differ by"):
        open_graph(tmp_path / "other.onnx")
    for entry in list(graph.metadata_props):
        if entry.key == "halfseen_selftest":
            graph.metadata_props.remove(entry)
    onnx_export.write_onnx(graph, tmp_path / "other.onnx")
    with pytest.raises(InputError, match="no rows to test it with"):
        open_graph(tmp_path / "other.onnx")


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("column", ["age", "visits"])
def test_a_graph_has_no_answer_where_the_model_has_none(column, value):
    model = table_model()
    inputs = inputs_of(model, rows_of(model, rows=3))
    inputs[column][1] = value
    probabilities, _ = session_of(model).run(None, inputs)
    assert np.isnan(probabilities[1]).all()
    assert np.isfinite(probabilities[[0, 2]]).all()
