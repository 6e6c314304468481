"""Exported tables: what a person could have been given, whole or not at all."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from halfseen.blocks import Blocks
from halfseen.errors import HalfseenError, InputError, OptionError
from halfseen_bench.data.export import pair_tables, simulated_tables, write_tables
from halfseen_bench.data.pairs import Card, DomainPair, Labelled, Sealed
from halfseen_bench.data.simulator import CLASSES, Scenario, card, simulate
from halfseen_bench.data.simulator_world import MISSING, OBSERVED

CARD = Card("what", "origin", "licence", {"a": 1}, "missing")


def small_pair(*, transductive: bool) -> DomainPair:
    blocks = Blocks.columns(["age", "chol", "thal"], missing=["thal"])
    source = np.array([[60, 200, 3], [50, np.nan, 6]], dtype=np.float32)
    target = blocks.hide(source + 1)
    return DomainPair(
        name="a->b",
        source_train=Labelled(source, np.array([0, 1])),
        source_test=Labelled(source[:1], np.array([0])),
        target_train=target if transductive else target[:1],
        target_test=target,
        target_test_labels=Sealed(np.array([1, 0])),
        blocks=blocks,
        classes=("no", "yes"),
        card=CARD,
        target_train_labels=Sealed(np.array([1, 0]) if transductive else np.array([1])),
    )


def read(folder: Path, name: str, format: str) -> pd.DataFrame:
    path = folder / f"{name}.{format}"
    return pd.read_csv(path) if format == "csv" else pd.read_parquet(path)


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_the_target_has_neither_label_nor_missing_columns(tmp_path: Path, format: str) -> None:
    pair = small_pair(transductive=True)
    rows = write_tables(
        tmp_path / "out", pair_tables(pair), pair.card, classes=pair.classes, format=format
    )
    assert rows == {"source": 3, "target": 2, "target_labels": 2}
    source, target, labels = (read(tmp_path / "out", n, format) for n in rows)
    assert list(source) == ["age", "chol", "thal", "label"]
    assert source["label"].tolist() == [0, 1, 0]
    assert source["chol"].isna().tolist() == [False, True, False]
    assert list(target) == ["age", "chol"]
    assert target["age"].tolist() == [61, 51]
    assert labels["label"].tolist() == [1, 0]
    about = json.loads((tmp_path / "out/card.json").read_text())
    assert (about["licence"], about["classes"]) == ("licence", ["no", "yes"])


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_codes_with_names_become_words(tmp_path: Path, format: str) -> None:
    pair = small_pair(transductive=True)
    source = np.array([[60, 0, 1], [50, np.nan, 0]], dtype=np.float32)
    words = {"chol": ("low", "high"), "thal": ("normal", "fixed")}
    target = pair.blocks.hide(np.array([[61, 1, 0], [51, 0, 0]], dtype=np.float32))
    pair = replace(
        pair,
        source_train=Labelled(source, np.array([0, 1])),
        source_test=Labelled(source[:1], np.array([0])),
        target_train=target,
        target_test=target,
        categories=words,
    )
    write_tables(tmp_path, pair_tables(pair), CARD, classes=pair.classes, format=format)
    table = read(tmp_path, "source", format)
    assert table["thal"].tolist() == ["fixed", "normal", "fixed"]
    assert table["chol"].fillna("").tolist() == ["low", "", "low"]
    assert read(tmp_path, "target", format)["chol"].tolist() == ["high", "low"]


def test_an_input_called_label_keeps_its_name(tmp_path: Path) -> None:
    pair = small_pair(transductive=True)
    blocks = Blocks.columns(["age", "label", "thal"], missing=["thal"])
    pair = replace(pair, blocks=blocks)
    write_tables(tmp_path, pair_tables(pair), pair.card, classes=pair.classes)
    source = read(tmp_path, "source", "parquet")
    assert list(source) == ["age", "label", "thal", "#label#"]
    assert source["label"].iloc[0] == 200
    assert list(read(tmp_path, "target_labels", "parquet")) == ["#label#"]


def test_training_rows_come_first_where_they_are_others(tmp_path: Path) -> None:
    pair = small_pair(transductive=False)
    rows = write_tables(tmp_path, pair_tables(pair), pair.card, classes=pair.classes)
    assert rows == {"source": 3, "target": 3, "target_labels": 3}
    assert read(tmp_path, "target", "parquet")["age"].tolist() == [61, 61, 51]
    assert read(tmp_path, "target_labels", "parquet")["label"].tolist() == [1, 1, 0]


def test_simulated_rows_are_those_of_the_pair_whatever_the_chunk(tmp_path: Path) -> None:
    scenario = Scenario(rows=500, test_rows=300, seed=3)
    for chunk in (1_000, 70):
        folder = tmp_path / str(chunk)
        write_tables(
            folder, simulated_tables(scenario, chunk=chunk), card(scenario), classes=CLASSES
        )
    simulation = simulate(scenario)
    pair = simulation.pair
    for folder in (tmp_path / "1000", tmp_path / "70"):
        source, target, labels = (
            read(folder, n, "parquet") for n in ("source", "target", "target_labels")
        )
        assert list(source) == [*OBSERVED, *MISSING, "label"]
        assert list(target) == list(OBSERVED)
        assert (source.to_numpy()[:500, :29] == pair.source_train.inputs).all()
        assert (source["label"].to_numpy()[500:] == pair.source_test.labels).all()
        assert (target.to_numpy()[500:] == pair.target_test[:, :17]).all()
        assert (labels["label"].to_numpy()[500:] == pair.target_test_labels.open("test")).all()
        best = simulation.truth.best_given_observed.open("test")
        np.testing.assert_array_equal(labels["best_given_observed"].to_numpy()[500:], best)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    peaks = []
    for rows in (4_000, 40_000):
        scenario = Scenario(rows=rows, test_rows=10)
        tracemalloc.start()
        chunks = simulated_tables(scenario, chunk=2_000)
        write_tables(tmp_path, chunks, card(scenario), classes=CLASSES)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_an_interrupted_export_leaves_what_was_there(tmp_path: Path) -> None:
    scenario = Scenario(rows=100, test_rows=100)
    earlier = {"card.json": "of an earlier export", "source.parquet": "its rows"}
    for name, text in earlier.items():
        (tmp_path / name).write_text(text)

    def interrupted() -> Iterator[tuple[str, object]]:
        for number, chunk in enumerate(simulated_tables(scenario, chunk=50)):
            if number == 6:
                raise KeyboardInterrupt
            yield chunk

    with pytest.raises(KeyboardInterrupt):
        write_tables(tmp_path, interrupted(), card(scenario), classes=CLASSES)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == earlier


def test_images_and_unknown_formats_are_refused(tmp_path: Path) -> None:
    pair = small_pair(transductive=True)
    with pytest.raises(OptionError, match="format='xlsx' is unknown"):
        write_tables(tmp_path, pair_tables(pair), pair.card, classes=pair.classes, format="xlsx")
    pair = replace(pair, blocks=Blocks.rows((1, 32, 32)))
    with pytest.raises(InputError, match="holds images; only tables can be exported"):
        list(pair_tables(pair))


def test_a_folder_that_cannot_be_made_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    pair = small_pair(transductive=True)
    with pytest.raises(HalfseenError, match="could not be written"):
        write_tables(tmp_path / "file" / "out", pair_tables(pair), pair.card, classes=pair.classes)
