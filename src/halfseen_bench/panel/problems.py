"""The problems of the table panel: two tables each, and the target's labels to measure with.

*Development* problems may be looked at while the model is built: natural ones, those that are cut
out of a labelled source, and the simulator. *Evaluation* problems are run once a version is
finished, and every look is counted in docs/results/tables.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from halfseen_bench.data import DomainPair
from halfseen_bench.data.catalog import data_folder, family
from halfseen_bench.data.digit_files import read_mnist
from halfseen_bench.data.heart import COLUMNS
from halfseen_bench.data.pairs import Labels
from halfseen_bench.data.simulator import Scenario, simulate
from halfseen_bench.panel.public_tables import PUBLIC, read_table

SHOP_UNKNOWN = ["PageValues", "BounceRates", "ExitRates"]
BANK_UNKNOWN = ["pdays", "previous", "poutcome"]


class PanelProblem(NamedTuple):
    """A complete labelled source, a target that lacks columns, and what it is measured with."""

    source: pd.DataFrame
    labels: Labels
    target: pd.DataFrame
    truth: Labels
    regret: Callable[[Any], float] | None = None
    """Nats above the best possible prediction, where that is known."""
    complete: pd.DataFrame | None = None
    """The target with its missing columns, where these are known."""


def metric_of(problem: str) -> str:
    """Return what counts: AUC of two classes, accuracy of more."""
    several = problem.startswith(("gas", "computing", "grey")) or problem in ("wine", "digits")
    return "accuracy" if several else "auc"


# --- natural problems, by their readers -----------------------------------------------------


def natural(name: str, source: str, target: str, seed: int, **options: Any) -> PanelProblem:
    reader = family(name).reader
    return of_pair(reader.load_pair(data_folder(), source, target, seed=seed, **options))


def reviews(source: str, target: str, seed: int) -> PanelProblem:
    return natural("amazon", source, target, seed, weighting="binary")


def simulated(seed: int, **dials: float) -> PanelProblem:
    scenario = Scenario.of({"rows": 10_000, "test_rows": 5_000, "seed": seed, **dials})
    simulation = simulate(scenario)
    return of_pair(simulation.pair)._replace(regret=simulation.truth.regret)


def of_pair(pair: DomainPair) -> PanelProblem:
    parts = (pair.source_train, pair.source_test)
    inputs, labels = (np.concatenate([getattr(p, n) for p in parts]) for n in ("inputs", "labels"))
    source, target = (pair.frame(rows.astype(float)) for rows in (inputs, pair.target_test))
    missing = pair.blocks.names_of(pair.blocks.missing)
    truth = pair.target_test_labels.open("the panel's evaluation")
    is_known = target[missing].nunique().min() > 1
    return PanelProblem(
        source, labels, target.drop(columns=missing), truth, complete=target if is_known else None
    )


# --- cut out of one labelled table ------------------------------------------------------------


def cut(
    table: pd.DataFrame, labels: Any, is_source: Any, is_target: Any, missing: Any
) -> PanelProblem:
    y = np.asarray(labels)
    complete = table[is_target].reset_index(drop=True)
    source, target = table[is_source].reset_index(drop=True), complete.drop(columns=list(missing))
    return PanelProblem(source, y[is_source], target, y[is_target], complete=complete)


def bank(seed: int, by: str) -> PanelProblem:
    """Cut customers with a history by month; all by how they were called; others by age."""
    table = pd.read_csv(data_folder() / "bank/bank-full.csv", sep=";").drop(columns="duration")
    labels = (table.pop("y") == "yes").astype(int)
    known, some = table.pdays != -1, np.random.default_rng(seed).random(len(table)) < 0.3
    if by == "month":
        busy = table.month.isin(["may", "jun", "jul", "aug", "nov"])
        table = table.drop(columns="month")
        return cut(table, labels, known & busy, known & ~busy, BANK_UNKNOWN)
    if by == "contact":
        mobile, table = table.contact == "cellular", table.drop(columns=[*BANK_UNKNOWN, "contact"])
        return cut(table, labels, mobile & some, ~mobile & some, ["balance", "housing", "loan"])
    young, table = table.age < 50, table.drop(columns=BANK_UNKNOWN)
    return cut(table, labels, young & some & ~known, ~young & ~known, ["month", "day"])


def returning_shoppers(seed: int, by: str) -> PanelProblem:
    """Cut returning visitors, whose labels are the source's, by month or by traffic."""
    table = pd.read_csv(data_folder() / "shoppers/online_shoppers_intention.csv")
    table = table[table.VisitorType == "Returning_Visitor"].drop(columns="VisitorType")
    table = table.reset_index(drop=True)
    labels = table.pop("Revenue").astype(int)
    for name in ("OperatingSystems", "Browser", "Region", "TrafficType", "Weekend"):
        table[name] = "v" + table[name].astype(str)
    spring = table.Month.isin(["May", "Mar", "June", "Feb"])
    usual = table.TrafficType.isin(["v1", "v3", "v4", "v13"])
    here = spring if by == "Month" else usual
    # SpecialDay is 0 outside of spring, and its reader would have to say so.
    table = table.drop(columns=[by, "SpecialDay"])
    return cut(table, labels, here, ~here, SHOP_UNKNOWN)


