"""Few labels, many complete rows: what the missing columns teach, beside what others would do.

Of each problem's complete source rows some are drawn whose labels are known; the others are there
without one. Every method predicts the target, which lacks columns. Development problems chose the
algorithm; evaluation problems and closed tables are looked at once per version. Finished runs are
kept in the log, one JSON object a line.

    python benchmarks/few_labels.py --output log.jsonl
    python benchmarks/few_labels.py --output log.jsonl --tables open --labels 50 100 --draws 3
    python benchmarks/few_labels.py --output log.jsonl --table
    python benchmarks/few_labels.py --output log.jsonl --figure curves.png
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from many_tables import problems as public_tables
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from halfseen import HalfSeenClassifier
from halfseen.arrays import Floats
from halfseen.data.frames import infer_frames, label_column, read_frame
from halfseen.distillation import of_soft_labels, soft_labels_of_few, student_job
from halfseen.errors import HalfseenError
from halfseen.fitting.prepared_rows import prepared_tables
from halfseen.members import LEARNERS, Learner, Sample, TrainingJob
from halfseen.metrics import accuracy, auc, row_losses
from halfseen.settings import TREES_AND_REGRESSION, FitSettings
from halfseen_bench.data.nhanes import MISSING, load_adults
from halfseen_bench.panel.methods import boosted, forest, in_all_classes, prepared
from halfseen_bench.panel.problems import DEVELOPMENT, EVALUATION, PanelProblem
from halfseen_bench.panel.public_tables import read_table

COUNTS = (20, 50, 100, 200, 500, 1_000, 0)
"""Labelled rows; 0 stands for all."""
LEAST = 2
"""Labelled rows of each class in every draw."""
Known = Any
"""Places of the source rows whose labels are known."""
NetworkVariant = Callable[[PanelProblem, Known, int], Floats]
"""From a problem, the rows whose labels it may read and a seed to the target's probabilities."""


# --- problems -------------------------------------------------------------------------------


def nhanes() -> PanelProblem:
    """Who was told of diabetes: white adults to others, whose blood was not drawn."""
    adults = load_adults()
    hidden = adults.target.drop(columns=list(MISSING.values()))
    return PanelProblem(adults.source, adults.labels, hidden, adults.truth)


def pbc() -> PanelProblem:
    """Who died of primary biliary cirrhosis: patients of a trial to those outside it."""
    table = read_table("survival", "pbc")
    unknown = ["ascites", "hepato", "spiders", "chol", "copper", "alk.phos", "ast", "trig"]
    in_trial = table["trt"].notna().to_numpy()
    died = (table["status"] == 2).to_numpy().astype(np.int64)
    rows = table[["age", "sex", "edema", "bili", "albumin", "platelet", "protime", "stage"]]
    rows = rows.assign(sex=rows["sex"].astype(str).astype(object))
    source = pd.concat([rows, table[unknown]], axis=1)[in_trial].reset_index(drop=True)
    target = rows[~in_trial].reset_index(drop=True)
    return PanelProblem(source, died[in_trial], target, died[~in_trial])


OPEN: dict[str, Callable[[], PanelProblem]] = {
    "NHANES": nhanes,
    "bank": partial(DEVELOPMENT["bank"], 0),
}
CLOSED: dict[str, Callable[[], PanelProblem]] = {
    "shoppers": partial(EVALUATION["shoppers"], 0),
    "heart": partial(EVALUATION["heart, VA"], 0),
    "PBC": pbc,
    "reviews": partial(EVALUATION["reviews, films to electronics"], 0),
}


def chosen_problems(tables: str | None, evaluation: bool) -> Iterator[tuple[str, PanelProblem]]:
    """Go through the named problems, or through the public tables dealt out as open or closed."""
    if tables is not None:
        yield from public_tables(closed=tables == "closed")
        return
    for name, make in (CLOSED if evaluation else OPEN).items():
        yield name, make()


def drawn(labels: Any, count: int, draw: int) -> Known:
    """Return so many rows, at least two of each class among them; None where there are too few."""
    if not count:
        return np.arange(len(labels))
    random = np.random.default_rng([draw, count])
    for _ in range(1_000):
        rows = random.permutation(len(labels))[:count]
        if count < len(labels) and np.bincount(labels[rows], minlength=2).min() >= LEAST:
            return np.sort(rows)
    return None


