"""How good a model is on rows whose labels are known: with intervals, beside what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from halfseen.arrays import Floats, Integers, same_length
from halfseen.errors import InputError
from halfseen.metrics import Labels, Measure
from halfseen.targets import TargetType

RESAMPLES = 400
FEWER_RESAMPLES = 100
MANY_ROWS = 5_000
"""Rows from which intervals are narrow, and fewer resamples tell them."""
LEVEL = 0.95
FEWEST_ROWS = 10


def evaluation(
    shown: Floats,
    y: Labels,
    metrics: Mapping[str, Any],
    kind: TargetType,
    *,
    others: Mapping[str, Floats] | None = None,
    seed: int = 0,
    fewest: int = FEWEST_ROWS,
) -> dict[str, Any]:
    """Measure predictions on labelled rows, with intervals, beside simpler predictions.

    Returns ``rows``; ``metrics`` with value, bootstrap interval, what the fit let expect (its
    `metrics`) and whether the interval has it; ``predicted`` and ``observed``, mean prediction and
    truth; ``baseline``, the source's class shares or mean, and how much lower the model's loss is;
    ``others``, simple models, alike; ``verdicts``, sentences.
    """
    same_length(predictions=shown, y=y)
    if len(y) < fewest:
        raise InputError(f"There are {len(y)} labelled rows; at least {fewest} are needed.")
    random = np.random.default_rng(seed)
    drawn = [
        random.integers(len(y), size=len(y))
        for _ in range(RESAMPLES if len(y) < MANY_ROWS else FEWER_RESAMPLES)
    ]
    expected = _expected(metrics)
    found = {}
    for name, measure in kind.measures.items():
        found[name] = _measured(measure, shown, y, drawn)
        known = expected.get(name)
        if known is not None and found[name]["value"] is not None:
            low, high = found[name]["interval"]
            found[name] |= {"expected": known, "as_expected": bool(low <= known <= high)}
    losses = kind.row_losses(shown, y)

    def beside(other: Floats) -> dict[str, Any]:
        gains = kind.row_losses(other, y) - losses
        interval = _interval([gains[rows].mean() for rows in drawn])
        measured = {name: measure.of(other, y) for name, measure in kind.measures.items()}
        return measured | {"gain": {"value": float(gains.mean()), "interval": interval}}

    def everywhere(constant: Floats) -> Floats:
        return np.tile(constant, (len(y), 1))

    baseline = beside(everywhere(np.array(metrics[kind.constant_name], dtype=np.float64)))
    observed = kind.constant(y)
    compared = {kind.own_words: everywhere(observed), **(others or {})}
    beside_others = {name: beside(other) for name, other in compared.items()}
    return {
        "rows": len(y),
        "metrics": found,
        "predicted": shown.mean(axis=0)[: kind.outputs].tolist(),
        "observed": observed.tolist(),
        "baseline": baseline,
        "others": beside_others,
        "verdicts": _verdicts(found, baseline["gain"], beside_others, kind),
    }


def _expected(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the fit let expect: by labelled target rows where there were some."""
    labelled = metrics.get("target_labels")
    if labelled:
        return {name: found["value"] for name, found in labelled["measured"]["metrics"].items()}
    found: Mapping[str, Any] = metrics.get("held_out_source", {}).get("without_missing_block", {})
    return found


def _measured(measure: Measure, shown: Floats, y: Labels, drawn: list[Integers]) -> dict[str, Any]:
    values = [measure.of(shown[rows], y[rows]) for rows in drawn]
    known = [value for value in values if value is not None]  # a class may be absent
    return {
        "value": measure.of(shown, y),
        "interval": _interval(known) if known else None,
    }


def _interval(values: list[float]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _verdicts(
    metrics: Mapping[str, Any], gain: Mapping[str, Any], others: Mapping[str, Any], kind: TargetType
) -> list[str]:
    low, high = gain["interval"]
    simplest, loss, unit = kind.baseline_words, kind.row_loss_words, kind.unit
    digits = ".3f" if unit else ".4g"
    shown = f"{abs(gain['value']):{digits}}{unit}"
    if low > 0:
        verdicts = [
            f"Better than {simplest}: the model's {loss} is {shown} lower ({low:{digits}} to "
            f"{high:{digits}})."
        ]
    elif high < 0:
        verdicts = [
            f"Worse than {simplest} by {shown}: predict that instead, and look for the reason "
            "(alarms, drift) before using this model."
        ]
    else:
        verdicts = [
            f"Cannot be told from {simplest}: the difference in {loss} is {low:+{digits}} to "
            f"{high:+{digits}}{unit}. Label more rows."
        ]
    worse = [
        f"{words} {measured['expected']:{digits}} at fit, {measured['value']:{digits}} here"
        for name, (words, _) in kind.measures.items()
        if not (measured := metrics[name]).get("as_expected", True) and name != "auc"
    ]
    if worse:
        verdicts.append(f"Other than the fit let expect: {'; '.join(worse)}.")
    for name, other in others.items():
        low, high = other["gain"]["interval"]
        if high < 0:
            verdicts.append(
                f"Worse than {name}: the model's {loss} is {-other['gain']['value']:{digits}}"
                f"{unit} higher ({-high:{digits}} to {-low:{digits}})."
            )
    return verdicts
