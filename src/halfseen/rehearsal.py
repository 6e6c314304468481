"""A rehearsal on the user's own data: the whole pipeline where labels and missing block are known.

A slice of the source plays the target. Models are trained on the rest and measured on the slice,
and so are the scores that choose between models without labels. Of several sources each plays the
target in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.data.label_column import row_weights
from halfseen.data.preprocessing import Chunk, RowStream
from halfseen.data.preprocessors import TablePreprocessor
from halfseen.data.schema import TableSchema
from halfseen.data.schema_inference import InferredTables
from halfseen.data.tables import PooledTable, Table, each_site
from halfseen.errors import InputError
from halfseen.evidence.features import Carving, carve_pseudo_target
from halfseen.evidence.risk import SCORES, agreement
from halfseen.fitting.member_training import Hooks
from halfseen.fitting.pipeline import fit_rows
from halfseen.fitting.prepared_rows import Fold, PreparedRows
from halfseen.members import NETWORKS, Sample
from halfseen.model.model import Model
from halfseen.progress import Progress
from halfseen.selection import Evidence, Observed, score_of, scores_for
from halfseen.settings import FitSettings
from halfseen.splitting import held_out_count
from halfseen.targets import LABEL_KINDS, ClassTarget, TargetType

TAUGHT, UNTAUGHT = "Members taught by the missing block", "Members of the observed columns"
MOST_ROWS = 10_000
"""Rows of each table that a rehearsal reads, unless told otherwise."""
HELD_OUT = 0.2
"""Share of the rest that no model is trained on."""
FEWEST = 5
"""Rows of each class that the rest must have."""


@dataclass(frozen=True)
class RehearsedRun:
    """One model with one seed: how it did on the slice, and what the scores said before."""

    model: str
    seed: int
    measured: dict[str, float | None]
    scores: dict[str, float]


@dataclass(frozen=True)
class RehearsedChoice:
    """The model that a label-free score prefers, and what it loses to the best on the slice."""

    score: str
    model: str
    lost: float


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal found: every run, and what each score would have chosen, the best first.

    `site` played the target, where it was one of several.
    """

    carving: Carving
    runs: tuple[RehearsedRun, ...]
    choices: tuple[RehearsedChoice, ...]
    site: str = ""
    task: str = ClassTarget.task

    @property
    def target_type(self) -> type[TargetType]:
        return LABEL_KINDS[self.task]

    @property
    def measures(self) -> dict[str, str]:
        """What was measured, in words, what decides first."""
        kind = self.target_type
        names = dict.fromkeys([kind.loss, *self.runs[0].measured])
        return {name: kind.measures[name].words for name in names if name in kind.measures}

    def mean(self, model: str, metric: str) -> float:
        """Return a model's mean on the slice over the seeds; NaN where it is not defined."""
        values = [run.measured[metric] for run in self.runs if run.model == model]
        return float(np.mean(np.array(values, dtype=np.float64)))

    def loss(self, model: str) -> float:
        return self.mean(model, self.target_type.loss)

    def deviation(self, model: str) -> float:
        """Return the loss's standard deviation over the seeds; NaN for a single one."""
        loss = self.target_type.loss
        values = [run.measured[loss] for run in self.runs if run.model == model]
        return float(np.std(np.array(values), ddof=1)) if len(values) > 1 else float("nan")

    @property
    def models(self) -> tuple[str, ...]:
        """The models, the lowest loss first."""
        return tuple(sorted(dict.fromkeys(run.model for run in self.runs), key=self.loss))

    @property
    def verdict(self) -> str:
        best, second, gap = self._lead()
        least = min(choice.lost for choice in self.choices)
        right = ", ".join(choice.score for choice in self.choices if choice.lost <= least)
        found = f"choosing by {right} would have found it"
        if least > 0:
            found = f"no score would have found it, and {right} would have lost {shown(least)}"
        words = self.measures[self.target_type.loss]
        ahead = f"{shown(gap)} in {words} ahead of {second}"
        return f"{best} would have won on the slice, {ahead}; {found}."

    @property
    def trust(self) -> str:
        best, second, gap = self._lead()
        noise = np.nanmax([0.0, self.deviation(best), self.deviation(second)])
        wanted, obtained = self.carving.wanted.auc, self.carving.obtained.auc
        seeds = len({run.seed for run in self.runs})
        parts = []
        if seeds < 2:
            parts.append("One seed does not tell how much of the lead is chance.")
        elif gap < 2 * noise:
            parts.append(
                f"The lead is within twice the standard deviation over {seeds} seeds "
                f"({shown(noise)}): take the two as equal."
            )
        if abs(wanted - obtained) > 0.05:
            word = "smaller" if obtained < wanted else "larger"
            parts.append(
                f"The rehearsed shift is {word} than the true one (AUC {obtained:.2f} against "
                f"{wanted:.2f})."
            )
        parts.append(
            f"{self.site} is another site: what differs between your sites is in these figures; "
            "what is new on the target is not."
            if self.site
            else "The slice comes from the source: that the missing block or the labels follow "
            "from the observed columns in another way on the target cannot be seen here."
        )
        return " ".join(parts)

    def _lead(self) -> tuple[str, str, float]:
        """Return the best model, the second, and how far its loss is behind."""
        best, second = self.models[:2]
        return best, second, self.loss(second) - self.loss(best)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the slice's rows, as data."""
        chosen, separation = self.carving.chosen, (self.carving.wanted, self.carving.obtained)
        return {
            "task": self.task,
            "rows": {"slice": int(chosen.sum()), "rest": int((~chosen).sum())},
            "separation": dict(zip(("target", "slice"), map(asdict, separation), strict=True)),
            "runs": [asdict(run) for run in self.runs],
            "choices": [asdict(choice) for choice in self.choices],
            "verdict": self.verdict,
            "trust": self.trust,
        }


