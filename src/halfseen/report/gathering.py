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

from halfseen.alarms import answer_alarms, column_alarms
from halfseen.arrays import Floats
from halfseen.errors import HalfseenError, InputError
from halfseen.evidence import effective_sample_size, fit_density_ratio, overlap
from halfseen.evidence.risk import RiskEstimate, deep_embedded_validation, source_validation
from halfseen.front.inference import Understanding
from halfseen.front.schema import TableSchema
from halfseen.front.streaming import RowStream
from halfseen.front.summary import TableSummary, summarize
from halfseen.front.tables import Table
from halfseen.labels import LabelKind
from halfseen.members import Sample
from halfseen.metrics import expected_calibration_error
from halfseen.model.fitting import Fit
from halfseen.model.model import Model
from halfseen.report.columns import column_facts
from halfseen.report.facts import Estimate, Expectation, Reliability, ReliabilityBin, ReportFacts

MOST_ROWS = 10_000
"""Rows of each table that a model is asked about; columns are counted over all of them."""
FEWEST_ROWS = 20
BINS = 10
LEVEL = 0.9
"""Of every interval on the page."""

Labels = npt.NDArray[Any]
T = TypeVar("T")


def facts_of_fit(found: Understanding, fit: Fit) -> ReportFacts:
    """Return what a report will show of a fit that has just ended."""
    held_out = fit.chosen.held_out
    assert held_out is not None
    return _gathered(
        fit.model.schema,
        found.source,
        found.target,
        (held_out.shown(), held_out.labels),
        lambda: fit.weights,
        f"{len(held_out.labels):,} source rows, each held out of the training that predicted it",
    )


def facts_of_tables(model: Model, source: Table, target: Table) -> ReportFacts:
    """Gather facts about a model from a complete, labelled table and a target's.

    The model may have been trained on these source rows, and the facts say so.
    """
    schema = model.schema
    one = _summary(schema, source, [c.name for c in schema.columns], schema.label)
    other = _summary(schema, target, [c.name for c in schema.observed], None)
    rows = Sample(*RowStream(source, schema, is_source=True).at_most(MOST_ROWS, one.rows))
    target_rows, _ = RowStream(target, schema, is_source=False).at_most(MOST_ROWS, other.rows)
    observed = list(schema.blocks.observed)

    def weights() -> Floats:
        """Weigh each half of the rows by a ratio that was fitted on the other half."""
        half = np.random.default_rng(0).permutation(len(rows)) % 2 == 0
        found = np.empty(len(rows))
        for part in (half, ~half):
            ratio = fit_density_ratio(rows.inputs[~part][:, observed], target_rows[:, observed])
            found[part] = ratio.weights(rows.inputs[part][:, observed])
        return found

    facts = _gathered(
        schema,
        one,
        other,
        (model.score(schema.blocks.hide(rows.inputs)), rows.labels),
        weights,
        f"{len(rows):,} rows of {source.where}, which the model may have been trained on: read "
        "these figures as too good",
    )
    alarms = column_alarms(schema, {name: c.shape() for name, c in other.columns.items()})
    alarms += answer_alarms(schema, model.score(target_rows), model.metrics)
    return facts.model_copy(update={"alarms": tuple(alarms)})


def _summary(
    schema: TableSchema, table: Table, names: list[str], label: str | None
) -> TableSummary:
    for name in [*names, *([] if label is None else [label])]:
        if name not in table.names:
            raise InputError(f"{table.where} has no column {name!r}, which the model needs.")
    categories = [c.name for c in schema.columns if c.kind == "categorical"]
    summary = summarize(table, names, categorical=categories, label=label)
    if summary.rows < FEWEST_ROWS:
        raise InputError(f"{table.where} has {summary.rows} rows; a report needs {FEWEST_ROWS}.")
    return summary


def _gathered(
    schema: TableSchema,
    source: TableSummary,
    target: TableSummary,
    predicted: tuple[Floats, Labels],
    weights: Callable[[], Floats],
    measured_on: str,
) -> ReportFacts:
    left_out: dict[str, str] = {}

    def attempt(section: str, find: Callable[[], T]) -> T | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return find()
        except (HalfseenError, ValueError, ArithmeticError) as error:
            left_out[section] = str(error).partition("\n")[0]
            return None

    compared = attempt("shifted", lambda: column_facts(schema, source, target))
    columns, more = compared or ((), 0)
    return ReportFacts(
        measured_on=measured_on,
        source_rows=source.rows,
        target_rows=target.rows,
        columns=columns,
        more_columns=more,
        expectation=attempt(
            "expected", lambda: expectation(*predicted, weights(), target.rows, schema.label_kind)
        ),
        reliability=attempt("calibration", lambda: _reliability(*predicted, schema.class_names))
        if schema.classes
        else None,
        left_out=left_out,
    )


def expectation(
    shown: Floats, labels: Labels, weight: Floats, target_rows: int, kind: LabelKind
) -> Expectation:
    """Return what held-out source rows let expect of `target_rows` rows of the target."""
    expected = kind.expected(shown, labels)
    return Expectation(
        source={
            name: as_read(_estimate(source_validation(found.losses, level=LEVEL)), found.read)
            for name, found in expected.items()
        },
        target={
            name: as_read(on_target(found.losses, weight, target_rows, found.other), found.read)
            for name, found in expected.items()
        },
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


def _estimate(found: RiskEstimate) -> Estimate:
    return Estimate(value=found.risk, low=found.interval[0], high=found.interval[1])


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
