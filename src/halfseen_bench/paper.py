"""The paper's cells as data, each with the table it stands in.

Kirchmeyer et al., "Unsupervised domain adaptation with non-stochastic missing data", 2021
(arXiv:2109.09505). Its tables give the "best" target results, over five runs; Amazon has no
deviations. Accuracies are in percent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PaperCell:
    """One published number."""

    table: str
    pair: str
    model: str
    divergence: str | None
    metric: str
    mean: float
    deviation: float | None = None
    refined: bool = False
    variant: str = ""

    def __str__(self) -> str:
        digits = 3 if self.metric == "cross_entropy" else 2 if self.deviation is None else 1
        mean = f"{self.mean:.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation:g}"


DIGIT_PAIRS = ("mnist:usps", "usps:mnist", "svhn:mnist", "mnist:mnistm")
AMAZON_PAIRS = ("dvd:electronics", "books:kitchen", "kitchen:electronics", "dvd:books")
ADVERSARIAL, TRANSPORT = "adversarial", "transport"

# Table 1: without refinement; adversarial and transport in turn where a model adapts.
_TABLE_1 = {
    "Source-Full": "71.5±2.7 74.2±2.7 58.1±1.1 28.3±1.4",
    "Adaptation-Full": "85.8±3.2 92.6±1.7 94.6±2.1 93.9±0.6 78.0±3.4 76.1±1.4 60.8±3.8 46.9±3.9",
    "Source-ZeroImputation": "25.7±3.7 39.2±2.6 31.5±2. 14.4±1.1",
    "Adaptation-ZeroImputation": (
        "48.4±4.8 60.9±6.3 67.5±2.2 65.3±5.2 47.1±5.7 37.5±6.2 34.7±2.5 20.2±2.5"
    ),
    "Source-IgnoreComponent": "52.9±9.7 54.3±1.6 44.6±1.9 19.1±2.6",
    "Adaptation-IgnoreComponent": (
        "71.5±3.2 64.0±5.0 80.0±1.4 72.0±1.8 45.5±1.9 47.9±1.8 29.4±1.6 26.8±4.4"
    ),
    "Adaptation-Imputation": (
        "74.2±2.3 66.8±1.3 81.4±0.8 72.5±2.7 53.8±1.4 49.2±1.5 57.9±2.3 29.2±1.4"
    ),
}
_TABLE_1_ADS = {  # ads-kaggle, ads-real
    "Source-ZeroImputation": "0.545±0.019 0.663±0.011",
    "Adaptation-ZeroImputation": "0.397±0.0057 0.660±0.025",
    "Source-IgnoreComponent": "0.406±0.00046 0.622±0.0048",
    "Adaptation-IgnoreComponent": "0.403±0.0030 0.634±0.0082",
    "Adaptation-Imputation": "0.389±0.014 0.583±0.013",
}
_TABLE_2 = {
    "Source-Full": "69.57 73.04 77.88 71.95",
    "Adaptation-Full": "73.62 74.09 79.63 72.65",
    "Source-ZeroImputation": "58.51 60.52 66.27 61.15",
    "Adaptation-ZeroImputation": "64.51 61.08 68.02 62.80",
    "Source-IgnoreComponent": "60.21 62.03 67.62 64.35",
    "Adaptation-IgnoreComponent": "61.02 64.08 68.47 66.00",
    "Adaptation-Imputation": "72.57 72.69 78.18 72.61",
}
_TABLE_3 = {  # adversarial with refinement: digits, then ads-kaggle
    "Adaptation-Full": "95.9±0.6 96.8±0.6 83.3±3.9 60.9±3.7",
    "Adaptation-Imputation": "78.5±1.6 82.5±0.5 58.6±1.8 58.2±2.3 0.317±0.0023",
}
_TABLE_4 = {  # adversarial Adaptation-Imputation: digits, then ads-kaggle
    "L1 off": "64.2±1.8 51.3±2.5 44.5±1.4 24.1±2.6 0.410±0.0020",
    "MSE only": "71.9±3.7 81.4±1.2 52.5±3.7 56.5±2.8 0.400±0.0014",
    "ADV only": "28.6±3.2 39.4±5.2 28.8±3.8 30.0±3.7 0.469±0.13",
    "ADV + 0.005 MSE": "47.8±3.7 49.6±5.8 46.0±2.6 50.6±2.2 0.389±0.014",
    "ADV + MSE": "74.2±2.3 81.4±0.8 53.8±1.4 57.9±2.3 0.401±0.0014",
}
_TABLE_4_AMAZON = {"MSE only": "71.47 71.39 77.58 72.02", "ADV + MSE": "72.57 72.69 78.18 72.61"}


def _numbers(line: str) -> list[tuple[float, float | None]]:
    found = []
    for cell in line.split():
        mean, _, deviation = cell.partition("±")
        found.append((float(mean), float(deviation) if deviation else None))
    return found


def _row(
    table: str, model: str, pairs: Sequence[str], line: str, divergences: Sequence[str | None],
    **more: Any,
) -> Iterator[PaperCell]:  # fmt: skip
    """Yield the cells of a line: for each pair, one of each divergence."""
    places = [(pair, divergence) for pair in pairs for divergence in divergences]
    for (pair, divergence), numbers in zip(places, _numbers(line), strict=False):
        metric = "cross_entropy" if pair.startswith("ads") else "accuracy"
        yield PaperCell(table, pair, model, divergence, metric, *numbers, **more)


def _cells() -> Iterator[PaperCell]:
    imputation, one = "Adaptation-Imputation", (ADVERSARIAL,)
    for table, pairs, lines, divergences in (
        ("Table 1", DIGIT_PAIRS, _TABLE_1, (ADVERSARIAL, TRANSPORT)),
        ("Table 1", ("ads-kaggle", "ads-real"), _TABLE_1_ADS, one),
        ("Table 2", AMAZON_PAIRS, _TABLE_2, one),
    ):
        for model, line in lines.items():
            adapts = model.startswith("Adaptation")
            yield from _row(table, model, pairs, line, divergences if adapts else (None,))
    for model, line in _TABLE_3.items():
        yield from _row("Table 3", model, (*DIGIT_PAIRS, "ads-kaggle"), line, one, refined=True)
    for variant, line in _TABLE_4.items():
        yield from _row(
            "Table 4", imputation, (*DIGIT_PAIRS, "ads-kaggle"), line, one, variant=variant
        )
    for variant, line in _TABLE_4_AMAZON.items():
        yield from _row("Table 4", imputation, AMAZON_PAIRS, line, one, variant=variant)


SAME_VARIANT = {"λ_MSE=0": "ADV only", "λ_MSE=0.005": "ADV + 0.005 MSE", "λ_MSE=1": "ADV + MSE"}
"""Points of the curve over λ_MSE that Table 4 has under another name."""

PAPER: tuple[PaperCell, ...] = tuple(_cells())
"""Every cell of Tables 1 to 4 that holds a number."""
_PLACES = {(c.pair, c.model, c.divergence, c.metric, c.refined, c.variant): c for c in PAPER}


def paper_cell(
    pair: str,
    model: str,
    divergence: str | None,
    metric: str,
    *,
    refined: bool = False,
    variant: str = "",
) -> PaperCell | None:
    """Return the paper's number for a cell, or None where it gives none."""
    variant = SAME_VARIANT.get(variant, variant)
    return _PLACES.get((pair, model, divergence, metric, refined, variant))
