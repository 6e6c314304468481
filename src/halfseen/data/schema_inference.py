"""From two summaries to a schema: which columns, of which kind, here where, prepared how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from halfseen.data.column_spec import (
    ColumnSpec,
    as_gaps,
    check_spec,
    check_spelling,
    extra_notes,
    listed,
    texts_problems,
    written_notes,
    zone_notes,
)
from halfseen.data.column_types import ColumnSummary
from halfseen.data.dates import expanded
from halfseen.data.label_column import FEWEST_ROWS, select_target, used_target_labels
from halfseen.data.preprocessing import select_scales
from halfseen.data.schema import CategoryColumn, NumberColumn, Role, Shape, TableSchema, Written
from halfseen.data.table_summary import TableSummary, summarize_as, summarize_source
from halfseen.data.tables import Table, empty_columns, pooled
from halfseen.data.values import quoted
from halfseen.errors import InputError, capitalized

FEWEST_TAUGHT = 0.1
"""Rows without a label, per labelled one, below which they would teach nothing."""
MOST_CATEGORIES = 64
"""Categories of a column that get an input of their own; the rest shares one."""
SKEWED = 2.0
"""Skewness from which a count is shown to the networks as its logarithm."""
MOSTLY_EMPTY = 0.5
"""Share of gaps on the target from which a column is asked about."""
CHANCE = 1e-3
"""A constant that chance would give less often than this is none of chance."""
FAMILIAR = 0.05
"""Share of source rows from which a value is one of many, and not a gap in disguise."""
MOST_PROBLEMS = 20
"""Problems that are told in full."""


@dataclass(frozen=True)
class AmbiguousColumn:
    """A column that the target has, but that looks as if it had never been measured there."""

    name: str
    reason: str


def ambiguous_columns(columns: Sequence[AmbiguousColumn], spec: ColumnSpec) -> InputError:
    """Return the error that asks whether columns were measured on the target."""
    reasons = "; ".join(f"{column.name!r} {column.reason}" for column in columns)
    names = [column.name for column in columns]
    return InputError(
        f"Was it measured on the target? Column {reasons}. Say {spec.option('missing', *names)} "
        f"if not, {spec.option('keep', *names)} if so."
    )


@dataclass
class InferredTables:
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
    unlabelled: int = 0
    """Source rows without a label."""


def infer_schema(
    source: Table, target: Table, spec: ColumnSpec, *, fewest: int = FEWEST_ROWS
) -> InferredTables | list[AmbiguousColumn]:
    """Look at both tables and return what was understood, or the columns to be asked about.

    They are no longer asked about once they are named in `missing` or `keep`. `fewest` is how many
    rows each class must have. The target may have labels in some rows.
    """
    refuse_all(check_spec(source, target, spec))
    candidates = [name for name in expanded(source.names, spec.dates) if name not in spec.apart]
    there_names = expanded(target.names, spec.dates)
    shared = [n for n in candidates if n in there_names and n not in spec.missing]
    problems = check_spelling(candidates, target, there_names, spec)
    notes = list(dict.fromkeys([*source.notes, *target.notes]))
    here = summarize_source(
        source,
        [name for name in source.names if name not in spec.apart],
        dates={name: of for name, of in spec.dates.items() if name not in spec.drop},
        categorical=spec.categorical,
        numeric=spec.numeric,
        label=spec.label,
        weight=spec.weight,
    )
    problems += [*here.problems, *texts_problems(here, spec)]
    refuse_all(problems)
    if not here.labelled:
        raise InputError(f"The label {spec.label!r} of {source.where} is empty in every row.")
    unlabelled = here.rows - here.labelled
    if unlabelled:
        taught = "teachers that see the missing columns label them"
        if unlabelled < FEWEST_TAUGHT * here.labelled:
            unlabelled, taught = 0, "so few that they are left out"
        notes.append(
            f"{here.labelled:,} source rows have a label; {here.rows - here.labelled:,} complete "
            f"rows have none: {taught}."
        )
    here.rows = here.labelled
    there = summarize_as(
        target,
        {n: c for n, c in here.columns.items() if n in shared and c.values != "nothing"},
        dates={name: of for name, of in here.dates.items() if name in target.names},
        numeric=spec.numeric,
        label=spec.label if spec.label in target.names else None,
        label_stored="text" if here.amounts is None else "number",
    )
    problems += there.problems + [
        f"Column {name!r} holds numbers in the source and texts such as {quoted(noted.text)} (row "
        f"{noted.row}) in {target.where}. Are they gaps? Then {as_gaps(name, spec)}."
        for name, noted in there.unread.gaps.items()
        if name not in there.dates
    ]
    notes += [*written_notes(here), *zone_notes(here, there), *extra_notes(source, target, spec)]
    useless = _useless(here, spec, notes, problems)
    names = [name for name in candidates if name not in useless]
    missing = [
        name
        for name in names
        if name in spec.missing or name not in there.columns or there.columns[name].holds_nothing
    ]
    if absent := [name for name in spec.keep if name in missing]:
        problems.append(
            f"{spec.option('keep', *absent)} says that it is measured on the target, and "
            f"{target.where} has no value of it."
        )
    refuse_all(problems)
    asked = [
        AmbiguousColumn(name, reason)
        for name in names
        if name not in (*missing, *spec.keep)
        and (reason := _asked(here.columns[name], there.columns[name]))
    ]
    if asked:
        return asked
    _check_missing(source, target, names, missing, spec)
    columns = tuple(
        _fitted(here.columns[name], "missing" if name in missing else "observed", here, spec)
        for name in names
    )
    for column in columns:
        if column.role == "observed":
            notes += _compare(column, here, there, spec, problems)
    refuse_all(problems)
    classes, amounts = select_target(here.labels, here.amounts, spec, fewest=fewest)
    labelled = 0
    if spec.label in target.names:
        labelled, sentence = used_target_labels(
            there.labels, there.rows, classes, spec, target.where
        )
        notes.append(sentence)
    schema = TableSchema(
        columns=columns,
        label=spec.label,
        classes=classes,
        amounts=amounts,
        positive=classes[-1] if spec.positive is not None else None,
        id=spec.id,
        dropped=(*(name for name in source.names if name in spec.drop), *useless),
        order=tuple(n for n in source.names if n not in spec.apart or n in spec.drop),
        dates=here.dates,
        weight=spec.weight,
        written={name: how for name, how in here.written.items() if how != Written()},
    )
    schema, note = select_scales(schema, here.sample, source.where, here.rows)
    notes += [note] if note else []
    counts = tuple(here.labels[value] for value in classes)
    return InferredTables(schema, here, there, counts, notes, labelled, unlabelled)


def infer_tables(
    sources: Sequence[Table],
    targets: Sequence[Table],
    spec: ColumnSpec,
    unlabelled: Sequence[Table] = (),
) -> list[InferredTables] | list[AmbiguousColumn]:
    """Look at several tables; return what was understood for each missing pattern.

    A target's missing pattern are the columns that some source has and that it lacks, or has
    entirely empty. Targets of one pattern are pooled; so are sources, with the complete rows of
    `unlabelled` tables, which have no label.
    """
    if not sources or not targets:
        raise InputError(f"No {'target' if sources else 'source'} was given: name one at least.")
    for table in sources:
        if spec.label not in table.names and len(sources) > 1:
            raise InputError(
                f"The source {table.where} has no column {spec.label!r} to take labels from: "
                "every source needs it."
            )
    for table in unlabelled:
        own = {spec.label, spec.weight, *spec.id, *spec.drop}
        lacking = [n for n in pooled(sources).names if n not in (*table.names, *own)]
        if lacking:
            raise InputError(
                f"The unlabelled table {table.where} lacks column {lacking[0]!r}: its rows teach "
                "only if they are complete, as the source's are."
            )
    source = pooled([*sources, *unlabelled])
    candidates = [name for name in source.names if name not in spec.apart]
    patterns: dict[tuple[str, ...], list[Table]] = {}
    for table in targets:
        shared = [n for n in candidates if n in table.names and n not in spec.missing]
        empty = empty_columns(table, shared) if len(targets) > 1 else []
        pattern = tuple(n for n in candidates if n not in shared or n in empty)
        patterns.setdefault(pattern, []).append(table)
    inferred: list[InferredTables] = []
    for pattern, own_targets in patterns.items():
        own_spec = spec
        if len(patterns) > 1:
            own_spec = replace(
                spec,
                missing=tuple(dict.fromkeys((*spec.missing, *pattern))),
                keep=tuple(name for name in spec.keep if name not in pattern),
            )
        part = infer_schema(source, pooled(own_targets), own_spec)
        if not isinstance(part, InferredTables):
            return part
        inferred.append(part)
    return inferred


def refuse_all(problems: Sequence[str]) -> None:
    """Make problems an error, all at once."""
    different = list(dict.fromkeys(problems))
    if len(different) == 1:
        raise InputError(different[0])
    if different:
        listing = "".join(f"\n- {problem}" for problem in different[:MOST_PROBLEMS])
        more = len(different) - MOST_PROBLEMS
        rest = f"\n- and {more} more of the kind." if more > 0 else ""
        raise InputError(f"{len(different)} things are wrong:{listing}{rest}")


def _useless(
    here: TableSummary, spec: ColumnSpec, notes: list[str], problems: list[str]
) -> list[str]:
    """Return columns that say nothing; refuse those that look like identifiers."""
    empty, constant = [], []
    for name, column in here.columns.items():
        if not column.known:
            empty.append(name)
        elif column.is_constant and not column.gaps:
            constant.append(name)
        many = column.has_more or len(column.counts) > max(column.known / 2, MOST_CATEGORIES)
        if column.values == "text" and many and name not in spec.categorical:
            more = "over " if column.has_more else ""
            id = " or" if spec.in_python else f" ({spec.option('id', name)}),"
            problems.append(
                f"Column {name!r} has {more}{len(column.counts):,} different texts in "
                f"{column.known:,} rows: is it an identifier{id} free text "
                f"({spec.option('drop', name)}), or numbers with other texts among them "
                f"({as_gaps(name, spec)})? {spec.option('categorical', name)} keeps its "
                f"{MOST_CATEGORIES} most frequent ones."
            )
    if empty:
        notes.append(f"Dropped, because the source has no value in them: {listed(empty)}.")
    if constant:
        notes.append(f"Dropped, because the source has one value in them: {listed(constant)}.")
    return empty + constant


class Unmeasured(NamedTuple):
    """Why a column that is there may yet be one that was never measured."""

    kind: Literal["gaps", "constant"]
    says: str
    """The words behind the column's name."""
    figures: dict[str, float]


