"""A suite's results as tables: ours beside the paper's, problem by problem or all on one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from halfseen.errors import InputError
from halfseen_bench.metrics import METRICS
from halfseen_bench.models import Record
from halfseen_bench.paper import PAPER, PaperCell, paper_cell
from halfseen_bench.rendering import Best, ResultTable
from halfseen_bench.tables import (
    ResultCell,
    RowKey,
    Rows,
    Setting,
    by_setting,
    choices_of,
    signed,
    summarize,
    yardsticks,
)

CHOICES = (
    "last: final epoch, what a user gets.",
    "oracle: best epoch in hindsight, chosen with the target test labels.",
)
YARDSTICKS = (
    "Never bold: Full models, which are shown the target's missing inputs, and what uses target "
    "labels (ceilings, target prior)."
)
Metrics = Mapping[str, Sequence[str]]
"""What to print of each problem; the first one counts."""
Column = tuple[str, Mapping[RowKey, str]]


def published(setting: Setting, key: RowKey, metric: str) -> PaperCell | None:
    """Return the paper's number for a row of ours."""
    return paper_cell(setting.pair, *key[:2], metric, refined=key.refined, variant=key.variant)


def problem_tables(
    records: Sequence[Record], metrics: Metrics, choices: Sequence[str] = ()
) -> list[ResultTable]:
    """Return a table per problem and metric: a row per model, a column per choice of epoch."""
    tables = []
    for setting, found in by_setting(records).items():
        for metric in metrics[setting.pair]:
            rows = summarize(found, metric)
            if not any(rows.values()):
                continue
            shown = [c for c in choices_of(rows.values()) if not choices or c in choices]
            columns = [(c, _texts(rows, c, found, metric)) for c in shown]
            compared = [c for c in ("last", "oracle") if c in shown]
            papers = _paper_columns(setting, rows, metric, compared)
            if papers:
                names = ["paper (best)", *(f"{choice} − paper" for choice in compared)]
                columns += zip(names, papers, strict=True)
            free = [choice for choice in shown if choice not in ("last", "oracle")]
            used = {p.table for key in rows if (p := published(setting, key, metric))}
            notes = (
                f"{_words(metric)}; mean ± standard deviation over {_seeds(rows)}.",
                *CHOICES,
                *([f"{', '.join(free)}: the epoch that this label-free score chose."] * bool(free)),
                *([f"The paper's column: {', '.join(sorted(used))}."] * bool(used)),
                YARDSTICKS,
                setting.stated,
            )
            title = f"{setting.title}: {METRICS[metric].title}"
            tables.append(_joined(title, list(rows), columns, notes))
    return _some(tables)


def overview_tables(
    records: Sequence[Record], metrics: Metrics, choice: str = "last"
) -> list[ResultTable]:
    """Return one table per metric that counts: a row per model, three columns per problem."""
    by_metric: dict[str, dict[Setting, list[Record]]] = {}
    for setting, found in by_setting(records).items():
        by_metric.setdefault(metrics[setting.pair][0], {})[setting] = found
    tables = []
    for metric, settings in by_metric.items():
        keys: dict[RowKey, None] = {}
        columns: list[Column] = []
        notes = []
        for setting, found in settings.items():
            rows = _at(choice, found, metric)
            keys |= dict.fromkeys(rows)
            columns.append((setting.title, _texts(rows, choice, found, metric)))
            papers = _paper_columns(setting, rows, metric, [choice])
            columns += zip(("paper (best)", "difference"), papers, strict=False)
            notes.append(f"{setting.title}: {_seeds(rows)}. {setting.stated}")
        rule = [note for note in CHOICES if note.startswith(choice)]
        said = f"{_words(metric)}; mean ± standard deviation."
        title = f"{METRICS[metric].title}, epochs chosen by {choice}"
        if keys:
            tables.append(_joined(title, list(keys), columns, (said, *rule, YARDSTICKS, *notes)))
    return _some(tables)


