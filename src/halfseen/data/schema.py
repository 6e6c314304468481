"""What a model expects of a table: plain data, ready for JSON, enough to prepare any row.

A schema is a list of input columns in the source's order. Each carries the numbers fitted on the
source that turn its raw values into inputs of the networks:

* a **number** v (kinds ``numeric``, ``count``, ``boolean``; a boolean is 0 or 1) becomes
  ``clip((g(v) - mean) / scale)``, where g is ``sign(v) log(1 + |v|)`` if `log` and else v;
* a **category** becomes one 0/1 input for each of `categories` in their order, then, if `other`,
  one more that is 1 for anything not among them;
* a **gap** (null, NaN, or the empty text) is first replaced by `fill`; then, if `indicator`, a
  last 0/1 input says that it was one.

Indicator and bucket exist only where the source has such rows: an input that is constant in
training would carry weights that nothing has trained. Without the bucket, a category that was
never seen has 0 in all inputs of its column. :mod:`halfseen.data.preprocessing` is these
sentences as code.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from halfseen.arrays import Floats
from halfseen.blocks import Blocks
from halfseen.targets import ClassTarget, RegressionTarget, Scalar, TargetType, class_name

Kind = Literal["numeric", "count", "boolean", "categorical"]
Role = Literal["observed", "missing"]
"""Whether the target has a column (x1) or only the source does (x2)."""


class _Plain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Shape(_Plain):
    """How a column is distributed: what alarms compare another table with."""

    rows: int
    gaps: float = Field(description="share of the rows without a value")
    distinct: int = Field(description="how many different values; 0 where they were not counted")
    quantiles: Annotated[tuple[float, ...], Field(max_length=21)] = Field(
        default=(), description="of numbers, at equal steps from the least to the greatest"
    )
    low: tuple[float, float, float] = Field(
        default=(0.0, 0.0, 0.0), description="the least number, its share, and the one after it"
    )
    high: tuple[float, float, float] = Field(
        default=(0.0, 0.0, 0.0), description="the greatest, alike"
    )
    shares: Annotated[dict[str, float], Field(max_length=64)] = Field(
        default={}, description="of the most frequent categories"
    )

    @property
    def known(self) -> float:
        """How many rows have a value."""
        return self.rows * (1 - self.gaps)

    def share(self, value: float | str) -> float:
        """Return how much of what has a value has this one, of numbers as the quantiles tell."""
        if isinstance(value, str):
            return self.shares.get(value, 0.0)
        edges = {edge[0]: edge[1] for edge in (self.high, self.low)}
        return edges.get(value, self.quantiles.count(value) / max(len(self.quantiles), 1))


class Written(_Plain):
    """How the numbers of a column are written where they are texts."""

    decimal: Literal[".", ","] = "."
    marks: Annotated[tuple[str, ...], Field(max_length=16)] = Field(
        default=(), description="thousands separators, percent and currency signs, brackets"
    )


class DateColumn(_Plain):
    """A column of dates, of which parts are read."""

    parts: tuple[str, ...]
    zone: str | None = Field(
        default=None, description="on whose clock; None where the source's times have no zone"
    )


class NumberColumn(_Plain):
    """A column of numbers, and how they are scaled."""

    kind: Literal["numeric", "count", "boolean"]
    name: str
    role: Role
    fill: float = Field(description="median of the source, in the place of a gap")
    indicator: bool = Field(description="whether a 0/1 input marks gaps")
    log: bool = Field(description="whether v becomes sign(v) log(1 + |v|)")
    mean: float = Field(description="subtracted after fill and log")
    scale: Annotated[float, Field(gt=0)] = Field(description="divides what is left")
    strays: bool = Field(default=False, description="whether texts that are no numbers are gaps")
    shape: Shape | None = Field(default=None, description="how the source's values are distributed")
    written: Written = Field(default=Written(), description="how texts are read as these numbers")

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.name, *_marker(self.name, self.indicator))


class CategoryColumn(_Plain):
    """A column of categories, one input for each."""

    kind: Literal["categorical"]
    name: str
    role: Role
    fill: str = Field(description="the source's most frequent category, in the place of a gap")
    indicator: bool = Field(description="whether a 0/1 input marks gaps")
    categories: Annotated[tuple[str, ...], Field(min_length=1)]
    other: bool = Field(description="whether rare and unseen categories share a 0/1 input")
    values: Literal["text", "number", "boolean"] = Field(
        description="what the source's file holds; a number is written as '3' or '0.5', a "
        "boolean as 'true' or 'false'"
    )
    shape: Shape | None = Field(default=None, description="how the source's values are distributed")

    @cached_property
    def known(self) -> frozenset[str]:
        """The categories that are told apart, and those of which the source's shares are known."""
        return frozenset((*self.categories, *(self.shape.shares if self.shape else ())))

    @property
    def inputs(self) -> tuple[str, ...]:
        named = tuple(f"{self.name}={category}" for category in self.categories)
        bucket = (f"{self.name} is other",) if self.other else ()
        return named + bucket + _marker(self.name, self.indicator)


