"""How good a model is on rows whose labels are known: with intervals, beside what was expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfseen.arrays import Floats, Integers
from halfseen.errors import InputError
from halfseen.metrics import (
    accuracy,
    auc,
    expected_calibration_error,
    predictions,
    row_losses,
)

__all__ = ["evaluation"]

RESAMPLES = 400
FEWER_RESAMPLES = 100
MANY_ROWS = 5_000
"""Rows from which intervals are narrow, and fewer resamples tell them."""
LEVEL = 0.95
FEWEST_ROWS = 10

MEASURES: dict[str, Callable[[Floats, Integers], float | None]] = {
    "accuracy": accuracy,
    "auc": auc,
    "cross_entropy": lambda probability, y: float(row_losses(probability, y).mean()),
}


def evaluation(
    probability: Floats, y: Integers, prior: Floats, metrics: Mapping[str, Any], seed: int = 0
) -> dict[str, Any]:
    """Measure predictions on labelled rows.

    Parameters
    ----------
    probability, y
        Of each class, one row each, and the true classes' positions.
    prior
        The source's class shares: the simplest prediction, the same for every row.
    metrics
        Of the model: what its fit measured on held-out source rows.
    seed
        Of the bootstrap.

    Returns
    -------
    dict
        ``rows``; ``metrics`` with value, bootstrap interval, what was expected at fit and
        whether the interval has it; ``calibration_error``; ``baseline``, its metrics and how much
        lower the model's cross-entropy is, with an interval; ``verdicts``, sentences.

    Examples
    --------
    >>> probability = np.tile([[0.8, 0.2], [0.3, 0.7]], (30, 1))
    >>> found = evaluation(probability, np.tile([0, 1], 30), np.array([0.5, 0.5]), {})
    >>> found["metrics"]["accuracy"]
    {'value': 1.0, 'interval': (1.0, 1.0)}
    >>> found["verdicts"][0][:37]
    "Better than the source's class shares"
    """
    probability, y = predictions(probability, y)
    if len(y) < FEWEST_ROWS:
        raise InputError(f"There are {len(y)} labelled rows; at least {FEWEST_ROWS} are needed.")
    random = np.random.default_rng(seed)
    drawn = [
        random.integers(len(y), size=len(y))
        for _ in range(RESAMPLES if len(y) < MANY_ROWS else FEWER_RESAMPLES)
    ]
    constant = np.tile(prior / prior.sum(), (len(y), 1))
    expected = metrics.get("held_out_source", {}).get("without_missing_block", {})
    found = {}
    for name, measure in MEASURES.items():
        found[name] = _measured(measure, probability, y, drawn)
        known = expected.get(name)
        if known is not None and found[name]["value"] is not None:
            low, high = found[name]["interval"]
            found[name] |= {"expected": known, "as_expected": bool(low <= known <= high)}
    gains = row_losses(constant, y) - row_losses(probability, y)
    gain = {"value": float(gains.mean()), "interval": _interval([gains[d].mean() for d in drawn])}
    baseline = {name: measure(constant, y) for name, measure in MEASURES.items()}
    return {
        "rows": len(y),
        "metrics": found,
        "calibration_error": expected_calibration_error(probability, y),
        "baseline": baseline | {"gain": gain},
        "verdicts": _verdicts(found, gain),
    }


def _measured(
    measure: Callable[[Floats, Integers], float | None],
    probability: Floats,
    y: Integers,
    drawn: list[Integers],
) -> dict[str, Any]:
    values = [measure(probability[rows], y[rows]) for rows in drawn]
    known = [value for value in values if value is not None]  # a class may be absent
    return {
        "value": measure(probability, y),
        "interval": _interval(known) if known else None,
    }


def _interval(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _verdicts(found: Mapping[str, Any], gain: Mapping[str, Any]) -> list[str]:
    low, high = gain["interval"]
    shown = f"{abs(gain['value']):.3f} nats"
    if low > 0:
        verdicts = [
            "Better than the source's class shares: the model's cross-entropy is "
            f"{shown} lower ({low:.3f} to {high:.3f})."
        ]
    elif high < 0:
        verdicts = [
            f"Worse than the source's class shares by {shown}: predict those shares instead, and "
            "look for the reason (alarms, drift) before using this model."
        ]
    else:
        verdicts = [
            "Cannot be told from the source's class shares: the cross-entropy's difference is "
            f"{low:+.3f} to {high:+.3f} nats. Label more rows."
        ]
    loss, right = found["cross_entropy"], found["accuracy"]
    worse = [
        f"{words} {measured['expected']:.3f} at fit, {measured['value']:.3f} here"
        for words, measured in (("cross-entropy", loss), ("accuracy", right))
        if not measured.get("as_expected", True)
    ]
    if worse:
        verdicts.append(f"Other than held-out source rows let expect: {'; '.join(worse)}.")
    return verdicts
