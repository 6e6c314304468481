"""UCI bank marketing: will a customer who is called take the deposit that a bank offers.

The target is the customers who were never called before: what the last campaign told about a
customer does not exist for them. `duration` is left out, because it is known after the call only.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen_bench.data.natural import Codes, labelled_part, make_pair, read_coded
from halfseen_bench.data.official import OfficialFile, locate
from halfseen_bench.data.pairs import Card, DomainPair
from halfseen_bench.data.splitting import Evaluation, check_domains

DOMAINS = ("contacted", "never")
FILES = (
    OfficialFile(
        "bank/bank-full.csv", "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"
    ),
)
_YES = ("no", "yes")
CODES: Codes = {
    "age": None,
    "job": (
        *("admin.", "unknown", "unemployed", "management", "housemaid", "entrepreneur"),
        *("student", "blue-collar", "self-employed", "retired", "technician", "services"),
    ),
    "marital": ("married", "divorced", "single"),
    "education": ("unknown", "primary", "secondary", "tertiary"),
    "default": _YES,
    "balance": None,
    "housing": _YES,
    "loan": _YES,
    "contact": ("unknown", "telephone", "cellular"),
    "day": None,
    "month": (
        *("jan", "feb", "mar", "apr", "may", "jun"),
        *("jul", "aug", "sep", "oct", "nov", "dec"),
    ),
    "duration": None,
    "campaign": None,
    "pdays": None,
    "previous": None,
    "poutcome": ("unknown", "other", "failure", "success"),
    "y": _YES,
}
"""The file's columns and the categories of each, in the order of its own description."""
COLUMNS = tuple(name for name in CODES if name not in ("duration", "y"))
MISSING = ("pdays", "previous", "poutcome")
"""Days since the last campaign's call, calls before this campaign, and what came of them."""


def load_pair(
    root: Path,
    source: str = "contacted",
    target: str = "never",
    *,
    max_rows: int | None = None,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read customers with and without a history as one problem: a deposit (1) or none (0).

    The other direction lacks nothing. `max_rows` takes a seeded choice of each domain, for quick
    runs; the other options are those of :func:`halfseen_bench.data.heart.load_pair`.
    """
    check_domains(source, target, DOMAINS)
    if source != "contacted":
        raise OptionError("Customers without a history lack inputs: they cannot be the source.")
    table = read_customers(root)
    parts = [
        labelled_part(domain, rows, columns=COLUMNS, label="y", max_rows=max_rows, seed=seed)
        for domain, rows in ((source, table[table.pdays != -1]), (target, table[table.pdays == -1]))
    ]
    card = Card(
        what="Deposit or none, learned on customers called before, predicted on new ones.",
        origin="UCI Machine Learning Repository, Bank Marketing (doi:10.24432/C5K306), "
        "bank-full.csv; Moro, Cortez and Rita (2014), A data-driven approach to predict the "
        "success of bank telemarketing, Decision Support Systems 62",
        licence="CC BY 4.0",
        counts={source: len(parts[0]), target: len(parts[1])},
        missing=f"By nature, for who was never called before: {', '.join(MISSING)}.",
    )
    return make_pair(
        f"{source}->{target}",
        (parts[0], parts[1]),
        blocks=Blocks.columns(COLUMNS, MISSING),
        classes=("none", "deposit"),
        card=card,
        split=(evaluation, test_fraction, seed),
        codes={name: CODES[name] for name in COLUMNS},
    )


def read_customers(root: Path) -> pd.DataFrame:
    """Return all rows of the file as numbers, in the columns of :data:`CODES`."""
    return read_coded(locate(root, FILES[0].path), CODES, delimiter=";")
