"""How far apart two batches of latents are: modules that make a scalar of two batches.

A new divergence is a module with ``forward(first, second) -> scalar`` and one call of
:func:`register`. It need not know about ramps: the objective scales the gradient of the latents
that it hands over (:func:`scale_gradient`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn.functional import softplus

from halfseen.errors import InputError, OptionError
from halfseen.networks.encoders import initialize, mlp, of_both
from halfseen.options import Initialization, Normalization, Options


class _ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, scale: float) -> Tensor:
        context.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * context.scale, None


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """Return `x` unchanged, with its gradient multiplied by `scale` on the way back.

    Examples
    --------
    >>> x = torch.ones(2, requires_grad=True)
    >>> scale_gradient(x, 0.5).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.5000])
    """
    scaled: Tensor = _ScaleGradient.apply(x, scale)  # type: ignore[no-untyped-call]
    return scaled


def reverse_gradient(x: Tensor) -> Tensor:
    """Gradient reversal (Ganin and Lempitsky, 2015): what descends above it ascends below."""
    return scale_gradient(x, -1.0)


def critic_loss(first: Tensor, second: Tensor) -> Tensor:
    r"""Cross-entropy of a critic, from its logits on two batches.

    .. math:: -\mathbb{E}\log D(a) - \mathbb{E}\log(1 - D(b)),
              \qquad D = \mathrm{sigmoid}(\text{logit})

    It is minus the paper's equations for L1 and L_ADV, which the critic maximises: at its
    largest, 2 log 2, the critic cannot tell the two batches apart.

    Examples
    --------
    >>> round(float(critic_loss(torch.zeros(3), torch.zeros(5))), 4)
    1.3863
    """
    # -log sigmoid(t) = softplus(-t), without overflow
    return softplus(-first).mean() + softplus(second).mean()


class AdversarialDivergence(nn.Module):
    """A critic D that tells two batches of latents apart, behind gradient reversal.

    One backward pass trains the critic to tell them apart and whatever made the latents to
    prevent it. The critic always learns at full strength; a ramp belongs on the latents.

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


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Return ‖a_i − b_j‖² for every pair of rows."""
    squares = first.square().sum(1, keepdim=True) + second.square().sum(1)
    return (squares - 2.0 * first @ second.T).clamp_min(0.0)


def transport_cost(first: Tensor, second: Tensor) -> Tensor:
    r"""Return :math:`\sum_{ij} \gamma_{ij} \|a_i - b_j\|^2` with the exact plan γ (appendix B).

    Between two batches of n rows the plan matches each row with one other, at weight 1/n. It is
    found with all networks fixed; then it is fixed, and the cost alone carries gradient: the
    paper's alternating optimisation.

    Examples
    --------
    >>> float(transport_cost(torch.tensor([[0.0], [5.0]]), torch.tensor([[5.0], [1.0]])))
    0.5
    """
    if len(first) != len(second):
        raise InputError(
            f"Transport matches rows with rows, and the batches have {len(first)} and "
            f"{len(second)}."
        )
    # Matched rows need no n x n matrix on the way back.
    distances = squared_distances(first.detach(), second.detach())
    partner = linear_sum_assignment(distances.double().cpu().numpy())[1]
    matched = second[torch.as_tensor(partner, device=second.device)]
    return (first - matched).square().sum(1).mean()


class TransportDivergence(nn.Module):
    """The exact squared Wasserstein distance between two batches of latents.

    References
    ----------
    Damodaran et al., DeepJDOT, ECCV 2018; Shen et al., Wasserstein distance guided
    representation learning, AAAI 2018.
    """

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the transport cost between the two batches."""
        return transport_cost(first, second)


Factory = Callable[[int, Options], nn.Module]


def _adversarial(latent_size: int, options: Options) -> nn.Module:
    return AdversarialDivergence(
        latent_size,
        widths=options.networks.critic_widths,
        normalize=options.networks.normalization,
        initialization=options.networks.initialization,
    )


_FACTORIES: dict[str, Factory] = {
    "adversarial": _adversarial,
    "transport": lambda latent_size, options: TransportDivergence(),
}


def register(name: str, factory: Factory) -> None:
    """Add a divergence: `factory(latent_size, options)` returns its module."""
    _FACTORIES[name] = factory


def make_divergence(name: str, latent_size: int, options: Options) -> nn.Module:
    """Return a divergence by name, for latents of one size."""
    if name not in _FACTORIES:
        raise OptionError(f"divergence={name!r} is unknown; choose one of {sorted(_FACTORIES)}.")
    return _FACTORIES[name](latent_size, options)
