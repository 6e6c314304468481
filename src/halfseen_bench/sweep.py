"""From a suite to its runs, and from a run to its records: the one runner of all suites."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from halfseen.errors import InputError, OptionError
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import Options
from halfseen.presets import Preset
from halfseen_bench.baselines import BASELINES
from halfseen_bench.budgets import Budget
from halfseen_bench.metrics import measured, named
from halfseen_bench.models import EPOCH_SCORES, Record, fit_and_measure
from halfseen_bench.problems import BenchProblem, LoadedProblem, load_problem
from halfseen_bench.provenance import circumstances, watched
from halfseen_bench.runner import Result, SweepTask, packed, read_log, run_tasks
from halfseen_bench.scaling import standardized
from halfseen_bench.suites import BOTH, SUITES, Suite, Variant, starting_options

LOG = "runs.jsonl"
"""The file in an output folder that holds a sweep."""


class SweepRun(BaseModel):
    """Everything that determines one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    problem: BenchProblem
    source_rows: int | None
    model: str
    divergence: str | None
    variant: str
    seed: int
    budget: str
    preset: str
    options: dict[str, Any]
    """As plain data: a log outlives the names of options."""
    score_rows: int
    evaluations: int = Field(validation_alias=AliasChoices("evaluations", "looks"))
    """Logs of version 0.1 call it ``looks``."""

    @cached_property
    def key(self) -> str:
        """Name the run for people, and tell it from the same name under other settings."""
        parts = [self.suite, self.problem.name, self.model]
        parts += [part for part in (self.divergence, self.variant) if part]
        parts += [f"{self.source_rows} rows"] if self.source_rows is not None else []
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        return "/".join([*parts, f"seed {self.seed}", digest])


@dataclass(frozen=True)
class Selection:
    """What of a suite is run; an empty field is all of it."""

    pairs: tuple[str, ...] = ()  # a pair is also meant by its name before ``@``
    models: tuple[str, ...] = ()  # or baselines, or ``models`` or ``baselines`` for all of them
    divergences: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: int | None = None  # how many, from first_seed on; the budget's number by default
    first_seed: int = 0
    reader: Mapping[str, Any] = field(default_factory=dict)  # such as ``side="top"``
    options: Mapping[str, Any] = field(default_factory=dict)  # which make a variant of that name
    preset: Preset = "default"


class Plan(NamedTuple):
    """The runs of a sweep, and the baselines that were left out with the reason."""

    runs: list[SweepRun]
    left_out: list[str]


def plan_runs(suite: Suite, budget: Budget, selection: Selection | None = None) -> Plan:
    """Return every run of a suite, those of one problem and seed next to each other."""
    selection = selection or Selection()
    models, baselines, left_out = _models(suite, selection)
    divergences = _chosen("divergence", selection.divergences, BOTH, suite.divergences)
    wanted = [(name, None, Variant()) for name in baselines] + [
        (name, divergence, variant)
        for name in models
        for variant in _variants(suite, selection)
        for divergence in (divergences if variant_named(name).adapts else (None,))
    ]
    runs = []
    for problem in (budget.problem(p) for p in _problems(suite, selection)):
        made: list[dict[str, Any]] = []
        for name, divergence, variant in wanted:
            imputes = name in models and variant_named(name).imputes
            start = starting_options(
                selection.preset, problem, divergence=divergence, imputes=imputes
            )
            options = suite.options(problem, variant, budget, start)
            made.append(options.model_dump(mode="json"))
        seeds = selection.seeds or budget.seeds[problem.kind]
        runs += [
            SweepRun(
                suite=suite.name,
                problem=problem.model_copy(update={"source_rows": (source_rows,)}),
                source_rows=source_rows,
                model=name,
                divergence=divergence,
                variant=variant.name,
                seed=seed,
                budget=budget.name,
                preset=selection.preset,
                options=options,
                score_rows=budget.score_rows,
                evaluations=budget.evaluations,
            )
            for seed in range(selection.first_seed, selection.first_seed + seeds)
            for source_rows in problem.source_rows
            for (name, divergence, variant), options in zip(wanted, made, strict=True)
        ]
    return Plan(runs, left_out)


