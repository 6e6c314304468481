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

RESAMPLES = 400
FEWER_RESAMPLES = 100
MANY_ROWS = 5_000
"""Rows from which intervals are narrow, and fewer resamples tell them."""
LEVEL = 0.95
FEWEST_ROWS = 10
SIMPLE = ("regression", "boosted_trees", "forest")
"""Members that are a few lines of another library, the simplest first."""
OWN_SHARES = "these rows' own class shares"
"""The best constant prediction, known in hindsight."""

MEASURES: dict[str, Callable[[Floats, Integers], float | None]] = {
    "accuracy": accuracy,
    "auc": auc,
    "cross_entropy": lambda probability, y: float(row_losses(probability, y).mean()),
}


def evaluation(
    probability: Floats,
    y: Integers,
    prior: Floats,
    metrics: Mapping[str, Any],
    *,
    others: Mapping[str, Floats] | None = None,
    seed: int = 0,
    fewest: int = FEWEST_ROWS,
) -> dict[str, Any]:
    """Measure predictions on labelled rows, beside the source's class shares (`prior`).

    Returns ``rows``; ``metrics`` with value, bootstrap interval, what the fit let expect (its
    `metrics`) and whether the interval has it; ``calibration``, its error with an interval and each
    class's predicted and observed share; ``baseline``, its metrics and how much lower the model's
    cross-entropy is, with an interval; ``others``, simple models, alike; ``verdicts``, sentences.

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
    if len(y) < fewest:
        raise InputError(f"There are {len(y)} labelled rows; at least {fewest} are needed.")
    random = np.random.default_rng(seed)
    drawn = [
        random.integers(len(y), size=len(y))
        for _ in range(RESAMPLES if len(y) < MANY_ROWS else FEWER_RESAMPLES)
    ]
    expected = _expected(metrics)
    found = {}
    for name, measure in MEASURES.items():
        found[name] = _measured(measure, probability, y, drawn)
        known = expected.get(name)
        if known is not None and found[name]["value"] is not None:
            low, high = found[name]["interval"]
            found[name] |= {"expected": known, "as_expected": bool(low <= known <= high)}
    losses = row_losses(probability, y)

    def beside(other: Floats) -> dict[str, Any]:
        gains = row_losses(other, y) - losses
        interval = _interval([gains[rows].mean() for rows in drawn])
        measured = {name: measure(other, y) for name, measure in MEASURES.items()}
        return measured | {"gain": {"value": float(gains.mean()), "interval": interval}}

    baseline = beside(np.tile(prior / prior.sum(), (len(y), 1)))
    observed = np.bincount(y, minlength=probability.shape[1]) / len(y)
    compared = {OWN_SHARES: np.tile(observed, (len(y), 1)), **(others or {})}
    beside_others = {name: beside(other) for name, other in compared.items()}
    return {
        "rows": len(y),
        "metrics": found,
        "calibration": {
            **_measured(expected_calibration_error, probability, y, drawn),
            "predicted_shares": probability.mean(axis=0).tolist(),
            "observed_shares": observed.tolist(),
        },
        "baseline": baseline,
        "others": beside_others,
        "verdicts": _verdicts(found, baseline["gain"], beside_others),
    }


def _expected(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the fit let expect: by labelled target rows where there were some."""
    labelled = metrics.get("target_labels")
    if labelled:
        return {name: found["value"] for name, found in labelled["measured"]["metrics"].items()}
    found: Mapping[str, Any] = metrics.get("held_out_source", {}).get("without_missing_block", {})
    return found


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


def _verdicts(
    found: Mapping[str, Any], gain: Mapping[str, Any], others: Mapping[str, Any]
) -> list[str]:
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
        verdicts.append(f"Other than the fit let expect: {'; '.join(worse)}.")
    for name, other in others.items():
        low, high = other["gain"]["interval"]
        if high < 0:
            verdicts.append(
                f"Worse than {name}: the model's cross-entropy is {-other['gain']['value']:.3f} "
                f"nats higher ({-high:.3f} to {-low:.3f})."
            )
    return verdicts
