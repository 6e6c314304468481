"""The demo's report: that of a benchmark, and a picture of its digits as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from halfseen.report.html import write_page
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.models import Record
from halfseen_bench.report.figures import draw_domains, save_figure
from halfseen_bench.report.sweep import IGNORE, IMPUTATION, sweep_page
from halfseen_bench.tables import paired_difference

__all__ = ["write_demo_report"]


def write_demo_report(
    output: Path, records: Sequence[Record], failures: Sequence[str], *, command: str
) -> Path:
    """Write ``domains.png`` and ``report.html`` into the demo's folder; return the page's path."""
    pair = demo_pair(0)
    save_figure(draw_domains(pair), output / "domains.png")
    notes = [f"Data: {pair.card.origin} {pair.card.licence}"]
    gap = paired_difference(records, IMPUTATION, IGNORE)
    if gap is not None:
        notes.insert(
            0,
            f"{IMPUTATION} minus {IGNORE}, seed by seed at the last epoch, without refinement: "
            f"{gap.mean:+.1f} ± {gap.deviation:.1f} points.",
        )
    page = replace(
        sweep_page(output, command=command, failures=failures),
        title="Models on digits that are half seen",
        notes=tuple(notes),
    )
    path = output / "report.html"
    write_page(path, page)
    return path
