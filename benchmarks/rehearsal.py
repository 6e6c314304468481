"""Print how far a rehearsal's slice is from the rest, beside the true shift, on simulated ads.

Run ``python benchmarks/rehearsal.py``; it takes about a minute on one core.
"""

from __future__ import annotations

from halfseen.evidence.features import carve_pseudo_target
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_world import Dials, World

ROWS = 3000


def main() -> None:
    print("| activity_shift | AUC, target from source | AUC, slice from rest |")
    print("|---|---|---|")
    for shift in (0.0, 0.3, 0.7, 1.5, 4.0):
        source, target = (
            draw(World(domain, Dials(activity_shift=shift)), 0, ROWS).observed
            for domain in ("retargeting", "prospecting")
        )
        found = carve_pseudo_target(source, target)
        print(f"| {shift} | {found.wanted.auc:.3f} | {found.obtained.auc:.3f} |", flush=True)


if __name__ == "__main__":
    main()
