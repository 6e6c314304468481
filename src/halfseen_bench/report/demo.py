"""The demo's report: that of a benchmark, and a picture of its digits as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from halfseen.report.page import write_page
from halfseen_bench.data.demo import demo_pair
from halfseen_bench.demo import DemoResult
from halfseen_bench.report.figures import draw_domains, save_figure
from halfseen_bench.report.sweep import IGNORE, IMPUTATION, sweep_page
from halfseen_bench.tables import paired_difference

__all__ = ["write_demo_report"]


def write_demo_report(result: DemoResult, *, command: str) -> Path:
    """Write ``domains.png`` and ``report.html`` into the demo's folder; return the page's path."""
    save_figure(draw_domains(demo_pair(0)), result.output / "domains.png")
    page = sweep_page(result.output, command=command, failures=result.failures)
    card = demo_pair(0).card
    notes = [f"Data: {card.origin} {card.licence}"]
    gap = paired_difference(result.records, IMPUTATION, IGNORE)
    if gap is not None:
        notes.insert(
            0,
            f"{IMPUTATION} minus {IGNORE}, seed by seed at the last epoch, without refinement: "
            f"{gap.mean:+.1f} ± {gap.deviation:.1f} points.",
        )
    path = result.output / "report.html"
    write_page(
        path, replace(page, title="Seven models on digits that are half seen", notes=tuple(notes))
    )
    return path
