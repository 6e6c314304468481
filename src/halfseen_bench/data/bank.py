"""UCI bank marketing: will a customer who is called take the deposit that a bank offers.

The target is the customers who were never called before: what the last campaign told about a
customer does not exist for them. `duration` is left out, because it is known after the call only.
"""

from __future__ import annotations

from halfseen_bench.data.natural import CodedTable, Codes
from halfseen_bench.data.official import OfficialFile

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
MISSING = ("pdays", "previous", "poutcome")
"""Days since the last campaign's call, calls before this campaign, and what came of them."""
CUSTOMERS = CodedTable(
    OfficialFile(
        "bank/bank-full.csv", "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"
    ),
    ";",
    ("contacted", "never"),
    lambda table: (table.pdays != -1, table.pdays == -1),
    CODES,
    left_out=("duration", "y"),
    label="y",
    missing=MISSING,
    classes=("none", "deposit"),
    refusal="Customers without a history lack inputs: they cannot be the source.",
    card={
        "what": "Deposit or none, learned on customers called before, predicted on new ones.",
        "origin": "UCI Machine Learning Repository, Bank Marketing (doi:10.24432/C5K306), "
        "bank-full.csv; Moro, Cortez and Rita (2014), A data-driven approach to predict the "
        "success of bank telemarketing, Decision Support Systems 62",
        "licence": "CC BY 4.0",
        "missing": f"By nature, for who was never called before: {', '.join(MISSING)}.",
    },
)
"""Customers with and without a history: a deposit (1) or none (0)."""
DOMAINS, FILES, COLUMNS = CUSTOMERS.domains, (CUSTOMERS.file,), CUSTOMERS.columns
load_pair = CUSTOMERS.load_pair
