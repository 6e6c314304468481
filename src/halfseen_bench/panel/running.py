"""Run methods on the problems of the panel; each result becomes a line of JSON at once."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from halfseen.errors import InputError, OptionError
from halfseen_bench.metrics import measured
from halfseen_bench.panel.methods import BASELINES, OURS, Predict
from halfseen_bench.panel.problems import DEVELOPMENT, EVALUATION, PanelProblem

Record = dict[str, Any]


def read_records(log: Path) -> list[Record]:
    """Return the results that a log holds; none where there is no log."""
    if not log.exists():
        return []
    try:
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except ValueError:
        raise InputError(f"{log} is no log of the panel; give another with -o.") from None


def run_panel(
    log: Path,
    *,
    problems: Sequence[str] = (),
    ours: Sequence[str] = (),
    seeds: int = 1,
    evaluation: bool = False,
) -> Iterator[Record]:
    """Run what the log does not hold yet, all baselines included, and yield each new result.

    The log has a line of JSON per problem, method and seed. `evaluation` runs the problems that are
    only looked at once a version is finished, instead of the others.
    """
    known = EVALUATION if evaluation else DEVELOPMENT
    loaders = named_in(known, problems, "--problems")
    chosen = named_in(OURS, ours, "--ours")
    methods = BASELINES | {f"halfseen, {name}": predict for name, predict in chosen.items()}
    done = {(r["problem"], r["method"], r["seed"]) for r in read_records(log)}
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    for seed in range(seeds):
        for problem, load in loaders.items():
            waiting = [name for name in methods if (problem, name, seed) not in done]
            if not waiting:
                continue
            data = load(seed)
            for name in waiting:
                record = {"problem": problem, "method": name, "seed": seed}
                record |= measured_run(methods[name], data, seed)
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                yield record


def named_in(known: Mapping[str, Any], names: Sequence[str], option: str) -> dict[str, Any]:
    """Return what is named, all of it where nothing is."""
    for name in names:
        if name not in known:
            raise OptionError(f"{option} {name}: there are {'; '.join(known)}.")
    return {name: known[name] for name in names or known}


def measured_run(predict: Predict, data: PanelProblem, seed: int) -> Record:
    """Return every metric of a method on a problem, and its seconds."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probability = predict(data.source, data.labels, data.target, seed)
    seconds = round(time.perf_counter() - started, 1)
    found = measured(probability, data.truth) | {"seconds": seconds}
    return found if data.regret is None else found | {"regret": data.regret(probability)}