def unmeasured(source: Shape, target: Shape) -> Unmeasured | None:
    """Say why a column may never have been measured: mostly empty, or one rare value alone."""
    if target.gaps > MOSTLY_EMPTY and source.gaps <= MOSTLY_EMPTY:
        figures = {"target": target.gaps, "source": source.gaps}
        says = f"is empty in {target.gaps:.0%} of the target's rows, and in {source.gaps:.0%} of"
        return Unmeasured("gaps", f"{says} the source's", figures)
    if target.distinct != 1 or source.distinct == 1:
        return None
    value = target.quantiles[0] if target.quantiles else next(iter(target.shares))
    share, shown = source.share(value), repr(value) if isinstance(value, str) else f"{value:g}"
    if share**target.known >= CHANCE:
        return None
    says = f"is {shown} in every target row, and varies in the source"
    return Unmeasured("constant", says, {"source share": share})


def _asked(source: ColumnSummary, target: ColumnSummary) -> str | None:
    """Say why a column is asked about; not where its only value is one of many of the source's."""
    doubt = unmeasured(source.shape(), target.shape())
    is_familiar = doubt and doubt.figures.get("source share", 0.0) >= FAMILIAR
    return None if doubt is None or is_familiar else doubt.says


def _check_missing(
    source: Table, target: Table, names: Sequence[str], missing: Sequence[str], spec: ColumnSpec
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
            f"with {'missing=[...]' if spec.in_python else '--missing'}."
        )


