"""Where the seconds go from ``halfseen fit`` typed to the prompt back.

    HALFSEEN_DATA=... python benchmarks/answer.py --output answer.jsonl
    python benchmarks/answer.py --output answer.jsonl --table
    python benchmarks/answer.py --output answer.jsonl --figure docs/images/answer.png
    python benchmarks/answer.py --output growth.jsonl --growth --figure docs/images/growth.png

Every fit is the command in a process of its own, on one thread, and once more on all cores by the
clock. A timer of processor time stops it
200 times a second, and the time since the last stop is given to the stage that the outermost known
room on the stack belongs to. So figures are processor seconds, which other work on the machine
hardly touches, and a room that is renamed falls under "the rest" instead of breaking anything.
Beside each stands LightGBM as one would call it: read both tables, fit on the shared columns,
predict. Importing the estimator and showing the help come first, each the least of three.
`--growth` fits made-up tables of more and more rows, columns, classes and members; `--problems`
fits development problems of the table panel and measures them too (two versions side by side).
`--members-of` says how many rows a second each member of a model answers about.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

USUAL = ("heart", "10000x50")
GROWTH = {
    "rows": ("1000x20", "2000x20", "4000x20", "8000x20", "16000x20", "32000x20"),
    "columns": ("4000x10", "4000x20", "4000x40", "4000x80", "4000x160"),
    "classes": ("4000x20", "4000x20x4", "4000x20x8", "4000x20x16"),
    "members": ("4000x20x2x1", "4000x20x2x2", "4000x20x2x3", "4000x20x2x4"),
}
MEMBERS = ("regression", "boosted_trees", "forest", "networks")
"""Which members two, three and four are: the first of these."""
STARTS = {
    "import of the estimator": "from halfseen import HalfSeenClassifier",
    "halfseen --help": "import sys; sys.argv = ['halfseen', '--help']\n"
    "from halfseen.cli import main; main()",
}
STAGES = {
    "importlib": "importing",
    "halfseen.data.table_files": "reading, kinds of columns",
    "halfseen.preprocessor": "reading, kinds of columns",
    "halfseen.alarms": "alarms",
    "halfseen.distillation": "teachers",
    "halfseen.members.aligned": "drift and its maps",
    "halfseen.fitting.drift": "drift and its maps",
    "halfseen.fitting.prepared_rows": "rows and folds",
    "halfseen.members.network_members": "networks",
    "halfseen.networks": "networks",
    "halfseen.members.trees": "trees",
    "halfseen.members.linear": "regression",
    "halfseen.fitting.held_out": "measuring and weighing",
    "halfseen.weights": "measuring and weighing",
    "halfseen.report": "facts for the report",
    "halfseen.saving": "saving",
}
REST = "the rest"
EVERY = 0.005
YARDSTICK = """
import sys, lightgbm, pandas
read = pandas.read_parquet
source, target = read(sys.argv[1]), read(sys.argv[2])
shared = [name for name in target if target[name].dtype.kind in "fibu"]
model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1).fit(source[shared], source["label"])
model.predict_proba(target[shared])
"""


def stage_of(frame: Any) -> str:
    """Return the stage of the outermost known room; imports count as such wherever they are."""
    found = REST
    while frame is not None:
        room = frame.f_globals.get("__name__", "")
        if room.startswith("importlib"):
            return STAGES["importlib"]
        for name, stage in STAGES.items():
            if room == name or room.startswith(f"{name}."):
                found = stage
        frame = frame.f_back
    return found


def watched(*command: str) -> None:
    """Run a command of halfseen in this process; print the processor seconds of each stage."""
    seconds: Counter[str] = Counter()
    last = 0.0

    def note(number: int, frame: Any) -> None:
        nonlocal last
        now = time.process_time()
        seconds[stage_of(frame)] += now - last
        last = now

    signal.signal(signal.SIGPROF, note)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    sys.argv = ["halfseen", *command]
    from halfseen.cli.app import main

    try:
        main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        note(0, None)
        print(json.dumps(seconds), file=sys.stderr)


def run(*command: object, one_thread: bool = True) -> tuple[float, str]:
    """Run a program; return its processor seconds and the last line it printed."""
    names = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL")]
    threads = dict.fromkeys(names, "1") if one_thread else {}
    rest = {name: value for name, value in os.environ.items() if name not in names}
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=rest | threads,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(said)
    return usage.ru_utime + usage.ru_stime, said.strip().rpartition("\n")[2]


def write_case(case: str, folder: Path) -> None:
    """Write source.parquet and target.parquet: a natural problem, or made-up numbers."""
    pairs = {"heart": "cleveland:hungarian", "gas": "batches1-2:batch3"}
    if case in pairs:
        run("-m", "halfseen", "data", "export", case, pairs[case], "-o", folder)
        return
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet

    rows, columns, *rest = map(int, case.split("x"))
    classes = rest[0] if rest else 2  # a fourth number is one of members
    missing = columns // 5
    for seed, name in enumerate(("source", "target")):
        random = np.random.default_rng(seed)
        known = random.normal(0.3 * seed, 1.0, (rows, columns - missing)).astype(np.float32)
        hidden = known[:, :missing] + random.normal(0.0, 1.0, (rows, missing))
        table = {f"x{i}": column for i, column in enumerate(known.T)}
        if name == "source":
            table |= {f"m{i}": column for i, column in enumerate(hidden.T)}
            score = known[:, 0] + hidden[:, 0] + random.normal(0.0, 1.0, rows)
            table["label"] = np.argsort(np.argsort(score)) * classes // rows
        pa.parquet.write_table(pa.table(table), folder / f"{name}.parquet")


def measured(case: str, effort: str, *, alone: bool = False) -> dict[str, Any]:
    """Return what a fit costs, and unless it is measured alone, what stands beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_case(case, folder)
        tables = folder / "source.parquet", folder / "target.parquet"
        command = ["fit", *tables, "--label", "label", "--effort", effort, "-o", folder / "model"]
        if case.count("x") == 3:
            command += ["--members", ",".join(MEMBERS[: int(case[-1])])]
        seconds, stages = run(__file__, "--watch", *command)
        record = {
            "case": case,
            "effort": effort,
            "seconds": round(seconds, 2),
            "stages": {name: round(value, 3) for name, value in json.loads(stages).items()},
        }
        if alone:
            return record
        begun = time.perf_counter()
        run("-m", "halfseen", *command, "--force", one_thread=False)
        clock = time.perf_counter() - begun
        yardstick, _ = run("-c", YARDSTICK, *tables)
        return record | {"clock": round(clock, 2), "lightgbm": round(yardstick, 2)}