def difference_tables(
    records: Sequence[Record], metrics: Metrics, versus: str, choice: str = "last"
) -> list[ResultTable]:
    """Return each model minus one of them, seed by seed, with 95 % intervals."""
    tables = []
    for setting, found in by_setting(records).items():
        metric = metrics[setting.pair][0]
        cells = _minus(found, metric, versus, choice)
        words = {key: (*cell.as_difference(), str(cell.runs)) for key, cell in cells.items()}
        heads = (f"minus {versus}", "95 % interval", "runs")
        columns = [(h, {key: w[i] for key, w in words.items()}) for i, h in enumerate(heads)]
        said = f"{_words(metric)}; epochs chosen by {choice}."
        if cells:
            notes = (said, YARDSTICKS, setting.stated)
            tables.append(_joined(setting.title, list(cells), columns, notes))
    return _some(tables, versus)


def curve_tables(
    records: Sequence[Record], metrics: Metrics, choice: str = "last", versus: str | None = None
) -> list[ResultTable]:
    """Return a table per problem with a column per number of source rows.

    Its cells are means, or with `versus` differences from that model with 95 % intervals.
    """
    problems: dict[Setting, dict[int, list[Record]]] = {}
    for setting, found in by_setting(records).items():
        problems.setdefault(setting._replace(source_rows=0), {})[setting.source_rows] = found
    tables = []
    for setting, sizes in problems.items():
        metric = metrics[setting.pair][0]
        columns: list[Column] = []
        for size, found in sorted(sizes.items()):
            if versus is None:
                texts = _texts(_at(choice, found, metric), choice, found, metric)
            else:
                texts = {}
                for key, cell in _minus(found, metric, versus, choice).items():
                    mean, interval = cell.as_difference()
                    texts[key] = type(mean)(f"{mean} ({interval})")
            columns.append((f"{size:,} source rows", texts))
        keys = list(dict.fromkeys(key for _, texts in columns for key in texts))
        minus = "" if versus is None else f", minus {versus} (95 % interval)"
        how = "mean ± standard deviation" if versus is None else "paired by seed"
        said = f"{_words(metric)}; {how}; epochs chosen by {choice}."
        if keys:
            title = f"{setting.pair}: {METRICS[metric].title}{minus}"
            tables.append(_joined(title, keys, columns, (said, YARDSTICKS, setting.stated)))
    return _some(tables, versus)


def paper_tables(
    records: Sequence[Record], pairs: Sequence[str], variants: Sequence[str]
) -> list[ResultTable]:
    """Return the paper's tables cell by cell on some pairs and variants, ours beside each.

    A cell that no run of ours answers is listed too, so that what is missing can be seen.
    """
    wanted = [cell for cell in PAPER if cell.pair in pairs and cell.variant in variants]
    if not wanted:
        raise InputError("The paper has no cell on these pairs.")
    settings = by_setting(records)
    lines: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    notes: dict[tuple[str, str], dict[str, None]] = {}
    for cell in sorted(wanted, key=lambda cell: pairs.index(cell.pair)):
        of = (cell.table, cell.metric)
        said = notes.setdefault(of, {})
        answers: dict[str, ResultCell] = {}
        for setting, found in settings.items():
            rows = summarize(found, cell.metric) if setting.pair == cell.pair else {}
            key = next((k for k in rows if published(setting, k, cell.metric) == cell), None)
            if key is not None:
                answers = rows[key]
                said[f"{setting.title}: {setting.stated}"] = None
                break
        label = RowKey(cell.model, cell.divergence, cell.refined, cell.variant).label
        texts = [cell.pair, label, cell.divergence or "–", str(cell)]
        for choice in ("last", "oracle"):
            ours = answers.get(choice)
            texts += ["–", "–"] if ours is None else [str(ours), _minus_paper(ours, cell)]
        runs = max((answer.runs for answer in answers.values()), default=0)
        lines.setdefault(of, []).append((*texts, str(runs)))
    ours_heads = ("ours, last", "difference", "ours, oracle", "difference")
    columns = ("pair", "model", "divergence", "paper (best)", *ours_heads, "seeds")
    return [
        ResultTable(
            f"{table} of the paper: {METRICS[metric].title}",
            columns,
            tuple(rows_),
            (f"{_words(metric)}; mean ± standard deviation.", *CHOICES, *notes[table, metric]),
        )
        for (table, metric), rows_ in lines.items()
    ]


