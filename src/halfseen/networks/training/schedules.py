"""Schedules as pure functions of progress p in [0, 1]: resuming a run cannot shift them."""

from __future__ import annotations

import math


def ramp(progress: float) -> float:
    """Strength of adaptation and imputation, from 0 to 1: s = 2 / (1 + exp(-10 p)) - 1.

    Examples
    --------
    >>> ramp(0.0), round(ramp(0.5), 4), round(ramp(1.0), 4)
    (0.0, 0.9866, 0.9999)
    """
    return 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0


def annealed_rate(initial: float, progress: float, decay: float = 10.0) -> float:
    """Learning rate lr_i / (1 + a p)^0.75, with a = 10, or 30 for r and D2 on the ads data.

    Examples
    --------
    >>> annealed_rate(0.01, 0.0), round(annealed_rate(0.01, 1.0), 6)
    (0.01, 0.001656)
    """
    return initial * math.pow(1.0 + decay * progress, -0.75)
