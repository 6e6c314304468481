"""The page on reasons: which columns move the answers, over all rows and in each of them."""

from __future__ import annotations

from halfseen.explain import Explanation, shown
from halfseen.report.html import Cell, Figures, Head, Page, Paragraph, Part, Section, grid, number
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


def reasons_page(found: Explanation, name: str, table: str) -> Page:
    """Return the page on an explanation, by what the model and the rows are called."""
    moved = found.moved.replace("_", "-")
    overall = HOW_OVERALL.format(moved)
    if found.class_names:
        overall += " Of log-odds, one means 2.7 times the odds."
    sections = [
        Section("overall", "What the model leans on", overall, [_overall(found, moved)]),
        Section("rows", "Row by row", HOW_ROWS.format(moved), _rows(found, moved)),
    ]
    subtitle = f"{len(found):,} rows of {table}, compared with {found.compared_with}."
    return Page(f"Reasons of {name}", subtitle, sections)


def _overall(found: Explanation, moved: str) -> Part:
    importance = list(found.importance.items())
    most = max((value for _, value in importance), default=0.0)
    rows = [
        (
            column,
            Cell("", drawing=signed_bar(value, most, f"{column}: {value:.2f}", signed=False)),
            number(value, ".3f" if found.class_names else ".4g"),
        )
        for column, value in importance[:MOST_COLUMNS]
    ]
    more = len(importance) - MOST_COLUMNS
    notes = [f"{more:,} more columns move them less."] if more > 0 else []
    titles = ("column", Head("moves", drawn=True), Head(f"{moved}, mean size", descending=True))
    return grid("Columns, those that move most first", titles, rows, notes)


def _rows(found: Explanation, moved: str) -> list[Part]:
    parts: list[Part] = [Figures((), (("filled", "raises the answer"), ("outlined", "lowers it")))]
    drawn, value = Head("adds", drawn=True), Head("value", numeric=False)
    form = ".2f" if found.class_names else ".4g"
    for place in range(min(len(found), MOST_ROWS)):
        listed = found.row(place)["contributions"][:MOST_COLUMNS]
        most = max((abs(c[found.moved]) for c in listed), default=0.0)
        cells = []
        for c in listed:
            adds = c[found.moved]
            drawing = signed_bar(adds, most, f"{c['column']} adds {adds:+{form}}")
            numbers = number(adds, f"+{form}"), number(c["standard_error"], form)
            cells.append((c["column"], shown(c["value"]), Cell("", drawing=drawing), *numbers))
        sentence, *notes = found.told(place)
        titles = ("column", value, drawn, moved, "standard error")
        caption = f"Row {place + 1}: {sentence.partition(';')[0]}"
        parts.append(grid(caption, titles, cells, notes, folded=place > 0))
    if len(found) > MOST_ROWS:
        parts.append(Paragraph(f"{len(found) - MOST_ROWS:,} more rows were explained."))
    return parts
