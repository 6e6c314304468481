"""Few labels on the public tables of `many_tables.py`; named problems: `halfseen bench few-labels`.

python benchmarks/few_labels.py --output log.jsonl --labels 50 100 --draws 3
python benchmarks/few_labels.py --output log.jsonl --closed
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from pathlib import Path

from many_tables import problems

from halfseen.errors import HalfseenError
from halfseen_bench.panel.few_labels import METHODS, few_table, run_few
from halfseen_bench.panel.running import read_records

CONTROLS = [name for name in METHODS if name.startswith("halfseen")]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="log, a run on a line")
    parser.add_argument("--closed", action="store_true", help="tables that are looked at once")
    parser.add_argument("--methods", nargs="+", default=CONTROLS, choices=[*METHODS])
    parser.add_argument("--labels", nargs="+", type=int, default=[50, 100], help="0 for all")
    parser.add_argument("--draws", type=int, default=1, help="0 prints what is there")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, problem in problems(chosen.closed) if chosen.draws else ():
        with contextlib.suppress(HalfseenError):  # a table that is asked about is left out
            for record in run_few(
                chosen.output,
                {name: lambda seed, problem=problem: problem},
                methods=chosen.methods,
                labels=chosen.labels,
                draws=chosen.draws,
            ):
                print(record, flush=True)
    print(few_table(read_records(chosen.output)))


if __name__ == "__main__":
    main()
