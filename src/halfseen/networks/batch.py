"""What one step sees of both domains."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Batch"]


class Batch(NamedTuple):
    """Rows of both domains. There is no field for labels of the target."""

    source: Tensor
    labels: Tensor
    """Class positions; or class probabilities (soft labels), one row each."""
    target: Tensor
    weights: Tensor | None = None
    """How much each source row counts, one on average; equally by default."""

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]
