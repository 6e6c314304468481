"""The H-divergence, approximated by a critic behind gradient reversal."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import softplus

from halfseen.networks.divergences.gradients import reverse_gradient
from halfseen.networks.nets import initialize, mlp, of_both
from halfseen.options import Initialization, Normalization

__all__ = ["AdversarialDivergence", "critic_loss"]


def critic_loss(first: Tensor, second: Tensor) -> Tensor:
    r"""Cross-entropy of a critic, from its logits on two batches.

    .. math:: -\mathbb{E}\log D(a) - \mathbb{E}\log(1 - D(b)),
              \qquad D = \mathrm{sigmoid}(\text{logit})

    It is minus the paper's equations for L1 and L_ADV, which the critic maximises: at its
    largest, 2 log 2, the critic cannot tell the two batches apart.

    Examples
    --------
    >>> import torch
    >>> round(float(critic_loss(torch.zeros(3), torch.zeros(5))), 4)
    1.3863
    """
    # -log sigmoid(t) = softplus(-t), without overflow
    return softplus(-first).mean() + softplus(second).mean()


class AdversarialDivergence(nn.Module):
    """A critic D that tells two batches of latents apart, behind gradient reversal.

    One backward pass trains the critic to tell them apart and whatever made the latents to
    prevent it. The critic always learns at full strength; a ramp belongs on the latents
    (:func:`~halfseen.networks.divergences.gradients.scale_gradient`).

    References
    ----------
    Ganin and Lempitsky, Unsupervised domain adaptation by backpropagation, ICML 2015.
    """

    def __init__(
        self,
        latent_size: int,
        *,
        widths: Sequence[int] = (512, 512),
        normalize: Normalization = "batch",
        initialization: Initialization = "torch",
    ) -> None:
        super().__init__()
        self.critic = mlp(latent_size, widths, 1, normalize=normalize)
        initialize(self.critic, initialization)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the critic's loss; its gradient reaches the latents reversed."""
        return critic_loss(*of_both(self.critic, reverse_gradient(first), reverse_gradient(second)))
