"""UCI online shoppers: does a visit to a shop on the web end in a purchase.

The target is the new visitors, for whom the shop's analytics are taken as not yet measured; the 85
visits that are neither new nor returning are left out.
"""

from __future__ import annotations

from pathlib import Path

from halfseen.blocks import Blocks
from halfseen.errors import OptionError
from halfseen_bench.data.natural import Codes, evaluation_note, labelled_part, make_pair, read_coded
from halfseen_bench.data.official import OfficialFile, locate
from halfseen_bench.data.pairs import Card, DomainPair, Inputs
from halfseen_bench.data.splitting import Evaluation, check_domains

__all__ = ["CODES", "COLUMNS", "DOMAINS", "FILES", "MISSING", "load_pair", "read_visits"]

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

    Parameters
    ----------
    root
        The data folder; the file lies under it as :data:`FILES` names it.
    source, target
        ``returning`` and ``new``: new visitors are the ones not measured yet.
    max_rows
        At most so many rows of each domain, a seeded choice: for quick runs.
    evaluation, test_fraction, seed
        As in :func:`halfseen_bench.data.heart.load_pair`.
    """
    check_domains(source, target, DOMAINS)
    if source != "returning":
        raise OptionError("New visitors lack inputs: they cannot be the source.")
    table = read_visits(root)
    visitor = table[:, list(CODES).index("VisitorType")]
    parts = [
        labelled_part(
            domain,
            table,
            visitor == code,
            CODES,
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
        notes=(
            f"Left out: VisitorType, which is the domain, and its {int((visitor == 2).sum())} "
            "rows of another kind.",
            "Categorical columns are codes from 0: months of the year, the file's own numbers.",
            evaluation_note(evaluation),
        ),
    )
    return make_pair(
        source,
        target,
        source_part=parts[0],
        target_part=parts[1],
        blocks=Blocks.columns(COLUMNS, MISSING),
        classes=("none", "purchase"),
        card=card,
        evaluation=evaluation,
        test_fraction=test_fraction,
        seed=seed,
        is_complete=True,
        codes={name: CODES[name] for name in COLUMNS},
    )


def read_visits(root: Path) -> Inputs:
    """Return all rows of the file, in the columns of :data:`CODES`."""
    return read_coded(locate(root, FILES[0].path), CODES, delimiter=",")
