"""Baselines that are networks: distillation, augmentation alone, ceilings, and skada's models."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn import config_context
from torch import Tensor, nn

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.members import NetworksLearner, Sample, TrainingJob
from halfseen.networks.loop import derived_seed
from halfseen.networks.modules import Networks, build_networks
from halfseen.networks.train import LabelledRows, ResidentBatches, plan_phases
from halfseen.networks.variants import variant_named
from halfseen.options import Options, make_options
from halfseen.presets import preset
from halfseen.splitting import folds, rarest_class
from halfseen.targets import ClassTarget
from halfseen_bench.data import DomainPair, Labelled
from halfseen_bench.models import tensor
from halfseen_bench.scaling import standardized

IGNORE, ADAPTING = "Source-IgnoreComponent", "Adaptation-IgnoreComponent"
SKADA_RATE = 1e-3
"""Adam's rate for skada's models, which have no schedule."""


def augmented_source_only(pair: DomainPair, seed: int, options: Options | None) -> Floats:
    """Train a network on the source's x1 under random affine changes of its images."""
    if pair.blocks.is_table:
        raise InputError("Affine augmentation is for images; this problem is a table.")
    options = make_options({"training.augmentation": "affine"}, _options(pair, options))
    return _trained(pair, IGNORE, options, seed)


def supervised_ceiling(pair: DomainPair, seed: int, options: Options | None) -> Floats:
    """Train a network on the target's x1 with the target's own labels."""
    if pair.target_train_labels is None or is_transductive(pair):
        raise InputError(
            f"{pair.name} has no labelled target rows beside those that are predicted; take "
            "'Ceiling: logistic regression', which is cross-validated."
        )
    labels = pair.target_train_labels.open("the supervised ceiling")
    own = standardized(replace(pair, source_train=Labelled(pair.target_train, labels)))
    return _trained(own, IGNORE, _options(pair, options), seed)


def is_transductive(pair: DomainPair) -> bool:
    """Tell whether the target rows that are adapted on are also those that are predicted."""
    return np.array_equal(pair.target_train, pair.target_test)


def _options(pair: DomainPair, options: Options | None) -> Options:
    inputs = "table" if pair.blocks.is_table else "image"
    return options or preset("default", inputs=inputs, imputes=False, adapts=False)  # type: ignore[arg-type]


def distilled(
    pair: DomainPair, seed: int, options: Options | None, *, student: str = IGNORE
) -> Floats:
    """Teach a network on x1 by networks on (x1, x2), which did not see the row: half labels.

    Lopez-Paz et al., "Unifying distillation and privileged information", ICLR 2016.
    """
    pair, options = standardized(pair), _options(pair, options)
    labels, classes = pair.source_train.labels, len(pair.classes)
    soft = np.eye(classes)[labels]
    if rarest_class(labels) > 1:
        opinion = np.empty_like(soft)
        splits = folds(labels, 5 if pair.blocks.is_table else 2, seed)
        for number, (taught, asked) in enumerate(splits.split(labels, labels)):
            part = replace(pair, source_train=pair.source_train[taught])
            opinion[asked] = _trained(
                part,
                "Source-Full",
                options,
                derived_seed(seed, number),
                predict=pair.source_train.inputs[asked],
            )
        soft = 0.5 * soft + 0.5 * opinion
    # Cross-entropy takes probabilities for labels; classes cannot then be balanced by row.
    options = make_options({"training.balanced": False}, options)
    return _trained(pair, student, options, seed, labels=soft)


def _trained(
    pair: DomainPair,
    name: str,
    options: Options,
    seed: int,
    *,
    labels: npt.NDArray[Any] | None = None,
    predict: npt.NDArray[np.float32] | None = None,
) -> Floats:
    """Train one of the library's models to its last epoch and predict the target test rows."""
    source = pair.source_train
    rows = Sample(source.inputs, source.labels if labels is None else labels)
    task = TrainingJob(
        pair.blocks, ClassTarget.of(len(pair.classes)), rows, pair.target_train, seed
    )
    member = NetworksLearner(variant_named(name), options).fit(task)
    return np.exp(member.raw_prediction(pair.target_test if predict is None else predict))


class _SkadaModule(nn.Module):
    """Our encoder and classifier under the names that skada's hooks look for."""

    def __init__(self, networks: Networks) -> None:
        super().__init__()
        self.networks = networks

    def forward(self, X: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        logits: Tensor = self.networks(X)
        return logits


def skada(pair: DomainPair, seed: int, options: Options | None, *, model: str) -> Floats:
    """DANN or DeepJDOT as skada implements it: (x1, x2) on the source, (x1, fill) on the target."""
    options = _options(pair, options)
    # Importing skada changes scikit-learn's global configuration: keep that to this block.
    with config_context(enable_metadata_routing=True), torch.random.fork_rng():
        from skada import deep

        torch.manual_seed(derived_seed(seed))
        pair = standardized(pair)
        method = variant_named("Adaptation-Full")  # both views whole; the target's x2 is the fill
        networks = build_networks(pair.blocks, method, len(pair.classes), options)
        source = LabelledRows(tensor(pair.source_train.inputs), tensor(pair.source_train.labels))
        target = tensor(pair.target_train)
        batches = ResidentBatches(source, target, balanced=False)
        rows = min(len(source), len(target))
        phases = plan_phases(options, method, batches, rows=rows, refine=False)
        settings: dict[str, Any] = {
            "max_epochs": sum(phase.epochs for phase in phases),
            "batch_size": phases[-1].batch_size,
            "lr": SKADA_RATE,
            "optimizer": torch.optim.Adam,
            "train_split": None,
            "verbose": 0,
            "layer_name": "networks.encoder",
        }
        if model == "DANN":
            settings["num_features"] = networks.latent_size
        net = getattr(deep, model)(_SkadaModule(networks), **settings)
        inputs = np.concatenate([pair.source_train.inputs, pair.target_train])
        unknown = np.full(len(pair.target_train), -1)
        domain = np.repeat([1, -2], [len(pair.source_train), len(pair.target_train)])
        # skada's domain classifier leaves its softmax's axis open.
        warnings.filterwarnings("ignore", message="Implicit dimension choice for softmax")
        net.fit(inputs, np.concatenate([pair.source_train.labels, unknown]), domain)
        found = net.predict_proba(pair.target_test, np.full(len(pair.target_test), -2))
    probability: Floats = np.asarray(found, dtype=np.float64)
    return probability
