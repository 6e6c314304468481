"""A fitted model of tables: raw columns in, class probabilities out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from pydantic import ValidationError

from halfseen.arrays import normalized
from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.front.preprocessing import has_missing_block, transform
from halfseen.front.schema import TableSchema
from halfseen.networks import nets
from halfseen.networks.methods import Method, method_named
from halfseen.options import Options
from halfseen.report.facts import ReportFacts
from halfseen.saving.folder import Description, write_model

__all__ = ["TableModel"]

KIND = "table"


@dataclass
class TableModel:
    """A schema with the networks that were trained on its inputs.

    Parameters
    ----------
    schema
        What a table must hold, and how its columns become inputs.
    method
        One of the seven models.
    options, seed
        Every setting of the training.
    networks
        g1, g2, r and f.
    metrics, training_data, history
        On held-out source rows; fingerprints of the tables; one record per epoch.
    versions
        Of the libraries that it was trained with.
    report
        What ``halfseen report`` shows beside all this. A fit gives it and :meth:`save` writes it;
        loading leaves it in the folder.
    """

    schema: TableSchema
    method: Method
    options: Options
    seed: int
    networks: nets.Networks
    metrics: dict[str, Any] = field(default_factory=dict)
    training_data: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    report: ReportFacts | None = None

    @property
    def blocks(self) -> Blocks:
        """Which inputs of the networks are missing on the target."""
        return self.schema.blocks

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The class labels, in the order of the probabilities."""
        return np.array(self.schema.classes)

    def predict_proba(
        self, table: Any, *, use_missing: bool = False, where: str = "X", first_row: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each class, one row each.

        Parameters
        ----------
        table
            An Arrow record batch or table, or a pandas or polars data frame, with the observed
            columns in any order.
        use_missing
            Whether rows in which all columns of the missing block have a value are scored with
            them, by f(g1(x1), g2(x2)), instead of with what r imputes.
        where, first_row
            What messages call the table, and the number of its first row.
        """
        table = as_arrow(table)
        if not table.num_rows:
            return np.empty((0, len(self.schema.classes)))
        known = np.zeros(table.num_rows, dtype=bool)
        if use_missing:
            known = has_missing_block(self.schema, table)
        complete = bool(known.any())
        inputs = transform(self.schema, table, complete=complete, where=where, first_row=first_row)
        if not complete or known.all():
            return self.score(inputs, complete=complete)
        probability = self.score(self.blocks.hide(inputs))
        probability[known] = self.score(inputs[known], complete=True)
        return probability

    def predict(self, table: Any, *, use_missing: bool = False) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        probability = self.predict_proba(table, use_missing=use_missing)
        predicted: npt.NDArray[Any] = self.classes_[probability.argmax(1)]
        return predicted

    def score(
        self, inputs: npt.NDArray[np.float32], *, complete: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return probabilities of rows that :func:`transform` has prepared."""
        rows = torch.from_numpy(inputs)
        if complete:
            scored = nets.complete_probabilities(self.networks, rows)
        else:
            samples = self.options.prediction_samples
            scored = nets.probabilities(self.networks, rows, samples=samples, seed=self.seed)
        return normalized(scored)

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder, which :func:`halfseen.load` reads."""
        facts = None if self.report is None else self.report.model_dump(mode="json")
        write_model(folder, self.description(), self.networks, report=facts)

    def description(self) -> Description:
        """Return all but the tensors, as plain data."""
        return Description(
            kind=KIND,
            method=self.method.name,
            options=self.options.model_dump(mode="json"),
            blocks=self.blocks.to_dict(),
            seed=self.seed,
            classes=list(self.schema.classes),
            details={"schema": self.schema.model_dump(mode="json")},
            versions=self.versions,
            metrics=self.metrics,
            training_data=self.training_data,
            history=self.history,
        )

    @classmethod
    def restored(cls, folder: Path, description: Description, networks: nets.Networks) -> Self:
        """Return the model that a folder describes."""
        try:
            schema = TableSchema.model_validate(description.details.get("schema"))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"The schema of the model in {folder} cannot be understood: {place}: "
                f"{first['msg']}."
            ) from None
        if Blocks.from_dict(description.blocks) != schema.blocks:
            raise InputError(f"The schema of the model in {folder} does not fit its blocks.")
        return cls(
            schema,
            method_named(description.method),
            description.checked_options(),
            description.seed,
            networks,
            dict(description.metrics),
            dict(description.training_data),
            list(description.history),
            dict(description.versions),
        )


def as_arrow(table: Any) -> Any:
    """Return an Arrow table or record batch as it is, and a data frame as an Arrow table."""
    if isinstance(table, pa.RecordBatch | pa.Table):
        return table
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise InputError(
            f"A {type(table).__name__} is not a table: give an Arrow table or a data frame with "
            "column names."
        ) from None
    return frame.to_arrow()
