"""Print the tables on verdicts and assumptions of docs/selection.md, on simulated ads.

Run ``python benchmarks/assumptions.py``; it takes about two minutes on one core and prints the same
figures each time. Every dial of the simulator moves one factor of p(x1) p(x2|x1) p(y|x1,x2), so
that each answer is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from halfseen_bench.conditionals import conditional_change, posterior_change
from halfseen_bench.data.simulator import SimulatedRows, draw
from halfseen_bench.data.simulator_world import Dials, World
from halfseen_bench.imputability import imputation_verdict

ROWS = 1500


def simulated(dials: Dials) -> tuple[SimulatedRows, SimulatedRows]:
    source, target = (
        draw(World(domain, dials), 0, ROWS) for domain in ("retargeting", "prospecting")
    )
    return source, target


def line(cells: Iterable[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def verdicts() -> None:
    line(("dials", "R²", "p", "AUC", "overlap", "verdict"))
    line(["---"] * 6)
    for name, dials in {
        "defaults": Dials(),
        "`predictability=0`": Dials(predictability=0.0),
        "`activity_shift=6`": Dials(activity_shift=6.0),
    }.items():
        source, target = simulated(dials)
        found = imputation_verdict(source.observed, source.missing, target.observed)
        dependence, apart = found.dependence, found.separation
        figures = dependence.r2, dependence.p_value, apart.auc, apart.overlap
        line((name, *(f"{figure:.3f}" for figure in figures), found.verdict))


def assumptions() -> None:
    line(("dials", "change of x2 given x1", "p", "seen", "change of y given x", "p", "seen"))
    line(["---"] * 7)
    for name, dials in {
        "defaults: p(x1) moves": Dials(),
        "`conditional_shift=1`: p(x2\\|x1) moves too": Dials(conditional_shift=1.0),
        "`click_rate_shift=-1`: p(y\\|x1,x2) moves too": Dials(click_rate_shift=-1.0),
    }.items():
        source, target = simulated(dials)
        third = conditional_change(source.observed, source.missing, target.observed, target.missing)
        fourth = posterior_change(source.inputs, source.labels, target.inputs, target.labels)
        cells: list[object] = [name]
        for change in (third, fourth):
            cells += [f"{change.largest:.3f}", f"{change.p_value:.4f}"]
            cells += ["yes" if change.changed else "no"]
        line(cells)


if __name__ == "__main__":
    verdicts()
    print()
    assumptions()
