"""From prepared rows to a chosen, weighed and measured model: the one fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from halfseen.alarms import Alarm
from halfseen.alarms.table_alarms import (
    answer_alarms,
    copy_alarms,
    drift_alarms,
    leak_alarms,
    prediction_alarms,
    table_alarms,
)
from halfseen.arrays import Floats
from halfseen.data.preprocessors import ImagePreprocessor, Preprocessor, TablePreprocessor
from halfseen.data.schema_inference import InferredTables
from halfseen.errors import InputError
from halfseen.evidence.risk import RiskEstimate
from halfseen.fitting.drift import Drift, aligned_learners, find_drift, select_maps
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
    prepared_samples,
    prepared_tables,
)
from halfseen.fitting.self_training import SELF_TRAINED
from halfseen.fitting.target_labels import with_target_labels
from halfseen.members import NETWORKS, Aligned, AlignedLearner, Learner, Member, Sample, TrainingJob
from halfseen.model.model import Model
from halfseen.model.summaries import member_words
from halfseen.networks.variants import NetworkVariant, variant_named
from halfseen.options import Inputs
from halfseen.parallel import one_thread_if_small
from halfseen.settings import FitSettings
from halfseen.weights import Weights

if TYPE_CHECKING:
    from halfseen.members.network_members import NetworksLearner

FEWEST_TARGET_ROWS = 10
MOST_LOOKED_AT = 3_000
"""Target rows whose predictions may raise an alarm."""
RULE = (
    "lowest cross-entropy on held-out source rows, each weighted by how much more often its "
    "observed columns occur on the target (a domain classifier's odds); no target label is used"
)
"""How one of several models is chosen."""


def is_resident(found: InferredTables, settings: FitSettings) -> bool:
    """Whether the prepared rows of both tables fit into the memory given to them."""
    rows = found.source.rows + found.target.rows
    return rows * len(found.schema.inputs) * 4 <= settings.memory


def fit_tables(found: InferredTables, settings: FitSettings, hooks: Hooks | None = None) -> Fit:
    """Fit two understood tables; choose among models without target labels, and measure."""
    settings.check("table", found.schema.target_type)
    if found.target.rows < FEWEST_TARGET_ROWS:
        raise InputError(
            f"The target {found.target.table.where} has {found.target.rows} rows; at least "
            f"{FEWEST_TARGET_ROWS} are needed to adapt to it."
        )
    if is_resident(found, settings):
        rows = prepared_tables(
            found,
            hold_out=settings.holds_out("table"),
            seed=settings.seed,
            thorough=settings.effort == "best",
            class_weight=settings.class_weight,
        )
    elif found.schema.weight is not None or settings.class_weight is not None:
        raise InputError(
            "Weights of rows and classes need the tables in memory, which does not hold these: "
            "give more memory, or leave the weights out."
        )
    else:
        rows = prepared_samples(found, seed=settings.seed, memory=settings.memory)
    data = {
        "source": found.source.table.fingerprint() | {"rows": found.source.rows},
        "target": found.target.table.fingerprint() | {"rows": found.target.rows},
    }
    preprocessor = TablePreprocessor(found.schema)
    fit = fit_rows(
        preprocessor, rows, settings, hooks, counts=found.class_counts, training_data=data
    )
    alarms = [alarm.to_dict() for alarm in table_alarms(found)]
    fit.model.metrics["alarms"] = alarms + fit.model.metrics["alarms"]
    return fit


def fit_images(
    preprocessor: ImagePreprocessor, source: Sample, target: npt.NDArray[np.float32],
    settings: FitSettings, hooks: Hooks | None = None,
    training_data: Mapping[str, Any] | None = None,
) -> Fit:  # fmt: skip
    """Fit images of both domains, prepared by their preprocessor."""
    kind = preprocessor.target_type
    weights = kind.class_weights(source.labels, source.weights, settings.class_weight)
    rows = prepared_in_memory(
        preprocessor.blocks,
        kind,
        replace(source, weights=weights),
        target,
        hold_out=settings.holds_out("image"),
        seed=settings.seed,
        thorough=settings.effort == "best",
    )
    return fit_rows(preprocessor, rows, settings, hooks, training_data=training_data)


def fit_rows(
    preprocessor: Preprocessor,
    rows: PreparedRows,
    settings: FitSettings,
    hooks: Hooks | None = None,
    *,
    counts: Sequence[int] | None = None,
    training_data: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit prepared rows: every candidate on every fold, then the chosen one.

    `preprocessor` says how the rows were prepared; the model prepares others in the same way, and
    keeps the fingerprints in `training_data`. `counts` are source rows of each class, where not
    all of them are at hand.
    """
    inputs: Inputs = "table" if rows.blocks.is_table else "image"
    settings.check(inputs, rows.target_type)
    cells = 2**62 if rows.whole is None else rows.whole.inputs.size + rows.target.size
    with one_thread_if_small(cells if inputs == "table" else 2**62):
        return Fit(
            preprocessor, rows, settings, hooks or Hooks(), inputs, counts, training_data or {}
        )


