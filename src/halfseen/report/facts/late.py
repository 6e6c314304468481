"""Facts for a report from tables that are given after the fit."""

from __future__ import annotations

import numpy as np

from halfseen.errors import InputError
from halfseen.evidence import fit_density_ratio
from halfseen.front.files import TableFiles
from halfseen.front.streaming import RowStream
from halfseen.front.summary import TableSummary, summarize
from halfseen.model.domains import Sample
from halfseen.model.model import TableModel
from halfseen.report.facts import ReportFacts
from halfseen.report.facts.gathering import Floats, Material, gather

__all__ = ["facts_of_tables"]

MOST_ROWS = 10_000
"""Rows of each table that models are asked about; columns are counted over all of them."""
FEWEST_ROWS = 20


def facts_of_tables(model: TableModel, source: TableFiles, target: TableFiles) -> ReportFacts:
    """Gather facts about a model from a complete, labelled table and a target's.

    The model may have been trained on these source rows, and the facts say so.
    """
    schema = model.schema
    categories = [c.name for c in schema.columns if c.kind == "categorical"]

    def seen(table: TableFiles, names: list[str], label: str | None) -> TableSummary:
        for name in [*names, *([] if label is None else [label])]:
            if name not in table.names:
                raise InputError(f"{table.path} has no column {name!r}, which the model needs.")
        return summarize(table, names, categorical=categories, label=label)

    one = seen(source, [c.name for c in schema.columns], schema.label)
    other = seen(target, [c.name for c in schema.observed], None)
    for summary in (one, other):
        if summary.rows < FEWEST_ROWS:
            raise InputError(
                f"{summary.table.path} has {summary.rows} rows; a report needs {FEWEST_ROWS}."
            )
    rows = Sample(*RowStream(source, schema, is_source=True).at_most(MOST_ROWS, one.rows))
    there, _ = RowStream(target, schema, is_source=False).at_most(MOST_ROWS, other.rows)
    half = np.random.default_rng(0).permutation(len(rows)) % 2 == 0
    observed = list(schema.blocks.observed)

    def weight() -> Floats:
        """Weigh each half of the rows by a ratio that was fitted on the other half."""
        found = np.empty(len(rows))
        for part in (half, ~half):
            ratio = fit_density_ratio(rows.inputs[~part][:, observed], there[:, observed])
            found[part] = ratio.weights(rows.inputs[part][:, observed])
        return found

    return gather(
        Material(
            schema=schema,
            options=model.options,
            seed=model.seed,
            source=one,
            target=other,
            networks=model.networks,
            measured_networks=model.networks,
            training=rows[np.flatnonzero(half)],
            measured=rows[np.flatnonzero(~half)],
            pictured=rows,
            target_rows=there,
            probability=model.score(schema.blocks.hide(rows.inputs)),
            labels=rows.labels,
            weight=weight,
            measured_on=f"{len(rows):,} rows of {source.path.name}, which the model may have been "
            "trained on: read these figures as too good",
        ),
        rows=True,
    )
