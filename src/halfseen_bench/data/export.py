"""Write a pair as the tables a person could have been given, and the sealed labels apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from halfseen.errors import InputError, OptionError
from halfseen.outputs import atomic_write
from halfseen_bench.data.pairs import Card, DomainPair
from halfseen_bench.data.simulator import DOMAINS, Scenario, stream
from halfseen_bench.data.simulator_world import MISSING, OBSERVED

Chunk = tuple[Literal["source", "target", "target_labels"], pa.Table]
"""A table's name and some of its rows."""

LABEL = "label"
WRITERS = {"parquet": pyarrow.parquet.ParquetWriter, "csv": pyarrow.csv.CSVWriter}


def write_tables(
    folder: Path, chunks: Iterable[Chunk], card: Card, *, classes: Sequence[str],
    format: str = "parquet",
) -> dict[str, int]:  # fmt: skip
    """Write chunks as they come, into one file per table; return the rows of each.

    The memory is that of one chunk. The files get their names when all of them are whole,
    ``card.json`` last: where it is, nothing is missing. It also names the classes, of which the
    labels are positions.
    """
    if format not in WRITERS:
        raise OptionError(f"format={format!r} is unknown; choose parquet or csv.")
    rows: dict[str, int] = {}
    writers: dict[str, Any] = {}
    card_path = folder / "card.json"
    with ExitStack() as names, ExitStack() as streams:
        for name, table in chunks:
            if name not in writers:
                part = names.enter_context(atomic_write(folder / f"{name}.{format}"))
                writers[name] = streams.enter_context(WRITERS[format](part, table.schema))
            writers[name].write_table(table)
            rows[name] = rows.get(name, 0) + len(table)
        # Only now: an export that fails leaves the former one whole.
        card_path.unlink(missing_ok=True)
    with atomic_write(card_path) as part:
        about = asdict(card) | {"classes": list(classes)}
        part.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return rows


def pair_tables(pair: DomainPair) -> Iterator[Chunk]:
    """Yield the source with its labels, the target as it is seen, and the target's labels.

    Training rows come before test rows. The target's training rows are left out where they are
    the test rows themselves, and where their labels are unknown.
    """
    if not pair.blocks.is_table:
        raise InputError(f"{pair.name} holds images; only tables can be exported.")
    names = pair.blocks.names_of(range(pair.blocks.length))
    label = LABEL if LABEL not in names else f"#{LABEL}#"  # a review may hold the word itself
    for part in (pair.source_train, pair.source_test):
        yield "source", _table(pair.frame(part.inputs).assign(**{label: part.labels}))
    target = [(pair.target_test, pair.target_test_labels.open("export"))]
    is_split = not np.array_equal(pair.target_train, pair.target_test, equal_nan=True)
    if is_split and pair.target_train_labels is not None:
        target.insert(0, (pair.target_train, pair.target_train_labels.open("export")))
    missing = pair.blocks.names_of(pair.blocks.missing)
    for inputs, labels in target:
        yield "target", _table(pair.frame(inputs).drop(columns=missing))
        yield "target_labels", pa.table({label: labels})


def simulated_tables(scenario: Scenario, *, chunk: int = 100_000) -> Iterator[Chunk]:
    """Yield simulated rows in chunks; the labels come with the best possible predictions."""
    source, target = map(scenario.world, DOMAINS)
    for world in (source, target):
        for part, count in scenario.sizes:
            for rows in stream(world, count, part=part, seed=scenario.seed, chunk=chunk):
                whole = np.hstack([rows.observed, rows.missing]).astype(np.int16)
                if world is source:
                    complete = pd.DataFrame(whole, columns=[*OBSERVED, *MISSING])
                    yield "source", _table(complete.assign(**{LABEL: rows.labels}))
                    continue
                yield "target", _table(pd.DataFrame(whole[:, : len(OBSERVED)], columns=OBSERVED))
                truth = {
                    LABEL: rows.labels,
                    "best_given_observed": target.best_given_observed(rows.observed),
                    "best_given_all": target.best_given_all(rows.observed, rows.missing),
                }
                yield "target_labels", pa.table(truth)


def _table(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata()
