"""`python -m torture`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import torture
from torture.run import table_of
from torture.run import torture as run


def main() -> None:
    parser = argparse.ArgumentParser(description=(torture.__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="of each class, at most")
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument("--failures", type=Path, default=Path("torture-failures"))
    given = parser.parse_args()
    show = partial(print, file=sys.stderr, flush=True)
    found = run(given.seed, given.seconds, given.failures, given.cases, given.only, show)
    print(table_of(found))
    sys.exit(any(tally.failed for tally in found.values()))


if __name__ == "__main__":
    main()