def heart_back(seed: int) -> PanelProblem:
    """From the Hungarian hospital to Cleveland, which is taken not to have done stress tests."""
    read = partial(pd.read_csv, names=[*COLUMNS, "num"], na_values="?")
    both = [read(data_folder() / f"heart/processed.{n}.data") for n in ("hungarian", "cleveland")]
    labels = [(table.num > 0).astype(int).to_numpy() for table in both]
    tables = [table.iloc[:, :10].copy() for table in both]
    for table in tables:
        for name in ("sex", "cp", "restecg"):
            table[name] = table[name].map(lambda v: None if pd.isna(v) else f"v{int(v)}")
    source, target = tables
    missing = ["exang", "oldpeak"]
    return PanelProblem(source, labels[0], target.drop(columns=missing), labels[1], complete=target)


def clicks_in_time(seed: int) -> PanelProblem:
    names = ["y", *(f"I{k}" for k in range(1, 14)), *(f"C{k}" for k in range(1, 27))]
    table = pd.read_csv(data_folder() / "criteo/train.txt.gz", sep="\t", header=None, names=names)
    table = table[table.C17 != "2005abd1"].reset_index(drop=True)
    labels, early = table.pop("y"), np.arange(len(table)) < 6_500
    many = [name for name in table if name[0] == "C" and table[name].nunique() > 1_500]
    return cut(table.drop(columns=many), labels, early, ~early, [f"I{k}" for k in range(1, 6)])


def bundled(seed: int, name: str) -> PanelProblem:
    """Send rows of scikit-learn's tables with a high first column to the target, mostly."""
    loaded = {"breast cancer": load_breast_cancer, "wine": load_wine, "digits": load_digits}[name]()
    table = pd.DataFrame(loaded.data, columns=[f"c{k}" for k in range(loaded.data.shape[1])])
    random = np.random.default_rng(seed)
    if name == "digits":  # the lower half missing, a darker scanner with some noise
        return darker(table, loaded.target, table.columns[32:], seed)
    first = (table.c0 - table.c0.mean()) / table.c0.std()
    is_source = random.random(len(table)) < 1.0 / (1.0 + np.exp(1.5 * first))
    kept = len(table.columns) * 2 // 3
    return cut(table, loaded.target, is_source, ~is_source, table.columns[kept:])


def another_reading(table: pd.DataFrame, labels: Any, missing: Any, seed: int) -> PanelProblem:
    """Let another instrument read half of a table's integers: each column has its own scale."""
    random = np.random.default_rng(seed)
    is_source = random.random(len(table)) < 0.5
    gain, offset = (random.uniform(*ends, table.shape[1]) for ends in ((0.6, 1.6), (0.0, 3.0)))
    read = np.where(is_source[:, None], table, np.round(gain * table + offset))
    read = pd.DataFrame(read, columns=table.columns)
    # A column of one value on the target would be asked about.
    kept = [n for n in table if n in missing or read[n][~is_source].nunique() > 1]
    return cut(read[kept], labels, is_source, ~is_source, missing)


def selected(table: pd.DataFrame, labels: Any, missing: Any, seed: int) -> PanelProblem:
    """Send rows that are high in most columns to the target, mostly; nothing is read otherwise."""
    standard = (table - table.mean()) / table.std()
    height = standard.mean(axis=1) / standard.mean(axis=1).std()
    is_source = np.random.default_rng(seed).random(len(table)) < 1.0 / (1.0 + np.exp(3.0 * height))
    return cut(table, labels, is_source, ~is_source, missing)


def grades(seed: int, shifted: Callable[..., PanelProblem]) -> PanelProblem:
    """Take the nine grades, 1 to 10, of biopsies."""
    table = read_table("MASS", "biopsy")
    names = [f"V{k}" for k in range(1, 10)]
    malignant = (table["class"] == "malignant").astype(int)
    return shifted(table[names].astype(float), malignant, names[6:], seed)


