"""The cells of the tables of results, what they are compared with, and the words under them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from halfseen.errors import InputError
from halfseen_bench.metrics import METRICS, metric_named
from halfseen_bench.models import Record
from halfseen_bench.paper import PaperCell, paper_cell
from halfseen_bench.rendering import ResultTable, Text
from halfseen_bench.tables import ResultCell, Row, RowKey, difference, row_key, values_by_seed

NONE = Text("–")
CHOICES = (
    "last: final epoch, what a user gets.",
    "oracle: best epoch in hindsight, chosen with the target test labels.",
)
YARDSTICKS = (
    "Never bold: Full models, which are shown the target's missing inputs, and what uses target "
    "labels (ceilings, target prior)."
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


def setting_notes(setting: Setting) -> tuple[str, ...]:
    """Return what must stand under a table of this setting."""
    return YARDSTICKS, stated(setting)


def stated(setting: Setting) -> str:
    """Return what was missing, and how the runs were made."""
    return f"Missing: {setting.layout} Budget {setting.budget}, preset {setting.preset}."


def by_setting(records: Sequence[Record]) -> dict[Setting, list[Record]]:
    """Return the records of each setting, in order of appearance."""
    found: dict[Setting, list[Record]] = {}
    for record in records:
        found.setdefault(Setting.of(record), []).append(record)
    return found


def choices_of(rows: Sequence[Row]) -> list[str]:
    """Return the choices of epoch: last first, then label-free ones, the oracle at the end."""
    found = dict.fromkeys(choice for row in rows for choice in row.cells)
    middle = [choice for choice in found if choice not in ("last", "oracle")]
    return [c for c in ("last", *middle, "oracle") if c in found]


def label_free(choices: Sequence[str]) -> tuple[str, ...]:
    """Return what to say of the choices that saw no target label."""
    names = [choice for choice in choices if choice not in ("last", "oracle")]
    return (f"{', '.join(names)}: the epoch that this label-free score chose.",) if names else ()


def cell_at(row: Row, choice: str) -> ResultCell | None:
    """Return a row's cell; what has no epochs to choose from is the same under every choice."""
    return row.cells["last"] if set(row.cells) == {"last"} else row.cells.get(choice)


def honest_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a user could have."""
    return [row for row in rows if not row.is_yardstick]


def best_mean(cells: Sequence[ResultCell | None], metric: str) -> float | None:
    """Return the best mean of some cells."""
    means = [cell.mean for cell in cells if cell is not None]
    return METRICS[metric].best(means) if means else None


def cell_text(cell: ResultCell | None, row: Row, best: float | None, most: int) -> Text:
    """Return a cell in print: bold if best, its runs stated where others have more."""
    if cell is None:
        return NONE
    fewer = f" (n={cell.runs})" if cell.runs < most else ""
    return Text(f"{cell}{fewer}", bold=not row.is_yardstick and cell.mean == best)


def published_cell(setting: Setting, row: Row, metric: str) -> PaperCell | None:
    """Return the paper's number for a row of ours."""
    return paper_cell(
        setting.pair, row.model, row.divergence, metric, refined=row.refined, variant=row.variant
    )


def minus_paper(cell: ResultCell | None, paper: PaperCell | None) -> Text:
    """Return how far we are from the paper."""
    if cell is None or paper is None:
        return NONE
    return Text(signed(cell.mean - paper.mean, cell.decimals))


def signed(value: float, decimals: int) -> str:
    """Return a number with its sign."""
    return f"{value:+.{decimals}f}".replace("-", "−")


def difference_text(cell: ResultCell) -> tuple[Text, Text]:
    """Return a difference, bold where the interval leaves no doubt of its sign, and that."""
    if cell.interval is None:
        return Text(signed(cell.mean, cell.decimals)), NONE
    low, high = cell.interval
    interval = f"{signed(low, cell.decimals)} to {signed(high, cell.decimals)}"
    return Text(signed(cell.mean, cell.decimals), low > 0 or high < 0), Text(interval)


def paired_differences(
    records: Sequence[Record], metric: str, versus: str, choice: str
) -> dict[RowKey, ResultCell]:
    """Return every row of one setting minus that of a model, seed by seed.

    A row is compared with the unrefined one of that name in its own variant and divergence where
    there is one, else in the plain variant.
    """
    runs: dict[RowKey, list[Record]] = {}
    for record in records:
        runs.setdefault(row_key(record), []).append(record)
    found = {}
    for key, own in runs.items():
        reference = reference_row(runs, versus, key)
        if reference is None or reference == key:
            continue
        other = seed_values(runs[reference], metric, choice)
        cell = difference(seed_values(own, metric, choice), other, metric)
        if cell is not None:
            found[key] = cell
    return found


def reference_row(keys: Iterable[RowKey], versus: str, key: RowKey) -> RowKey | None:
    """Return the unrefined row of a model that comes nearest in variant and divergence."""
    candidates = [k for k in keys if k[0] == versus and not k[2]]
    _, divergence, _, variant = key
    return min(
        candidates,
        key=lambda k: (k[3] != variant, k[3] != "", k[1] != divergence, k[1] or ""),
        default=None,
    )


def seed_values(records: Sequence[Record], metric: str, choice: str) -> dict[int, float]:
    """Return values by seed; a baseline's single result serves every choice."""
    return values_by_seed(records, metric, choice) or values_by_seed(records, metric)


def metric_words(metric: str) -> str:
    """Return what a metric is and which way is better."""
    found = metric_named(metric)
    title = f"{found.title[0].upper()}{found.title[1:]}"
    return f"{title} on the target test set, {found.better} is better"


def seed_count(count: int) -> str:
    """Return a number of seeds in words."""
    return "one seed" if count == 1 else f"{count} seeds"


def some_tables(tables: list[ResultTable]) -> list[ResultTable]:
    """Return the tables, of which there must be one."""
    if not tables:
        raise InputError("There is no finished run to put into a table.")
    return tables
