"""Tables of several sites: which columns each target lacks, and what is understood of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfseen.data.column_spec import ColumnSpec, spelling
from halfseen.data.schema_inference import AmbiguousColumn, InferredTables, infer_schema
from halfseen.data.tables import PooledTable, Table
from halfseen.data.values import is_text
from halfseen.errors import InputError


def pooled(sites: Mapping[str, Table]) -> Table:
    """Return several tables as one; a single one is left as it is."""
    if len(sites) == 1:
        return next(iter(sites.values()))
    names = tuple(dict.fromkeys(name for table in sites.values() for name in table.names))
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(spelling(name), name)
        if other != name:
            raise InputError(
                f"One site has a column {other!r} and another {name!r}: if they are the same, "
                "give them one name; if not, drop one of them."
            )
    return PooledTable(dict(sites), names)


def infer_sites(
    sources: Mapping[str, Table],
    targets: Mapping[str, Table],
    spec: ColumnSpec,
    *,
    unlabelled: Mapping[str, Table] | None = None,
) -> list[InferredTables] | list[AmbiguousColumn]:
    """Look at the tables of several sites; return what was understood for each missing pattern.

    Complete rows of `unlabelled` tables join those of the sources; they have no label.

    A target's missing pattern are the columns that some source has and that it lacks, or has
    entirely empty. Targets of one pattern are pooled; one that lacks nothing joins every pattern,
    its columns of that pattern hidden. Sources are pooled.
    """
    for site, table in sources.items():
        if spec.label not in table.names and len(sources) > 1:
            raise InputError(
                f"The source {site} ({table.where}) has no column {spec.label!r} to take labels "
                "from: every source needs it."
            )
    for site, table in (unlabelled or {}).items():
        own = {spec.label, spec.weight, *spec.id, *spec.drop}
        lacking = [n for n in pooled(sources).names if n not in (*table.names, *own)]
        if lacking:
            raise InputError(
                f"The unlabelled table {site} ({table.where}) lacks column {lacking[0]!r}: its "
                "rows teach only if they are complete, as the source's are."
            )
    source = pooled({**sources, **(unlabelled or {})})
    candidates = [name for name in source.names if name not in spec.apart]
    patterns = {site: _pattern(table, candidates, spec) for site, table in targets.items()}
    different = list(dict.fromkeys(pattern for pattern in patterns.values() if pattern))
    whole = [site for site, pattern in patterns.items() if not pattern]
    if len(targets) == 1 or not different:
        found = infer_schema(source, pooled(targets), spec)
        return [found] if isinstance(found, InferredTables) else found
    understood: list[InferredTables] = []
    for pattern in different:
        members = [site for site, own in patterns.items() if own in (pattern, ())]
        said = replace(
            spec,
            missing=tuple(dict.fromkeys((*spec.missing, *pattern))),
            keep=tuple(name for name in spec.keep if name not in pattern),
        )
        part = infer_schema(source, pooled({site: targets[site] for site in members}), said)
        if not isinstance(part, InferredTables):
            return part
        if whole:
            part.notes.append(
                f"Rows of {', '.join(whole)}, which lacks nothing, are used as unlabelled target "
                "rows, the missing columns hidden."
            )
        understood.append(part)
    return understood


def _pattern(table: Table, candidates: Sequence[str], spec: ColumnSpec) -> tuple[str, ...]:
    """Return the columns that a target lacks, or has entirely empty, in the source's order."""
    shared = [n for n in candidates if n in table.names and n not in spec.missing]
    empty = empty_columns(table, shared)
    return tuple(name for name in candidates if name not in shared or name in empty)


def empty_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Return those columns in which no row has a value; reads on only while some may be empty."""
    left = list(columns)
    if not left:
        return []
    for batch in table.batches(columns):
        left = [name for name in left if not has_value(batch.column(name))]
        if not left:
            break
    return left


def has_value(column: Any) -> bool:
    """Whether a column is not entirely empty: nulls, NaN and empty texts are nothing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    empty = pc.is_null(column, nan_is_null=True)
    if is_text(column.type):
        empty = pc.or_kleene(empty, pc.equal(column.cast(pa.large_string()), ""))
    return not pc.all(empty, min_count=0).as_py()


def named_sites(given: Sequence[tuple[str, Table]], role: str) -> dict[str, Table]:
    """Return tables by name; refuse two of one name."""
    found: dict[str, Table] = {}
    for name, table in given:
        if name in found:
            raise InputError(
                f"Two {role}s are called {name!r} ({found[name].where} and {table.where}): give "
                "each a name of its own."
            )
        found[name] = table
    if not found:
        raise InputError(f"No {role} was given: name at least one table.")
    return found


def site_name(path: Path) -> str:
    """Return what a file's site is called: its name without endings."""
    return path.name.split(".")[0] or path.name