@dataclass(frozen=True)
class Candidate:
    """One of the models to choose from: members by fold and learner, and held-out answers."""

    method: NetworkVariant
    learners: tuple[Learner, ...]
    folds: tuple[tuple[tuple[Member, ...], ...], ...] = ()
    held_out: HeldOut | None = None

    def risk(self, weights: Floats) -> RiskEstimate:
        """Return the loss expected on the target."""
        assert self.held_out is not None
        return target_risk(self.held_out, weights)


class Fit:
    """One fit: its candidates, the chosen one, and the model that came of it."""

    def __init__(
        self,
        preprocessor: Preprocessor,
        rows: PreparedRows,
        settings: FitSettings,
        hooks: Hooks,
        inputs: Inputs,
        counts: Sequence[int] | None,
        training_data: Mapping[str, Any],
    ) -> None:
        self.preprocessor, self.rows, self.settings, self.hooks = (
            preprocessor,
            rows,
            settings,
            hooks,
        )
        self.training_data = dict(training_data)
        self._inputs, self._kind = inputs, rows.target_type
        self.counts = tuple(self._kind.counts(self._sample().labels) if counts is None else counts)
        self.far = self._far()
        aligned = self.far is not None and self.far.of_instruments and self._kind.answers_tell
        self.drift = self.far if aligned else None
        if settings.time_limit is not None and inputs == "image":
            settings = self.settings = self._hurried(settings.time_limit)
        identity = {"data": self.training_data, "preprocessor": preprocessor.to_dict()}
        teaches = settings.teaches(inputs) and self.drift is None
        # Members behind maps are judged one by one.
        self.seeds = settings.seeds if self.drift is None else 1
        self._trainings = MemberTraining(
            rows, settings, hooks, inputs, identity, teaches=teaches, seeds=self.seeds
        )
        self._left_out: frozenset[str] = frozenset()
        if settings.time_limit is not None and inputs == "table":
            self._left_out = self._unaffordable(settings.time_limit)
        self.candidates = [
            self._candidate(method, self._learners(method)) for method in self._methods()
        ]
        self.chosen, self.choice = self._chosen()
        self.model = self._model()

    @cached_property
    def weights(self) -> Floats:
        """How much more often each held-out row occurs on the target."""
        return held_out_weights(self.rows)

    def _sample(self) -> Sample:
        """Return all source rows, or a sample of them where memory does not hold them."""
        return self.rows.whole if self.rows.whole is not None else self.rows.folds[0].training

    def _far(self) -> Drift | None:
        """Say whether target rows are far from source rows, and whether columns must be mapped."""
        settings, rows = self.settings, self.rows
        kinds = settings.members_for(self._inputs, self._kind)
        others = [kind for kind in kinds if kind != NETWORKS]
        if not (settings.align and settings.preset == "default" and others):
            return None
        found = find_drift(rows.measured, self._sample().inputs, rows.target, rows.blocks.observed)
        if found is not None and found.of_instruments:
            mapped = (
                f"{len(found.columns)} columns are mapped in several ways, and networks are left "
                "out"
                if self._kind.answers_tell
                else "columns are not mapped, because amounts do not tell which map is right"
            )
            self.hooks.say(
                f"Target rows are {found.distance.times:.1f} times as far from source rows as "
                f"those are from each other: {mapped}."
            )
        return found

    def _methods(self) -> list[NetworkVariant]:
        """Return the models to choose from: they differ in their networks alone.

        Those of images answer together, under the first one's name.
        """
        methods = [variant_named(name) for name in self.settings.models]
        if self._inputs == "image":
            return methods[:1]
        kinds = [learner.name for learner in self._learners(methods[0])]
        if len(methods) > 1 and NETWORKS not in kinds:
            self.hooks.say("The models differ in their networks, which have no part in this fit.")
            return methods[:1]
        return methods

    def _learners(self, method: NetworkVariant) -> tuple[Learner, ...]:
        learners = self.settings.learners(method, inputs=self._inputs, target_type=self._kind)
        learners = tuple(each for each in learners if each.name not in self._left_out)
        if self.drift is None:
            return learners
        return aligned_learners(learners, self.drift, self._sample().inputs)

    def _unaffordable(self, seconds: float) -> frozenset[str]:
        """Return what is left out to keep to a time limit, and tell of it."""
        learners = self._learners(variant_named(self.settings.models[0]))
        found = self._trainings.unaffordable(learners, seconds)
        if found:
            words = ", ".join(member_words(name, type(self._kind)) for name in sorted(found))
            self.hooks.say(f"Left out, to keep to {seconds:g} s: {words}.")
        return found

    def _hurried(self, seconds: float) -> FitSettings:
        """Return the settings with as many steps as a time limit leaves to each training."""
        settings, rows = self.settings, self.rows
        (networks,) = settings.learners(variant_named(settings.models[0]), inputs="image")
        task = TrainingJob(rows.blocks, self._kind, self._sample(), rows.target, settings.seed)
        trainings = len(settings.models) * settings.seeds * (len(rows.folds) + rows.refits_networks)
        each = seconds / trainings
        steps = cast("NetworksLearner", networks).steps_within(task, each)
        self.hooks.say(f"{steps:,} steps of each training keep to {seconds:g} s.")
        return settings.with_steps(steps)

    def _candidate(self, method: NetworkVariant, learners: tuple[Learner, ...]) -> Candidate:
        """Fit the members on each fold and note what they say of the rows held out."""
        if not self.rows.folds:
            return Candidate(method, learners)
        parts, by_fold = [], []
        for number, fold in enumerate(self.rows.folds):
            members = self._trainings.members(learners, number, fold.training)
            by_fold.append(members)
            parts.append(ask(members, self.rows, fold))
        return Candidate(method, learners, tuple(by_fold), HeldOut.joined(parts))

    def _chosen(self) -> tuple[Candidate, dict[str, Any]]:
        """Return the candidate with the lowest estimated risk, and how it was chosen."""
        candidates = self.candidates
        if len(candidates) == 1:
            return candidates[0], {}
        risks = [c.risk(self.weights).risk for c in candidates]
        names = [candidate.method.name for candidate in candidates]
        chosen = candidates[int(np.argmin(risks))]
        self.hooks.say(f"Chosen: {chosen.method.name}, by the {RULE}.")
        return chosen, {
            "rule": RULE,
            "weighted_cross_entropy": dict(zip(names, risks, strict=True)),
        }

    def _model(self) -> Model:
        """Return the chosen candidate, fitted on all rows where they are few, weighed, measured."""
        chosen = self.chosen
        groups, trained_on = self._final_members(chosen)
        names = [learner.name for learner in chosen.learners]
        weights = Weights.equal(len(groups))
        metrics: dict[str, Any] = {}
        if chosen.held_out is not None:
            metrics = held_out_metrics(chosen.held_out, names, lambda: self.weights)
            # Where columns have drifted, source rows do not tell which member to trust.
            if len(groups) > 1 and self.drift is None:
                weights = chosen.held_out.weights()
        if self.drift is not None:
            members = tuple(member for (member,) in groups)
            members, counted, metrics["alignment"] = self._settled(chosen, members)
            weights, groups = Weights(counted), [(member,) for member in members]
            names = [Aligned.kind, SELF_TRAINED][: len(members)]
        if len(groups) > 1:
            metrics["weights"] = dict(zip(names, weights.members, strict=True))
        if self._trainings.gain:
            metrics["teaching"] = self._trainings.gain
        metrics["task"] = self._kind.task
        if self.seeds > 1:
            metrics["seeds"] = self.seeds
        if self.settings.time_limit is not None:
            limit = {"seconds": self.settings.time_limit, "left_out": sorted(self._left_out)}
            metrics["time_limit"] = limit
        metrics[self._kind.constant_name] = self._constant(chosen).tolist()
        if self.counts:
            metrics["class_counts"] = dict(zip(self._class_names(), self.counts, strict=True))
        metrics["trained_on"] = trained_on
        metrics |= {"choice": self.choice} if self.choice else {}
        # Members of one group share its weight.
        shared = [weight / len(g) for weight, g in zip(weights.members, groups, strict=True)]
        each = [share for share, group in zip(shared, groups, strict=True) for _ in group]
        weights = replace(weights, members=tuple(each))
        members = tuple(member for group in groups for member in group)
        model = Model(
            self.preprocessor, members, weights, self.settings.seed, metrics, self.training_data
        )
        self.member_names = [n for n, g in zip(names, groups, strict=True) for _ in g]
        if self.rows.labelled is not None:
            model = self.with_labels(model, self.rows.labelled)
            metrics = model.metrics
        metrics["alarms"] = self._alarms(model)
        return model

    def with_labels(self, model: Model, labelled: Sample) -> Model:
        """Return the fitted model as labelled target rows advise."""
        task = self._trainings.task(self.chosen.method, None, self._sample())
        kinds = self.settings.members_for(self._inputs, self._kind)
        return with_target_labels(model, self.member_names, labelled, task, kinds)

    def _alarms(self, model: Model) -> list[dict[str, Any]]:
        """Return what looks wrong with the target's rows and with what is said of them."""
        target = self.rows.target
        some = target[np.random.default_rng(0).permutation(len(target))[:MOST_LOOKED_AT]]
        shown, preprocessor = model.score(some), self.preprocessor
        if isinstance(preprocessor, TablePreprocessor):
            alarms = answer_alarms(preprocessor.schema, shown, model.metrics)
        else:
            alarms = prediction_alarms(shown, model.metrics["class_prior"], self._class_names())
        drift = drift_alarms(*self.far.distance) if self.far is not None else []
        return [alarm.to_dict() for alarm in self._source_alarms() + drift + alarms]

    def _source_alarms(self) -> list[Alarm]:
        rows, preprocessor = self.rows, self.preprocessor
        whole, measured = rows.whole, rows.measured
        if (
            whole is None
            or measured is None
            or not isinstance(preprocessor, TablePreprocessor)
            or not rows.folds
        ):
            return []
        copies = copy_alarms(whole.inputs, whole.labels, measured.positions)
        return copies + leak_alarms(preprocessor.schema, whole.inputs, whole.labels)

    def _final_members(self, chosen: Candidate) -> tuple[list[tuple[Member, ...]], str]:
        """Return what answers in the end for each learner, and the rows it learned from.

        Members are fitted again on all source rows where those are at hand. Networks take long:
        those of several folds answer together instead, and one of many rows stays as it is.
        """
        rows, learners = self.rows, chosen.learners
        by_fold = [
            tuple(member for groups in chosen.folds for member in groups[k])
            for k in range(len(learners))
        ]
        if rows.whole is None:
            return by_fold, "the source rows that were not held out"
        again = [
            k
            for k, learner in enumerate(learners)
            if rows.refits_networks or learner.name != NETWORKS
        ]
        fitted = self._trainings.members([learners[k] for k in again], None, rows.whole)
        for k, members in zip(again, fitted, strict=True):
            by_fold[k] = members
        trained_on = "all source rows"
        if rows.folds:
            trained_on += ", after measuring on those held out"
        if len(again) < len(learners):
            several = f", {len(rows.folds)} of them together" if len(rows.folds) > 1 else ""
            trained_on += f"; networks on those that were not held out{several}"
        return by_fold, trained_on

    def _settled(
        self, chosen: Candidate, members: tuple[Member, ...]
    ) -> tuple[tuple[Member, ...], tuple[float, ...], dict[str, Any]]:
        """Return members with maps of the drifted columns, judged on target rows."""
        drift = self.drift
        assert drift is not None
        learners = [learner for learner in chosen.learners if isinstance(learner, AlignedLearner)]
        source, kind = self._sample(), self.rows.target_type
        return select_maps(
            drift, learners, members, source, self.rows.target, kind, self.rows.blocks
        )

    def _constant(self, chosen: Candidate) -> Floats:
        """Return the class shares that probabilities speak of, or the mean amount.

        Those of balanced images are equal, and weights of rows count.
        """
        options = self.settings.options_for(chosen.method, inputs=self._inputs)
        if self._inputs == "image" and options.training.balanced:
            return np.full(len(self.counts), 1.0 / len(self.counts))
        sample = self._sample()
        if sample.weights is None and self.counts:
            return np.array(self.counts) / sum(self.counts)
        return self._kind.constant(sample.labels, sample.weights)

    def _class_names(self) -> list[str]:
        preprocessor = self.preprocessor
        if isinstance(preprocessor, TablePreprocessor):
            return list(preprocessor.schema.class_names)
        return [str(value) for value in preprocessor.classes]
