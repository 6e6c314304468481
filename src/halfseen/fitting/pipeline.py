"""From prepared rows to a chosen, weighed and measured model: the one fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from halfseen.alarms import Alarm
from halfseen.alarms.table_alarms import (
    answer_alarms,
    copy_alarms,
    drift_alarms,
    leak_alarms,
    prediction_alarms,
    table_alarms,
    target_copy_alarms,
)
from halfseen.arrays import Floats, Matrix
from halfseen.data.preprocessors import ImagePreprocessor, Preprocessor, TablePreprocessor
from halfseen.data.schema_inference import FEWEST_TAUGHT, InferredTables
from halfseen.errors import InputError
from halfseen.evidence.risk import RiskEstimate
from halfseen.fitting.drift import SELF_TRAINED, Drift, aligned_learners, find_drift, select_maps
from halfseen.fitting.few_labels import Distilled
from halfseen.fitting.held_out import (
    HeldOut,
    ask,
    held_out_metrics,
    held_out_weights,
    target_risk,
)
from halfseen.fitting.member_training import Hooks, MemberTraining
from halfseen.fitting.prepared_rows import (
    PreparedRows,
    prepared_in_memory,
    prepared_tables,
)
from halfseen.members import NETWORKS, Aligned, AlignedLearner, Learner, Member, Sample, TrainingJob
from halfseen.model.model import Model
from halfseen.model.summaries import member_words
from halfseen.parallel import one_thread_if_small
from halfseen.settings import FitSettings
from halfseen.targets import class_name
from halfseen.weights import Weights

if TYPE_CHECKING:
    from halfseen.members.network_members import NetworksLearner
    from halfseen.networks.variants import NetworkVariant
    from halfseen.options import Inputs

FEWEST_TARGET_ROWS = 10
MOST_LOOKED_AT = 3_000
"""Target rows whose predictions may raise an alarm."""
RULE = (
    "lowest cross-entropy on held-out source rows, each weighted by how much more often its "
    "observed columns occur on the target (a domain classifier's odds); no target label is used"
)
"""How one of several models is chosen."""


def fit_tables(
    inferred: InferredTables, settings: FitSettings, hooks: Hooks | None = None
) -> FitResult:
    """Fit two tables whose columns are known; choose and weigh without target labels, measure."""
    target_type = inferred.schema.target_type
    settings.check("table", classes=target_type.networks)
    if inferred.target.rows < FEWEST_TARGET_ROWS:
        raise InputError(
            f"The target {inferred.target.table.where} has {inferred.target.rows} rows; at least "
            f"{FEWEST_TARGET_ROWS} are needed to adapt to it."
        )
    rows = prepared_tables(inferred, settings)
    if settings.value_of_missing:
        from halfseen.fitting.value_of_measuring import check_enough

        check_enough(rows.sample.labels, target_type)
    data = {
        "source": inferred.source.table.fingerprint() | {"rows": inferred.source.rows},
        "target": inferred.target.table.fingerprint() | {"rows": inferred.target.rows},
    }
    preprocessor = TablePreprocessor(inferred.schema)
    result = fit_rows(
        preprocessor, rows, settings, hooks, counts=inferred.class_counts, training_data=data
    )
    result.model.learn_gaps(rows.beside(rows.sample), rows.target)
    if settings.value_of_missing:
        from halfseen.fitting.value_of_measuring import value_of_measuring

        found = value_of_measuring(rows, inferred.schema, settings.seed)
        result.model.metrics["value_of_measuring"] = found.facts
        result.model.value_by_row = found.by_row
    alarms = [alarm.to_dict() for alarm in table_alarms(inferred)]
    result.model.metrics["alarms"] = alarms + result.model.metrics["alarms"]
    return result


def fit_images(
    preprocessor: ImagePreprocessor, source: Sample, target: Matrix, settings: FitSettings,
    hooks: Hooks | None = None, training_data: Mapping[str, Any] | None = None,
    unlabelled: Matrix | None = None,
) -> FitResult:  # fmt: skip
    """Fit images of both domains, prepared by their preprocessor; some may lack a label."""
    kind = preprocessor.target_type
    if unlabelled is not None and len(unlabelled) < FEWEST_TAUGHT * len(source):
        if hooks is not None:
            hooks.say(f"{len(unlabelled):,} images have no label: so few that they are left out.")
        unlabelled = None
    counts = kind.counts(source.labels)
    if unlabelled is not None and min(counts) == 1:
        name = class_name(preprocessor.classes[counts.index(1)])
        raise InputError(
            f"Of class {name!r} one image has a label; at least 2 are needed: label another one of "
            "it, or leave the class out."
        )
    weights = kind.class_weights(source.labels, source.weights, settings.class_weight)
    rows = prepared_in_memory(
        preprocessor.blocks,
        kind,
        replace(source, weights=weights),
        target,
        hold_out=settings.holds_out("image"),
        seed=settings.seed,
        thorough=settings.effort == "best",
        few=unlabelled is not None,
    )
    rows = rows.with_others(unlabelled)
    return fit_rows(preprocessor, rows, settings, hooks, training_data=training_data)


@dataclass(frozen=True)
class Candidate:
    """One network variant to choose: learners, members by fold and learner, held-out answers."""

    variant: NetworkVariant
    learners: tuple[Learner, ...]
    folds: tuple[tuple[tuple[Member, ...], ...], ...] = ()
    held_out: HeldOut | None = None

    def risk(self, weights: Floats) -> RiskEstimate:
        """Return the loss expected on the target."""
        assert self.held_out is not None
        return target_risk(self.held_out, weights)


@dataclass(frozen=True)
class FitResult:
    """A model, and what it came from."""

    model: Model
    rows: PreparedRows
    candidate: Candidate
    training: MemberTraining
    member_names: tuple[str, ...]

    @cached_property
    def weights(self) -> Floats:
        """How much more often each held-out row occurs on the target."""
        return held_out_weights(self.rows)

    def with_labels(self, labelled: Sample) -> Model:
        """Return the model as labelled target rows advise."""
        training = self.training
        job = training.job(self.candidate.variant, None, self.rows.sample)
        names = [learner.name for learner in self.candidate.learners]
        kinds = list(dict.fromkeys(name.partition(",")[0] for name in names))
        from halfseen.fitting.target_labels import with_target_labels

        return with_target_labels(self.model, self.member_names, labelled, job, kinds)


def fit_rows(
    preprocessor: Preprocessor,
    rows: PreparedRows,
    settings: FitSettings,
    hooks: Hooks | None = None,
    *,
    counts: Sequence[int] | None = None,
    training_data: Mapping[str, Any] | None = None,
) -> FitResult:
    """Fit prepared rows: every candidate on every fold, then the chosen one on all.

    `preprocessor` says how the rows were prepared; the model prepares others in the same way, and
    keeps the fingerprints in `training_data`. `counts` are source rows of each class, where not
    all of them are at hand.
    """
    inputs: Inputs = "table" if rows.blocks.is_table else "image"
    settings.check(inputs, classes=rows.target_type.networks)
    cells = 2**62 if rows.whole is None else rows.whole.inputs.size + rows.target.size
    with one_thread_if_small(cells if inputs == "table" else 2**62):
        fitting = _Fitting(
            preprocessor, rows, settings, hooks or Hooks(), inputs, dict(training_data or {})
        )
        return fitting.run(
            rows.target_type.counts(rows.sample.labels) if counts is None else counts
        )


@dataclass
class _Fitting:
    """What the steps of one fit share."""

    preprocessor: Preprocessor
    rows: PreparedRows
    settings: FitSettings
    hooks: Hooks
    inputs: Inputs
    training_data: dict[str, Any]

    def run(self, counts: Sequence[int]) -> FitResult:
        """Look for drift, fit every candidate on the folds, choose, fit again, weigh, measure."""
        distance = self._distance()
        tells = self.rows.target_type.answers_tell
        drift = distance if distance is not None and distance.of_instruments and tells else None
        if self.settings.time_limit is not None and self.inputs == "image":
            self.settings = self._within(self.settings.time_limit)
        training = MemberTraining(
            self.rows,
            self.settings,
            self.hooks,
            self.inputs,
            {"data": self.training_data, "preprocessor": self.preprocessor.to_dict()},
            distils=self.settings.distils(self.inputs) and drift is None,
            # Members behind maps are judged one by one.
            seeds=self.settings.seeds if drift is None else 1,
        )
        left_out = self._unaffordable(training, drift)
        variants = self._variants(self._learners(self._all_variants[0], drift, left_out))
        candidates = [
            self._candidate(training, variant, self._learners(variant, drift, left_out))
            for variant in variants
        ]
        chosen, choice = self._choose(candidates)
        groups, trained_on = self._final_members(training, chosen)
        names = [learner.name for learner in chosen.learners]
        start = training.start(chosen.learners)
        weights = Weights.equal(len(groups)) if start is None else Weights(start)
        metrics: dict[str, Any] = {}
        if chosen.held_out is not None:
            metrics = held_out_metrics(chosen.held_out, names, lambda: held_out_weights(self.rows))
            # Where columns have drifted, source rows do not tell which member to trust.
            if len(groups) > 1 and drift is None:
                weights = chosen.held_out.weights()
        if drift is not None:
            aligned = [each for each in chosen.learners if isinstance(each, AlignedLearner)]
            members, counted, metrics["alignment"] = select_maps(
                drift,
                aligned,
                tuple(member for (member,) in groups),
                self.rows.sample,
                self.rows.target,
                self.rows.target_type,
                self.rows.blocks,
            )
            weights, groups = Weights(counted), [(member,) for member in members]
            names = [Aligned.kind, SELF_TRAINED][: len(members)]
        if len(groups) > 1:
            metrics["weights"] = dict(zip(names, weights.members, strict=True))
        metrics |= self._facts(training, chosen, counts, left_out)
        metrics["trained_on"] = trained_on
        metrics |= {"choice": choice} if choice else {}
        # Members of one group share its weight.
        shared = [weight / len(g) for weight, g in zip(weights.members, groups, strict=True)]
        each = [share for share, group in zip(shared, groups, strict=True) for _ in group]
        model = Model(
            self.preprocessor,
            tuple(member for group in groups for member in group),
            replace(weights, members=tuple(each)),
            self.settings.seed,
            metrics,
            self.training_data,
        )
        member_names = tuple(n for n, g in zip(names, groups, strict=True) for _ in g)
        result = FitResult(model, self.rows, chosen, training, member_names)
        if self.rows.labelled is not None:
            result = replace(result, model=result.with_labels(self.rows.labelled))
        result.model.metrics["alarms"] = self._alarms(result.model, distance)
        return result

    @property
    def _all_variants(self) -> tuple[NetworkVariant, ...]:
        return self.settings.variants(self.inputs)

    def _distance(self) -> Drift | None:
        """Say how far target rows are from source rows, and whether columns must be mapped."""
        settings, rows, kind = self.settings, self.rows, self.rows.target_type
        kinds = settings.members_for(self.inputs, classes=kind.networks)
        others = [name for name in kinds if name != NETWORKS]
        if not (settings.align and settings.preset == "default" and others):
            return None
        complete = rows.beside(rows.sample)
        drift = find_drift(rows.measured, complete, rows.target, rows.blocks.observed)
        if drift is not None and drift.of_instruments:
            mapped = (
                f"{len(drift.columns)} columns are mapped in several ways, and networks are left "
                "out"
                if kind.answers_tell
                else "columns are not mapped, because amounts do not tell which map is right"
            )
            self.hooks.say(
                f"Target rows are {drift.distance.times:.1f} times as far from source rows as "
                f"those are from each other: {mapped}."
            )
        return drift

    def _variants(self, learners: Sequence[Learner]) -> tuple[NetworkVariant, ...]:
        """Return the variants to choose from: those of images answer together, as the first."""
        variants = self._all_variants
        if self.inputs == "image":
            return variants[:1]
        if len(variants) > 1 and NETWORKS not in [learner.name for learner in learners]:
            self.hooks.say("The models differ in their networks, which have no part in this fit.")
            return variants[:1]
        return variants

    def _learners(
        self, variant: NetworkVariant, drift: Drift | None, left_out: frozenset[str] = frozenset()
    ) -> tuple[Learner, ...]:
        classes = self.rows.target_type.networks
        learners = self.settings.learners(variant, inputs=self.inputs, classes=classes)
        learners = tuple(each for each in learners if each.name not in left_out)
        if drift is None and "teachers" not in left_out and self._distils_few:
            others = [each for each in learners if each.name != NETWORKS]
            learners += tuple(map(Distilled, others))
        return (
            learners
            if drift is None
            else aligned_learners(learners, drift, self.rows.sample.inputs)
        )

    @property
    def _distils_few(self) -> bool:
        return self.settings.distils(self.inputs) and self.rows.unlabelled is not None

    def _unaffordable(self, training: MemberTraining, drift: Drift | None) -> frozenset[str]:
        """Return what is left out of a table's members to keep to a time limit, and say so."""
        seconds = self.settings.time_limit
        if seconds is None or self.inputs == "image":
            return frozenset()
        left_out = training.unaffordable(self._learners(self._all_variants[0], drift), seconds)
        if left_out:
            kind = type(self.rows.target_type)
            words = ", ".join(member_words(name, kind) for name in sorted(left_out))
            self.hooks.say(f"Left out, to keep to {seconds:g} s: {words}.")
        return left_out

    def _within(self, seconds: float) -> FitSettings:
        """Return the settings with as many steps as a time limit leaves to each training."""
        settings, rows = self.settings, self.rows
        (networks,) = settings.learners(self._all_variants[0], inputs="image")
        inputs = rows.beside(rows.sample)
        sample = Sample(inputs, np.resize(rows.sample.labels, len(inputs)))
        job = TrainingJob(rows.blocks, rows.target_type, sample, rows.target, settings.seed)
        trainings = len(self._all_variants) * settings.seeds
        trainings *= len(rows.folds) + rows.refits_networks
        if rows.unlabelled is not None:
            trainings += 2 * max(len(rows.folds), 1)  # teachers, which see whole images and do not
        steps = cast("NetworksLearner", networks).steps_within(job, seconds / trainings)
        self.hooks.say(f"{steps:,} steps of each training keep to {seconds:g} s.")
        return settings.with_steps(steps)

    def _candidate(
        self, training: MemberTraining, variant: NetworkVariant, learners: tuple[Learner, ...]
    ) -> Candidate:
        """Fit the members on each fold and note what they say of the rows held out."""
        if not self.rows.folds:
            return Candidate(variant, learners)
        by_fold = tuple(
            training.members(learners, number, fold.training)
            for number, fold in enumerate(self.rows.folds)
        )
        asked = [
            ask(members, self.rows, fold)
            for members, fold in zip(by_fold, self.rows.folds, strict=True)
        ]
        held_out = replace(HeldOut.joined(asked), start=training.start(learners))
        return Candidate(variant, learners, by_fold, held_out)

    def _choose(self, candidates: Sequence[Candidate]) -> tuple[Candidate, dict[str, Any]]:
        """Return the candidate with the lowest estimated risk, and how it was chosen."""
        if len(candidates) == 1:
            return candidates[0], {}
        weights = held_out_weights(self.rows)
        risks = [candidate.risk(weights).risk for candidate in candidates]
        names = [candidate.variant.name for candidate in candidates]
        chosen = candidates[int(np.argmin(risks))]
        self.hooks.say(f"Chosen: {chosen.variant.name}, by the {RULE}.")
        by_name = dict(zip(names, risks, strict=True))
        return chosen, {"rule": RULE, "weighted_cross_entropy": by_name}

    def _final_members(
        self, training: MemberTraining, chosen: Candidate
    ) -> tuple[list[tuple[Member, ...]], str]:
        """Return what answers in the end for each learner, and the rows it learned from.

        Members are fitted again on all source rows where those are at hand. Networks take long:
        those of several folds answer together instead, and one of many rows stays as it is.
        """
        rows, learners = self.rows, chosen.learners
        groups = [
            tuple(member for members in chosen.folds for member in members[k])
            for k in range(len(learners))
        ]
        if rows.whole is None:
            return groups, "the source rows that were not held out"
        again = [
            k
            for k, learner in enumerate(learners)
            if rows.refits_networks or learner.name != NETWORKS
        ]
        fitted = training.members([learners[k] for k in again], None, rows.whole)
        for k, members in zip(again, fitted, strict=True):
            groups[k] = members
        trained_on = "all source rows"
        if rows.folds:
            trained_on += ", after measuring on those held out"
        if len(again) < len(learners):
            several = f", {len(rows.folds)} of them together" if len(rows.folds) > 1 else ""
            trained_on += f"; networks on those that were not held out{several}"
        return groups, trained_on

    def _facts(
        self,
        training: MemberTraining,
        chosen: Candidate,
        counts: Sequence[int],
        left_out: frozenset[str],
    ) -> dict[str, Any]:
        """Return what else the metrics of a model keep."""
        kind, settings, sample = self.rows.target_type, self.settings, self.rows.sample
        facts: dict[str, Any] = {"task": kind.task}
        if self.settings.holds_out(self.inputs) and not self.rows.folds and counts:
            facts["unmeasured"] = f"Class {self._class_names[int(np.argmin(counts))]!r}"
        if training.gain:
            facts["teaching"] = training.gain
        if training.few_labels:
            few = "few_labels" if self.rows.blocks.is_table else "few_images"
            facts[few] = training.few_labels
        if training.seeds > 1:
            facts["seeds"] = training.seeds
        if settings.time_limit is not None:
            facts["time_limit"] = {"seconds": settings.time_limit, "left_out": sorted(left_out)}
        is_image = self.inputs == "image"
        if is_image and settings.options_for(chosen.variant, inputs="image").training.balanced:
            constant = np.full(len(counts), 1.0 / len(counts))
        elif sample.weights is None and counts:
            constant = np.array(counts) / sum(counts)
        else:
            constant = kind.constant(sample.labels, sample.weights)
        facts[kind.constant_name] = constant.tolist()
        if counts:
            facts["class_counts"] = dict(zip(self._class_names, counts, strict=True))
        return facts

    @property
    def _class_names(self) -> list[str]:
        return [class_name(value) for value in self.preprocessor.classes]

    def _alarms(self, model: Model, distance: Drift | None) -> list[dict[str, Any]]:
        """Return what looks wrong with the rows and with what is predicted of the target's."""
        rows, target = self.rows, self.rows.target
        some = target[np.random.default_rng(0).permutation(len(target))[:MOST_LOOKED_AT]]
        predictions, preprocessor = model.score(some), self.preprocessor
        alarms: list[Alarm] = []
        if isinstance(preprocessor, TablePreprocessor):
            schema, whole = preprocessor.schema, rows.whole
            if whole is not None and rows.measured is not None and rows.folds:
                alarms += copy_alarms(whole.inputs, whole.labels, rows.measured.positions)
                alarms += leak_alarms(schema, whole.inputs, whole.labels)
            if rows.unlabelled is not None and rows.measured is not None:
                alarms += target_copy_alarms(
                    rows.blocks.hide(rows.unlabelled), target, rows.measured.positions
                )
        if distance is not None:
            alarms += drift_alarms(*distance.distance)
        if isinstance(preprocessor, TablePreprocessor):
            alarms += answer_alarms(preprocessor.schema, predictions, model.metrics)
        else:
            alarms += prediction_alarms(
                predictions, model.metrics["class_prior"], self._class_names
            )
        return [alarm.to_dict() for alarm in alarms]