Column = Annotated[NumberColumn | CategoryColumn, Field(discriminator="kind")]


class TableSchema(_Plain):
    """Every column of the source, its role, and its fitted preprocessing."""

    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    label: str
    classes: tuple[Scalar, ...] = Field(
        (), description="the label's values, in the order of the probabilities"
    )
    amounts: Shape | None = Field(
        default=None, description="how the label is distributed, where it is an amount"
    )
    positive: Scalar | None = Field(None, description="the class that one-sided metrics speak of")
    id: tuple[str, ...] = Field((), description="columns carried through to predictions")
    dropped: tuple[str, ...] = Field((), description="columns of the source that are not used")
    order: tuple[str, ...] = Field((), description="all of the source's inputs, dropped ones too")
    dates: dict[str, DateColumn] = Field(
        {}, description="columns of dates, and the parts that are read instead of each"
    )
    clip: float = Field(
        default=20.0, gt=0, description="scaled numbers are kept within minus and plus this"
    )
    weight: str | None = Field(None, description="column of the rows' weights, no input")
    written: dict[str, Written] = Field(
        {}, description="how label and weight are written, where it is not as programs do"
    )

    @field_validator("dates", mode="before")
    @classmethod
    def _with_parts(cls, dates: Any) -> Any:
        """Take what earlier versions wrote: the parts alone."""
        if not isinstance(dates, dict):
            return dates
        return {n: {"parts": of} if isinstance(of, list | tuple) else of for n, of in dates.items()}

    @model_validator(mode="after")
    def _predicts_something(self) -> TableSchema:
        names = self.class_names
        if self.amounts is None and (len(names) < 2 or len(set(names)) < len(names)):
            raise ValueError(f"the classes {list(names)} are not two or more different ones")
        if self.amounts is not None and names:
            raise ValueError("a label is an amount or has classes, not both")
        return self

    @property
    def target_type(self) -> TargetType:
        return ClassTarget(self.classes) if self.amounts is None else RegressionTarget()

    @property
    def observed(self) -> tuple[NumberColumn | CategoryColumn, ...]:
        return tuple(column for column in self.columns if column.role == "observed")

    @property
    def missing(self) -> tuple[NumberColumn | CategoryColumn, ...]:
        return tuple(column for column in self.columns if column.role == "missing")

    def cells(self, *, complete: bool = False) -> tuple[str, ...]:
        """Return the columns of a table that are read: dates instead of their parts."""
        made = {f"{name} {part}": name for name, of in self.dates.items() for part in of.parts}
        read = (column.name for column in (self.columns if complete else self.observed))
        return tuple(dict.fromkeys(made.get(name, name) for name in read))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the networks' inputs, in order."""
        return tuple(name for column in self.columns for name in column.inputs)

    @cached_property
    def blocks(self) -> Blocks:
        """Which inputs are missing: all those of a missing column."""
        hidden = [column.role == "missing" for column in self.columns for _ in column.inputs]
        positions = tuple(position for position, is_missing in enumerate(hidden) if is_missing)
        return Blocks((len(hidden),), positions, self.inputs)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes as text: probabilities of class c are in the column ``p_c``."""
        return tuple(class_name(value) for value in self.classes)


def _marker(name: str, indicator: bool) -> tuple[str, ...]:
    return (f"{name} is missing",) if indicator else ()


def signed_log(values: Floats) -> Floats:
    r"""Return sign(v) log(1 + \|v\|), which leaves small numbers as they are."""
    logged: Floats = np.sign(values) * np.log1p(np.abs(values))
    return logged
