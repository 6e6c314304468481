"""An averaged teacher: the target is to look the same to the networks and to their average."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from halfseen.networks.modules import Networks
from halfseen.networks.terms import Losses, PhaseName, Setup, State, Term, TermSettings, register


class AveragedTeacherSettings(TermSettings):
    decay: float = Field(default=0.99, ge=0, lt=1, description="α of the moving average")
    threshold: float = Field(
        default=0.9, ge=0, le=1, description="probability from which the teacher is believed"
    )
    view: Literal["augmented", "plain"] = Field(
        default="augmented",
        description="whether it sees another augmented view of target rows, or them as they are",
    )
    balance_weight: float = Field(default=0.1, ge=0, description="of the class balance")
    start: float = Field(
        default=0.0, ge=0, lt=1, description="progress of the joint phase at which it starts"
    )


@register("averaged_teacher")
class AveragedTeacher(Term):
    r"""Self-ensembling with an exponential moving average of the networks.

    After each step the teacher's weights become :math:`\alpha \theta' + (1 - \alpha) \theta`,
    with θ those of the networks. On target rows the networks are to give an augmented view the
    class that the teacher gives, where the teacher is sure; and their mean answer in a batch is to
    show every class equally often, for else all rows could agree on one class. The teacher
    predicts in the end.

    Until its start the teacher is a copy of the networks. It normalises by the statistics of
    target batches, as they do, and uses no dropout. Its running statistics are theirs.

    References
    ----------
    A. Tarvainen, H. Valpola, "Mean teachers are better role models", NeurIPS 2017.
    G. French, M. Mackiewicz, M. Fisher, "Self-ensembling for visual domain adaptation",
    ICLR 2018.
    """

    words: ClassVar = {
        "consistency": "consistency (networks against their average on the target)",
        "class_balance": "class balance of target predictions",
    }
    phases = ("joint", "refine")
    Settings = AveragedTeacherSettings

    def __init__(self, setup: Setup, settings: Any = None) -> None:
        super().__init__(setup, settings)
        self.teacher = deepcopy(setup.networks).requires_grad_(False)

    def forward(self, state: State) -> Losses:
        if not self._has_started(state.phase, state.progress):
            return {}
        rows = state.plain.target if self.settings.view == "plain" else state.another_target
        with torch.no_grad():
            believed = self.teacher(rows).softmax(1)
        return {
            "consistency": consistency_loss(state.target_logits, believed, self.settings.threshold),
            "class_balance": class_balance_loss(state.target_logits.softmax(1)),
        }

    def weights(self, phase: PhaseName) -> dict[str, float]:
        return {"consistency": self.settings.weight, "class_balance": self.settings.balance_weight}

    def after_step(self, networks: Networks, phase: PhaseName, progress: float) -> None:
        """Move the average, or copy the networks as long as it has not started."""
        started = self._has_started(phase, progress)
        move_average(self.teacher, networks, self.settings.decay if started else 0.0)

    def predicting(self) -> Networks:
        return self.teacher

    def train(self, mode: bool = True) -> Self:
        """Set the mode, the teacher's dropout staying off."""
        super().train(mode)
        for layer in self.teacher.modules():
            if isinstance(layer, nn.Dropout):
                layer.eval()
        return self

    def _has_started(self, phase: PhaseName, progress: float) -> bool:
        return phase == "refine" or (phase == "joint" and progress >= self.settings.start)


def consistency_loss(logits: Tensor, believed: Tensor, threshold: float) -> Tensor:
    r"""Return :math:`-\frac1n \sum_i [\max_k q_{ik} \ge \tau] \log p_{i y_i}`, with y of largest q.

    p are probabilities of the networks, q those of the teacher, τ the threshold.

    Examples
    --------
    >>> believed = torch.tensor([[1.0, 0.0], [0.6, 0.4]])
    >>> round(float(consistency_loss(torch.zeros(2, 2), believed, threshold=0.9)), 4)
    0.3466
    """
    probability, label = believed.max(1)
    return ((probability >= threshold) * cross_entropy(logits, label, reduction="none")).mean()


def class_balance_loss(answer: Tensor) -> Tensor:
    r"""Return :math:`-\frac1K \sum_k \log(K \bar p_k)`, with p̄ the mean answer on K classes.

    Examples
    --------
    >>> abs(float(class_balance_loss(torch.tensor([[0.9, 0.1], [0.1, 0.9]]))))
    0.0
    >>> round(float(class_balance_loss(torch.tensor([[0.9, 0.1], [0.9, 0.1]]))), 4)
    0.5108
    """
    mean = answer.mean(0).clamp_min(torch.finfo(answer.dtype).tiny)
    return -(len(mean) * mean).log().mean()


@torch.no_grad()
def move_average(average: nn.Module, module: nn.Module, decay: float) -> None:
    """Move parameters to α θ' + (1 − α) θ, and copy buffers.

    Examples
    --------
    >>> average, module = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(average.weight, 1.0), nn.init.constant_(module.weight, 2.0)
    >>> move_average(average, module, decay=0.75)
    >>> average.weight.item()
    1.25
    """
    for own, other in zip(average.parameters(), module.parameters(), strict=True):
        own.lerp_(other, 1.0 - decay)
    for kept, given in zip(average.buffers(), module.buffers(), strict=True):
        kept.copy_(given)
