"""The paper's networks as a member: Adaptation-Imputation and its six relatives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from halfseen.arrays import Tensor
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.members.network_graphs import add_networks
from halfseen.members.protocol import Sample, TrainingJob
from halfseen.members.registry import MEMBERS, NETWORKS
from halfseen.networks.augmentation import Augmentation
from halfseen.networks.encoders import EncoderFactory
from halfseen.networks.loop import EpochHook, History
from halfseen.networks.modules import Networks, Predictor, build_networks
from halfseen.networks.objective import Objective
from halfseen.networks.train import JOINT_STEPS, LabelledRows, TrainingProblem, fit_objective
from halfseen.networks.variants import NetworkVariant, variant_named
from halfseen.options import Options, make_options
from halfseen.targets import TargetType

if TYPE_CHECKING:
    from halfseen.onnx_graph import GraphBuilder


@dataclass(eq=False)
class NetworksMember(Predictor):
    """Trained networks."""

    kind: ClassVar[str] = NETWORKS
    history: History = field(default_factory=list)
    """One record per epoch."""
    own_encoder: bool = False
    """Whether the encoders are the user's own, and must be given again."""
    objective: Objective | None = None
    """With the critics, as training left it; not kept in a folder."""

    def describe(self) -> dict[str, Any]:
        """Return all but the tensors, as plain data."""
        return {
            "method": self.method.name,
            "options": self.options.model_dump(mode="json"),
            "own_encoder": self.own_encoder,
            "history": self.history,
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return every weight and running statistic."""
        state = self.networks.state_dict()
        return {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}

    @classmethod
    def restored(
        cls,
        description: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        blocks: Blocks,
        target_type: TargetType,
        *,
        encoder: nn.Module | EncoderFactory | None = None,
        **given: Any,
    ) -> Self:
        """Rebuild the networks; `encoder` is the user's own, where they had one."""
        if description["own_encoder"] and encoder is None:
            raise InputError(
                "it has an encoder of your own, which a folder does not hold: give it again, as "
                "in halfseen.load(folder, encoder=MyEncoder)."
            )
        options = make_options(description["options"])
        method = variant_named(description["method"])
        given_tensors = {name: torch.tensor(array) for name, array in tensors.items()}

        def build() -> Networks:
            return build_networks(blocks, method, target_type.outputs, options, encoder)

        if encoder is None:
            # Shapes first, without memory: what JSON says must not allocate what no tensor fills.
            with torch.device("meta"):
                _check_same(build().state_dict(), given_tensors)
        with torch.random.fork_rng(devices=[]):
            networks = build()
        _check_same(networks.state_dict(), given_tensors)
        networks.load_state_dict(given_tensors)
        own = bool(description["own_encoder"])
        history = list(description["history"])
        return cls(networks.eval(), options, history, own)

    def add_to_graph(self, builder: GraphBuilder, rows: str) -> str:
        """Add ẑ_T = (g1(x1), r(g1(x1))) and f to an ONNX graph."""
        return add_networks(builder, self.networks, rows)


PACED = 5, 45
"""Steps that the pace of a training is measured by: their difference, what begins it left out."""
LEAST_PACE = 0.3
"""Part of the longer one that its steps take at least, whatever a busy machine shows."""


@dataclass(frozen=True)
class NetworksLearner:
    """Trains networks, as :func:`halfseen.networks.train.fit_objective` says.

    A model that adapts may end with self-training (`refine`).
    """

    method: NetworkVariant
    options: Options
    refine: bool = False
    device: str = "auto"
    encoder: nn.Module | EncoderFactory | None = None
    augmentation: Augmentation | None = None
    on_epoch: EpochHook | None = None
    evaluations: int | None = None
    beside: tuple[NetworksLearner, ...] = ()
    """Those of other models, whose networks answer together with its own."""

    @property
    def name(self) -> str:
        """What the member is called."""
        return NetworksMember.kind

    def fit(self, task: TrainingJob) -> NetworksMember:
        """Train on the rows of a task, from its checkpoint where there is one."""
        source = _labelled(task.source)
        target = torch.from_numpy(np.ascontiguousarray(task.target))
        problem = TrainingProblem(task.blocks, source, target, task.target_type.outputs)
        title = f"{self.method.name}, {task.title}" if task.title else self.method.name
        trained = fit_objective(
            problem,
            self.method,
            self.options,
            seed=task.seed,
            refine=self.refine and self.method.adapts,
            encoder=self.encoder,
            augmentation=self.augmentation,
            device=self.device,
            progress=task.progress(title),
            on_epoch=self.on_epoch,
            checkpoint=task.checkpoint,
            evaluations=self.evaluations,
        )
        return self._member(task, *trained)

    def steps_within(self, task: TrainingJob, seconds: float) -> int:
        """Return how many of its steps a training can take in so many seconds."""
        asked = self.options.training.joint_steps or JOINT_STEPS[self.options.inputs]
        taken = []
        for steps in PACED:
            few = {"training.joint_epochs": 1, "training.epoch_steps": steps}
            began = time.perf_counter()
            replace(self, options=make_options(few, self.options), on_epoch=None).fit(task)
            taken.append(time.perf_counter() - began)
        steady = (taken[1] - taken[0]) / (PACED[1] - PACED[0])
        pace = max(steady, LEAST_PACE * taken[1] / PACED[1])
        return min(max(int((seconds - sum(taken)) / pace), PACED[1]), asked)

    def _member(self, task: TrainingJob, objective: Objective, history: History) -> NetworksMember:
        networks = objective.networks.cpu()
        if self.options.training.balanced and task.blocks.is_table:
            restore_prior(networks, task.target_type.targets(task.source.labels).sum(0))
        own = self.encoder is not None
        return NetworksMember(networks, objective.options, history, own, objective)


def _labelled(sample: Sample) -> LabelledRows:
    weights = None if sample.weights is None else torch.from_numpy(sample.weights).float()
    labels = torch.from_numpy(sample.labels)
    inputs = torch.from_numpy(np.ascontiguousarray(sample.inputs))
    return LabelledRows(inputs, labels if labels.ndim == 1 else labels.float(), weights)


@torch.no_grad()
def restore_prior(networks: Networks, class_counts: npt.ArrayLike) -> None:
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
    counts = torch.as_tensor(np.asarray(class_counts, dtype=np.float64))
    shares = (counts / counts.sum()).clamp_min(1e-12)
    layers[-1].bias.add_(shares.log().to(layers[-1].bias))


def _check_same(expected: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    for name in expected.keys() ^ tensors.keys():
        side = "lacks" if name in expected else "has an unexpected"
        raise InputError(f"it {side} tensor {name!r} for the networks described.")
    for name, tensor in tensors.items():
        wanted = expected[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            raise InputError(
                f"its tensor {name!r} is {tensor.dtype} of shape {tuple(tensor.shape)}; the "
                f"networks described need {wanted.dtype} of shape {tuple(wanted.shape)}."
            )


MEMBERS[NETWORKS] = NetworksMember