@dataclass(frozen=True)
class RehearsalStage:
    """The rest, split, and the slice."""

    schema: TableSchema
    fold: Fold
    slice: Sample

    @classmethod
    def of(
        cls, schema: TableSchema, source: Sample, chosen: npt.NDArray[np.bool_], seed: int
    ) -> RehearsalStage:
        """Hold out a part of the rest, class by class, or of all sizes of amounts."""
        rest, kind = np.flatnonzero(~chosen), schema.target_type
        labels = source.labels[rest]
        counts = kind.counts(labels)
        if min(counts, default=FEWEST) < FEWEST:
            raise InputError(
                f"Outside the slice there are {min(counts)} source rows of class "
                f"{schema.class_names[int(np.argmin(counts))]!r}; a rehearsal needs {FEWEST} of "
                "each."
            )
        strata = kind.strata(labels)
        size = max(round(HELD_OUT * len(rest)), len(np.unique(strata)))
        training, held_out = held_out_count(strata, size, seed)
        fold = Fold(source[rest[training]], source[rest[held_out]])
        return cls(schema, fold, source[np.flatnonzero(chosen)])

    def fit(self, settings: FitSettings, hooks: Hooks) -> Model:
        """Fit one model for the slice as for a target, its labels and missing block unseen."""
        blocks, kind = self.schema.blocks, self.schema.target_type
        rows = PreparedRows(blocks, kind, blocks.hide(self.slice.inputs), None, [self.fold])
        return fit_rows(TablePreprocessor(self.schema), rows, settings, hooks).model

    def observed(self, model: Model) -> Observed:
        """Return what the scores can read off a fitted model, all rows of the slice in it."""
        parts = (self.fold.held_out, self.slice, self.fold.training)
        held_out, target, training = (self.schema.blocks.hide(part.inputs) for part in parts)
        labels, kind = self.fold.held_out.labels, self.schema.target_type
        return Observed(model, Evidence(held_out, labels, target, training, kind))

    def measured(self, name: str, seed: int, model: Model) -> RehearsedRun:
        """Ask the scores about a model, then the labels of the slice."""
        observed, kind = self.observed(model), self.schema.target_type
        scores = {score: score_of(score, observed) for score in scores_for(kind)}
        measured = kind.metrics_of(model.score(observed.evidence.target), self.slice.labels)
        del measured["rows"]
        return RehearsedRun(name, seed, measured, scores)


def rehearse(
    found: InferredTables,
    settings: FitSettings,
    *,
    repeats: int = 3,
    share: float = 1 / 3,
    rows: int = MOST_ROWS,
    progress: Callable[[str], Progress] = lambda title: Progress(),
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Rehearsal]:
    """Rehearse on two tables: train every model, measure models and scores where labels are known.

    Of one source a `share` of the rows is carved out to play the target, and the result stands
    under the empty name. Of several sources each plays the target in turn, the others are learned
    from, and results are by site. The :func:`candidates` of `settings` are trained beside the
    :func:`baselines`, `repeats` times with a seed each, on at most so many `rows` of each table.
    """
    table, observed = found.source.table, list(found.schema.blocks.observed)
    parts = [Sample(*_rows(site, found, rows, is_source=True)) for site in each_site(table)]
    inputs, labels = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("inputs", "labels")
    )
    source = Sample(inputs, labels, _weights(found, settings, labels))
    target, _ = _rows(found.target.table, found, rows, is_source=False)
    both = source.inputs[:, observed], target[:, observed]
    if not isinstance(table, PooledTable):
        carving = carve_pseudo_target(*both, share=share, random_state=settings.seed)
        return {"": _rehearsed(found, source, carving, settings, repeats, progress, say)}
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    results = {}
    for number, site in enumerate(table.sites):
        say(f"{site} plays the target:")
        carving = carve_pseudo_target(*both, chosen=owner == number, random_state=settings.seed)
        result = _rehearsed(found, source, carving, settings, repeats, progress, say)
        results[site] = replace(result, site=site)
    return results