def darker(table: pd.DataFrame, labels: Any, missing: Any, seed: int) -> PanelProblem:
    """Let a darker scanner with some noise see half of a table's grey levels."""
    random = np.random.default_rng(seed)
    is_source = random.random(len(table)) < 0.5
    dark = 0.8 * table + random.normal(0.0, 1.0, table.shape).clip(0.0, None)
    seen = pd.DataFrame(np.where(is_source[:, None], table, dark), columns=table.columns)
    return cut(seen, labels, is_source, ~is_source, missing)


def grey_levels(
    seed: int, shifted: Callable[..., PanelProblem], digits: tuple[int, ...], rows: int
) -> PanelProblem:
    """Take some digits of MNIST as 8 x 8 pixels of 17 levels, the lower half missing."""
    images, labels = read_mnist(data_folder(), "test")
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(labels, digits)))[:rows]
    images, labels = images[chosen], np.searchsorted(digits, labels[chosen])
    small = np.pad(images[:, 0], ((0, 0), (2, 2), (2, 2))).reshape(-1, 8, 4, 8, 4).mean(axis=(2, 4))
    levels = np.round(small.reshape(len(small), 64) / 255 * 16)
    table = pd.DataFrame(levels, columns=[f"c{k}" for k in range(64)])
    return shifted(table, labels, table.columns[32:], seed)


def public(seed: int, name: str) -> PanelProblem:
    source, labels, target, truth, complete = PUBLIC[name].parts(seed)
    return PanelProblem(source, labels, target, truth, complete=complete)


DEVELOPMENT: dict[str, Callable[[int], PanelProblem]] = {
    "gas 1+2 to 3": partial(natural, "gas", "batches1-2", "batch3"),
    "gas 1+2 to 6": partial(natural, "gas", "batches1-2", "batch6"),
    "bank": partial(natural, "bank", "contacted", "never"),
    "heart, Hungarian": partial(natural, "heart", "cleveland", "hungarian"),
    "reviews, kitchen to books": partial(reviews, "kitchen", "books"),
    "reviews, books to films": partial(reviews, "books", "dvd"),
    "reviews, electronics to films": partial(reviews, "electronics", "dvd"),
    "reviews, films to kitchen": partial(reviews, "dvd", "kitchen"),
    "simulator": simulated,
    "simulator, predictable": partial(simulated, predictability=0.9),
    "simulator, unpredictable": partial(simulated, predictability=0.1),
    "simulator, noisy labels": partial(simulated, label_noise=0.2),
    "bank, by month": partial(bank, by="month"),
    "bank, by contact": partial(bank, by="contact"),
    "bank, by age": partial(bank, by="age"),
    "returning shoppers, by month": partial(returning_shoppers, by="Month"),
    "returning shoppers, by traffic": partial(returning_shoppers, by="TrafficType"),
    "heart, back to Cleveland": heart_back,
    "clicks, in time": clicks_in_time,
    "grades, read otherwise": partial(grades, shifted=another_reading),
    "grades, selected": partial(grades, shifted=selected),
    "grey levels, read otherwise": partial(
        grey_levels, shifted=another_reading, digits=(0, 3, 5, 8), rows=900
    ),
    "grey levels, darker": partial(
        grey_levels, shifted=darker, digits=tuple(range(10)), rows=1_800
    ),
    **{name: partial(public, name=name) for name in list(PUBLIC)[::2]},
}
EVALUATION: dict[str, Callable[[int], PanelProblem]] = {
    "gas 1+2 to 4": partial(natural, "gas", "batches1-2", "batch4"),
    "gas 1+2 to 5": partial(natural, "gas", "batches1-2", "batch5"),
    "shoppers": partial(natural, "shoppers", "returning", "new"),
    "heart, Switzerland": partial(natural, "heart", "cleveland", "switzerland"),
    "heart, VA": partial(natural, "heart", "cleveland", "va"),
    "reviews, films to electronics": partial(reviews, "dvd", "electronics"),
    "reviews, books to kitchen": partial(reviews, "books", "kitchen"),
    "reviews, kitchen to electronics": partial(reviews, "kitchen", "electronics"),
    "reviews, films to books": partial(reviews, "dvd", "books"),
    "breast cancer": partial(bundled, name="breast cancer"),
    "wine": partial(bundled, name="wine"),
    "digits": partial(bundled, name="digits"),
    **{name: partial(public, name=name) for name in list(PUBLIC)[1::2]},
}
