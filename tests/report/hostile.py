"""Tables in which the names of columns and classes are attacks, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from halfseen.data.column_spec import ColumnSpec
from halfseen.data.schema_inference import InferredTables, infer_schema
from halfseen.data.table_files import open_table
from halfseen.report.html import Section
from tiny import TINY

__all__ = ["CLASSES", "FORMULA", "LABEL", "QUOTED", "SCRIPT", "TINY", "Fitted", "understood"]

SCRIPT, QUOTED, FORMULA = "<script>alert(1)</script>", 'a" onload="b', '=HYPERLINK("x")'
CLASSES = ("<i>no</i>", "</style>yes")
LABEL = "sick & <b>tired</b>"


@dataclass(frozen=True)
class Fitted:
    """A model's folder, the tables it learned from, and its report."""

    folder: Path
    source: Path
    target: Path
    sections: tuple[Section, ...]
    html: Path

    @property
    def page(self) -> str:
        return self.html.read_text()


def hospital(rows: int, seed: int, shift: float) -> pa.Table:
    """One table as a hospital has it, in which the names of columns and classes are attacks."""
    random = np.random.default_rng(seed)
    age = random.normal(50 + 10 * shift, 9, rows).round(1)
    test = age / 10 + random.normal(0, 1, rows)
    ward = random.choice(["<img src=x onerror=alert(1)>", "south", "west"], rows)
    return pa.table(
        {
            SCRIPT: pa.array(np.where(random.random(rows) < 0.1, np.nan, age), from_pandas=True),
            QUOTED: ward,
            FORMULA: random.poisson(3 + 2 * shift, rows),
            "n" * 60: test,
            "&thal;": random.choice(["normal", "fixed"], rows),
            LABEL: np.where(test + random.normal(0, 0.5, rows) > 5, *CLASSES),
        }
    )


def understood(folder: Path) -> InferredTables:
    """Write both tables into a folder, and infer_schema them."""
    folder.mkdir(parents=True, exist_ok=True)
    pa.parquet.write_table(hospital(150, 0, 0.0), folder / "source.parquet")
    target = hospital(120, 1, 0.6).drop_columns(["n" * 60, "&thal;", LABEL])
    pa.parquet.write_table(target, folder / "target.parquet")
    tables = [open_table(folder / f"{name}.parquet") for name in ("source", "target")]
    found = infer_schema(*tables, ColumnSpec(LABEL))
    assert isinstance(found, InferredTables)
    return found
