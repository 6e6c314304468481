"""UCI heart disease: four hospitals, some of which never measured some columns.

Nothing is hidden by hand here. One rule decides what a hospital measured: **a column counts as
measured where more than half of the rows have a value**. What the source measured and the target
did not is the missing block x2; what the source did not measure is left out, since nothing can be
learned about it. A source is complete enough for a target when such an x2 exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.splitting import held_out_share
from halfseen_bench.data.natural import make_pair, numbers, positions, read_text
from halfseen_bench.data.official import OfficialFile, locate
from halfseen_bench.data.pairs import Card, DomainPair, Labelled
from halfseen_bench.data.splitting import Evaluation, check_domains

_HASHES = {
    "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}
DOMAINS = tuple(_HASHES)
FILES = tuple(
    OfficialFile(f"heart/processed.{domain}.data", sha256) for domain, sha256 in _HASHES.items()
)
CODES: dict[str, tuple[int, ...] | None] = {
    "age": None,
    "sex": (0, 1),
    "cp": (1, 2, 3, 4),
    "trestbps": None,
    "chol": None,
    "fbs": (0, 1),
    "restecg": (0, 1, 2),
    "thalach": None,
    "exang": (0, 1),
    "oldpeak": None,
    "slope": (1, 2, 3),
    "ca": None,
    "thal": (3, 6, 7),
}
"""The file's own codes of each categorical column, in order; None for a measured number."""
COLUMNS = tuple(CODES)
ZERO_MEANS_MISSING = ("trestbps", "chol")
"""Columns in which 0 is no possible value, and stands for one that was not measured."""

Table = npt.NDArray[np.float32]


def load_pair(
    root: Path,
    source: str,
    target: str,
    *,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read two hospitals as one problem: healthy (0) or diseased (1, the file's 1 to 4).

    A gap in a column that counts as measured is filled with the median (the mode of a categorical
    column) of the source's training rows. Cleveland lacks nothing, so it is never a target.

    With `evaluation` as ``transductive`` the target is adapted on and predicted in full, with
    ``split`` a seeded half each. `test_fraction` is the share of the source held out as its test
    part, the same in each class; `seed` fixes the splits.
    """
    check_domains(source, target, DOMAINS)
    source_table, source_labels = read_hospital(root, source)
    target_table, target_labels = read_hospital(root, target)
    source_has, target_has = (shares_missing(t) < 0.5 for t in (source_table, target_table))
    kept = np.flatnonzero(source_has)
    missing = [COLUMNS[c] for c in kept if not target_has[c]]
    if not missing:
        raise InputError(
            f"{target} lacks no column that {source} has, so nothing is missing on this target; "
            "choose another pair, such as cleveland->hungarian."
        )
    names = [COLUMNS[c] for c in kept]
    blocks = Blocks.columns(names, missing)
    source_table, target_table = source_table[:, kept], target_table[:, kept]
    shares = shares_missing(target_table)
    lacking = ", ".join(f"{names[c]} ({shares[c]:.0%})" for c in blocks.missing)
    card = Card(
        what=f"Heart disease or none, learned at {source}, predicted at {target}.",
        origin="UCI Machine Learning Repository, Heart Disease (Janosi, Steinbrunn, Pfisterer "
        "and Detrano, 1988), processed.*.data",
        licence="CC BY 4.0",
        counts={source: len(source_table), target: len(target_table)},
        missing=f"As it happened at {target}, in most rows: {lacking}; the few values that are "
        "there are set aside.",
    )
    train, _ = held_out_share(source_labels, test_fraction, seed)
    usual = _usual(source_table[train], names)
    source_table, target_table = (
        np.where(np.isnan(table), usual, table) for table in (source_table, target_table)
    )
    return make_pair(
        f"{source}->{target}",
        (Labelled(source_table, source_labels), Labelled(target_table, target_labels)),
        blocks=blocks,
        classes=("healthy", "disease"),
        card=card,
        split=(evaluation, test_fraction, seed),
    )


def read_hospital(root: Path, domain: str) -> tuple[Table, npt.NDArray[np.int64]]:
    """Return one hospital's 13 columns, NaN where not measured, and its labels 0 or 1.

    Categorical columns become the position of their code in :data:`CODES`: 0, 1, 2, ...
    """
    path = locate(root, f"heart/processed.{domain}.data")
    text = read_text(path, [*COLUMNS, "num"], delimiter=",", header=False)
    label = positions(path, text.num, {str(grade): grade for grade in range(5)})
    columns = []
    for name, codes in CODES.items():
        value = pd.Series(numbers(path, text[name], unknown="?"), text.index, name=name)
        value = value.mask((value == -9) | ((value == 0) & (name in ZERO_MEANS_MISSING)))
        known = {code: place for place, code in enumerate(codes or ())}
        columns.append(positions(path, value, known) if codes else value.to_numpy())
    return np.stack(columns, axis=1), (label > 0).astype(np.int64)


def shares_missing(table: Table) -> npt.NDArray[np.float64]:
    """Return, for each column, the share of rows without a value."""
    return np.asarray(np.isnan(table).mean(axis=0), dtype=np.float64)


def _usual(table: Table, names: Sequence[str]) -> Table:
    """Return each column's median, or its most frequent code."""
    frame = pd.DataFrame(table, columns=names)
    usual = frame.median()
    coded = [name for name in names if CODES[name] is not None]
    usual[coded] = frame[coded].mode().iloc[0]
    values: Table = usual.to_numpy(np.float32)
    return values
