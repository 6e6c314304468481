"""The rest and the slice, and what is done on them: training and predicting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halfseen.errors import InputError
from halfseen.front.fronts import TableFront
from halfseen.front.schema import TableSchema
from halfseen.members import Sample
from halfseen.model.fitting import Hooks, fit_rows
from halfseen.model.model import Model
from halfseen.model.rows import Fold, PreparedRows
from halfseen.model.settings import FitSettings
from halfseen.selection import Evidence, Observed
from halfseen.splitting import held_out_count

__all__ = ["BASELINES", "RehearsalStage"]

BASELINES = {"Logistic regression": "regression", "Gradient-boosted trees": "boosted_trees"}
"""What a user would pick instead, on the observed columns, and the member that it is."""
HELD_OUT = 0.2
"""Share of the rest that no model is trained on."""
FEWEST = 5


@dataclass(frozen=True)
class RehearsalStage:
    """The rest, split, and the slice."""

    schema: TableSchema
    fold: Fold
    slice: Sample

    @classmethod
    def of(
        cls, schema: TableSchema, source: Sample, chosen: npt.NDArray[np.bool_], seed: int
    ) -> RehearsalStage:
        """Hold out a part of the rest, class by class."""
        rest, kind = np.flatnonzero(~chosen), schema.label_kind
        counts = kind.counts(source.labels[rest])
        if counts and min(counts) < FEWEST:
            raise InputError(
                f"Outside the slice there are {min(counts)} source rows of class "
                f"{schema.class_names[int(np.argmin(counts))]!r}; a rehearsal needs {FEWEST} of "
                "each."
            )
        strata = kind.strata(source.labels[rest])
        size = max(round(HELD_OUT * len(rest)), int(strata.max()) + 1)
        training, held_out = held_out_count(strata, size, seed)
        fold = Fold(source[rest[training]], source[rest[held_out]])
        return cls(schema, fold, source[np.flatnonzero(chosen)])

    def fit(self, settings: FitSettings, hooks: Hooks) -> Model:
        """Fit one model for the slice as for a target, its labels and missing block unseen."""
        blocks, kind = self.schema.blocks, self.schema.label_kind
        rows = PreparedRows(blocks, kind, blocks.hide(self.slice.inputs), None, [self.fold])
        return fit_rows(TableFront(self.schema), rows, settings, hooks).model

    def observed(self, model: Model) -> Observed:
        """Return what the scores can read off a fitted model, all rows of the slice in it."""
        held_out, samples = self.fold.held_out, (self.slice, self.fold.training)
        target, training = (self.schema.blocks.hide(sample.inputs) for sample in samples)
        hidden = self.schema.blocks.hide(held_out.inputs)
        return Observed(model, Evidence(hidden, held_out.labels, target, training))

    def baseline(self, name: str, seed: int) -> Observed:
        """Return what the scores can read off a baseline: one member alone, taught by nobody."""
        settings = FitSettings(members=(BASELINES[name],), effort="quick", align=False, seed=seed)
        return self.observed(self.fit(settings, Hooks()))
