"""Time and memory of the data readers: ``python benchmarks/data_readers.py digits|criteo|amazon``.

The real files are read from $HALFSEEN_DATA. Peak memory is the process's own, so run one case at
a time.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import shutil
import tempfile
import time
from itertools import permutations
from pathlib import Path
from typing import get_args

from halfseen_bench.data import amazon, criteo, digits
from halfseen_bench.data.ceiling import ceiling
from halfseen_bench.data.criteo_parquet import convert
from halfseen_bench.data.official import content


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def time_digits(root: Path, source: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as cache:
        if "mnistm" in (source, target):
            start = time.perf_counter()
            digits.load_pair(root, source, target, max_train=1, max_test=1, cache=Path(cache))
            print(f"MNIST-M made once: {time.perf_counter() - start:.1f} s")
        before, start = peak_megabytes(), time.perf_counter()
        pair = digits.load_pair(root, source, target, cache=Path(cache))
        seconds = time.perf_counter() - start
    arrays = [pair.source_train.inputs, pair.source_test.inputs, pair.target_train]
    arrays += [pair.target_test, *pair.complete_target.open("their size")]
    held = sum(a.nbytes // (3 if a.strides[1] == 0 else 1) for a in arrays) / 1e6
    print(
        f"{pair.name}: {sum(pair.card.counts.values())} images in {seconds:.1f} s; arrays hold "
        f"{held:.0f} MB; peak {peak_megabytes():.0f} MB, {before:.0f} MB before"
    )


def time_criteo(root: Path, rows: int, packed: bool) -> None:
    (sample,) = (root / "criteo").glob("train.txt*")
    lines = content(sample).splitlines(keepends=True)
    folder = Path(tempfile.mkdtemp())
    try:
        text = folder / ("train.txt.gz" if packed else "train.txt")
        with gzip.open(text, "wb", 1) if packed else text.open("wb") as file:
            for first in range(0, rows, len(lines)):
                file.writelines(lines[: rows - first])
        del lines
        before, start = peak_megabytes(), time.perf_counter()
        state = convert(text, folder / "parquet", progress=False)
        seconds = time.perf_counter() - start
        print(
            f"convert: {state.rows} rows ({text.stat().st_size / 1e6:.0f} MB {text.name}) in "
            f"{seconds:.1f} s, {state.rows / seconds:.0f} rows/s, {len(state.parts)} parts; "
            f"peak {peak_megabytes():.0f} MB, {before:.0f} MB before"
        )
        start = time.perf_counter()
        pair = criteo.load_pair(root, parquet=folder / "parquet")
        print(
            f"load_pair: {pair.card.counts} in {time.perf_counter() - start:.1f} s; "
            f"peak {peak_megabytes():.0f} MB"
        )
    finally:
        shutil.rmtree(folder)


def print_ceilings(root: Path, rules: list[str], seed: int) -> None:
    """Print the ceiling of each rule: a logistic regression on x1 with the target's labels."""
    print("rule, weighting: " + ", ".join(f"{s[0]}->{t[0]}" for s, t in _amazon_pairs()))
    for rule in rules:
        for weighting in ("binary", "tfidf"):
            scores = [
                ceiling(amazon.load_pair(root, s, t, rule=rule, weighting=weighting, seed=seed))
                for s, t in _amazon_pairs()
            ]
            print(f"{rule}, {weighting}: " + " ".join(f"{100 * s:.0f}" for s in scores), flush=True)


def _amazon_pairs() -> list[tuple[str, str]]:
    return list(permutations(amazon.DOMAINS, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    digit_command = commands.add_parser("digits")
    digit_command.add_argument("source", choices=digits.DOMAINS)
    digit_command.add_argument("target", choices=digits.DOMAINS)
    criteo_command = commands.add_parser("criteo")
    criteo_command.add_argument("--rows", type=int, default=2_000_000)
    criteo_command.add_argument("--packed", action="store_true", help="convert a .gz")
    amazon_command = commands.add_parser("amazon", help="ceilings of each rule")
    amazon_command.add_argument("--rule", nargs="+", default=get_args(amazon.Rule))
    amazon_command.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    root = Path(os.environ["HALFSEEN_DATA"])
    if options.command == "digits":
        time_digits(root, options.source, options.target)
    elif options.command == "criteo":
        time_criteo(root, options.rows, options.packed)
    else:
        print_ceilings(root, options.rule, options.seed)


if __name__ == "__main__":
    main()