def _joined(
    title: str, keys: Sequence[RowKey], columns: Sequence[Column], notes: Sequence[str]
) -> ResultTable:
    """Return a table of some rows; a dash stands where a column has nothing."""
    rows = (
        (key.label, key.divergence or "–", *(texts.get(key, "–") for _, texts in columns))
        for key in keys
    )
    heads = ("model", "divergence", *(head for head, _ in columns))
    return ResultTable(title, heads, tuple(rows), tuple(notes))


def _some(tables: list[ResultTable], versus: str | None = None) -> list[ResultTable]:
    """Return the tables, of which there must be one."""
    if not tables and versus is not None:
        raise InputError(f"No other model shares a seed with {versus!r} in these results.")
    if not tables:
        raise InputError("There is no finished run to put into a table.")
    return tables


def _at(choice: str, records: Iterable[Record], metric: str) -> Rows:
    """Return rows at one choice; what has no epochs to choose from is the same under each."""
    return {
        key: {choice: cells[choice if choice in cells else "last"]}
        for key, cells in summarize(records, metric).items()
        if choice in cells or set(cells) == {"last"}
    }


def _texts(rows: Rows, choice: str, records: Sequence[Record], metric: str) -> dict[RowKey, str]:
    """Return a column in print: bold if best, its runs stated where others have more."""
    shown = {key: cell for key, cells in rows.items() if (cell := cells.get(choice)) is not None}
    never = yardsticks(records)
    means = [cell.mean for key, cell in shown.items() if key not in never]
    best = METRICS[metric].best(means) if means else None
    most = _most(rows)
    texts = {}
    for key, cell in shown.items():
        text = f"{cell} (n={cell.runs})" if cell.runs < most else str(cell)
        texts[key] = Best(text) if key not in never and cell.mean == best else text
    return texts


def _paper_columns(
    setting: Setting, rows: Rows, metric: str, choices: Sequence[str]
) -> list[dict[RowKey, str]]:
    """Return the paper's numbers, and ours minus them; nothing where it has none."""
    papers = {key: p for key in rows if (p := published(setting, key, metric)) is not None}
    if not papers:
        return []
    columns = [{key: str(paper) for key, paper in papers.items()}]
    for choice in choices:
        ours = {key: rows[key].get(choice) for key in papers}
        columns.append({k: _minus_paper(c, papers[k]) for k, c in ours.items() if c is not None})
    return columns


def _minus_paper(cell: ResultCell, paper: PaperCell) -> str:
    return signed(cell.mean - paper.mean, cell.metric)


def _minus(
    records: Sequence[Record], metric: str, versus: str, choice: str
) -> dict[RowKey, ResultCell]:
    """Return every row of one setting minus that of a model, seed by seed.

    A row is compared with the unrefined one of that name in its own variant and divergence where
    there is one, else in the plain variant. A baseline's single result serves every choice.
    """
    rows = summarize(records, metric)
    found = {}
    for key, cells in rows.items():
        _, divergence, _, variant = key
        other = min(
            (k for k in rows if k.model == versus and not k.refined),
            key=lambda k: (
                *(k.variant != variant, k.variant != ""),
                *(k.divergence != divergence, k.divergence or ""),
            ),
            default=None,
        )
        if other is None or other == key:
            continue
        one, two = (c.get(choice) or c.get("last") for c in (cells, rows[other]))
        difference = one.minus(two) if one is not None and two is not None else None
        if difference is not None:
            found[key] = difference
    return found


def _most(rows: Rows) -> int:
    """Return the runs of the row that has the most."""
    return max((cell.runs for cells in rows.values() for cell in cells.values()), default=0)


def _seeds(rows: Rows) -> str:
    return "one seed" if _most(rows) == 1 else f"{_most(rows)} seeds"


def _words(metric: str) -> str:
    """Return what a metric is and which way is better."""
    found = METRICS[metric]
    title = f"{found.title[0].upper()}{found.title[1:]}"
    return f"{title} on the target test set, {found.better} is better"
