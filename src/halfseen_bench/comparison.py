"""A suite's results as tables: ours beside the paper's, problem by problem or all on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halfseen.errors import InputError
from halfseen_bench import cells
from halfseen_bench.cells import NONE, Setting
from halfseen_bench.metrics import METRICS
from halfseen_bench.models import Record
from halfseen_bench.paper import PAPER, PaperCell
from halfseen_bench.rendering import ResultTable, Text
from halfseen_bench.tables import Row, RowKey, label_of, summarize

__all__ = [
    "curve_tables",
    "difference_tables",
    "overview_tables",
    "paper_tables",
    "problem_tables",
]


def problem_tables(
    records: Sequence[Record],
    metrics: Mapping[str, Sequence[str]],
    choices: Sequence[str] = (),
) -> list[ResultTable]:
    """Return a table per problem and metric: a row per model, a column per choice of epoch.

    Parameters
    ----------
    records
        Those of one suite.
    metrics
        What to print, by name of the problem.
    choices
        Choices of epoch to show; all that there are by default.
    """
    tables = []
    for setting, found in cells.by_setting(records).items():
        for metric in metrics[setting.pair]:
            rows = summarize(found, metric)
            if any(row.cells for row in rows):
                tables.append(_problem_table(setting, metric, rows, choices))
    return cells.some_tables(tables)


def overview_tables(
    records: Sequence[Record], metrics: Mapping[str, Sequence[str]], choice: str = "last"
) -> list[ResultTable]:
    """Return one table per metric that counts: a row per model, three columns per problem."""
    by_metric: dict[str, dict[Setting, list[Row]]] = {}
    for setting, found in cells.by_setting(records).items():
        metric = metrics[setting.pair][0]
        rows = [row for row in summarize(found, metric) if cells.cell_at(row, choice) is not None]
        by_metric.setdefault(metric, {})[setting] = rows
    return cells.some_tables(
        [_overview(m, rows, choice) for m, rows in by_metric.items() if any(rows)]
    )


def difference_tables(
    records: Sequence[Record],
    metrics: Mapping[str, Sequence[str]],
    versus: str,
    choice: str = "last",
) -> list[ResultTable]:
    """Return each model minus one of them, seed by seed, with 95 % intervals."""
    tables = []
    columns = ("model", "divergence", f"minus {versus}", "95 % interval", "runs")
    for setting, found in cells.by_setting(records).items():
        metric = metrics[setting.pair][0]
        rows = [
            (
                Text(label_of(key)),
                Text(key[1] or "–"),
                *cells.difference_text(cell),
                Text(str(cell.runs)),
            )
            for key, cell in cells.paired_differences(found, metric, versus, choice).items()
        ]
        if rows:
            notes = (
                f"{cells.metric_words(metric)}; epochs chosen by {choice}.",
                *cells.setting_notes(setting),
            )
            tables.append(ResultTable(setting.title, columns, tuple(rows), notes))
    return _compared(tables, versus)


def curve_tables(
    records: Sequence[Record],
    metrics: Mapping[str, Sequence[str]],
    choice: str = "last",
    versus: str | None = None,
) -> list[ResultTable]:
    """Return a table per problem with a column per number of source rows.

    Its cells are means, or with `versus` differences from that model with 95 % intervals.
    """
    problems: dict[tuple[str, ...], dict[Setting, list[Record]]] = {}
    for setting, found in cells.by_setting(records).items():
        key = (setting.pair, setting.layout, setting.budget, setting.preset)
        problems.setdefault(key, {})[setting] = found
    tables = []
    for settings in problems.values():
        sizes = dict(sorted(settings.items(), key=lambda item: item[0].source_rows))
        first = next(iter(sizes))
        metric = metrics[first.pair][0]
        columns = [
            _means(found, metric, choice)
            if versus is None
            else _differences(found, metric, choice, versus)
            for found in sizes.values()
        ]
        keys = list(dict.fromkeys(key for column in columns for key in column))
        lines = [
            (Text(label_of(key)), Text(key[1] or "–"), *(c.get(key, NONE) for c in columns))
            for key in keys
        ]
        heads = [f"{setting.source_rows:,} source rows" for setting in sizes]
        minus = "" if versus is None else f", minus {versus} (95 % interval)"
        notes = (
            f"{cells.metric_words(metric)}; "
            + ("mean ± standard deviation; " if versus is None else "paired by seed; ")
            + f"epochs chosen by {choice}.",
            *cells.setting_notes(first),
        )
        if lines:
            title = f"{first.pair}: {METRICS[metric].title}{minus}"
            tables.append(ResultTable(title, ("model", "divergence", *heads), tuple(lines), notes))
    return cells.some_tables(tables) if versus is None else _compared(tables, versus)


def _means(records: Sequence[Record], metric: str, choice: str) -> dict[RowKey, Text]:
    rows = summarize(records, metric)
    best = cells.best_mean([cells.cell_at(row, choice) for row in cells.honest_rows(rows)], metric)
    most = max((cell.runs for row in rows for cell in row.cells.values()), default=0)
    return {row.key: cells.cell_text(cells.cell_at(row, choice), row, best, most) for row in rows}


def _differences(
    records: Sequence[Record], metric: str, choice: str, versus: str
) -> dict[RowKey, Text]:
    found = {}
    for key, cell in cells.paired_differences(records, metric, versus, choice).items():
        mean, interval = cells.difference_text(cell)
        found[key] = Text(f"{mean.text} ({interval.text})", mean.bold)
    return found


def _compared(tables: list[ResultTable], versus: str) -> list[ResultTable]:
    if not tables:
        raise InputError(f"No other model shares a seed with {versus!r} in these results.")
    return tables


def paper_tables(
    records: Sequence[Record], pairs: Sequence[str], variants: Sequence[str]
) -> list[ResultTable]:
    """Return the paper's tables cell by cell on some pairs and variants, ours beside each.

    A cell that no run of ours answers is listed too, so that what is missing can be seen.
    """
    settings = cells.by_setting(records)
    published = [cell for cell in PAPER if cell.pair in pairs and cell.variant in variants]
    if not published:
        raise InputError("The paper has no cell on these pairs.")
    published.sort(key=lambda cell: pairs.index(cell.pair))
    found: dict[tuple[str, str], list[tuple[Text, ...]]] = {}
    notes: dict[tuple[str, str], list[str]] = {}
    for cell in published:
        title = (cell.table, cell.metric)
        row, of = _answer(cell, settings)
        answers = {} if row is None else row.cells
        label = label_of((cell.model, cell.divergence, cell.refined, cell.variant))
        texts = [Text(word) for word in (cell.pair, label, cell.divergence or "–", str(cell))]
        for choice in ("last", "oracle"):
            mean = answers.get(choice)
            texts += [NONE if mean is None else Text(str(mean)), cells.minus_paper(mean, cell)]
        runs = max((mean.runs for mean in answers.values()), default=0)
        found.setdefault(title, []).append((*texts, Text(str(runs))))
        if of is not None:
            said = f"{of.title}: {cells.stated(of)}"
            known = notes.setdefault(title, [])
            known += [said] if said not in known else []
    ours = ("ours, last", "difference", "ours, oracle", "difference")
    columns = ("pair", "model", "divergence", "paper (best)", *ours, "seeds")
    return [
        ResultTable(
            f"{table} of the paper: {METRICS[metric].title}",
            columns,
            tuple(lines),
            (
                f"{cells.metric_words(metric)}; mean ± standard deviation.",
                *cells.CHOICES,
                *notes.get((table, metric), ()),
            ),
        )
        for (table, metric), lines in found.items()
    ]


def _answer(
    cell: PaperCell, settings: Mapping[Setting, Sequence[Record]]
) -> tuple[Row | None, Setting | None]:
    """Return our row for a cell of the paper, with its setting."""
    for setting, records in settings.items():
        for row in summarize(records, cell.metric) if setting.pair == cell.pair else ():
            if cells.published_cell(setting, row, cell.metric) == cell:
                return row, setting
    return None, None


def _problem_table(
    setting: Setting, metric: str, rows: Sequence[Row], wanted: Sequence[str]
) -> ResultTable:
    choices = [c for c in cells.choices_of(rows) if not wanted or c in wanted]
    published = [cells.published_cell(setting, row, metric) for row in rows]
    with_paper = any(published)
    compared = [choice for choice in ("last", "oracle") if choice in choices]
    best = {
        choice: cells.best_mean([row.cells.get(choice) for row in cells.honest_rows(rows)], metric)
        for choice in choices
    }
    most = max(cell.runs for row in rows for cell in row.cells.values())
    lines = []
    for row, paper in zip(rows, published, strict=True):
        line = [Text(row.label), Text(row.divergence or "–")]
        for choice in choices:
            line.append(cells.cell_text(row.cells.get(choice), row, best[choice], most))
        if with_paper:
            line.append(Text(str(paper)) if paper else NONE)
            line += [cells.minus_paper(row.cells.get(choice), paper) for choice in compared]
        lines.append(tuple(line))
    columns = ["model", "divergence", *choices]
    if with_paper:
        columns += ["paper (best)", *(f"{choice} − paper" for choice in compared)]
    used = sorted({paper.table for paper in published if paper})
    source = (f"The paper's column: {', '.join(used)}.",) if used else ()
    notes = (
        f"{cells.metric_words(metric)}; mean ± standard deviation over {cells.seed_count(most)}.",
        *cells.CHOICES,
        *cells.label_free(choices),
        *source,
        *cells.setting_notes(setting),
    )
    return ResultTable(
        f"{setting.title}: {METRICS[metric].title}", tuple(columns), tuple(lines), notes
    )


def _overview(metric: str, found: dict[Setting, list[Row]], choice: str) -> ResultTable:
    keys = list(
        dict.fromkeys((row.label, row.divergence) for rows in found.values() for row in rows)
    )
    columns, notes = ["model", "divergence"], []
    lines = [[Text(label), Text(divergence or "–")] for label, divergence in keys]
    for setting, rows in found.items():
        by_key = {(row.label, row.divergence): row for row in rows}
        best = cells.best_mean(
            [cells.cell_at(row, choice) for row in cells.honest_rows(rows)], metric
        )
        most = max((c.runs for row in rows for c in row.cells.values()), default=0)
        published = {key: cells.published_cell(setting, row, metric) for key, row in by_key.items()}
        columns.append(setting.title)
        columns += ["paper (best)", "difference"] if any(published.values()) else []
        for key, line in zip(keys, lines, strict=True):
            row = by_key.get(key)
            cell = None if row is None else cells.cell_at(row, choice)
            line.append(NONE if row is None else cells.cell_text(cell, row, best, most))
            if any(published.values()):
                paper = published.get(key)
                line += [Text(str(paper)) if paper else NONE, cells.minus_paper(cell, paper)]
        notes.append(f"{setting.title}: {cells.seed_count(most)}. {cells.stated(setting)}")
    title = f"{METRICS[metric].title}, epochs chosen by {choice}"
    rule = [note for note in cells.CHOICES if note.startswith(choice)]
    return ResultTable(
        title,
        tuple(columns),
        tuple(tuple(line) for line in lines),
        (
            f"{cells.metric_words(metric)}; mean ± standard deviation.",
            *rule,
            cells.YARDSTICKS,
            *notes,
        ),
    )
