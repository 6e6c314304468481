"""Print the tables of docs/selection.md: estimates on Gaussians whose true answer is known.

Run ``python benchmarks/selection_toys.py``; it takes under a minute on one core and prints the
same figures each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats

from halfseen.evidence import (
    correct_probabilities,
    domain_separation,
    estimate_target_prior,
    expected_calibration_error,
    fit_density_ratio,
)
from halfseen.evidence.risk import deep_embedded_validation, importance_weighted_validation
from halfseen_bench.imputability import imputation_verdict


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


SOURCE_PRIOR = 0.3


def posterior(x: np.ndarray) -> np.ndarray:
    """p(y | x) on the source, for classes N(-1, 1) and N(1, 1)."""
    positive = 1 / (1 + np.exp(-2 * x) * (1 - SOURCE_PRIOR) / SOURCE_PRIOR)
    return np.stack([1 - positive, positive], axis=1)


def cross_entropy(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(predicted[np.arange(len(y)), y]).mean())


def label_shift_rows(moved: float, rows: int = 2000) -> Iterable[Sequence[object]]:
    """Both classes of the target are moved by the same distance, and their proportions differ."""
    for prior in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5):
        rng = np.random.default_rng(0)
        y, y_target = ((np.arange(rows) < p * rows).astype(int) for p in (SOURCE_PRIOR, prior))
        source = posterior(rng.normal(2.0 * y - 1))
        target = posterior(rng.normal(2.0 * y_target - 1 + moved))
        found = estimate_target_prior(source, y, target, draws=100)
        # Applied whatever the verdict, to show what the refusal avoids.
        corrected = correct_probabilities(
            found.calibration(target), found.source_prior, found.prior
        )
        low, high = found.interval[1]
        yield (
            f"{prior:.2f}",
            float(found.by_black_box[1]),
            float(found.prior[1]),
            f"{low:.3f} to {high:.3f}",
            "yes" if found.trustworthy else "no",
            cross_entropy(target, y_target),
            cross_entropy(corrected, y_target),
            expected_calibration_error(target, y_target),
            expected_calibration_error(corrected, y_target),
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


def verdict_rows() -> Iterable[Sequence[object]]:
    for case, correlation, moved in (
        ("x2 follows x1, domains near", 0.7, 0.5),
        ("x2 independent of x1", 0.0, 0.5),
        ("x2 follows x1, domains far", 0.7, 3.0),
    ):
        rng = np.random.default_rng(0)
        x1, x1_target = rng.normal(size=(800, 3)), rng.normal(size=(800, 3)) + moved
        noise = np.sqrt(1 - correlation**2) * rng.normal(size=(800, 1))
        found = imputation_verdict(x1, correlation * x1[:, :1] + noise, x1_target)
        yield (
            case,
            found.dependence.r2,
            found.dependence.p_value,
            found.separation.auc,
            found.separation.overlap,
            found.verdict,
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
    shift_header = (
        "true prior",
        "bbse",
        "mlls",
        "interval (mlls)",
        "trustworthy",
        "cross-entropy",
        "corrected",
        "calibration error",
        "corrected",
    )
    table("Label shift, same p(x | y)", shift_header, label_shift_rows(0.0))
    table("Label shift, both classes moved by 1", shift_header, label_shift_rows(1.0))
    table(
        "Separation",
        ("distance", "AUC", "exact", "proxy A-distance", "exact", "overlap", "exact"),
        separation_rows(),
    )
    table("Verdicts", ("case", "R²", "p", "AUC", "overlap", "verdict"), verdict_rows())


if __name__ == "__main__":
    main()
