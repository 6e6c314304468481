"""Print the label-shift sweep of docs/selection.md: simulated ads, target prior 0.02 to 0.5.

Run ``python benchmarks/label_shift.py``; it takes about two minutes on one core and prints the same
figures each time. The model is logistic regression on x1, fitted on 5,000 source rows; proportions
are estimated from 3,000 other source rows and 3,000 target rows, and measured on 10,000 target test
rows, whose labels enter the measurement alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from halfseen.evidence import (
    correct_probabilities,
    estimate_target_prior,
    expected_calibration_error,
)
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_rates import draw_at_click_rate
from halfseen_bench.data.simulator_world import Dials, World

PRIORS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SHIFTS = {
    "p(x | y) the same in both domains": 0.0,
    "p(x | y) moved a little: activity_shift=0.3": 0.3,
    "p(x | y) moved: activity_shift=0.7, the simulator's default": 0.7,
    "p(x | y) moved far: activity_shift=2": 2.0,
}
HEADER = (
    "true prior",
    "bbse",
    "mlls",
    "interval (mlls)",
    "trusted",
    "cross-entropy",
    "corrected",
    "calibration error",
    "corrected",
)


def sweep(activity_shift: float, seed: int) -> Iterable[tuple[str, ...]]:
    """Yield one row of the table per prior."""
    dials = Dials(activity_shift=activity_shift)
    retargeting, prospecting = World("retargeting", dials), World("prospecting", dials)
    training = draw(retargeting, 0, 5000, seed=seed)
    held_out = draw(retargeting, 0, 3000, part="test", seed=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(training.observed, training.labels)
    for prior in PRIORS:
        target = draw_at_click_rate(prospecting, 3000, prior, seed=seed)
        test = draw_at_click_rate(prospecting, 10_000, prior, part="test", seed=seed)
        found = estimate_target_prior(
            model.predict_proba(held_out.observed),
            held_out.labels,
            model.predict_proba(target.observed),
            draws=100,
        )
        plain = model.predict_proba(test.observed)
        # Applied whatever the verdict, to show what the refusal avoids.
        corrected = correct_probabilities(found.calibration(plain), found.source_prior, found.prior)
        low, high = found.interval[1]
        yield (
            f"{prior:.2f}",
            *(f"{shares[1]:.3f}" for shares in (found.by_black_box, found.prior)),
            f"{low:.3f} to {high:.3f}",
            "yes" if found.trustworthy else "no",
            *(f"{cross_entropy(p, test.labels):.3f}" for p in (plain, corrected)),
            *(f"{expected_calibration_error(p, test.labels):.3f}" for p in (plain, corrected)),
        )


def cross_entropy(probability: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(probability[np.arange(len(labels)), labels]).mean())


def main(seed: int = 0) -> None:
    for title, shift in SHIFTS.items():
        print(f"\n### {title}\n")
        print("| " + " | ".join(HEADER) + " |")
        print("|" + "---|" * len(HEADER))
        for row in sweep(shift, seed):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main(*(int(seed) for seed in sys.argv[1:2]))