# --- what others would do -------------------------------------------------------------------


def numbers(problem: PanelProblem) -> tuple[Floats, Floats]:
    """Return the shared columns of source and target as scaled numbers, by all source rows."""
    shared = problem.source[problem.target.columns]
    read = prepared(scaled=True).fit(shared)
    return read.transform(shared), read.transform(problem.target)


def alone(make: Callable[[int], Any]) -> NetworkVariant:
    """Learn from the labelled rows alone."""

    def predict(problem: PanelProblem, known: Known, seed: int) -> Floats:
        rows, asked = numbers(problem)
        model = make(seed).fit(rows[known], problem.labels[known])
        return in_all_classes(model, asked, problem.labels)

    return predict


def logistic(seed: int) -> Any:
    return LogisticRegression(C=0.1, max_iter=1_000)


def spread(make: Callable[[int], Any]) -> NetworkVariant:
    """Learn from all source rows, those without a label marked by -1."""

    def predict(problem: PanelProblem, known: Known, seed: int) -> Floats:
        rows, asked = numbers(problem)
        labels = np.full(len(rows), -1)
        labels[known] = problem.labels[known]
        said = in_all_classes(make(seed).fit(rows, labels), asked, problem.labels)
        shares = np.bincount(problem.labels[known], minlength=said.shape[1]) / len(known)
        return np.where(np.isnan(said), shares, said)  # rows that no label spread to

    return predict


def imputed(make: Callable[[int], Any]) -> NetworkVariant:
    """Predict the missing columns, learned on all complete rows; then LightGBM on both."""

    def predict(problem: PanelProblem, known: Known, seed: int) -> Floats:
        rows, asked = numbers(problem)
        absent = problem.source[problem.source.columns.difference(problem.target.columns)]
        missing = prepared(scaled=True).fit_transform(absent)
        filled = make(seed).fit(rows, missing).predict(asked).reshape(len(asked), -1)
        both = np.hstack([rows, missing])
        model = boosted(seed).fit(both[known], problem.labels[known])
        return in_all_classes(model, np.hstack([asked, filled]), problem.labels)

    return predict


def trees_of_each(seed: int) -> Any:
    from lightgbm import LGBMRegressor

    return MultiOutputRegressor(LGBMRegressor(random_state=seed, verbose=-1, n_jobs=1))


def the_three(problem: PanelProblem, known: Known, seed: int) -> Floats:
    found = [alone(make)(problem, known, seed) for make in (logistic, boosted, forest)]
    return np.mean(found, axis=0)


# --- ours -----------------------------------------------------------------------------------


def on_labelled_rows(problem: PanelProblem, known: Known, seed: int) -> Floats:
    """Fit our default on the labelled rows, as if there were no others."""
    model = HalfSeenClassifier(random_state=seed)
    source = problem.source.iloc[known].reset_index(drop=True)
    model.fit(source, problem.labels[known], X_target=problem.target)
    return model.predict_proba(problem.target)


class Distilled(NamedTuple):
    """What members say of the target that learned from labels alone, and from either teachers."""

    alone: Floats
    control: Floats
    students: Floats
    believed: float


def taught(problem: PanelProblem, known: Known, seed: int) -> Distilled:
    """Fit the same learners on labels alone, and on what teachers on x1 or on all columns say.

    The last problem's answers are kept: several methods are made of them.
    """
    key = id(problem), known.tobytes(), seed
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = fitted(problem, known, seed)
    return _KEPT[key]


_KEPT: dict[Any, Distilled] = {}


def fitted(problem: PanelProblem, known: Known, seed: int) -> Distilled:
    found = read_rows(problem, known)
    kind, whole = found.target_type, found.whole
    labelled = Sample(whole.inputs[known], problem.labels[known])
    others = np.delete(whole.inputs, known, axis=0)
    task = TrainingJob(found.blocks, kind, labelled, found.target, seed)
    learners = [LEARNERS[name]() for name in TREES_AND_REGRESSION]
    soft = soft_labels_of_few(task, others)

    def answer(task: TrainingJob, learners: Sequence[Learner]) -> Floats:
        answers = [
            kind.to_predictions(learner.fit(task).raw_prediction(found.target))
            for learner in learners
        ]
        return np.mean(answers, axis=0)

    students = [of_soft_labels(learner) for learner in learners]
    return Distilled(
        answer(task, learners),
        answer(
            student_job(task, others, soft.control, soft.beyond_control),
            students,
        ),
        answer(student_job(task, others, soft.complete, soft.beyond), students),
        soft.believed,
    )


