"""Choosing an epoch without target labels: the rows that may be looked at, and the scores.

After each epoch every score in :data:`EPOCH_SCORES` is taken; a run then reports the target
metrics at the epoch that each score would have chosen.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from halfseen.networks.variants import NetworkVariant
from halfseen.selection import ONE_FIT_SCORES, Evidence
from halfseen_bench.data import DomainPair

EPOCH_SCORES = tuple(name for name in ONE_FIT_SCORES if name != "importance_weighted")
"""Names of the scores; DEV is importance weighting with less noise, so that one stands for both."""


def evidence_of(pair: DomainPair, method: NetworkVariant, rows: int, seed: int) -> Evidence:
    """Return at most so many rows of each part: what a choice of epoch may see."""
    target = pair.target_train
    if method.needs_complete_target and pair.complete_target is not None:
        target = pair.complete_target.open("the Full models of a benchmark")[0]
    held_out = pair.source_test
    whole = Evidence(held_out.inputs, held_out.labels, target, pair.source_train.inputs)
    return whole.sample(rows, seed=seed)


def tensor(array: npt.NDArray[np.generic]) -> Tensor:
    """Return an array as a tensor that shares its memory; nothing here writes to one."""
    with warnings.catch_warnings():  # grey digits in three channels are read-only on purpose
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