def _fitted(
    column: ColumnSummary, role: Role, here: TableSummary, spec: ColumnSpec
) -> NumberColumn | CategoryColumn:
    """Return a column with the numbers that prepare it."""
    shape = column.shape() if role == "observed" else None
    if column.values == "text":
        rare = min(10, math.ceil(0.02 * column.known))
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
            f"Column {column.name!r} of {here.table.where} holds numbers up to "
            f"{max(abs(column.least), abs(column.most)):g}, too large to be scaled; rescale it, "
            f"or drop it with {spec.option('drop', column.name)}."
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
        strays=column.name in spec.numeric,
        shape=shape,
        written=column.written,
    )


def _compare(
    column: NumberColumn | CategoryColumn, here: TableSummary, there: TableSummary,
    spec: ColumnSpec, problems: list[str],
) -> list[str]:  # fmt: skip
    """Note what differs on the target, and refuse what cannot be the same column."""
    name, notes = column.name, list[str]()
    source, target = here.columns[name], there.columns[name]
    if target.gaps and not source.gaps:
        filled = "most frequent category" if column.kind == "categorical" else "median"
        notes.append(
            f"{name} has {target.gaps:,} gaps on the target and none on the source: they get the "
            f"source's {filled}."
        )
    unseen = [value for value in target.counts if value not in source.counts]
    if column.kind == "categorical" and target.values == "text" and unseen:
        if len(unseen) == len(target.counts) and not target.has_more:
            problems.append(
                f"No value of column {name!r} of {there.table.where} occurs in the source: the "
                f"target has {listed(unseen)}, the source {listed(column.categories)}. Spell them "
                f"alike, or leave the column out: {spec.option('drop', name)}."
            )
        rows = sum(target.counts[value] for value in unseen)
        notes.append(
            f"{name} has categories on the target that the source never had: {listed(unseen)} "
            f"({rows:,} rows)."
        )
    return notes
