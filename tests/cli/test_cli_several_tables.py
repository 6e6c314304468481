"""Several tables on the command line: ``--source`` and ``--target``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from tables_cli import check_refused, halfseen, source_table, target_table, write

PLAIN = ("--label", "click", "--id", "user", "--members", "regression")


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources, two targets that lack different columns, and a model of them."""
    folder = tmp_path_factory.mktemp("sites")
    write(source_table(80), folder / "sources" / "north.csv")
    write(source_table(70).drop_columns("member"), folder / "sources" / "south.csv")
    write(target_table(60), folder / "poor.csv")
    write(source_table(60).drop_columns(["spend", "click"]), folder / "rich.csv")
    run = halfseen(
        "fit", "--source", folder / "sources" / "north.csv",
        "--source", folder / "sources" / "south.csv", "--target", folder / "poor.csv",
        "--target", folder / "rich.csv", *PLAIN, "-o", folder / "model", "--json",
    )  # fmt: skip
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert [part["target"]["rows"] for part in found["parts"]] == [60, 60]
    assert found["parts"][0]["source"]["rows"] == 150
    assert "Part 1 of 2, for tables that lack spend, grade:" in run.err
    assert f"Gaps in all rows of {folder / 'sources' / 'south.csv'}: member." in run.err
    return folder


def test_a_table_is_scored_and_measured_by_the_part_for_its_columns(sites, tmp_path):
    run = halfseen("predict", sites / "model", sites / "rich.csv", "-o", tmp_path / "s.csv")
    assert run.code == 0, run.err
    assert "Part 2 of 2, which does without spend." in run.out
    part = halfseen(
        "predict", sites / "model" / "part-2", sites / "rich.csv", "-o", tmp_path / "p.csv"
    )
    assert part.code == 0, part.err
    assert (tmp_path / "s.csv").read_text() == (tmp_path / "p.csv").read_text()
    data = write(source_table(40).drop_columns("grade"), tmp_path / "labelled.parquet")
    run = halfseen("evaluate", sites / "model", data)
    assert run.code == 0, run.err
    assert "Part 1 of 2, which does without spend, grade." in run.out


def test_inspect_and_verify_speak_of_every_part(sites):
    run = halfseen("inspect", sites / "model")
    assert run.code == 0, run.err
    assert "Part 2 of 2, for tables that lack spend:" in run.out
    assert "Trained on source north.csv, south.csv: 150 rows" in run.out
    described = json.loads(halfseen("inspect", sites / "model", "--json").out)
    assert len(described["parts"]) == 2
    run = halfseen("verify", sites / "model")
    assert run.code == 0, run.err


def test_one_report_shows_every_part(sites, tmp_path):
    run = halfseen("report", sites / "model", "-o", tmp_path / "page.html")
    assert run.code == 0, run.err
    page = (tmp_path / "page.html").read_text()
    assert page.count("For tables that lack spend, grade. ") == 4
    assert page.count("For tables that lack spend. ") == 4
    assert page.count('<section id="section-') == 8
    assert page.count("Part 2: Expected accuracy on the target") == 1
    assert len(set(re.findall(r' id="[^"]+"', page))) == len(re.findall(r' id="[^"]+"', page))


def test_every_part_becomes_a_graph(sites, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    run = halfseen("export", sites / "model", "--onnx", tmp_path / "sites.onnx", "--json")
    assert run.code == 0, run.err
    graphs = [part["graph"] for part in json.loads(run.out)["parts"]]
    assert graphs == [str(tmp_path / f"sites-{number}.onnx") for number in (1, 2)]
    taken = [
        {value.name for value in onnxruntime.InferenceSession(graph).get_inputs()}
        for graph in graphs
    ]
    assert taken[1] - taken[0] == {"grade"}
    (tmp_path / "mine-2.onnx").write_text("mine")
    run = halfseen("export", sites / "model", "--onnx", tmp_path / "mine.onnx")
    assert (run.code, (tmp_path / "mine-2.onnx").read_text()) == (2, "mine")
    assert not (tmp_path / "mine-1.onnx").exists()


def test_a_column_that_no_part_can_do_without_is_named(sites, out, tmp_path):
    data = write(target_table(30).drop_columns("visits"), tmp_path / "t.csv")
    run = halfseen("predict", sites / "model", data, "-o", out / "s.csv", "--strict")
    check_refused(run, out, "visits is not there or empty throughout")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("{f}/poor.csv", "--source", "{f}/sources/north.csv"), "Give two tables, SOURCE TARGET"),
        (("--source", "{f}/sources/north.csv"), "Give two tables, SOURCE TARGET"),
        (
            ("--source", "{f}/nowhere.csv", "--target", "{f}/poor.csv"),
            "There is no file",
        ),
        (
            ("--source", "{f}/sources/north.csv", "--source", "{f}/rich.csv",
             "--target", "{f}/poor.csv"),
            "The source {f}/rich.csv has no column 'click'",
        ),
    ],
)  # fmt: skip
def test_what_is_no_pair_of_tables_is_refused(given, says, sites, out):
    arguments = [entry.format(f=sites) for entry in given]
    run = halfseen("fit", *arguments, *PLAIN, "-o", out / "model")
    check_refused(run, out, says.format(f=sites))


def test_labels_of_some_target_rows_are_used_and_said(sites, tmp_path):
    labels = pa.array([c if k < 20 else None for k, c in enumerate(
        source_table(60)["click"].to_pylist())])  # fmt: skip
    data = write(target_table(60).append_column("click", labels), tmp_path / "t.csv")
    source = sites / "sources" / "north.csv"
    run = halfseen("fit", source, data, *PLAIN, "-o", tmp_path / "model")
    assert run.code == 0, run.err
    assert "20 of the target's 60 rows have a label, and the fit uses them." in run.out
    assert "20 labelled target rows were used for" in run.out
    shown = halfseen("inspect", tmp_path / "model")
    assert "20 labelled target rows were used for" in shown.out
    run = halfseen("fit", source, data, *PLAIN, "--no-target-labels", "--dry-run")
    assert "they are not used, as asked; `halfseen evaluate` measures with them" in run.out
