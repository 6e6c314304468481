"""Where facts for a report come from: a fit that has just ended, or tables that are given later."""

from __future__ import annotations

import numpy as np

from halfseen.arrays import Floats
from halfseen.errors import InputError
from halfseen.evidence import fit_density_ratio
from halfseen.front.inference import Understanding
from halfseen.front.streaming import RowStream
from halfseen.front.summary import TableSummary, summarize
from halfseen.front.tables import Table
from halfseen.members import Sample
from halfseen.metrics import metrics_of
from halfseen.model.fitting import Candidate, Fit
from halfseen.model.model import Model
from halfseen.report.facts import CandidateFacts, ReportFacts
from halfseen.report.facts.gathering import FactSources, estimate, gather

__all__ = ["facts_of_fit", "facts_of_tables"]

MOST_ROWS = 10_000
"""Rows of each table that models are asked about; columns are counted over all of them."""
FEWEST_ROWS = 20


def facts_of_fit(found: Understanding, fit: Fit, *, rows: bool) -> ReportFacts:
    """Return what a report will show of a fit; `rows` says whether single latents are kept."""
    fold, whole, chosen = fit.rows.folds[-1], fit.rows.whole, fit.chosen
    held_out = chosen.held_out
    assert held_out is not None
    model = fit.model
    measured = Model(model.front, chosen.members, model.weights, model.seed)
    sources = FactSources(
        schema=model.schema,
        source=found.source,
        target=found.target,
        model=model,
        measured_model=measured,
        training=fold.training,
        measured=fold.held_out,
        pictured=fold.held_out if whole is None or not fit.rows.refits_networks else whole,
        target_rows=fit.rows.target,
        probability=held_out.probabilities(),
        labels=held_out.labels,
        weight=lambda: fit.weights,
        measured_on=f"{len(held_out.labels):,} source rows, each held out of the training that "
        "predicted it",
    )
    facts = gather(sources, rows=rows)
    if facts.expectation is None:  # no weights, so no risks either
        return facts
    compared = tuple(_candidate(c, fit.weights, chosen=c is chosen) for c in fit.candidates)
    return facts.model_copy(update={"candidates": compared})


def _candidate(candidate: Candidate, weights: Floats, *, chosen: bool) -> CandidateFacts:
    """Return how a candidate stood among the others."""
    assert candidate.held_out is not None
    measured = metrics_of(candidate.held_out.probabilities(), candidate.held_out.labels)
    return CandidateFacts(
        model=candidate.method.name,
        accuracy=measured["accuracy"],
        cross_entropy=measured["cross_entropy"],
        auc=measured["auc"],
        risk=estimate(candidate.risk(weights)),
        chosen=chosen,
    )


def facts_of_tables(model: Model, source: Table, target: Table) -> ReportFacts:
    """Gather facts about a model from a complete, labelled table and a target's.

    The model may have been trained on these source rows, and the facts say so.
    """
    schema = model.schema
    categories = [c.name for c in schema.columns if c.kind == "categorical"]

    def seen(table: Table, names: list[str], label: str | None) -> TableSummary:
        for name in [*names, *([] if label is None else [label])]:
            if name not in table.names:
                raise InputError(f"{table.where} has no column {name!r}, which the model needs.")
        return summarize(table, names, categorical=categories, label=label)

    one = seen(source, [c.name for c in schema.columns], schema.label)
    other = seen(target, [c.name for c in schema.observed], None)
    for summary in (one, other):
        if summary.rows < FEWEST_ROWS:
            raise InputError(
                f"{summary.table.where} has {summary.rows} rows; a report needs {FEWEST_ROWS}."
            )
    rows = Sample(*RowStream(source, schema, is_source=True).at_most(MOST_ROWS, one.rows))
    target_rows, _ = RowStream(target, schema, is_source=False).at_most(MOST_ROWS, other.rows)
    half = np.random.default_rng(0).permutation(len(rows)) % 2 == 0
    observed = list(schema.blocks.observed)

    def weight() -> Floats:
        """Weigh each half of the rows by a ratio that was fitted on the other half."""
        found = np.empty(len(rows))
        for part in (half, ~half):
            ratio = fit_density_ratio(rows.inputs[~part][:, observed], target_rows[:, observed])
            found[part] = ratio.weights(rows.inputs[part][:, observed])
        return found

    return gather(
        FactSources(
            schema=schema,
            source=one,
            target=other,
            model=model,
            measured_model=model,
            training=rows[np.flatnonzero(half)],
            measured=rows[np.flatnonzero(~half)],
            pictured=rows,
            target_rows=target_rows,
            probability=model.score(schema.blocks.hide(rows.inputs)),
            labels=rows.labels,
            weight=weight,
            measured_on=f"{len(rows):,} rows of {source.where}, which the model may have been "
            "trained on: read these figures as too good",
        ),
        rows=True,
    )
