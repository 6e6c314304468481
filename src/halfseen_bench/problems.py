"""Problems by name: which reader gives them, with which options, and how much of the source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from halfseen.errors import InputError
from halfseen_bench.data import DomainPair
from halfseen_bench.data.catalog import data_folder, family
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.data.simulator import Scenario, simulate

Kind = Literal["image", "table", "demo", "curve"]
"""What a budget's epochs depend on; ``curve`` is for images whose source may be tiny."""


class BenchProblem(BaseModel):
    """A problem as data."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """As tables and ``--pairs`` have it, for instance ``usps:mnist``."""
    family: str
    """One of ``halfseen data list``, or ``demo``."""
    source: str = ""
    target: str = ""
    kind: Kind = "table"
    """Which of a budget's lengths of training applies."""
    reader: dict[str, Any] = {}
    """Options of the family's reader; its ``seed`` is the run's unless it is given here."""
    source_rows: tuple[int | None, ...] = (None,)
    """How many labelled source rows are used; None is all of them."""
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What tables print; the first one is the one that counts, and that the oracle looks at."""

    def having(self, **options: Any) -> BenchProblem:
        """Return the problem with some options of the reader replaced."""
        return self.model_copy(update={"reader": {**self.reader, **options}})


class LoadedProblem(NamedTuple):
    """A problem in memory; `regret` is there where the best possible prediction is known."""

    pair: DomainPair
    regret: Callable[[npt.ArrayLike], float] | None = None


def load_problem(
    problem: BenchProblem,
    *,
    seed: int,
    source_rows: int | None = None,
    data_dir: Path | None = None,
) -> LoadedProblem:
    """Read a problem; the seed fixes splits, subsets and what is missing by chance."""
    options = {"seed": seed, **problem.reader}
    regret = None
    if problem.family == "demo":
        pair = demo_pair(options["seed"])
    elif problem.family == "ads-sim":
        simulation = simulate(Scenario.of(options))
        pair, regret = simulation.pair, simulation.truth.regret
    else:
        reader = family(problem.family).reader
        pair = reader.load_pair(data_folder(data_dir), problem.source, problem.target, **options)
    if source_rows is not None:
        pair = with_source_rows(pair, source_rows, seed)
    return LoadedProblem(pair, regret)


def with_source_rows(pair: DomainPair, rows: int, seed: int) -> DomainPair:
    """Return the pair with so many source training rows, each class in its proportion.

    Smaller choices are parts of larger ones under the same seed, so that a learning curve adds
    rows and never exchanges them. A source that has no more rows than that is left as it is.
    """
    source = pair.source_train
    if rows >= len(source):
        return pair
    classes = np.unique(source.labels)
    if rows < len(classes):
        raise InputError(f"{rows} source rows cannot show the {len(classes)} classes of a problem.")
    random = np.random.default_rng(seed)
    place = np.empty(len(source))
    for label in classes:
        members = random.permutation(np.flatnonzero(source.labels == label))
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    order = np.argsort(place, kind="stable")
    # Every class is seen at least once, whatever its share.
    first = np.array([order[np.argmax(source.labels[order] == label)] for label in classes])
    others = order[~np.isin(order, first)]
    chosen = np.sort(np.concatenate([first, others])[:rows])
    return replace(pair, source_train=source[chosen])
