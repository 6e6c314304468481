"""From two summaries to a schema: which columns, of which kind, seen where, prepared how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from halfseen.errors import InputError, capitalized
from halfseen.front.labels import FEWEST_ROWS, settled_label, used_target_labels
from halfseen.front.preprocessing import is_number_text
from halfseen.front.roles import (
    Roles,
    as_gaps,
    check_roles,
    check_spelling,
    check_strays,
    listed,
    spelling,
)
from halfseen.front.scaling import settle_scales
from halfseen.front.schema import CategoryColumn, NumberColumn, Role, TableSchema
from halfseen.front.summary import ColumnSummary, EmptyLabelError, TableSummary, summarize
from halfseen.front.tables import Table, with_labels

MOST_CATEGORIES = 64
"""Categories of a column that get an input of their own; the rest shares one."""
SKEWED = 2.0
"""Skewness from which a count is shown to the networks as its logarithm."""
MOSTLY_EMPTY = 0.5
"""Share of gaps on the target from which a column is asked about."""
CHANCE = 1e-3
"""A constant that chance would give less often than this is asked about."""
FAMILIAR = 0.05
"""Share of source rows from which a value is one of many, and not a gap in disguise."""


@dataclass(frozen=True)
class Doubt:
    """A column that the target has, but that looks as if it had never been measured there."""

    name: str
    reason: str


def doubtful(doubts: Sequence[Doubt], roles: Roles) -> InputError:
    """Return the error that asks whether columns were measured on the target."""
    reasons = "; ".join(f"{doubt.name!r} {doubt.reason}" for doubt in doubts)
    names = [doubt.name for doubt in doubts]
    return InputError(
        f"Was it measured on the target? Column {reasons}. Say {roles.option('missing', *names)} "
        f"if not, {roles.option('keep', *names)} if so."
    )


@dataclass
class Understanding:
    """What was understood of two tables: the schema, what they hold, and notes for the user.

    `class_counts` are source rows of each class, in the schema's order, none where the label is an
    amount; `labelled` is the number of target rows whose labels are used.
    """

    schema: TableSchema
    source: TableSummary
    target: TableSummary
    class_counts: tuple[int, ...]
    notes: list[str] = field(default_factory=list)
    labelled: int = 0


def understand(
    source: Table, target: Table, roles: Roles, *, complete: bool = False, fewest: int = FEWEST_ROWS
) -> Understanding | list[Doubt]:
    """Look at both tables and return what was understood, or the doubts to be settled first.

    A doubt is settled by naming its column in `missing` or `keep`. `complete` says that the models
    to be trained need a target that has every column, `fewest` how many rows each class must have.
    The target may have labels in some rows.
    """
    check_roles(source, target, roles)
    if complete and roles.missing:
        raise InputError(
            f"{roles.option('missing', *roles.missing)} contradicts a Full model, "
            "which uses every column of the target: leave it out, or ask for another model."
        )
    candidates = [name for name in source.names if name not in roles.apart]
    shared = [n for n in candidates if n in target.names and n not in roles.missing]
    check_spelling(candidates, target, roles)
    read = partial(
        summarize, columns=candidates, categorical=roles.categorical, numeric=roles.numeric
    )
    notes = list(dict.fromkeys([*source.notes, *target.notes]))
    try:
        seen = read(source, label=roles.label)
    except EmptyLabelError:
        every = sum(batch.num_rows for batch in source.batches([roles.label]))
        source = with_labels(source, roles.label)
        seen = read(source, label=roles.label)
        if not seen.rows:
            raise InputError(
                f"The label {roles.label!r} of {source.where} is empty in every row."
            ) from None
        notes.append(f"Left out, because they have no label: {every - seen.rows:,} source rows.")
    check_strays(seen, roles)
    there = summarize(
        target,
        shared,
        categorical=[name for name, c in seen.columns.items() if c.values == "text"],
        numeric=roles.numeric,
        label=roles.label if roles.label in target.names else None,
        all_labelled=False,
    )
    extra = [name for name in target.names if name not in source.names]
    if extra:
        notes.append(f"Ignored, because the source lacks them: {listed(extra)}.")
        respelled = [name for name in extra if spelling(name) == spelling(roles.label)]
        if respelled and roles.label not in target.names:
            notes.append(
                f"{respelled[0]!r} of the target looks like the label {roles.label!r}: rename it "
                "if its labels are to be used."
            )
    useless = _useless(seen, roles, notes)
    names = [name for name in candidates if name not in useless]
    missing: list[str] = []
    doubts: list[Doubt] = []
    absent = [name for name in names if name not in target.names]
    if complete and absent:
        raise InputError(
            f"A Full model needs a target with every column, and {target.where} lacks "
            f"{listed(absent)}."
        )
    for name in () if complete else names:
        column = there.columns.get(name)
        if name in roles.missing or column is None or column.is_empty:
            missing.append(name)
        elif name not in roles.keep and (reason := _suspicion(seen.columns[name], column)):
            doubts.append(Doubt(name, reason))
    if doubts:
        return doubts
    if not complete or not names:
        _check_missing(source, target, names, missing, roles)
    columns = tuple(
        _fitted(seen.columns[name], "missing" if name in missing else "observed", seen, roles)
        for name in names
    )
    for fitted in columns:
        if fitted.role == "observed":
            notes += _compare(fitted, seen, there, roles)
    classes, amounts = settled_label(seen.labels, seen.amounts, roles, fewest=fewest)
    labelled = 0
    if roles.label in target.names:
        labelled, sentence = used_target_labels(
            there.labels, there.rows, classes, roles, there.table.where
        )
        notes.append(sentence)
    schema = TableSchema(
        columns=columns,
        label=roles.label,
        classes=classes,
        amounts=amounts,
        positive=classes[-1] if roles.positive is not None else None,
        id=roles.id,
        dropped=(*(name for name in source.names if name in roles.drop), *useless),
        order=tuple(n for n in source.names if n not in roles.apart or n in roles.drop),
        dates=dict(roles.dates),
        weight=roles.weight,
    )
    schema, note = settle_scales(schema, source, seen.rows)
    notes += [note] if note else []
    counts = tuple(seen.labels[value] for value in classes)
    return Understanding(schema, seen, there, counts, notes, labelled)


def _useless(seen: TableSummary, roles: Roles, notes: list[str]) -> list[str]:
    """Return columns that say nothing; refuse those that look like identifiers."""
    empty, constant = [], []
    for name, column in seen.columns.items():
        if column.is_empty:
            empty.append(name)
        elif column.is_constant and not column.gaps:
            constant.append(name)
        known = column.rows - column.gaps
        many = column.has_more or len(column.counts) > max(known / 2, MOST_CATEGORIES)
        if column.values == "text" and many and name not in roles.categorical:
            raise InputError(
                f"Column {name!r} has {'over ' if column.has_more else ''}"
                f"{len(column.counts):,} different texts in {known:,} rows: is it an identifier"
                + (" or" if roles.in_python else f" ({roles.option('id', name)}),")
                + f" free text ({roles.option('drop', name)}), or numbers with other texts among "
                f"them ({as_gaps(name, roles)})? {roles.option('categorical', name)} keeps its "
                f"{MOST_CATEGORIES} most frequent ones."
            )
    if empty:
        notes.append(f"Dropped, because the source has no value in them: {listed(empty)}.")
    if constant:
        notes.append(f"Dropped, because the source has one value in them: {listed(constant)}.")
    return empty + constant


def _suspicion(source: ColumnSummary, target: ColumnSummary) -> str | None:
    """Say why a column that is there may yet be one that was never measured."""
    if target.gap_share > MOSTLY_EMPTY and source.gap_share <= MOSTLY_EMPTY:
        return (
            f"is empty in {target.gap_share:.0%} of the target's rows, and in "
            f"{source.gap_share:.0%} of the source's"
        )
    if target.is_constant and not source.is_constant:
        (value,) = target.counts
        known, share = target.rows - target.gaps, source.share(value)
        if share < FAMILIAR and share**known < CHANCE:
            shown = repr(value) if isinstance(value, str) else f"{value:g}"
            return f"is {shown} in every target row, and varies in the source"
    return None


def _check_missing(
    source: Table, target: Table, names: Sequence[str], missing: Sequence[str], roles: Roles
) -> None:
    """Refuse a target that has nothing in common with the source, or lacks nothing of it."""
    if not names or len(missing) == len(names):
        raise InputError(
            f"{capitalized(target.where)} shares no usable column with {source.where}: there is "
            "nothing to predict from."
        )
    if not missing:
        raise InputError(
            f"{capitalized(target.where)} has a value for every column of {source.where} "
            f"(n_features={len(names)}), so nothing is missing there: name what was never measured "
            + (
                "with missing=[...], or ask for model='Adaptation-Full'."
                if roles.in_python
                else "with --missing, or ask for --models Adaptation-Full."
            )
        )


def _fitted(
    column: ColumnSummary, role: Role, seen: TableSummary, roles: Roles
) -> NumberColumn | CategoryColumn:
    """Return a column with the numbers that prepare it."""
    shape = column.shape() if role == "observed" else None
    if column.values == "text":
        rare = min(10, math.ceil(0.02 * (column.rows - column.gaps)))
        ranked = sorted(column.counts.items(), key=lambda item: (-item[1], item[0]))
        frequent = [value for value, count in ranked if count >= rare][:MOST_CATEGORIES]
        values = frequent or [ranked[0][0]]
        return CategoryColumn(
            kind="categorical",
            name=column.name,
            role=role,
            fill=values[0],
            indicator=column.gaps > 0,
            categories=tuple(sorted(values)),
            other=column.has_more or len(values) < len(column.counts),
            values=column.stored,
            shape=shape,
        )
    is_count = column.is_whole and column.least >= 0
    is_boolean = column.values == "boolean" or (is_count and set(column.counts) <= {0.0, 1.0})
    log = is_count and not is_boolean and column.moments().skewness > SKEWED
    moments = column.moments(log=log)
    if not math.isfinite(moments.spread) or not math.isfinite(moments.mean):
        raise InputError(
            f"Column {column.name!r} of {seen.table.where} holds numbers up to "
            f"{max(abs(column.least), abs(column.most)):g}, too large to be scaled; rescale it, "
            f"or drop it with {roles.option('drop', column.name)}."
        )
    return NumberColumn(
        kind="boolean" if is_boolean else "count" if is_count else "numeric",
        name=column.name,
        role=role,
        fill=column.median,
        indicator=column.gaps > 0,
        log=log,
        mean=moments.mean,
        scale=moments.spread if moments.spread > 0 else 1.0,
        strays=column.name in roles.numeric,
        shape=shape,
    )


def _compare(
    column: NumberColumn | CategoryColumn, seen: TableSummary, there: TableSummary, roles: Roles
) -> list[str]:
    """Note what differs on the target, and refuse what cannot be the same column."""
    name, where, notes = column.name, there.table.where, list[str]()
    source, target = seen.columns[name], there.columns[name]
    is_category = isinstance(column, CategoryColumn)
    if target.values == "text" and not is_category:
        texts = [text for text in target.counts if not is_number_text(text)]
        if texts:
            raise InputError(
                f"Column {name!r} holds numbers in the source and texts such as {texts[0]!r} in "
                f"{where}. Are they gaps? Then {as_gaps(name, roles)}."
            )
    if target.gaps and not source.gaps:
        filled = "most frequent category" if is_category else "median"
        notes.append(
            f"{name} has {target.gaps:,} gaps on the target and none on the source: they get the "
            f"source's {filled}."
        )
    unseen = [value for value in target.counts if value not in source.counts]
    if isinstance(column, CategoryColumn) and target.values == "text" and unseen:
        if len(unseen) == len(target.counts) and not target.has_more:
            raise InputError(
                f"No value of column {name!r} of {where} occurs in the source: the target has "
                f"{listed(unseen)}, the source {listed(column.categories)}. Spell them alike, or "
                f"leave the column out: {roles.option('drop', name)}."
            )
        rows = sum(target.counts[value] for value in unseen)
        notes.append(
            f"{name} has categories on the target that the source never had: {listed(unseen)} "
            f"({rows:,} rows)."
        )
    return notes
