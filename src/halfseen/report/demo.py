"""The demo's report: one page that holds everything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib.figure import Figure

from halfseen import __version__
from halfseen.bench.demo import PICTURED, DemoResult, demo_options, latents_file
from halfseen.bench.tables import paired_difference, summarize
from halfseen.data.demo import demo_pair
from halfseen.files import write_text
from halfseen.report.figures import (
    as_data_uri,
    draw_domains,
    draw_latents,
    draw_losses,
    save_figure,
)

__all__ = ["demo_figures", "write_demo_report"]

IMPUTATION, IGNORE = "Adaptation-Imputation", "Adaptation-IgnoreComponent"


def demo_figures(result: DemoResult) -> dict[str, Figure]:
    """Draw the digits of both domains, the latents and the losses."""
    figures = {"domains": draw_domains(demo_pair(0))}
    latents = {}
    for name in PICTURED:
        path = latents_file(result.output, name)
        if path.exists():
            with np.load(path) as arrays:
                latents[name] = dict(arrays)
    if latents:
        figures["latents"] = draw_latents(latents)
    if IMPUTATION in result.histories:
        figures["losses"] = draw_losses(result.histories[IMPUTATION])
    return figures


def write_demo_report(result: DemoResult, *, divergence: str, command: str) -> Path:
    """Write the figures and ``report.html`` into the demo's folder; return the page's path."""
    figures = demo_figures(result)
    for name, figure in figures.items():
        save_figure(figure, result.output / f"{name}.png")
    environment = Environment(
        loader=PackageLoader("halfseen.report"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = summarize(result.records)
    page = environment.get_template("demo.html").render(
        version=__version__,
        divergence=divergence,
        command=command,
        card=demo_pair(0).card,
        rows=rows,
        best=max((row.cells["last"].mean for row in rows if "Full" not in row.model), default=None),
        seeds=max((row.cells["last"].runs for row in rows), default=0),
        difference=paired_difference(result.records, IMPUTATION, IGNORE),
        figures={name: as_data_uri(figure) for name, figure in figures.items()},
        options=demo_options(divergence, imputes=True).model_dump(mode="json"),
        failures=result.failures,
    )
    path = result.output / "report.html"
    write_text(path, page)
    return path
