"""A suite's results as tables: ours beside the paper's, problem by problem or all on one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from halfseen.bench.metrics import METRICS, metric_named
from halfseen.bench.models import Record
from halfseen.bench.paper import PAPER, PaperCell, paper_cell
from halfseen.bench.rendering import Table, Text
from halfseen.bench.tables import Cell, Row, RowKey, difference, row_key, summarize, values_by_seed
from halfseen.errors import InputError

__all__ = ["difference_tables", "overview_tables", "paper_tables", "problem_tables"]

NONE = Text("–")
CHOICES = (
    "last: final epoch, what a user gets.",
    "oracle: best epoch in hindsight, chosen with the target test labels.",
)


@dataclass(frozen=True)
class Setting:
    """What all runs of one table share."""

    pair: str
    layout: str
    source_rows: int
    budget: str
    preset: str

    @classmethod
    def of(cls, record: Record) -> Setting:
        """Return a record's setting."""
        return cls(*(record[name] for name in cls.__dataclass_fields__))

    @property
    def title(self) -> str:
        """The problem, and how many source rows were learned from."""
        return f"{self.pair}, {self.source_rows:,} source rows"


def problem_tables(
    records: Sequence[Record],
    metrics: Mapping[str, Sequence[str]],
    choices: Sequence[str] = (),
) -> list[Table]:
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
    for setting, found in _by_setting(records).items():
        for metric in metrics[setting.pair]:
            rows = summarize(found, metric)
            if any(row.cells for row in rows):
                tables.append(_problem_table(setting, metric, rows, choices))
    return _some(tables)


def overview_tables(
    records: Sequence[Record], metrics: Mapping[str, Sequence[str]], choice: str = "last"
) -> list[Table]:
    """Return one table per metric that counts: a row per model, three columns per problem."""
    by_metric: dict[str, dict[Setting, list[Row]]] = {}
    for setting, found in _by_setting(records).items():
        metric = metrics[setting.pair][0]
        rows = [row for row in summarize(found, metric) if _cell(row, choice) is not None]
        by_metric.setdefault(metric, {})[setting] = rows
    return _some([_overview(m, rows, choice) for m, rows in by_metric.items() if any(rows)])


def difference_tables(
    records: Sequence[Record],
    metrics: Mapping[str, Sequence[str]],
    versus: str,
    choice: str = "last",
) -> list[Table]:
    """Return each model minus one of them, seed by seed, with 95 % intervals.

    A model is compared with the unrefined one of that name in its own variant and divergence
    where there is one, else in the plain variant.
    """
    tables = []
    for setting, found in _by_setting(records).items():
        metric = metrics[setting.pair][0]
        runs: dict[RowKey, list[Record]] = {}
        for record in found:
            runs.setdefault(row_key(record), []).append(record)
        rows = []
        for key, own in runs.items():
            reference = _reference(runs, versus, key)
            if reference is None or reference == key:
                continue
            cell = difference(
                _values(own, metric, choice), _values(runs[reference], metric, choice), metric
            )
            if cell is not None:
                label = Row(key[0], key[1], key[2], {}, key[3]).label
                rows.append((Text(label), Text(key[1] or "–"), *_difference_cells(cell)))
        if rows:
            columns = ("model", "divergence", f"minus {versus}", "95 % interval", "runs")
            notes = (f"{_words(metric)}; epochs chosen by {choice}.", *_notes(setting))
            tables.append(Table(setting.title, columns, tuple(rows), notes))
    if not tables:
        raise InputError(f"No other model shares a seed with {versus!r} in these results.")
    return tables


