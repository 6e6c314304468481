"""Tables as text: Markdown, CSV, LaTeX and HTML from one description."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from pandas.io.formats.style import Styler

from halfseen.errors import OptionError
from halfseen_bench.metrics import named


class Best(str):
    """The text of a cell that is bold: the best of its column, or a sure difference."""


@dataclass(frozen=True)
class ResultTable:
    """A titled table with notes under it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def with_rows(tables: Sequence[ResultTable], names: Sequence[str]) -> list[ResultTable]:
    """Return tables with the rows of some models alone; bold stays what is best of all rows."""
    kept = [
        replace(table, rows=tuple(row for row in table.rows if not {*names}.isdisjoint(row[:2])))
        for table in tables
    ]
    found = {cell for table in kept for row in table.rows for cell in row[:2]}
    if unknown := [name for name in names if name not in found]:
        raise OptionError(f"No table has a row {unknown[0]!r}.")
    return [table for table in kept if table.rows]


def markdown(tables: Sequence[ResultTable]) -> str:
    """Return tables as GitHub's Markdown."""

    def line(cells: Sequence[str]) -> str:
        shown = [f"**{cell}**" if isinstance(cell, Best) else cell for cell in cells]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in shown) + " |"

    parts = []
    for table in tables:
        lines = [f"### {table.title}", "", line(table.columns), "|---" * len(table.columns) + "|"]
        lines += map(line, table.rows)
        lines += ["", " ".join(table.notes)] if table.notes else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def comma_separated(tables: Sequence[ResultTable]) -> str:
    """Return tables as CSV, each row beginning with its table's title; the best are starred."""
    parts, columns = [], None
    for table in tables:
        rows = [
            (table.title, *(f"{cell}*" if isinstance(cell, Best) else cell for cell in row))
            for row in table.rows
        ]
        frame = pd.DataFrame(rows, columns=("table", *table.columns))
        parts.append(frame.to_csv(index=False, header=table.columns != columns))
        columns = table.columns
    return "".join(parts).rstrip("\n")


def latex(tables: Sequence[ResultTable]) -> str:
    """Return tables as LaTeX tabulars with booktabs' rules, in UTF-8."""
    parts = []
    for table in tables:
        styled = _styled(table, "latex").set_caption(_escaped(table.title))
        shape = "l" + "r" * (len(table.columns) - 1)
        text = styled.to_latex(hrules=True, convert_css=True, column_format=shape, position="h")
        notes = "".join(rf"\par\footnotesize {_escaped(note)}" + "\n" for note in table.notes)
        parts.append(text.replace(r"\end{table}", notes + r"\end{table}").rstrip())
    return "\n\n".join(parts)


def page(tables: Sequence[ResultTable]) -> str:
    """Return tables as one HTML page that needs no other file."""
    parts = [
        f"<h2>{html.escape(table.title)}</h2>\n{_styled(table, 'html').to_html()}"
        + "".join(f"<p>{html.escape(note)}</p>\n" for note in table.notes)
        for table in tables
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Results</title>\n'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>"
    )


FORMATS: dict[str, Callable[[Sequence[ResultTable]], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "latex": latex,
    "html": page,
}


def rendered(tables: Sequence[ResultTable], form: str) -> str:
    """Return tables in one of :data:`FORMATS`."""
    return named("format", form, FORMATS)(tables)


_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "p{color:#444;font-size:.9em;margin:.3rem 0}"
)


def _styled(table: ResultTable, escape: str) -> Styler:
    frame = pd.DataFrame(table.rows, dtype=object)  # columns of one name are numbered meanwhile
    bold = frame.map(lambda cell: "font-weight: bold" if isinstance(cell, Best) else "")
    escaped = html.escape if escape == "html" else _escaped
    styled = frame.style.apply(lambda _: bold, axis=None).hide(axis="index").format(escape=escape)
    return styled.relabel_index([escaped(name) for name in table.columns], axis=1)


def _escaped(text: str) -> str:
    for letter in "&%_#":
        text = text.replace(letter, f"\\{letter}")
    return text
