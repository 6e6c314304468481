"""From two understood tables to a chosen, measured model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import train_test_split
from torch import nn

from halfseen.errors import InputError, OptionError
from halfseen.methods import METHODS, Method, method_named
from halfseen.nets import Networks, chunks
from halfseen.objective import build_objective
from halfseen.options import Options, Preset, make_options, preset
from halfseen.tables.inference import Understanding
from halfseen.tables.measuring import Sample, baseline_metrics, held_out_metrics, target_risk
from halfseen.tables.model import TableModel
from halfseen.tables.schema import TableSchema
from halfseen.tables.streaming import RowStream, StreamedBatches
from halfseen.training import (
    History,
    LabelledRows,
    NoProgress,
    Progress,
    Rows,
    Trainer,
    derived_seed,
    plan_phases,
)
from halfseen.training.fitting import Problem, fit_objective, resolve_device

__all__ = ["RULE", "Settings", "fit_tables", "is_resident", "needs_complete_target"]

IN_MEMORY = 256 * 2**20
"""Bytes of prepared rows, of both tables together, up to which they are held in memory."""
HELD_OUT = 0.2
MOST_HELD_OUT = 100_000
"""A fifth of the source is held out to measure on, up to this many rows."""
REFIT_ROWS = 5_000
"""Source rows up to which the chosen model is trained again with those held out."""
FEWEST_TARGET_ROWS = 10
SAMPLE_ROWS = 20_000
"""Rows of a streamed table that stand for all where a few will do."""
RULE = (
    "lowest cross-entropy on held-out source rows, each weighted by how much more often its "
    "observed columns occur on the target (a domain classifier's odds); no target label is used"
)
"""How one of several models is chosen."""
STREAMED: dict[str, Any] = {
    "batch_size": 1024,
    "warmup_batch_size": 1024,
    "warmup_epochs": 1,
    "joint_epochs": 2,
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
        """Return every setting for one model; the schema standardises inputs already."""
        base = preset(
            self.preset, inputs="table", divergence=self.divergence, imputes=method.imputes
        )
        ours = {"standardize": False} | ({} if resident else STREAMED)
        always = {} if resident else {"balanced": False}  # oversampling needs all rows at hand
        return make_options({**ours, **self.options, **always}, base)


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
) -> TableModel:
    """Train the models asked for, choose one without target labels, and measure it.

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
    """
    if found.target.rows < FEWEST_TARGET_ROWS:
        raise InputError(
            f"The target {found.target.table.path} has {found.target.rows} rows; at least "
            f"{FEWEST_TARGET_ROWS} are needed to adapt to it."
        )
    resident = is_resident(found, settings)
    data: _Data = _Resident.read(found, settings) if resident else _Streamed(found, settings)
    schema = found.schema

    def train(data: _Data, method: Method, title: str) -> TableModel:
        options = settings.options_for(method, resident=resident)
        refine = settings.refine and method.adapts
        networks, history = data.train(
            method, options, seed=settings.seed, refine=refine, progress=progress(title)
        )
        if options.balanced:
            restore_prior(networks, found.class_counts)
        return TableModel(schema, method, options, settings.seed, networks, history=history)

    trained = [train(data, method_named(name), name) for name in settings.models]
    model, choice = _chosen(trained, data)
    model.metrics = {
        "held_out_source": held_out_metrics(model, data.held_out),
        "logistic_regression": baseline_metrics(data.training, data.held_out, schema),
        "class_counts": dict(zip(schema.class_names, found.class_counts, strict=True)),
        "trained_on": "the source rows that were not held out",
    }
    if choice:
        model.metrics["choice"] = choice
        say(f"Chosen: {model.method.name}, by the {RULE}.")
    if isinstance(data, _Resident) and found.source.rows <= REFIT_ROWS:
        say("Training the chosen model again, now with the held-out rows.")
        final = train(data.whole(), model.method, model.method.name)
        model.networks, model.history = final.networks, final.history
        model.metrics["trained_on"] = "all source rows, after measuring on those held out"
    model.training_data = {
        "source": found.source.table.fingerprint() | {"rows": found.source.rows},
        "target": found.target.table.fingerprint() | {"rows": found.target.rows},
    }
    return model


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


def _chosen(trained: Sequence[TableModel], data: _Data) -> tuple[TableModel, dict[str, Any]]:
    """Return the model with the lowest estimated risk on the target, and how it was chosen."""
    if len(trained) == 1:
        return trained[0], {}
    risks = [target_risk(m, data.held_out, data.training, data.target_inputs) for m in trained]
    names = [model.method.name for model in trained]
    choice = {"rule": RULE, "weighted_cross_entropy": dict(zip(names, risks, strict=True))}
    return trained[int(np.argmin(risks))], choice


class _Data(Protocol):
    """Both tables, split; `training` and `target_inputs` may be samples."""

    held_out: Sample
    training: Sample
    target_inputs: npt.NDArray[np.float32]

    def train(
        self, method: Method, options: Options, *, seed: int, refine: bool, progress: Progress
    ) -> tuple[Networks, History]: ...


@dataclass
class _Resident:
    """Both tables in memory."""

    schema: TableSchema
    training: Sample
    held_out: Sample
    target_inputs: npt.NDArray[np.float32]

    @classmethod
    def read(cls, found: Understanding, settings: Settings) -> _Resident:
        inputs, labels = RowStream(found.source.table, found.schema, is_source=True).all()
        target, _ = RowStream(found.target.table, found.schema, is_source=False).all()
        size = min(MOST_HELD_OUT, max(round(HELD_OUT * len(labels)), len(found.schema.classes)))
        train, held = train_test_split(
            np.arange(len(labels)), test_size=size, stratify=labels, random_state=settings.seed
        )
        return cls(
            found.schema,
            Sample(inputs[train], labels[train]),
            Sample(inputs[held], labels[held]),
            target,
        )

    def whole(self) -> _Resident:
        """Return the data with the held-out rows among those to train on."""
        both = Sample(
            np.concatenate([self.training.inputs, self.held_out.inputs]),
            np.concatenate([self.training.labels, self.held_out.labels]),
        )
        return _Resident(self.schema, both, self.held_out, self.target_inputs)

    def train(
        self, method: Method, options: Options, *, seed: int, refine: bool, progress: Progress
    ) -> tuple[Networks, History]:
        """Train one model."""
        problem = Problem(
            self.schema.blocks,
            LabelledRows(
                torch.from_numpy(self.training.inputs), torch.from_numpy(self.training.labels)
            ),
            Rows(torch.from_numpy(self.target_inputs)),
            len(self.schema.classes),
        )
        objective, history = fit_objective(
            problem, method, options, seed=seed, refine=refine, progress=progress
        )
        return objective.networks.cpu(), history


class _Streamed:
    """Both tables on disk, with samples of them in memory."""

    def __init__(self, found: Understanding, settings: Settings) -> None:
        self.schema = found.schema
        share = min(HELD_OUT, MOST_HELD_OUT / found.source.rows)
        self.source = RowStream(
            found.source.table, found.schema, is_source=True, share=share, seed=settings.seed
        )
        self.target = RowStream(found.target.table, found.schema, is_source=False)
        self.held_out = Sample(*self.source.all(held_out=True))
        self.training = Sample(*self.source.some(SAMPLE_ROWS / found.source.rows))
        self.target_inputs = self.target.some(SAMPLE_ROWS / found.target.rows)[0]
        self.batches = StreamedBatches(
            self.source,
            self.target,
            source_rows=found.source.rows - len(self.held_out),
            target_rows=found.target.rows,
        )

    def train(
        self, method: Method, options: Options, *, seed: int, refine: bool, progress: Progress
    ) -> tuple[Networks, History]:
        """Train one model."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derived_seed(seed, 0))
            objective = build_objective(
                self.schema.blocks, method, len(self.schema.classes), options
            )
        objective.to(resolve_device("cpu"))  # batches come from disk into main memory
        if objective.networks.standardize is not None:
            objective.networks.standardize.learn(torch.from_numpy(self.training.inputs))
        batches = self.batches
        rows = min(batches.source_rows, batches.target_rows)
        phases = plan_phases(options, method, batches, rows=rows, refine=refine)
        history = Trainer(objective, batches, seed, progress=progress).train(phases)
        if options.prediction_statistics == "target" and method.adapts:
            sample = torch.from_numpy(self.target_inputs)
            objective.networks.estimate_statistics(chunks(sample, phases[-1].batch_size))
        return objective.networks.eval(), history
