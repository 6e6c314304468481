"""The page on reasons: which columns move the answers, over all rows and in each of them."""

from __future__ import annotations

from halfseen.explain.explanation import Explanation, shown
from halfseen.report.html import (
    Cell,
    Figures,
    Head,
    Page,
    Paragraph,
    Part,
    Section,
    grid,
    number,
    percent,
)
from halfseen.report.svg import signed_bar

MOST_COLUMNS = 30
"""Columns that a grid lists, those that move most."""
MOST_ROWS = 20
"""Rows that have a grid of their own."""
HOW_OVERALL = (
    "How much a column moves the {} on average, whatever the direction; it says what the model "
    "leans on, not what causes what."
)
HOW_ROWS = (
    "Beginning with typical rows, each column adds its part to the {}, and all of them together "
    "make the row's answer. Columns that follow each other share what they say."
)
ODDS = " Of log-odds, one means 2.7 times the odds."


def reasons_page(found: Explanation, name: str, table: str) -> Page:
    """Return the page on an explanation, by what the model and the rows are called."""
    moved = _moved(found)
    overall = HOW_OVERALL.format(moved) + (ODDS if found.class_names else "")
    sections = [
        Section("overall", "What the model leans on", overall, tuple(_overall(found))),
        Section("rows", "Row by row", HOW_ROWS.format(moved), tuple(_rows(found))),
    ]
    if found.missing is not None:
        sections.append(_missing(found))
    subtitle = f"{len(found):,} rows of {table}, compared with {found.compared_with}."
    return Page(f"Reasons of {name}", subtitle, tuple(sections))


def _moved(found: Explanation) -> str:
    return found.moved.replace("_", "-")


def _overall(found: Explanation) -> list[Part]:
    importance = found.importance
    most = max(importance.values(), default=0.0)
    rows = [
        (
            column,
            Cell("", drawing=signed_bar(value, most, f"{column}: {value:.2f}", signed=False)),
            number(value, ".3f" if found.class_names else ".4g"),
        )
        for column, value in list(importance.items())[:MOST_COLUMNS]
    ]
    more = len(importance) - MOST_COLUMNS
    notes = [f"{more:,} more columns move them less."] if more > 0 else []
    size = Head(f"{_moved(found)}, mean size", descending=True)
    titles = ("column", Head("moves", drawn=True), size)
    return [grid("Columns, those that move most first", titles, rows, notes)]


def _rows(found: Explanation) -> list[Part]:
    parts: list[Part] = [Figures((), (("filled", "raises the answer"), ("outlined", "lowers it")))]
    drawn, told = Head("adds", drawn=True), Head("value", numeric=False)
    titles = ("column", told, drawn, _moved(found), "standard error")
    form = ".2f" if found.class_names else ".4g"
    for place in range(min(len(found), MOST_ROWS)):
        row = found.row(place)
        listed = row["contributions"][:MOST_COLUMNS]
        most = max((abs(c[found.moved]) for c in listed), default=0.0)
        cells = []
        for c in listed:
            adds = c[found.moved]
            words = f"{c['column']} adds {adds:+{form}}"
            value, error = number(adds, f"+{form}"), number(c["standard_error"], form)
            drawing = Cell("", drawing=signed_bar(adds, most, words))
            cells.append((c["column"], shown(c["value"]), drawing, value, error))
        answer = (
            f"{row['probability']:.1%} for class {row['class']}"
            if found.class_names
            else f"{row['amount']:.4g}"
        )
        caption = f"Row {place + 1}: {answer}"
        parts.append(grid(caption, titles, cells, found.told(place)[1:], folded=place > 0))
    if len(found) > MOST_ROWS:
        parts.append(Paragraph(f"{len(found) - MOST_ROWS:,} more rows were explained."))
    return parts


def _missing(found: Explanation) -> Section:
    assert found.missing is not None
    titles: list[str | Head] = ["column", "variance told, on source rows"]
    titles += [Head(f"row {place + 1}", numeric=False) for place in range(min(len(found), 5))]
    rows: list[tuple[str | Cell, ...]] = [
        (
            column.name,
            percent(max(0.0, column.explained)),
            *("–" if v is None else shown(v) for v in column.values[:5]),
        )
        for column in found.missing
    ]
    note = (
        f"Values as {found.missing_by}, by ridge regression on source rows. A dash: nothing that "
        "is observed tells. The answer does not use these values."
    )
    how = "What the missing columns would hold in these rows, in their own units, and how sure."
    table = grid("Columns that the target lacks", titles, rows, [note])
    return Section("missing", "What is missing", how, (table,))
