"""From two summaries to a schema: which columns, of which kind, seen where, prepared how."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from halfseen.data.column_spec import (
    ColumnSpec,
    as_gaps,
    check_spec,
    check_spelling,
    check_strays,
    listed,
    spelling,
)
from halfseen.data.column_summary import ColumnSummary
from halfseen.data.dates import expanded
from halfseen.data.label_column import FEWEST_ROWS, select_target, used_target_labels
from halfseen.data.scaling import select_scales
from halfseen.data.schema import CategoryColumn, NumberColumn, Role, TableSchema, Written
from halfseen.data.table_summary import TableSummary, summarize_as, summarize_source
from halfseen.data.tables import Table
from halfseen.data.values import quoted
from halfseen.errors import InputError, capitalized

FEWEST_OF_FEW = 2
"""Labelled rows that each class must have beside rows without a label."""
MOST_CATEGORIES = 64
"""Categories of a column that get an input of their own; the rest shares one."""
SKEWED = 2.0
"""Skewness from which a count is shown to the networks as its logarithm."""
MOSTLY_EMPTY = 0.5
"""Share of gaps on the target from which a column is asked about."""
CHANCE = 1e-3
"""A constant that chance would give less often than this is asked about."""
MOST_PROBLEMS = 20
"""Problems that are told in full."""
FAMILIAR = 0.05
"""Share of source rows from which a value is one of many, and not a gap in disguise."""


@dataclass(frozen=True)
class AmbiguousColumn:
    """A column that the target has, but that looks as if it had never been measured there."""

    name: str
    reason: str


def ambiguous_columns(doubts: Sequence[AmbiguousColumn], spec: ColumnSpec) -> InputError:
    """Return the error that asks whether columns were measured on the target."""
    reasons = "; ".join(f"{doubt.name!r} {doubt.reason}" for doubt in doubts)
    names = [doubt.name for doubt in doubts]
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
    source: Table,
    target: Table,
    spec: ColumnSpec,
    *,
    complete: bool = False,
    fewest: int = FEWEST_ROWS,
) -> InferredTables | list[AmbiguousColumn]:
    """Look at both tables and return what was understood, or the doubts to be settled first.

    A doubt is settled by naming its column in `missing` or `keep`. `complete` says that the models
    to be trained need a target that has every column, `fewest` how many rows each class must have.
    The target may have labels in some rows.
    """
    problems = check_spec(source, target, spec)
    if complete and spec.missing:
        problems.append(
            f"{spec.option('missing', *spec.missing)} contradicts a Full model, "
            "which uses every column of the target: leave it out, or ask for another model."
        )
    refuse_all(problems)
    here, there_names = expanded(source.names, spec.dates), expanded(target.names, spec.dates)
    candidates = [name for name in here if name not in spec.apart]
    shared = [n for n in candidates if n in there_names and n not in spec.missing]
    problems = check_spelling(candidates, target, there_names, spec)
    notes = list(dict.fromkeys([*source.notes, *target.notes]))
    seen = summarize_source(
        source,
        [name for name in source.names if name not in spec.apart],
        dates={name: of for name, of in spec.dates.items() if name not in spec.drop},
        categorical=spec.categorical,
        numeric=spec.numeric,
        label=spec.label,
        weight=spec.weight,
    )
    problems += [*seen.problems, *check_strays(seen, spec)]
    refuse_all(problems)
    every, seen.rows = seen.rows, seen.labelled
    if not seen.rows:
        raise InputError(f"The label {spec.label!r} of {source.where} is empty in every row.")
    unlabelled = every - seen.rows
    if unlabelled:
        fewest = min(fewest, FEWEST_OF_FEW)
        notes.append(
            f"{seen.rows:,} source rows have a label; {unlabelled:,} complete rows have none: "
            "teachers that see the missing columns label them."
        )
    there = summarize_as(
        target,
        {n: c for n, c in seen.columns.items() if n in shared and c.values != "nothing"},
        dates={name: of for name, of in seen.dates.items() if name in target.names},
        numeric=spec.numeric,
        label=spec.label if spec.label in target.names else None,
        label_stored="text" if seen.amounts is None else "number",
    )
    problems += [*there.problems, *_unread_problems(there, spec)]
    notes += [*written_notes(seen), *_zone_notes(seen, there)]
    extra = [name for name in target.names if name not in source.names]
    if extra:
        notes.append(f"Ignored, because the source lacks them: {listed(extra)}.")
        respelled = [name for name in extra if spelling(name) == spelling(spec.label)]
        if respelled and spec.label not in target.names:
            notes.append(
                f"{respelled[0]!r} of the target looks like the label {spec.label!r}: rename it "
                "if its labels are to be used."
            )
    useless = _useless(seen, spec, notes, problems)
    names = [name for name in candidates if name not in useless]
    missing: list[str] = []
    doubts: list[AmbiguousColumn] = []
    absent = [name for name in names if name not in there_names]
    if complete and absent:
        problems.append(
            f"A Full model needs a target with every column, and {target.where} lacks "
            f"{listed(absent)}."
        )
    for name in () if complete else names:
        column = there.columns.get(name)
        if name in spec.missing or column is None or column.holds_nothing:
            missing.append(name)
        elif name not in spec.keep and (reason := _suspicion(seen.columns[name], column)):
            doubts.append(AmbiguousColumn(name, reason))
    absent = [name for name in spec.keep if name in missing]
    if absent:
        problems.append(
            f"{spec.option('keep', *absent)} says that it is measured on the target, and "
            f"{target.where} has no value of it."
        )
    refuse_all(problems)
    if doubts:
        return doubts
    if not complete or not names:
        _check_missing(source, target, names, missing, spec)
    columns = tuple(
        _fitted(seen.columns[name], "missing" if name in missing else "observed", seen, spec)
        for name in names
    )
    for fitted in columns:
        if fitted.role == "observed":
            notes += _compare(fitted, seen, there, spec, problems)
    refuse_all(problems)
    classes, amounts = select_target(seen.labels, seen.amounts, spec, fewest=fewest)
    labelled = 0
    if spec.label in target.names:
        labelled, sentence = used_target_labels(
            there.labels, there.rows, classes, spec, there.table.where
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
        dates=seen.dates,
        weight=spec.weight,
        written={name: how for name, how in seen.written.items() if how != Written()},
    )
    schema, note = select_scales(schema, seen.sample, source.where, seen.rows)
    notes += [note] if note else []
    counts = tuple(seen.labels[value] for value in classes)
    return InferredTables(schema, seen, there, counts, notes, labelled, unlabelled)


def refuse_all(problems: Sequence[str]) -> None:
    """Make problems an error, all at once."""
    found = list(dict.fromkeys(problems))
    if len(found) == 1:
        raise InputError(found[0])
    if found:
        told = "".join(f"\n- {problem}" for problem in found[:MOST_PROBLEMS])
        more = len(found) - MOST_PROBLEMS
        rest = f"\n- and {more} more of the kind." if more > 0 else ""
        raise InputError(f"{len(found)} things are wrong:{told}{rest}")


def written_notes(seen: TableSummary) -> list[str]:
    """Say how texts were read that could be read in several ways."""
    columns = seen.undecided
    codes = [n for n, c in columns.items() if c.code and not c.categorical and not c.kinds["text"]]
    numbers = {n: c.written for n, c in seen.columns.items() if c.values == "number"}
    commas = [name for name, written in numbers.items() if written.decimal == ","]
    marked = [name for name, written in numbers.items() if written.marks]
    named = {
        name: [word for word, _ in column.words.most_common(3)]
        for name, column in columns.items()
        if column.words and name in seen.columns and seen.columns[name].values == "text"
    }
    notes = []
    if codes:
        notes.append(
            f"Kept as text, because numbers in them begin with 0 or are too long: {listed(codes)}."
        )
    if commas:
        notes.append(f"Read with decimal commas: {listed(commas)}.")
    if marked:
        notes.append(
            "Read as numbers without thousands separators, percent and currency signs: "
            f"{listed(marked)}."
        )
    for name, words in named.items():
        notes.append(
            f"{name} is a column of texts, so {listed([repr(word) for word in words])} is a "
            "category there: leave such cells empty if nothing is known."
        )
    return notes


def _unread_problems(there: TableSummary, spec: ColumnSpec) -> list[str]:
    """Say which columns of numbers hold something else on the target."""
    return [
        f"Column {name!r} holds numbers in the source and texts such as {quoted(noted.text)} (row "
        f"{noted.row}) in {there.table.where}. Are they gaps? Then {as_gaps(name, spec)}."
        for name, noted in there.unread.gaps.items()
        if name not in there.dates
    ]


def _zone_notes(seen: TableSummary, there: TableSummary) -> list[str]:
    """Say so where the times of a column are of several zones."""
    notes = []
    for name, of in seen.dates.items():
        zones = seen.zones.get(name, set()) | there.zones.get(name, set())
        if len(zones) > 1:
            shown = ", ".join(sorted(zone or "none" for zone in zones))
            notes.append(
                f"{name} has times of several zones ({shown}): all are read on the clock of "
                f"{of.zone or 'UTC'}; --dates {name}={','.join(of.parts)}@ZONE names another."
            )
    return notes


def _useless(
    seen: TableSummary, spec: ColumnSpec, notes: list[str], problems: list[str]
) -> list[str]:
    """Return columns that say nothing; refuse those that look like identifiers."""
    empty, constant = [], []
    for name, column in seen.columns.items():
        if column.is_empty:
            empty.append(name)
        elif column.is_constant and not column.gaps:
            constant.append(name)
        known = column.rows - column.gaps
        many = column.has_more or len(column.counts) > max(known / 2, MOST_CATEGORIES)
        if column.values == "text" and many and name not in spec.categorical:
            problems.append(
                f"Column {name!r} has {'over ' if column.has_more else ''}"
                f"{len(column.counts):,} different texts in {known:,} rows: is it an identifier"
                + (" or" if spec.in_python else f" ({spec.option('id', name)}),")
                + f" free text ({spec.option('drop', name)}), or numbers with other texts among "
                f"them ({as_gaps(name, spec)})? {spec.option('categorical', name)} keeps its "
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
            + (
                "with missing=[...], or ask for model='Adaptation-Full'."
                if spec.in_python
                else "with --missing, or ask for --models Adaptation-Full."
            )
        )


def _fitted(
    column: ColumnSummary, role: Role, seen: TableSummary, spec: ColumnSpec
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
    column: NumberColumn | CategoryColumn, seen: TableSummary, there: TableSummary,
    spec: ColumnSpec, problems: list[str],
) -> list[str]:  # fmt: skip
    """Note what differs on the target, and refuse what cannot be the same column."""
    name, where, notes = column.name, there.table.where, list[str]()
    source, target = seen.columns[name], there.columns[name]
    is_category = isinstance(column, CategoryColumn)
    if target.gaps and not source.gaps:
        filled = "most frequent category" if is_category else "median"
        notes.append(
            f"{name} has {target.gaps:,} gaps on the target and none on the source: they get the "
            f"source's {filled}."
        )
    unseen = [value for value in target.counts if value not in source.counts]
    if isinstance(column, CategoryColumn) and target.values == "text" and unseen:
        if len(unseen) == len(target.counts) and not target.has_more:
            problems.append(
                f"No value of column {name!r} of {where} occurs in the source: the target has "
                f"{listed(unseen)}, the source {listed(column.categories)}. Spell them alike, or "
                f"leave the column out: {spec.option('drop', name)}."
            )
        rows = sum(target.counts[value] for value in unseen)
        notes.append(
            f"{name} has categories on the target that the source never had: {listed(unseen)} "
            f"({rows:,} rows)."
        )
    return notes