def run_suite(
    plan: Plan,
    output: Path,
    *,
    data_dir: Path | None = None,
    jobs: int | None = None,
    title: str = "running",
    quiet: bool = False,
) -> tuple[list[Result], list[str]]:
    """Run a plan into ``runs.jsonl`` of a folder; return results and sentences of failures."""
    where = None if data_dir is None else str(data_dir.absolute())
    tasks = [
        SweepTask(run.key, {"run": run.model_dump(), "data_dir": where, "output": str(output)})
        for run in plan.runs
    ]
    return run_tasks(tasks, run_one, output / LOG, jobs=jobs, title=title, quiet=quiet)


def read_results(folder: Path, suite: Suite, pairs: Sequence[str] = ()) -> list[Result]:
    """Return a suite's finished runs in the order of the suite, whatever order they ended in."""
    log = folder / LOG
    if not log.exists() and not packed(log).exists():
        raise InputError(f"{log} does not exist; run `halfseen bench run {suite.name}` first.")
    every = [r for r in read_log(log).values() if r.get("run", {}).get("suite") == suite.name]
    found = [
        (run, result)
        for run, result in zip(map(run_of, every), every, strict=True)
        if not pairs or any(_means(pair, run.problem.name) for pair in pairs)
    ]
    names = [problem.name for problem in suite.problems]
    models = [*(method.name for method in VARIANTS), *BASELINES]
    variants = [variant.name for variant in suite.variants]
    if not found:
        of = f" for {', '.join(pairs)}" if pairs else ""
        raise InputError(f"{log} holds no finished run of {suite.name}{of}.")

    def place(entry: tuple[SweepRun, Result]) -> tuple[Any, ...]:
        run = entry[0]
        rows = run.source_rows if run.source_rows is not None else float("inf")
        of_problem = _position(run.problem.name, names), rows, models.index(run.model)
        of_variant = _position(run.variant, variants), run.variant, run.divergence or ""
        return *of_problem, *of_variant, run.seed, run.key

    return [result for _, result in sorted(found, key=place)]


def run_of(result: Result) -> SweepRun:
    """Return what determined a result, or say that this version cannot infer_schema it."""
    try:
        return SweepRun(**result["run"])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"A run of the log cannot be understood ({place}: {first['msg']}); it was written by "
            "another version of halfseen."
        ) from None


def run_one(run: dict[str, Any], data_dir: str | None, output: str) -> Result:
    """Fit and measure one run; return its records, its history and its circumstances."""
    made = SweepRun(**run)
    with watched() as seen:
        loaded = _loaded(made, None if data_dir is None else Path(data_dir))
        history: list[dict[str, Any]] = []
        if made.model in BASELINES:
            records = _measured_baseline(made, loaded)
        else:
            records, history = fit_and_measure(
                standardized(loaded.pair) if made.preset == "default" else loaded.pair,
                variant_named(made.model),
                Options.model_validate(made.options),
                seed=made.seed,
                scores=EPOCH_SCORES if made.score_rows else (),
                score_rows=made.score_rows,
                evaluations=made.evaluations,
                oracle=made.problem.metrics[0],
                regret=loaded.regret,
                latents=_pictured(made, Path(output)),
            )
    framing = made.problem.reader.get("framing")  # of digits
    missing = loaded.pair.card.missing.rstrip(".")
    shared = {
        "suite": made.suite,
        "pair": made.problem.name,
        "variant": made.variant,
        "budget": made.budget,
        "preset": made.preset,
        "layout": f"{missing}; framing {framing}." if framing else f"{missing}.",
        "source_rows": len(loaded.pair.source_train),
    }
    return {
        "records": [{**shared, **found} for found in records],
        "history": history,
        "run": made.model_dump(mode="json"),
        "rows": loaded.pair.card.counts,
        **circumstances(),
        **seen,
    }


def latents_file(output: Path, run: SweepRun) -> Path:
    """Return where a run's latents are kept for a picture: no two runs share a file."""
    digest = run.key.rpartition("/")[2]
    words = (run.problem.name, run.model, run.divergence or "", run.variant, digest)
    name = "-".join(word for word in words if word)
    return output / f"latents-{name.replace(':', '-').replace('/', '-').replace(' ', '-')}.npz"