def of_problem(name: str, seed: int) -> dict[str, Any]:
    """Fit a development problem with trees and regression; measure on its target's labels."""
    import numpy as np
    from sklearn.metrics import log_loss, roc_auc_score

    from halfseen import HalfSeenClassifier
    from halfseen_bench.panel.problems import DEVELOPMENT

    problem = DEVELOPMENT[name](seed)
    members = ["boosted_trees", "forest", "regression"]
    model = HalfSeenClassifier(members=members, random_state=seed)
    begun = time.process_time()
    model.fit(problem.source, problem.labels, X_target=problem.target)
    seconds, said = time.process_time() - begun, model.predict_proba(problem.target)
    truth = np.searchsorted(model.classes_, problem.truth)
    return {
        "case": name,
        "seed": seed,
        "seconds": round(seconds, 2),
        "cross_entropy": float(log_loss(truth, said, labels=range(said.shape[1]))),
        "accuracy": float((said.argmax(1) == truth).mean()),
        "auc": float(roc_auc_score(truth, said[:, 1])) if said.shape[1] == 2 else None,
    }


def of_members(folder: Path, rows: int = 65_536) -> dict[str, Any]:
    """Return how many made-up rows a processor second the model and each member answer about.

    The best of five, after one that loads what it needs; and of sixteen times as many by the clock,
    on as many cores as OMP_NUM_THREADS allows.
    """
    import numpy as np

    from halfseen.model.loading import load

    model = load(folder)
    inputs = np.random.default_rng(0).normal(size=(rows, model.blocks.length)).astype(np.float32)

    def speed(answer: Any, inputs: Any, clock: Any) -> int:
        answer(inputs)
        spent = []
        for _ in range(5):
            begun = clock()
            answer(inputs)
            spent.append(clock() - begun)
        return round(len(inputs) / min(spent))

    calls = {member.kind: member.raw_prediction for member in model.members} | {"all": model.score}
    speeds = {name: speed(answer, inputs, time.process_time) for name, answer in calls.items()}
    by_the_clock = speed(model.score, np.tile(inputs, (16, 1)), time.perf_counter)
    return {"case": "rows a second", **speeds, "clock": by_the_clock}


