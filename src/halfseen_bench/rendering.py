"""Tables as text: Markdown, CSV, LaTeX and HTML from one description."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from halfseen.errors import OptionError

__all__ = ["FORMATS", "ResultTable", "Text", "rendered", "with_rows"]


@dataclass(frozen=True)
class Text:
    """One cell; the best of its column is bold."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class ResultTable:
    """A titled table with notes under it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    notes: tuple[str, ...] = ()


def with_rows(tables: Sequence[ResultTable], names: Sequence[str]) -> list[ResultTable]:
    """Return tables with the rows of some models alone; bold stays what is best of all rows.

    Examples
    --------
    >>> table = ResultTable("", ("model",), ((Text("A"),), (Text("B"),)))
    >>> with_rows([table], ["B"])[0].rows
    ((Text(text='B', bold=False),),)
    """
    kept = [
        replace(table, rows=tuple(r for r in table.rows if any(c.text in names for c in r[:2])))
        for table in tables
    ]
    found = {cell.text for table in kept for row in table.rows for cell in row[:2]}
    if unknown := [name for name in names if name not in found]:
        raise OptionError(f"No table has a row {unknown[0]!r}.")
    return [table for table in kept if table.rows]


def markdown(tables: Sequence[ResultTable]) -> str:
    """Return tables as GitHub's Markdown.

    Examples
    --------
    >>> rows = ((Text("A"), Text("1.0", True)),)
    >>> print(markdown([ResultTable("usps:mnist", ("model", "last"), rows)]))
    ### usps:mnist
    <BLANKLINE>
    | model | last |
    |---|---|
    | A | **1.0** |
    """
    parts = []
    for table in tables:
        lines = [f"### {table.title}", "", _piped(table.columns), "|---" * len(table.columns) + "|"]
        lines += [
            _piped([f"**{c.text}**" if c.bold else c.text for c in row]) for row in table.rows
        ]
        if table.notes:
            lines += ["", " ".join(table.notes)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def comma_separated(tables: Sequence[ResultTable]) -> str:
    """Return tables as CSV, each row beginning with its table's title; the best are starred."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns: tuple[str, ...] | None = None
    for table in tables:
        if table.columns != columns:
            columns = table.columns
            writer.writerow(("table", *columns))
        for row in table.rows:
            writer.writerow((table.title, *(f"{c.text}*" if c.bold else c.text for c in row)))
    return buffer.getvalue().rstrip("\n")


def latex(tables: Sequence[ResultTable]) -> str:
    """Return tables as LaTeX tabulars with booktabs' rules."""
    parts = []
    for table in tables:
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escaped(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}",
            r"\toprule",
            " & ".join(_escaped(name) for name in table.columns) + r" \\",
            r"\midrule",
        ]
        for row in table.rows:
            cells = [rf"\textbf{{{_escaped(c.text)}}}" if c.bold else _escaped(c.text) for c in row]
            lines.append(" & ".join(cells) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\footnotesize {_escaped(note)}" for note in table.notes]
        parts.append("\n".join([*lines, r"\end{table}"]))
    return "\n\n".join(parts)


def page(tables: Sequence[ResultTable]) -> str:
    """Return tables as one HTML page that needs no other file."""
    parts = []
    for table in tables:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
        body = "\n".join(
            "<tr>"
            + "".join(
                f"<td><b>{html.escape(c.text)}</b></td>"
                if c.bold
                else f"<td>{html.escape(c.text)}</td>"
                for c in row
            )
            + "</tr>"
            for row in table.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.notes)
        parts.append(
            f"<h2>{html.escape(table.title)}</h2>\n<table>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}\n</tbody>\n</table>\n{notes}"
        )
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
    if form not in FORMATS:
        raise OptionError(f"There is no format {form!r}; there are {', '.join(FORMATS)}.")
    return FORMATS[form](tables)


_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "p{color:#444;font-size:.9em;margin:.3rem 0}"
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "λ": r"$\lambda$",
    "→": r"$\rightarrow$",
    "≥": r"$\ge$",
    "<": r"$<$",
    ">": r"$>$",
}


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