_KEPT: dict[tuple[str, int, int | None], LoadedProblem] = {}
"""The problem that this process read last: neighbouring runs share it."""


def _loaded(run: SweepRun, data_dir: Path | None) -> LoadedProblem:
    key = (run.problem.model_dump_json(), run.seed, run.source_rows)
    if key not in _KEPT:
        _KEPT.clear()  # before the next one is read: two may not fit
        _KEPT[key] = load_problem(
            run.problem, seed=run.seed, source_rows=run.source_rows, data_dir=data_dir
        )
    return _KEPT[key]


def _measured_baseline(run: SweepRun, loaded: LoadedProblem) -> list[Record]:
    baseline = BASELINES[run.model]
    probability = baseline.predict(loaded.pair, run.seed, Options.model_validate(run.options))
    found: dict[str, Any] = measured(probability, loaded.pair.target_test_labels.open("evaluation"))
    if loaded.regret is not None:
        found["regret"] = loaded.regret(probability)
    about = {"model": run.model, "divergence": None, "refined": False, "seed": run.seed}
    labels = {"epoch_choice": "last", "uses_target_labels": baseline.uses_target_labels}
    return [about | labels | found]


def _pictured(run: SweepRun, output: Path) -> Path | None:
    """Keep latents of the first seed where the suite draws them."""
    draws = run.suite in SUITES and "latents" in SUITES[run.suite].figures
    return latents_file(output, run) if draws and not run.variant and run.seed == 0 else None


def _position(name: str, names: Sequence[str]) -> int:
    """Return the place of a name, or one behind all of them."""
    return names.index(name) if name in names else len(names)


def _problems(suite: Suite, selection: Selection) -> Iterator[BenchProblem]:
    names = [problem.name for problem in suite.problems]
    for pair in selection.pairs:
        if not any(_means(pair, name) for name in names):
            raise OptionError(f"{suite.name} has no pair {pair!r}; it has {', '.join(names)}.")
    for problem in suite.problems:
        if not selection.pairs or any(_means(pair, problem.name) for pair in selection.pairs):
            yield problem.having(**selection.reader)


def _means(pair: str, name: str) -> bool:
    return pair in (name, name.partition("@")[0])


def _models(suite: Suite, selection: Selection) -> tuple[list[str], list[str], list[str]]:
    """Return models, baselines, and sentences on baselines that cannot run here."""
    models, baselines = list(suite.models), list(suite.baselines)
    if selection.models:
        known = [method.name for method in VARIANTS]
        wanted: list[str] = []
        for name in selection.models:
            if name in ("models", "baselines"):
                wanted += suite.models if name == "models" else suite.baselines
            elif name in known or name in BASELINES:
                wanted.append(name)
            else:
                raise OptionError(
                    f"There is no model {name!r}; there are models, baselines, "
                    f"{', '.join((*known, *BASELINES))}."
                )
        models = [name for name in dict.fromkeys(wanted) if name in known]
        baselines = [name for name in dict.fromkeys(wanted) if name in BASELINES]
    absent = [n for n in baselines if (of := BASELINES[n].needs) and not find_spec(of)]
    left_out = [
        f"{name} is left out: it comes from {BASELINES[name].needs}, which is not installed "
        "(pip install 'halfseen-bench[baselines]')."
        for name in absent
    ]
    return models, [name for name in baselines if name not in absent], left_out


def _variants(suite: Suite, selection: Selection) -> list[Variant]:
    names = tuple(variant.name or "plain" for variant in suite.variants)
    wanted = _chosen("variant", selection.variants, names, names)
    changes = ", ".join(f"{name}={value}" for name, value in selection.options.items())
    return [
        Variant(
            name=", ".join(part for part in (variant.name, changes) if part),
            settings={**variant.settings, **selection.options},
        )
        for variant in suite.variants
        if (variant.name or "plain") in wanted
    ]


def _chosen(
    what: str, given: Sequence[str], known: Sequence[str], default: Sequence[str]
) -> tuple[str, ...]:
    return tuple(named(what, name, {n: n for n in known}) for name in given) or tuple(default)
