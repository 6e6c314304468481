"""What a user says of columns; the rest is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from halfseen.blocks import Blocks

__all__ = ["Missing", "Roles", "Task"]

Task = Literal["auto", "classification", "regression"]
"""What a label is; ``auto`` decides where there is no doubt."""

Missing = Blocks | Sequence[str] | Sequence[int] | npt.NDArray[np.bool_] | str | None
"""How a user may name the missing block in Python; None finds it."""


@dataclass(frozen=True)
class Roles:
    """What the user says of a table's columns.

    Parameters
    ----------
    label
        The column to predict.
    missing, keep
        Columns that the target lacks, and columns that it has although they look otherwise.
    categorical, drop, id
        Numbers that are names of categories, columns not to use, and columns carried through.
    numeric
        Columns of numbers in which texts stand for gaps.
    dates
        Columns of dates, of which the tables show parts.
    positive
        The class of two that metrics speak of.
    scale
        Whether numbers are centred and scaled by the source's mean and standard deviation.
    target_labels
        Whether labels that target rows have are used; None uses them where some rows lack one.
    in_python
        Whether messages speak of Python or of the command line.
    task
        What the label is: classes, an amount (``regression``), or what it is beyond doubt.
    weight
        Column of the source that says how much each row counts.
    """

    label: str
    missing: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    positive: str | None = None
    scale: bool = True
    in_python: bool = False
    numeric: tuple[str, ...] = ()
    dates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    target_labels: bool | None = None
    task: Task = "auto"
    weight: str | None = None

    @property
    def apart(self) -> set[str]:
        """Columns that are no inputs."""
        return {self.label, *self.id, *self.drop, *([] if self.weight is None else [self.weight])}

    def option(self, name: str, *columns: str) -> str:
        """Return how the user would say it.

        Examples
        --------
        >>> Roles("y").option("drop", "age"), Roles("y", in_python=True).option("drop", "age")
        ('--drop age', "drop=['age']")
        """
        return f"{name}={list(columns)}" if self.in_python else f"--{name} {','.join(columns)}"

    def said(self, name: str, value: str) -> str:
        """Return how the user would say one value.

        Examples
        --------
        >>> Roles("y").said("task", "regression"), Roles("y", in_python=True).said("task", "auto")
        ('--task regression', "task='auto'")
        """
        return f"{name}={value!r}" if self.in_python else f"--{name} {value}"
