"""From two understood tables to a chosen, measured model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from halfseen.errors import InputError, OptionError
from halfseen.front.inference import Understanding
from halfseen.members.linear import Regression, fit_regression
from halfseen.model.domains import Domains, Run, Sample, resident_domains, streamed_domains
from halfseen.model.measuring import (
    HeldOut,
    held_out_metrics,
    held_out_weights,
    hold_out,
    metrics_of,
    target_risk,
)
from halfseen.model.model import TableModel
from halfseen.networks.methods import METHODS, Method, method_named
from halfseen.networks.nets import Networks
from halfseen.networks.training import History, NoProgress, Progress
from halfseen.networks.training.parallel import present_ranks
from halfseen.options import Options, Preset, dotted, make_options, preset
from halfseen.report.facts import CandidateFacts, ReportDetail, ReportFacts
from halfseen.report.facts.gathering import Material, estimate, gather
from halfseen.selection import RiskEstimate

__all__ = [
    "RULE",
    "Candidate",
    "Fit",
    "Settings",
    "fit_tables",
    "is_resident",
    "needs_complete_target",
]

IN_MEMORY = 256 * 2**20
"""Bytes of prepared rows, of both tables together, up to which they are held in memory."""
FEWEST_TARGET_ROWS = 10
RULE = (
    "lowest cross-entropy on held-out source rows, each weighted by how much more often its "
    "observed columns occur on the target (a domain classifier's odds); no target label is used"
)
"""How one of several models is chosen."""
STREAMED: dict[str, Any] = {
    "training.batch_size": 1024,
    "training.warmup_batch_size": 1024,
    "training.warmup_epochs": 1,
    "training.joint_epochs": 2,
}
"""Settings for tables that are streamed, where the user gives none."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Parameters
    ----------
    models
        Names of the models to choose from.
    preset, divergence, options
        Where the settings start, and what replaces them.
    refine
        Whether models that adapt end with self-training.
    seed
        Same tables, settings and seed: the same model.
    memory
        Bytes of prepared rows up to which tables are held in memory.
    """

    models: tuple[str, ...] = ("Adaptation-Imputation",)
    preset: Preset = "default"
    divergence: str = "adversarial"
    options: Mapping[str, Any] = field(default_factory=dict)
    refine: bool = False
    seed: int = 0
    memory: int = IN_MEMORY

    def __post_init__(self) -> None:
        if not self.models:
            raise OptionError(f"Name at least one model of {[m.name for m in METHODS]}.")
        methods = [method_named(name) for name in self.models]
        if len({method.needs_complete_target for method in methods}) > 1:
            raise OptionError(
                "Full models need a target with every column, the others one without; they "
                "cannot be trained together."
            )
        self.options_for(methods[0], resident=True)

    def options_for(self, method: Method, *, resident: bool) -> Options:
        """Return every setting for one model."""
        base = preset(
            self.preset, inputs="table", divergence=self.divergence, imputes=method.imputes
        )
        ours = {} if resident else STREAMED
        # Oversampling needs all rows at hand.
        always = {} if resident else {"training.balanced": False}
        return make_options({**ours, **dotted(self.options), **always}, base)


def needs_complete_target(models: Sequence[str]) -> bool:
    """Whether the models are those of a target that lacks nothing."""
    return any(method_named(name).needs_complete_target for name in models)


def is_resident(found: Understanding, settings: Settings) -> bool:
    """Whether the prepared rows of both tables fit into the memory given to them."""
    rows = found.source.rows + found.target.rows
    return rows * len(found.schema.inputs) * 4 <= settings.memory


def fit_tables(
    found: Understanding,
    settings: Settings,
    *,
    progress: Callable[[str], Progress] = lambda title: NoProgress(),
    say: Callable[[str], None] = lambda sentence: None,
    checkpoints: Path | None = None,
    report: ReportDetail = "none",
) -> TableModel:
    """Train the models asked for, choose one without target labels, and measure it.

    Processes that have joined (:func:`halfseen.networks.training.parallel.joined`) train
    together, and all return the same model: what is measured and chosen, the first measures.

    Parameters
    ----------
    found
        What was understood of the tables.
    settings
        How to train.
    progress
        Makes the display of one model's training.
    say
        Told in sentences what is going on.
    checkpoints
        Folder that keeps the state of each training after every epoch. The same call with the
        same tables continues from it; it can be deleted when the model is there.
    report
        What the model keeps for ``halfseen report``: aggregates with latents of a few hundred
        rows, aggregates alone, or nothing. The first process alone gathers it.
    """
    if found.target.rows < FEWEST_TARGET_ROWS:
        raise InputError(
            f"The target {found.target.table.path} has {found.target.rows} rows; at least "
            f"{FEWEST_TARGET_ROWS} are needed to adapt to it."
        )
    fit = Fit(found, settings, progress, checkpoints)
    candidates = [fit.candidate(method_named(name)) for name in settings.models]
    chosen, choice = fit.chosen(candidates)
    if choice:
        say(f"Chosen: {chosen.method.name}, by the {RULE}.")
    if fit.domains.whole is not None:
        say("Training the chosen model again, now with the held-out rows.")
    model = fit.final(chosen)
    model.metrics |= {"choice": choice} if choice else {}
    if report != "none" and fit.ranks.is_first:
        say("Gathering what `halfseen report` will show.")
        model.report = fit.facts(model, candidates, chosen, rows=report == "all")
    return model


@dataclass(frozen=True)
class Candidate:
    """One of the models: how it did on held-out rows, and its networks of the last fold."""

    method: Method
    options: Options
    held_out: HeldOut
    networks: Networks
    history: History

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """What the model says of the held-out rows, the missing block hidden."""
        return self.held_out.probabilities(blended=False)

    def risk(self, weights: npt.NDArray[np.float64]) -> RiskEstimate:
        """Return the cross-entropy expected on the target."""
        return target_risk(self.held_out, weights, blended=False)

    def facts(self, weights: npt.NDArray[np.float64], *, chosen: bool) -> CandidateFacts:
        """Return how the model stood among the others."""
        measured = metrics_of(self.probabilities, self.held_out.labels)
        return CandidateFacts(
            model=self.method.name,
            accuracy=measured["accuracy"],
            cross_entropy=measured["cross_entropy"],
            auc=measured["auc"],
            risk=estimate(self.risk(weights)),
            chosen=chosen,
        )


class Fit:
    """One call of :func:`fit_tables`: what all of its trainings share."""

    def __init__(
        self,
        found: Understanding,
        settings: Settings,
        progress: Callable[[str], Progress],
        checkpoints: Path | None,
    ) -> None:
        self.found, self.settings, self.progress = found, settings, progress
        self.resident = is_resident(found, settings)
        make = resident_domains if self.resident else streamed_domains
        self.domains: Domains = make(found, settings.seed)
        self.training_data = {
            "source": found.source.table.fingerprint() | {"rows": found.source.rows},
            "target": found.target.table.fingerprint() | {"rows": found.target.rows},
        }
        self.checkpoints = checkpoints
        self.ranks = present_ranks()
        self.regressions = [self.regression(fold.training) for fold in self.domains.folds]

    def candidate(self, method: Method) -> Candidate:
        """Train a model on each fold and note what it says of the rows held out."""
        options = self.settings.options_for(method, resident=self.resident)
        parts = []
        for number, fold in enumerate(self.domains.folds):
            networks, history = self._train(method, options, number)
            measure = partial(
                hold_out,
                networks,
                fold.held_out,
                self.regressions[number],
                samples=options.generator.prediction_samples,
                seed=self.settings.seed,
            )
            parts.append(self.ranks.from_first(measure))
        return Candidate(method, options, HeldOut.joined(parts), networks, history)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """How much more often each held-out row occurs on the target."""
        return held_out_weights(self.domains)

    def chosen(self, candidates: Sequence[Candidate]) -> tuple[Candidate, dict[str, Any]]:
        """Return the model with the lowest estimated risk on the target, and how it was chosen."""
        if len(candidates) == 1:
            return candidates[0], {}
        risks = self.ranks.from_first(lambda: [c.risk(self.weights).risk for c in candidates])
        names = [candidate.method.name for candidate in candidates]
        choice = {"rule": RULE, "weighted_cross_entropy": dict(zip(names, risks, strict=True))}
        return candidates[int(np.argmin(risks))], choice

    def facts(
        self,
        model: TableModel,
        candidates: Sequence[Candidate],
        chosen: Candidate,
        *,
        rows: bool,
    ) -> ReportFacts:
        """Return what a report will show of this fit."""
        fold, whole, held_out = self.domains.folds[-1], self.domains.whole, chosen.held_out
        count = len(held_out.labels)
        material = Material(
            schema=model.schema,
            options=model.options,
            seed=model.seed,
            source=self.found.source,
            target=self.found.target,
            networks=model.networks,
            measured_networks=chosen.networks,
            training=fold.training,
            measured=fold.held_out,
            pictured=fold.held_out if whole is None else whole,
            target_rows=self.domains.target,
            probability=chosen.probabilities,
            labels=held_out.labels,
            weight=lambda: self.weights,
            measured_on=f"{count:,} source rows, each held out of the training that predicted it",
        )
        found = gather(material, rows=rows)
        if found.expectation is None:  # no weights, so no risks either
            return found
        compared = tuple(c.facts(self.weights, chosen=c is chosen) for c in candidates)
        return found.model_copy(update={"candidates": compared})

    def final(self, chosen: Candidate) -> TableModel:
        """Return the chosen model, trained on all rows where they are few, with its metrics."""
        networks, history = chosen.networks, chosen.history
        trained_on = "the source rows that were not held out"
        schema, whole = self.found.schema, self.domains.whole
        if whole is not None:
            networks, history = self._train(chosen.method, chosen.options, None)
            trained_on = "all source rows, after measuring on those held out"
        metrics = held_out_metrics(chosen.held_out, blended=False)
        metrics["class_counts"] = dict(
            zip(schema.class_names, self.found.class_counts, strict=True)
        )
        metrics["trained_on"] = trained_on
        return TableModel(
            schema,
            chosen.method,
            chosen.options,
            self.settings.seed,
            networks,
            metrics,
            self.training_data,
            history,
        )

    def regression(self, rows: Sample) -> Regression:
        """Return logistic regression on the observed columns of some rows."""
        observed = list(self.found.schema.blocks.observed)
        inputs, classes = rows.inputs[:, observed], len(self.found.schema.classes)
        return self.ranks.from_first(lambda: fit_regression(inputs, rows.labels, classes))

    def _train(
        self, method: Method, options: Options, fold: int | None
    ) -> tuple[Networks, History]:
        folds = len(self.domains.folds)
        part = "all rows" if fold is None else f"part {fold + 1} of {folds}"
        title = (
            method.name if folds == 1 and self.domains.whole is None else f"{method.name}, {part}"
        )
        fingerprint = self._fingerprint(method, options)
        checkpoint = None
        if self.checkpoints is not None:
            checkpoint = self.checkpoints / f"{fingerprint[:16]}-{fold}.safetensors"
        run = Run(
            method,
            options,
            self.settings.seed,
            self.settings.refine and method.adapts,
            self.progress(title),
            checkpoint,
            fingerprint,
        )
        networks, history = self.domains.train(run, fold)
        if options.training.balanced:
            restore_prior(networks, self.found.class_counts)
        return networks, history

    def _fingerprint(self, method: Method, options: Options) -> str:
        """Hash what determines a training, so that no other one is continued by mistake."""
        facts = {
            "data": self.training_data,
            "schema": self.found.schema.model_dump(mode="json"),
            "method": method.name,
            "options": options.model_dump(mode="json"),
            "refine": self.settings.refine,
            "seed": self.settings.seed,
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@torch.no_grad()
def restore_prior(networks: Networks, class_counts: Sequence[int]) -> None:
    """Make probabilities speak of the source's class frequencies after balanced training.

    Oversampling shows f every class equally often, so its odds lack the prior's; by Bayes' rule
    they get it back when log p(y) is added to the logits, that is to f's last bias.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> classifier = nn.Sequential(nn.Linear(1, 2))
    >>> _ = nn.init.zeros_(classifier[0].weight), nn.init.zeros_(classifier[0].bias)
    >>> restore_prior(SimpleNamespace(classifier=classifier), [30, 10])
    >>> [round(p, 6) for p in classifier(torch.zeros(1, 1)).softmax(1)[0].tolist()]
    [0.75, 0.25]
    """
    layers = [m for m in networks.classifier.modules() if isinstance(m, nn.Linear)]
    counts = torch.tensor(class_counts, dtype=torch.float64)
    layers[-1].bias.add_((counts / counts.sum()).log().to(layers[-1].bias))
