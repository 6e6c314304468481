"""Gather what a report will show, from what a fit has measured anyway: no model is asked again.

Nothing here may cost a user the model: what cannot be computed, for instance because a table is
tiny, is left out with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from halfseen.arrays import Floats
from halfseen.data.schema_inference import InferredTables
from halfseen.errors import HalfseenError
from halfseen.evidence import effective_sample_size, overlap
from halfseen.evidence.risk import deep_embedded_validation, source_validation
from halfseen.fitting.pipeline import FitResult
from halfseen.metrics import expected_calibration_error
from halfseen.report.column_section import column_facts
from halfseen.report.facts import Estimate, Expectation, Reliability, ReliabilityBin, ReportFacts
from halfseen.targets import TargetType

BINS = 10
LEVEL = 0.9
"""Of every interval on the page."""

Labels = npt.NDArray[Any]
T = TypeVar("T")


def facts_of_fit(found: InferredTables, fit: FitResult) -> ReportFacts:
    """Return what a report will show of a fit that has just ended."""
    held_out, schema = fit.candidate.held_out, fit.model.schema
    assert held_out is not None
    shown, labels = held_out.to_predictions(), held_out.labels
    left_out: dict[str, str] = {}

    def attempt(section: str, find: Callable[[], T]) -> T | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return find()
        except (HalfseenError, ValueError, ArithmeticError) as error:
            left_out[section] = str(error).partition("\n")[0]
            return None

    compared = attempt("shifted", lambda: column_facts(schema, found.source, found.target))
    columns, more = compared or ((), 0)
    expected = attempt(
        "expected",
        lambda: expectation(shown, labels, fit.weights, found.target.rows, schema.target_type),
    )
    reliability = None
    if schema.classes:
        names = schema.class_names
        reliability = attempt("calibration", lambda: _reliability(shown, labels, names))
    return ReportFacts(
        measured_on=f"{len(labels):,} source rows, each held out of the training that predicted it",
        source_rows=found.source.rows,
        target_rows=found.target.rows,
        columns=columns,
        more_columns=more,
        expectation=expected,
        reliability=reliability,
        left_out=left_out,
    )


def expectation(
    shown: Floats, labels: Labels, weight: Floats, target_rows: int, kind: TargetType
) -> Expectation:
    """Return what held-out source rows let expect of `target_rows` rows of the target."""
    source, target = {}, {}
    for name, found in kind.expected(shown, labels).items():
        here = source_validation(found.losses, level=LEVEL)
        low, high = here.interval
        source[name] = as_read(Estimate(value=here.risk, low=low, high=high), found.read)
        there = on_target(found.losses, weight, target_rows, found.other)
        target[name] = as_read(there, found.read)
    return Expectation(
        source=source,
        target=target,
        rows=len(labels),
        effective_rows=effective_sample_size(weight),
        overlap=overlap(weight),
    )


def on_target(loss: Floats, weight: Floats, rows: int, other: float) -> Estimate:
    """Estimate a mean loss on rows of the target.

    Its interval covers the sampling of source rows, that of target rows, and what domains differ
    in beyond their observed columns, as far as other problems let expect it.
    """
    found = deep_embedded_validation(loss, weight)
    spread = float(np.sqrt(np.average(np.square(loss - found.risk), weights=weight)))
    low, high = found.widened(spread / np.sqrt(rows), other, level=LEVEL)
    return Estimate(value=max(0.0, found.risk), low=max(0.0, low), high=max(0.0, high))


def as_read(loss: Estimate, read: Callable[[float], float]) -> Estimate:
    """Turn an estimated mean loss into what people read, such as a share of hits."""
    value, *ends = (float(read(max(0.0, end))) for end in (loss.value, loss.low, loss.high))
    return Estimate(value=value, low=min(ends), high=max(ends))


def _reliability(probability: Floats, labels: Labels, names: tuple[str, ...]) -> Reliability:
    """Count how often probabilities came true: of the last of two classes, or of the top one."""
    two = probability.shape[1] == 2
    claimed = probability[:, 1] if two else probability.max(1)
    came_true = labels == 1 if two else probability.argmax(1) == labels
    place = np.minimum((claimed * BINS).astype(np.int64), BINS - 1)
    bins = [
        ReliabilityBin(
            rows=int((place == b).sum()),
            predicted=float(np.clip(claimed[place == b].mean(), 0.0, 1.0)),
            observed=float(came_true[place == b].mean()),
        )
        for b in np.unique(place)
    ]
    return Reliability(
        of=names[1] if two else None,
        error=expected_calibration_error(probability, labels),
        bins=tuple(bins),
    )