def mixed(problem: PanelProblem, known: Known, seed: int) -> Floats:
    """Answer by students as far as they are believed, for the rest by labels alone."""
    if len(known) == len(problem.labels):
        return on_labelled_rows(problem, known, seed)
    found = taught(problem, known, seed)
    return found.believed * found.students + (1.0 - found.believed) * found.alone


def read_rows(problem: PanelProblem, known: Known) -> Any:
    """Prepare all rows as a fit does, whatever their labels.

    Readers want a label in each row: those that are not known are drawn from those that are.
    """
    labels = np.random.default_rng(0).choice(problem.labels[known], len(problem.labels))
    labels[known] = problem.labels[known]
    source, target = read_frame(problem.source, "the source"), read_frame(problem.target, "it")
    _, column = label_column(labels, len(source))
    missing = [name for name in problem.source if name not in problem.target]
    found = infer_frames(source, column, target, missing=missing, keep=None, fewest=1)
    return prepared_tables(found, FitSettings(members="regression", measure=False))


VARIANTS: dict[str, NetworkVariant] = {
    "logistic regression": alone(logistic),
    "LightGBM": alone(boosted),
    "random forest": alone(forest),
    "the three": the_three,
    "SelfTrainingClassifier": spread(lambda seed: SelfTrainingClassifier(forest(seed))),
    "LabelSpreading": spread(lambda seed: LabelSpreading(kernel="knn", max_iter=200)),
    "ridge to x2, LightGBM": imputed(lambda seed: Ridge(10.0)),
    "boosted trees to x2, LightGBM": imputed(trees_of_each),
    "halfseen, labelled rows": on_labelled_rows,
    "labels alone": lambda *given: taught(*given).alone,
    "self-training": lambda *given: taught(*given).control,
    "students alone": lambda *given: taught(*given).students,
    "halfseen": mixed,
}
"""The last four have the same learners: what is between them is what x2 and evidence bring."""


# --- log, table, figure ---------------------------------------------------------------------