def paper_tables(
    records: Sequence[Record], pairs: Sequence[str], variants: Sequence[str]
) -> list[Table]:
    """Return the paper's tables cell by cell on some pairs and variants, ours beside each.

    A cell that no run of ours answers is listed too, so that what is missing can be seen.
    """
    settings = _by_setting(records)
    cells = [cell for cell in PAPER if cell.pair in pairs and cell.variant in variants]
    if not cells:
        raise InputError("The paper has no cell on these pairs.")
    cells.sort(key=lambda cell: pairs.index(cell.pair))
    found: dict[tuple[str, str], list[tuple[Text, ...]]] = {}
    notes: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        title = (cell.table, cell.metric)
        row, of = _answer(cell, settings)
        answers = {} if row is None else row.cells
        label = Row(cell.model, cell.divergence, cell.refined, {}, cell.variant).label
        texts = [Text(word) for word in (cell.pair, label, cell.divergence or "–", str(cell))]
        for choice in ("last", "oracle"):
            mean = answers.get(choice)
            texts += [NONE if mean is None else Text(str(mean)), _minus_paper(mean, cell)]
        runs = max((mean.runs for mean in answers.values()), default=0)
        found.setdefault(title, []).append((*texts, Text(str(runs))))
        if of is not None:
            said = f"{of.pair}, {of.source_rows:,} source rows: {' '.join(_notes(of)[1:])}"
            known = notes.setdefault(title, [])
            known += [said] if said not in known else []
    ours = ("ours, last", "difference", "ours, oracle", "difference")
    columns = ("pair", "model", "divergence", "paper (best)", *ours, "seeds")
    return [
        Table(
            f"{table} of the paper: {METRICS[metric].title}",
            columns,
            tuple(lines),
            (
                f"{_words(metric)}; mean ± standard deviation.",
                *CHOICES,
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
            if _published(setting, row, cell.metric) == cell:
                return row, setting
    return None, None


def _problem_table(
    setting: Setting, metric: str, rows: Sequence[Row], wanted: Sequence[str]
) -> Table:
    choices = [c for c in _choices(rows) if not wanted or c in wanted]
    published = [_published(setting, row, metric) for row in rows]
    with_paper = any(published)
    compared = [choice for choice in ("last", "oracle") if choice in choices]
    best = {
        choice: _best([row.cells.get(choice) for row in _honest(rows)], metric)
        for choice in choices
    }
    most = max(cell.runs for row in rows for cell in row.cells.values())
    lines = []
    for row, paper in zip(rows, published, strict=True):
        line = [Text(row.label), Text(row.divergence or "–")]
        for choice in choices:
            line.append(_text(row.cells.get(choice), row, best[choice], most))
        if with_paper:
            line.append(Text(str(paper)) if paper else NONE)
            line += [_minus_paper(row.cells.get(choice), paper) for choice in compared]
        lines.append(tuple(line))
    columns = ["model", "divergence", *choices]
    if with_paper:
        columns += ["paper (best)", *(f"{choice} − paper" for choice in compared)]
    used = sorted({paper.table for paper in published if paper})
    source = (f"The paper's column: {', '.join(used)}.",) if used else ()
    notes = (
        f"{_words(metric)}; mean ± standard deviation over {_seeds(most)}.",
        *CHOICES,
        *_label_free(choices),
        *source,
        *_notes(setting),
    )
    return Table(f"{setting.title}: {METRICS[metric].title}", tuple(columns), tuple(lines), notes)


def _overview(metric: str, found: dict[Setting, list[Row]], choice: str) -> Table:
    keys = list(
        dict.fromkeys((row.label, row.divergence) for rows in found.values() for row in rows)
    )
    columns, notes = ["model", "divergence"], []
    lines = [[Text(label), Text(divergence or "–")] for label, divergence in keys]
    for setting, rows in found.items():
        by_key = {(row.label, row.divergence): row for row in rows}
        best = _best([_cell(row, choice) for row in _honest(rows)], metric)
        most = max((c.runs for row in rows for c in row.cells.values()), default=0)
        published = {key: _published(setting, row, metric) for key, row in by_key.items()}
        columns.append(setting.title)
        columns += ["paper (best)", "difference"] if any(published.values()) else []
        for key, line in zip(keys, lines, strict=True):
            row = by_key.get(key)
            cell = None if row is None else _cell(row, choice)
            line.append(NONE if row is None else _text(cell, row, best, most))
            if any(published.values()):
                paper = published.get(key)
                line += [Text(str(paper)) if paper else NONE, _minus_paper(cell, paper)]
        notes += [f"{setting.title}: {_seeds(most)}. {' '.join(_notes(setting)[1:])}"]
    title = f"{METRICS[metric].title}, epochs chosen by {choice}"
    rule = [note for note in CHOICES if note.startswith(choice)]
    return Table(
        title,
        tuple(columns),
        tuple(tuple(line) for line in lines),
        (f"{_words(metric)}; mean ± standard deviation.", *rule, YARDSTICKS, *notes),
    )


YARDSTICKS = (
    "Never bold: Full models, which are shown the target's missing inputs, and what uses target "
    "labels (ceilings, target prior)."
)


def _notes(setting: Setting) -> tuple[str, ...]:
    return (
        YARDSTICKS,
        f"Missing: {setting.layout}",
        f"Budget {setting.budget}, preset {setting.preset}.",
    )


def _by_setting(records: Sequence[Record]) -> dict[Setting, list[Record]]:
    found: dict[Setting, list[Record]] = {}
    for record in records:
        found.setdefault(Setting.of(record), []).append(record)
    return found


def _choices(rows: Sequence[Row]) -> list[str]:
    """Return the choices of epoch: last first, then label-free ones, the oracle at the end."""
    found = dict.fromkeys(choice for row in rows for choice in row.cells)
    middle = [choice for choice in found if choice not in ("last", "oracle")]
    return [c for c in ("last", *middle, "oracle") if c in found]


def _label_free(choices: Sequence[str]) -> tuple[str, ...]:
    names = [choice for choice in choices if choice not in ("last", "oracle")]
    return (f"{', '.join(names)}: the epoch that this label-free score chose.",) if names else ()


def _cell(row: Row, choice: str) -> Cell | None:
    """Return a row's cell; what has no epochs to choose from is the same under every choice."""
    return row.cells["last"] if set(row.cells) == {"last"} else row.cells.get(choice)


def _honest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a user could have."""
    return [row for row in rows if not row.is_yardstick]


def _best(cells: Sequence[Cell | None], metric: str) -> float | None:
    means = [cell.mean for cell in cells if cell is not None]
    return METRICS[metric].best(means) if means else None


def _text(cell: Cell | None, row: Row, best: float | None, most: int) -> Text:
    if cell is None:
        return NONE
    fewer = f" (n={cell.runs})" if cell.runs < most else ""
    return Text(f"{cell}{fewer}", bold=not row.is_yardstick and cell.mean == best)


def _published(setting: Setting, row: Row, metric: str) -> PaperCell | None:
    return paper_cell(
        setting.pair, row.model, row.divergence, metric, refined=row.refined, variant=row.variant
    )


def _minus_paper(cell: Cell | None, paper: PaperCell | None) -> Text:
    if cell is None or paper is None:
        return NONE
    return Text(_signed(cell.mean - paper.mean, cell.decimals))


def _signed(value: float, decimals: int) -> str:
    return f"{value:+.{decimals}f}".replace("-", "−")


def _difference_cells(cell: Cell) -> tuple[Text, ...]:
    interval = cell.interval
    spread = (
        "–"
        if interval is None
        else f"{_signed(interval[0], cell.decimals)} to {_signed(interval[1], cell.decimals)}"
    )
    decided = interval is not None and (interval[0] > 0 or interval[1] < 0)
    return Text(_signed(cell.mean, cell.decimals), decided), Text(spread), Text(str(cell.runs))


def _reference(keys: Iterable[RowKey], versus: str, key: RowKey) -> RowKey | None:
    candidates = [k for k in keys if k[0] == versus and not k[2]]
    _, divergence, _, variant = key
    return min(
        candidates,
        key=lambda k: (k[3] != variant, k[3] != "", k[1] != divergence, k[1] or ""),
        default=None,
    )


def _values(records: Sequence[Record], metric: str, choice: str) -> dict[int, float]:
    """Return values by seed; an outsider's single result serves every choice."""
    return values_by_seed(records, metric, choice) or values_by_seed(records, metric)


def _words(metric: str) -> str:
    found = metric_named(metric)
    title = f"{found.title[0].upper()}{found.title[1:]}"
    return f"{title} on the target test set, {found.better} is better"


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _some(tables: list[Table]) -> list[Table]:
    if not tables:
        raise InputError("There is no finished run to put into a table.")
    return tables
