"""``halfseen data`` as a person runs it."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pandas as pd
import pytest

from halfseen.cli import main
from halfseen_bench.data import heart


class Run:
    """One run of the command: what it printed, and how it ended."""

    def __init__(
        self, arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["halfseen", "data", *arguments.split()])
        monkeypatch.setenv("COLUMNS", "200")
        self.code = 0
        try:
            main()
        except SystemExit as stop:
            self.code = int(stop.code or 0)
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    return lambda arguments: Run(arguments, monkeypatch, capsys)


PATIENT = ("60", "1", "4", "140", "250", "0", "1", "120", "1", "2.5", "2", "1", "6")


def hospital(rows: int, *, without: tuple[str, ...] = ()) -> str:
    """Made-up patients in the format of the processed files."""
    lines = []
    for row in range(rows):
        values = dict(zip(heart.COLUMNS, PATIENT, strict=True))
        values |= {"age": str(40 + row % 30), "sex": str(row % 2)}
        values |= dict.fromkeys(without, "?")
        lines.append(",".join([*values.values(), str(row % 3)]))
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with two made-up hospitals and three lines of Criteo."""
    root = tmp_path / "data"
    for name, without in (("cleveland", ()), ("hungarian", ("ca", "thal"))):
        path = root / f"heart/processed.{name}.data"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hospital(40, without=without))
    line = "\t".join(["0"] + ["1"] * 13 + ["ab"] * 26)
    (root / "criteo").mkdir()
    (root / "criteo/train.txt.gz").write_bytes(gzip.compress(f"{line}\n{line}\n{line}\n".encode()))
    return root


def test_every_command_has_help_with_an_example(run) -> None:
    for command in ("list", "get", "card", "export"):
        shown = run(f"{command} --help")
        assert shown.code == 0
        assert "Example:" in shown.out
        assert "halfseen data" in shown.out


def test_list_names_every_set_and_what_is_here(run, folder: Path) -> None:
    shown = run(f"list --data-dir {folder}")
    for name in ("mnist", "usps", "svhn", "bsds500", "amazon", "criteo", "heart", "ads-sim"):
        assert name in shown.out
    here = {line.split()[0]: line.split()[-1] for line in shown.out.splitlines()[1:9]}
    assert here["heart"] == "yes"
    assert here["mnist"] == "no"
    assert f"Data folder: {folder}" in shown.out


def test_card_of_a_pair(run, folder: Path) -> None:
    shown = run(f"card heart cleveland:hungarian --data-dir {folder}")
    assert shown.code == 0
    assert "cleveland->hungarian" in shown.out
    assert "CC BY 4.0" in shown.out
    assert "40 hungarian" in shown.out
    assert "ca (100%), thal (100%)" in shown.out


def test_card_of_the_simulator_prints_the_yardsticks(run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run("card ads-sim --set predictability=0.9")
    assert "predictability=0.9" in shown.out
    table = shown.out[shown.out.index("cross-entropy on the target") :].splitlines()[1:]
    values = [[float(v) for v in line.split()[-3:]] for line in table if line.strip()]
    assert len(values) == 4
    for expected, estimate, error in values:
        assert abs(expected - estimate) < 5 * error
    assert values[0][0] < values[1][0] < values[2][0]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_export_of_a_pair(run, folder: Path, tmp_path: Path, format: str) -> None:
    out = tmp_path / "out"
    options = f"-o {out} --format {format} --data-dir {folder} --set seed=3"
    shown = run(f"export heart cleveland:hungarian {options}")
    assert shown.code == 0
    assert f"{out / 'target'}.{format}: 40 rows" in shown.out
    read = pd.read_csv if format == "csv" else pd.read_parquet
    source, target = read(out / f"source.{format}"), read(out / f"target.{format}")
    assert set(source) - set(target) == {"ca", "thal", "label"}
    assert len(read(out / f"target_labels.{format}")) == len(target) == 40
    assert json.loads((out / "card.json").read_text())["licence"] == "CC BY 4.0"


def test_export_of_the_simulator(run, tmp_path: Path) -> None:
    shown = run(
        f"export ads-sim retargeting:prospecting -o {tmp_path} --set rows=300 --set test_rows=100"
    )
    assert shown.code == 0
    assert pd.read_parquet(tmp_path / "source.parquet").shape == (400, 30)
    assert pd.read_parquet(tmp_path / "target.parquet").shape == (400, 17)


def test_get_says_that_there_is_no_network(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    shown = run(f"get usps --data-dir {tmp_path}")
    assert shown.code == 2
    assert "is there a network?" in shown.err
    assert not (tmp_path / "usps").exists()


def test_get_of_the_simulator_has_nothing_to_do(run, tmp_path: Path) -> None:
    assert "nothing to fetch" in run(f"get ads-sim --data-dir {tmp_path}").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("card nowhere", "No data set is called 'nowhere'; there are digits"),
        ("card heart cleveland", "'cleveland' is not a pair: write source:target"),
        ("card heart cleveland:paris", "target='paris' is unknown"),
        ("card heart --set gap=keep", "heart has no option 'gap'; it has evaluation"),
        ("card heart --set seed=one", "--set seed=one does not fit"),
        ("card heart --set seed", "write KEY=VALUE"),
        ("card ads-sim a:b", "The simulator gives 'retargeting' -> 'prospecting'"),
        ("card ads-sim --set noise=1", "The simulator has no option 'noise'"),
        ("export digits mnist:usps -o out", "digits holds images; only tables can be exported"),
        ("export heart cleveland:va -o out --format xls", "choose parquet or csv"),
        ("card heart cleveland:va", "'heart/processed.va.data' is not in the data folder"),
    ],
)
def test_mistakes_get_one_sentence(run, folder: Path, arguments: str, message: str) -> None:
    shown = run(f"{arguments} --data-dir {folder}")
    assert shown.code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert len(shown.err.strip().splitlines()) == 1


needs_data = pytest.mark.skipif(
    not os.environ.get("HALFSEEN_DATA"), reason="HALFSEEN_DATA is not set: no real files at hand"
)


@needs_data
def test_get_says_what_is_there(run) -> None:
    shown = run("get heart")
    assert shown.code == 0
    assert shown.out.count("sha256 as recorded") == 4


@needs_data
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ("heart cleveland:hungarian", {"slope", "ca", "thal", "label"}),
        ("criteo retargeting:prospecting", {"I1", "I5", "I6", "I7", "I11", "I12", "label"}),
        ("amazon dvd:kitchen --set rule=leading --set dimensions=40", None),
    ],
)
def test_export_of_real_pairs(
    run, tmp_path: Path, arguments: str, missing: set[str] | None
) -> None:
    assert run(f"export {arguments} -o {tmp_path}").code == 0
    source, target, labels = (
        pd.read_parquet(tmp_path / f"{n}.parquet") for n in ("source", "target", "target_labels")
    )
    lacking = set(source) - set(target)
    assert lacking == missing if missing else len(lacking) == 21
    assert len(target) == len(labels) > 0
    assert set(target) < set(source)
