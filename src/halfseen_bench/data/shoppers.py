"""UCI online shoppers: does a visit to a shop on the web end in a purchase.

The target is the new visitors, for whom the shop's analytics are taken as not yet measured; the 85
visits that are neither new nor returning are left out.
"""

from __future__ import annotations

from halfseen_bench.data.natural import CodedTable, Codes
from halfseen_bench.data.official import OfficialFile

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
MISSING = ("BounceRates", "ExitRates", "PageValues")
"""What the shop's analytics say of the pages that were visited."""
VISITS = CodedTable(
    # No hash of the content: copies with other line ends are as good. The catalog has the served
    # one.
    OfficialFile("shoppers/online_shoppers_intention.csv"),
    ",",
    ("returning", "new"),
    lambda table: (table.VisitorType == 0, table.VisitorType == 1),
    CODES,
    left_out=("VisitorType", "Revenue"),
    label="Revenue",
    missing=MISSING,
    classes=("none", "purchase"),
    refusal="New visitors lack inputs: they cannot be the source.",
    card={
        "what": "Purchase or none, learned on returning visitors, predicted on new ones.",
        "origin": "UCI Machine Learning Repository, Online Shoppers Purchasing Intention Dataset "
        "(doi:10.24432/C5F88Q), online_shoppers_intention.csv; Sakar, Polat, Katircioglu and "
        "Kastro (2019), Real-time prediction of online shoppers' purchasing intention using "
        "multilayer perceptron and LSTM recurrent neural networks, Neural Computing and "
        "Applications 31",
        "licence": "CC BY 4.0",
        "missing": f"Taken as not measured yet, hidden by hand: {', '.join(MISSING)}.",
    },
    is_complete=True,
)
"""Returning and new visitors, who are not measured yet: a purchase (1) or none (0)."""
DOMAINS, FILES, COLUMNS = VISITS.domains, (VISITS.file,), VISITS.columns
load_pair = VISITS.load_pair