def lines(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Measure what the log does not hold yet."""
    keys = ("name", "labels", "draw", "method")
    done = {tuple(line[key] for key in keys) for line in lines(arguments.output)}
    for name, problem in chosen_problems(arguments.tables, arguments.evaluation):
        if arguments.problems and name not in arguments.problems:
            continue
        for draw in range(arguments.draws):
            for count in arguments.labels:
                known = drawn(problem.labels, count, draw)
                for method in arguments.methods if known is not None else ():
                    key = dict(zip(keys, (name, count, draw, method), strict=True))
                    if tuple(key.values()) in done:
                        continue
                    line = key | measured(VARIANTS[method], problem, known, draw)
                    with arguments.output.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(line, flush=True)


def measured(
    method: NetworkVariant, problem: PanelProblem, known: Known, seed: int
) -> dict[str, Any]:
    """Return the score (AUC of two classes, accuracy of more), cross-entropy and seconds."""
    began = time.perf_counter()
    try:
        said = method(problem, known, seed)
    except HalfseenError as error:
        return {"score": None, "refused": str(error)}
    took = time.perf_counter() - began
    score = (auc if said.shape[1] == 2 else accuracy)(said, problem.truth)
    loss = float(row_losses(said, problem.truth).mean())
    return {
        "score": round(100.0 * float(score or np.nan), 2),
        "cross_entropy": round(loss, 4),
        "seconds": round(took, 2),
    }


def means(found: Sequence[dict[str, Any]]) -> dict[tuple[str, int, str], float]:
    """Return each method's mean over draws; without one where a draw was refused."""
    scores: dict[tuple[str, int, str], list[float]] = {}
    for line in found:
        score = np.nan if line["score"] is None else line["score"]
        scores.setdefault((line["name"], line["labels"], line["method"]), []).append(score)
    return {key: float(np.mean(values)) for key, values in scores.items()}


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return a table for each named problem, and one of the public tables together."""
    score = means(found)
    names = list(dict.fromkeys(name for name, _, _ in score))
    parts = [curve_table(name, score) for name in names if "/" not in name]
    public = [name for name in names if "/" in name]
    return "\n\n".join(parts + ([public_table(public, score)] if public else []))


def curve_table(name: str, score: dict[tuple[str, int, str], float]) -> str:
    counts = [count for count in COUNTS if any(key[:2] == (name, count) for key in score)]
    rows = [f"| {name} | " + " | ".join(str(count or "all") for count in counts) + " |"]
    rows.append("|---" * (1 + len(counts)) + "|")
    for method in VARIANTS:
        values = [score.get((name, count, method), np.nan) for count in counts]
        if not np.isnan(values).all():
            cells = ["-" if np.isnan(value) else f"{value:.1f}" for value in values]
            rows.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def public_table(names: Sequence[str], score: dict[tuple[str, int, str], float]) -> str:
    """Return means over tables, and how each method stands to labels alone and self-training."""
    controls = ("labels alone", "self-training")
    rows = ["| labels | method | mean | against labels alone | self-training | better | worst |"]
    rows.append("|---" * 7 + "|")
    for count in COUNTS:
        for method in VARIANTS:
            every = np.array(
                [[score.get((n, count, m), np.nan) for m in (method, *controls)] for n in names]
            )
            every = every[~np.isnan(every).any(1)]
            if not len(every):
                continue
            own, lead = every[:, 0], every[:, :1] - every[:, 1:]
            better = lead.min(axis=1)
            cells = [f"{own.mean():.2f}", *(f"{each:+.2f}" for each in lead.mean(0))]
            cells += [f"{better.mean():+.2f}", f"{better.min():+.1f}"]
            rows.append(f"| {count or 'all'} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + f"\n\n{len(names)} tables."


def figure(found: Sequence[dict[str, Any]], output: Path) -> None:
    """Draw learning curves, a problem beside the other."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    score = means(found)
    names = list(dict.fromkeys(name for name, _, _ in score if "/" not in name))
    shown = ("halfseen", "self-training", "labels alone", "LightGBM", "ridge to x2, LightGBM")
    picture, axes = pyplot.subplots(1, len(names), figsize=(4.5 * len(names), 3.5), squeeze=False)
    for name, axis in zip(names, axes[0], strict=True):
        for method in shown:
            counts = [c for c in COUNTS if c and (name, c, method) in score]
            axis.plot(counts, [score[name, c, method] for c in counts], marker="o", label=method)
        # With all labels both are one.
        whole = score.get((name, 0, "halfseen"), score.get((name, 0, "halfseen, labelled rows")))
        if whole is not None:
            axis.axhline(whole, color="grey", linestyle=":", label="halfseen, all labels")
        axis.set(title=name, xscale="log", xlabel="labelled rows", ylabel="AUC on the target, %")
    axes[0][0].legend(fontsize=7)
    picture.tight_layout()
    picture.savefig(output, dpi=150)


@cache
def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    made.add_argument("--output", type=Path, required=True, help="log, a run on a line")
    made.add_argument("--problems", nargs="+", help="some of them, by name")
    made.add_argument("--tables", choices=("open", "closed"), help="public tables instead")
    made.add_argument("--evaluation", action="store_true", help="problems that are looked at once")
    made.add_argument("--methods", nargs="+", default=[*VARIANTS], choices=[*VARIANTS])
    made.add_argument("--labels", nargs="+", type=int, default=[*COUNTS], help="0 for all")
    made.add_argument("--draws", type=int, default=5)
    made.add_argument("--table", action="store_true", help="print what is there")
    made.add_argument("--figure", type=Path, help="draw what is there")
    return made


def main() -> None:
    arguments = parser().parse_args()
    if arguments.table:
        print(table(lines(arguments.output)))
    elif arguments.figure:
        figure(lines(arguments.output), arguments.figure)
    else:
        warnings.simplefilter("ignore")
        run(arguments)


if __name__ == "__main__":
    main()
