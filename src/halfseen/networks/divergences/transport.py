"""The squared Wasserstein distance: an exact plan without gradient, its cost with gradient."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from halfseen.errors import InputError

__all__ = ["TransportDivergence", "squared_distances", "transport_cost"]


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