def print_table(records: list[dict[str, Any]]) -> None:
    for record in [r for r in records if "stages" not in r]:
        print(f"{record['case']}: {record['seconds']:.2f} processor seconds\n")
    records = [record for record in records if "stages" in record]
    names = dict.fromkeys([*STAGES.values(), REST])
    print("|  |", " | ".join(f"{r['case']}, {r['effort']}" for r in records), "|")
    print("|---|" + "---:|" * len(records))
    for name in names:
        print(f"| {name} |", " | ".join(f"{r['stages'].get(name, 0):.1f}" for r in records), "|")
    print("| **in all** |", " | ".join(f"**{r['seconds']:.1f}**" for r in records), "|")
    print("| by the clock, all cores |", " | ".join(f"{r['clock']:.1f}" for r in records), "|")
    print("| LightGBM alone |", " | ".join(f"{r['lightgbm']:.1f}" for r in records), "|")


def draw_growth(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(GROWTH), figsize=(9, 3), sharey=True, layout="constrained"
    )
    for place, (name, cases) in enumerate(GROWTH.items()):
        numbers = [int([*case.split("x"), "2"][list(GROWTH).index(name)]) for case in cases]
        for effort in dict.fromkeys(r["effort"] for r in records):
            found = {r["case"]: r["seconds"] for r in records if r["effort"] == effort}
            known = [(n, found[c]) for n, c in zip(numbers, cases, strict=True) if c in found]
            axes[place].plot(*zip(*known, strict=True), "o-", label=effort)
        axes[place].set(xlabel=name, xlim=(0, None))
    axes[0].set(ylabel="processor seconds, one thread", ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


def draw(records: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    records = [record for record in records if "stages" in record]
    figure, axes = pyplot.subplots(figsize=(8, 0.6 + 0.5 * len(records)), layout="constrained")
    names = [f"{r['case']}, {r['effort']}" for r in records]
    left = [0.0] * len(records)
    for place, stage in enumerate(dict.fromkeys([*STAGES.values(), REST])):
        widths = [r["stages"].get(stage, 0.0) for r in records]
        axes.barh(names, widths, left=left, label=stage, color=pyplot.get_cmap("tab20")(place))
        left = [before + width for before, width in zip(left, widths, strict=True)]
    axes.plot([r["lightgbm"] for r in records], names, "k|", markersize=16, label="LightGBM alone")
    axes.invert_yaxis()
    axes.set_xlabel("processor seconds, one thread")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)


def note(log: Path, record: dict[str, Any]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(json.dumps(record), flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--watch"]:
        watched(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="JSON lines, one per fit")
    parser.add_argument("--cases", nargs="+", default=USUAL, help="heart, gas, or ROWSxCOLUMNS")
    parser.add_argument("--efforts", nargs="+", default=["default", "quick"])
    parser.add_argument("--table", action="store_true", help="print what the file holds")
    parser.add_argument("--figure", type=Path, help="draw what the file holds")
    parser.add_argument("--growth", action="store_true", help="tables of more and more of all")
    parser.add_argument("--members-of", type=Path, help="a model folder, to answer about rows")
    parser.add_argument("--problems", nargs="+", help="of the panel's development problems")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    given = parser.parse_args()
    if given.members_of:
        note(given.output, of_members(given.members_of))
        return
    for problem, seed in itertools.product(given.problems or (), given.seeds):
        note(given.output, of_problem(problem, seed))
    if given.problems:
        return
    if given.table or (given.figure and given.output.exists()):
        records = [json.loads(line) for line in given.output.read_text().splitlines()]
        if given.table:
            print_table(records)
        if given.figure:
            (draw_growth if given.growth else draw)(records, given.figure)
        return
    cases = dict.fromkeys(c for cs in GROWTH.values() for c in cs) if given.growth else given.cases
    for case, code in ({} if given.growth else STARTS).items():
        note(given.output, {"case": case, "seconds": min(run("-c", code)[0] for _ in range(3))})
    for case in cases:
        for effort in given.efforts:
            note(given.output, measured(case, effort, alone=given.growth))


if __name__ == "__main__":
    main()
