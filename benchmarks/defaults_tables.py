"""Compare settings for tables on two synthetic problems whose truth is known.

python benchmarks/defaults_tables.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from test_synthetic_problems import LABEL_NOISE, OBSERVED, SEEDS, fitted_score, problem

SETTINGS = {
    "default": {},
    "z_S2 not detached": {"objective.detach_true_latent": False},
    "f sees the imputed latent": {"objective.classifier_latent": "imputed"},
    "reconstruction 1": {"objective.reconstruction_weight": 1.0},
    "reconstruction 100": {"objective.reconstruction_weight": 100.0},
    "no divergence in L2": {"objective.imputation_weight": 0.0},
}


def logistic_regression(seed: int, *, related: bool) -> float:
    source, labels, _, test, truth = problem(seed, related=related)
    model = LogisticRegression(C=0.1).fit(source[:, :OBSERVED], labels)
    return float(model.score(test[:, :OBSERVED], truth))


def main() -> None:
    torch.set_num_threads(1)
    print(f"| model | x2 follows x1 | x2 unrelated | (best possible about {1 - LABEL_NOISE}) |")
    print("|---|---|---|---|")
    rows = {"logistic regression on x1": logistic_regression}
    rows["Adaptation-IgnoreComponent"] = lambda seed, related: fitted_score(
        "ignore", seed, related=related, epochs="auto"
    )
    for name, options in SETTINGS.items():
        rows[f"Adaptation-Imputation, {name}"] = lambda seed, related, options=options: (
            fitted_score("imputation", seed, related=related, options=options, epochs="auto")
        )
    for name, score in rows.items():
        cells = []
        for related in (True, False):
            scores = 100 * np.array([score(seed, related=related) for seed in SEEDS])
            cells.append(f"{scores.mean():.1f} ± {scores.std(ddof=1):.1f}")
        print(f"| {name} | " + " | ".join(cells) + " | |", flush=True)


if __name__ == "__main__":
    main()
