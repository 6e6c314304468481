"""The squared Wasserstein distance: an exact plan without gradient, its cost with gradient."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import ot
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from halfseen.errors import InputError

__all__ = ["TransportDivergence", "squared_distances", "transport_cost", "transport_plan"]


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """Return ‖a_i − b_j‖² for every pair of rows."""
    squares = first.square().sum(1, keepdim=True) + second.square().sum(1)
    return (squares - 2.0 * first @ second.T).clamp_min(0.0)


@torch.no_grad()
def transport_plan(
    cost: Tensor, first_weight: Tensor | None = None, second_weight: Tensor | None = None
) -> Tensor:
    """Return the exact plan γ that moves one weighted batch onto another at least cost.

    Uniform weights on equally many rows make the plan a permutation over n, which an assignment
    solver finds faster; otherwise POT's network simplex is used.

    Parameters
    ----------
    cost
        (rows, columns) matrix.
    first_weight, second_weight
        Mass of each row and column; uniform when not given. Both must have the same sum.

    Examples
    --------
    >>> transport_plan(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    rows, columns = cost.shape
    if first_weight is None and second_weight is None and rows == columns:
        plan = np.zeros((rows, columns))
        plan[np.arange(rows), _assignment(cost)] = 1.0 / rows
    else:
        first, second = _mass(first_weight, rows), _mass(second_weight, columns)
        if not np.isclose(first.sum(), second.sum(), rtol=1e-5):
            raise InputError(
                f"The two sides of a transport plan hold masses {first.sum():g} and "
                f"{second.sum():g}; they must be equal."
            )
        # POT wants the two sums equal to the last digit.
        plan = ot.emd(first, second * (first.sum() / second.sum()), _numpy(cost))
    return torch.as_tensor(plan, dtype=cost.dtype, device=cost.device)


def transport_cost(
    first: Tensor,
    second: Tensor,
    first_weight: Tensor | None = None,
    second_weight: Tensor | None = None,
) -> Tensor:
    r"""Return :math:`\sum_{ij} \gamma_{ij} \|a_i - b_j\|^2` (appendix B).

    The plan γ is found with all networks fixed; then it is fixed, and the cost alone carries
    gradient: the paper's alternating optimisation.
    """
    if first_weight is None and second_weight is None and len(first) == len(second):
        # The plan is a permutation: matched rows need no n x n matrix on the way back.
        distances = squared_distances(first.detach(), second.detach())
        partner = torch.as_tensor(_assignment(distances), device=second.device)
        return (first - second[partner]).square().sum(1).mean()
    cost = squared_distances(first, second)
    return (transport_plan(cost, first_weight, second_weight) * cost).sum()


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


def _assignment(cost: Tensor) -> npt.NDArray[np.int64]:
    """Return the column matched with each row of a square cost matrix."""
    columns: npt.NDArray[np.int64] = linear_sum_assignment(_numpy(cost))[1]
    return columns


def _numpy(tensor: Tensor) -> npt.NDArray[np.float64]:
    array: npt.NDArray[np.float64] = tensor.detach().double().cpu().numpy()
    return array


def _mass(weight: Tensor | None, size: int) -> npt.NDArray[np.float64]:
    if weight is None:
        return np.full(size, 1.0 / size)
    if weight.shape != (size,):
        raise InputError(f"A weight vector of shape {tuple(weight.shape)} came with {size} rows.")
    return _numpy(weight)