def _rows(table: Table, found: InferredTables, most: int, *, is_source: bool) -> Chunk:
    summary = found.source if is_source else found.target
    return RowStream(table, found.schema, is_source=is_source).at_most(most, summary.rows)


def _weights(found: InferredTables, settings: FitSettings, labels: Any) -> Floats | None:
    """Return how much each source row counts, as a fit would have it."""
    schema, given = found.schema, None
    if schema.weight is not None:
        if len(labels) < found.source.rows:
            raise InputError(
                f"Column {schema.weight!r} weighs rows, and a rehearsal that reads a part of them "
                f"cannot: let it read all {found.source.rows:,} (--rows)."
            )
        given = row_weights(found.source.table, schema)
    return schema.target_type.class_weights(labels, given, settings.class_weight)


def _rehearsed(
    found: InferredTables,
    source: Sample,
    carving: Carving,
    settings: FitSettings,
    repeats: int,
    progress: Callable[[str], Progress],
    say: Callable[[str], None],
) -> Rehearsal:
    """Train every model on the rest, and measure models and scores on the slice."""
    stage = RehearsalStage.of(found.schema, source, carving.chosen, settings.seed)
    say(
        f"{len(stage.slice):,} source rows play the target, {len(stage.fold.training):,} are "
        f"trained on and {len(stage.fold.held_out):,} held out. A domain classifier tells the "
        f"slice from the rest with an AUC of {carving.obtained.auc:.3f}, and the target from the "
        f"source with {carving.wanted.auc:.3f}."
    )
    kind, runs = found.schema.target_type, list[RehearsedRun]()
    own_models, predicted = candidates(settings, kind), dict[str, list[Floats]]()
    for seed in range(settings.seed, settings.seed + repeats):
        for name, own in (own_models | baselines(kind)).items():
            hooks = Hooks(lambda _, title=f"{name}, seed {seed}": progress(title))  # type: ignore[misc]
            model = stage.fit(own.model_copy(update={"seed": seed}), hooks)
            run = stage.measured(name, seed, model)
            say(
                f"{name}, seed {seed}: {kind.measures[kind.loss].words} "
                f"{shown(run.measured[kind.loss])} on the slice."
            )
            runs.append(run)
            if name in own_models and kind.answers_tell:
                target = stage.observed(model).target_probabilities
                predicted.setdefault(name, []).append(target)
    return Rehearsal(carving, tuple(runs), _choices(runs, predicted, kind.loss), task=kind.task)


def candidates(settings: FitSettings, kind: TargetType) -> dict[str, FitSettings]:
    members = settings.members_for("table", classes=kind.networks)
    if NETWORKS in members:
        # All have the same members, also the one that alone would go without networks.
        names = [variant.name for variant in settings.variants("table")]
        return {
            name: settings.model_copy(update={"models": (name,), "members": members})
            for name in names
        }
    distilled = settings.model_copy(update={"models": None, "members": members})
    found = {} if settings.effort == "quick" else {TAUGHT: distilled}
    return found | {UNTAUGHT: distilled.model_copy(update={"effort": "quick"})}


def baselines(kind: TargetType) -> dict[str, FitSettings]:
    """Return what a user would pick instead: one member alone, taught by nobody."""
    alone = FitSettings(effort="quick", align=False)
    return {
        kind.linear_words.capitalize(): alone.model_copy(update={"members": ("regression",)}),
        "Gradient-boosted trees": alone.model_copy(update={"members": ("boosted_trees",)}),
    }


def shown(value: float | None) -> str:
    """Return a loss or a difference: of probabilities to four places, of amounts to four digits."""
    if value is None or value != value:
        return "–"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.4g}"


def _choices(
    runs: Sequence[RehearsedRun], predicted: dict[str, list[Floats]], measure: str
) -> tuple[RehearsedChoice, ...]:
    """Return what each score chooses among the models, the least loss first.

    `predicted` holds predictions of the models that are rehearsed, one for each seed.
    """
    names = list(dict.fromkeys(run.model for run in runs))
    own = [[run for run in runs if run.model == name] for name in names]
    loss = np.array([np.mean([run.measured[measure] for run in some]) for some in own])
    by_score = {
        score: [float(np.mean([run.scores[score] for run in some])) for some in own]
        for score in runs[0].scores
    }
    if predicted and all(len(several) > 1 for several in predicted.values()):
        by_score["agreement"] = [
            agreement(np.stack(predicted[name])) if name in predicted else float("nan")
            for name in names
        ]
    best = {score: SCORES[score].best(values) for score, values in by_score.items()}
    found = [RehearsedChoice(s, names[b], float(loss[b] - loss.min())) for s, b in best.items()]
    return tuple(sorted(found, key=lambda choice: choice.lost))
