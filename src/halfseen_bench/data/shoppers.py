"""UCI online shoppers: does a visit to a shop on the web end in a purchase.

The target is the new visitors, for whom the shop's analytics are taken as not yet measured; the 85
visits that are neither new nor returning are left out.
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

DOMAINS = ("returning", "new")
# No hash of the content: copies with other line ends are as good. The catalog has the served one.
FILES = (OfficialFile("shoppers/online_shoppers_intention.csv"),)
_TRUE = ("FALSE", "TRUE")


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(code) for code in range(1, count + 1))


CODES: Codes = {
    "Administrative": None,
    "Administrative_Duration": None,
    "Informational": None,
    "Informational_Duration": None,
    "ProductRelated": None,
    "ProductRelated_Duration": None,
    "BounceRates": None,
    "ExitRates": None,
    "PageValues": None,
    "SpecialDay": None,
    "Month": (
        *("Jan", "Feb", "Mar", "Apr", "May", "June"),
        *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    ),
    "OperatingSystems": _numbered(8),
    "Browser": _numbered(13),
    "Region": _numbered(9),
    "TrafficType": _numbered(20),
    "VisitorType": ("Returning_Visitor", "New_Visitor", "Other"),
    "Weekend": _TRUE,
    "Revenue": _TRUE,
}
"""The file's columns and the categories of each, in their own order."""
COLUMNS = tuple(name for name in CODES if name not in ("VisitorType", "Revenue"))
MISSING = ("BounceRates", "ExitRates", "PageValues")
"""What the shop's analytics say of the pages that were visited."""


def load_pair(
    root: Path,
    source: str = "returning",
    target: str = "new",
    *,
    max_rows: int | None = None,
    evaluation: Evaluation = "transductive",
    test_fraction: float = 0.2,
    seed: int = 0,
) -> DomainPair:
    """Read returning and new visitors as one problem: a purchase (1) or none (0).

    New visitors are the ones not measured yet: they cannot be the source. The options are those
    of :func:`halfseen_bench.data.bank.load_pair`.
    """
    check_domains(source, target, DOMAINS)
    if source != "returning":
        raise OptionError("New visitors lack inputs: they cannot be the source.")
    table = read_visits(root)
    parts = [
        labelled_part(
            domain,
            table[table.VisitorType == code],
            columns=COLUMNS,
            label="Revenue",
            max_rows=max_rows,
            seed=seed,
        )
        for code, domain in enumerate(DOMAINS)
    ]
    card = Card(
        what="Purchase or none, learned on returning visitors, predicted on new ones.",
        origin="UCI Machine Learning Repository, Online Shoppers Purchasing Intention Dataset "
        "(doi:10.24432/C5F88Q), online_shoppers_intention.csv; Sakar, Polat, Katircioglu and "
        "Kastro (2019), Real-time prediction of online shoppers' purchasing intention using "
        "multilayer perceptron and LSTM recurrent neural networks, Neural Computing and "
        "Applications 31",
        licence="CC BY 4.0",
        counts={source: len(parts[0]), target: len(parts[1])},
        missing=f"Taken as not measured yet, hidden by hand: {', '.join(MISSING)}.",
    )
    return make_pair(
        f"{source}->{target}",
        (parts[0], parts[1]),
        blocks=Blocks.columns(COLUMNS, MISSING),
        classes=("none", "purchase"),
        card=card,
        split=(evaluation, test_fraction, seed),
        is_complete=True,
        codes={name: CODES[name] for name in COLUMNS},
    )


def read_visits(root: Path) -> pd.DataFrame:
    """Return all rows of the file as numbers, in the columns of :data:`CODES`."""
    return read_coded(locate(root, FILES[0].path), CODES, delimiter=",")
