"""Print the tables of docs/selection.md: estimates on Gaussians whose true answer is known.

Run ``python benchmarks/selection_toys.py``; it takes under a minute on one core and prints the
same figures each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats

from halfseen.evidence import domain_separation, fit_density_ratio
from halfseen.evidence.risk import deep_embedded_validation, importance_weighted_validation


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        cells = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row]
        print("| " + " | ".join(cells) + " |", flush=True)


def risk_rows(
    draws: int, distances: Sequence[float], exact_weights: bool
) -> Iterable[Sequence[object]]:
    """Source N(0, 1), target N(distance, 1); the model is 0.3 (squared loss) or wrong beyond it."""
    for loss in ("zero-one", "squared"):
        for distance in distances:
            rng = np.random.default_rng(0)
            truth = (
                stats.norm.sf(0.3 - distance) if loss == "zero-one" else 1 + (distance - 0.3) ** 2
            )
            estimates = []
            for _ in range(draws):
                x = rng.normal(size=1000)
                if exact_weights:
                    weight = np.exp(distance * x - distance**2 / 2)
                else:
                    ratio = fit_density_ratio(
                        rng.normal(size=(1000, 1)), rng.normal(distance, 1, (1000, 1))
                    )
                    weight = ratio.weights(x[:, None])
                losses = (x > 0.3).astype(float) if loss == "zero-one" else (x - 0.3) ** 2
                estimates.append(
                    (
                        deep_embedded_validation(losses, weight),
                        importance_weighted_validation(losses, weight),
                    )
                )
            dev, plain = zip(*estimates, strict=True)
            yield (
                loss,
                f"{distance:.2f}",
                float(truth),
                *(float(np.mean([e.risk for e in kind]) - truth) for kind in (dev, plain)),
                *(float(np.std([e.risk for e in kind])) for kind in (dev, plain)),
                *(
                    f"{np.mean([e.interval[0] <= truth <= e.interval[1] for e in kind]):.0%}"
                    for kind in (dev, plain)
                ),
                f"{np.mean([e.effective_sample_size for e in dev]):.0f}",
            )


def separation_rows() -> Iterable[Sequence[object]]:
    for distance in (0.0, 0.5, 1.0, 2.0, 3.0, 6.0):
        rng = np.random.default_rng(0)
        target = rng.normal(size=(2000, 3))
        target[:, 0] += distance
        found = domain_separation(rng.normal(size=(2000, 3)), target)
        yield (
            f"{distance:.1f}",
            found.auc,
            float(stats.norm.cdf(distance / np.sqrt(2))),
            found.proxy_a_distance,
            float(2 * (1 - 2 * stats.norm.cdf(-distance / 2))),
            found.overlap,
            float(np.exp(-(distance**2))),
        )


def main() -> None:
    risk_header = (
        "loss",
        "distance",
        "true risk",
        "DEV mean error",
        "plain mean error",
        "DEV std",
        "plain std",
        "DEV covered",
        "plain covered",
        "effective rows of 1000",
    )
    table(
        "Target risk, exact weights, 200 draws",
        risk_header,
        risk_rows(200, (0.25, 0.5, 1.0, 1.5), True),
    )
    table("Target risk, estimated weights, 40 draws", risk_header, risk_rows(40, (0.5, 1.0), False))
    table(
        "Separation",
        ("distance", "AUC", "exact", "proxy A-distance", "exact", "overlap", "exact"),
        separation_rows(),
    )


if __name__ == "__main__":
    main()
