"""Print the refinement table of docs/selection.md: pseudo-labels at 10 % positives.

Run ``python benchmarks/refine_thresholds.py``: nine fits on simulated ads, some five minutes on one
core. Clicks are 23 % of the source and 10 % of the target, and nothing else differs. Target labels
enter the measurement alone.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from halfseen import Blocks, preset
from halfseen.evidence import expected_calibration_error
from halfseen.networks import nets
from halfseen.networks.methods import method_named
from halfseen.networks.objective import Objective
from halfseen.networks.terms.refinement import select_by_prior, select_confident
from halfseen.networks.training import LabelledRows, Rows
from halfseen.networks.training.fitting import TrainingProblem, fit_objective
from halfseen.options import make_options
from halfseen_bench.data.simulator import draw
from halfseen_bench.data.simulator_rates import draw_at_click_rate
from halfseen_bench.data.simulator_world import MISSING, OBSERVED, Dials, World

SEEDS = 3
RATE = 0.1
BLOCKS = Blocks.columns([*OBSERVED, *MISSING], missing=list(MISSING))
MODES: dict[str, dict[str, object] | None] = {
    "no refinement": None,
    "fixed threshold 0.95": {},
    "prior, share 0.5": {"refinement.selection": "prior"},
}


def main() -> None:
    header = ("refinement", "selected", "of them positive", "precision there", "cross-entropy")
    print("| " + " | ".join((*header, "AUC", "calibration error")) + " |")
    print("|" + "---|" * 7)
    for name, settings in MODES.items():
        runs = np.array([measured(seed, settings) for seed in range(SEEDS)])
        mean, deviation = np.nanmean(runs, axis=0), np.nanstd(runs, axis=0, ddof=1)
        precision = "–" if np.isnan(runs[:, 2]).all() else f"{mean[2]:.0%}"
        cells = [name, f"{mean[0]:.0%}", f"{mean[1]:.1%}", precision]
        cells += [f"{m:.3f} ± {d:.3f}" for m, d in zip(mean[3:], deviation[3:], strict=True)]
        print("| " + " | ".join(cells) + " |", flush=True)


def measured(seed: int, settings: dict[str, object] | None) -> tuple[float, ...]:
    """Fit one model; return what it selects on the target, and how it does on test rows."""
    dials = Dials(activity_shift=0.0)
    source = draw(World("retargeting", dials), 0, 3000, seed=seed)
    prospecting = World("prospecting", dials)
    target = draw_at_click_rate(prospecting, 3000, RATE, seed=seed)
    test = draw_at_click_rate(prospecting, 5000, RATE, part="test", seed=seed)
    problem = TrainingProblem.resident(
        BLOCKS,
        LabelledRows(torch.from_numpy(source.inputs), torch.from_numpy(source.labels)),
        Rows(torch.from_numpy(BLOCKS.hide(target.inputs))),
        2,
    )
    # Classes as often as they are there: oversampled ones would shift every probability.
    options = make_options({"training.balanced": False, **(settings or {})}, preset(inputs="table"))
    method = method_named("Adaptation-Imputation")
    objective, _ = fit_objective(problem, method, options, seed=seed, refine=settings is not None)
    rows = torch.from_numpy(BLOCKS.hide(test.inputs))
    probability = nets.probabilities(objective.networks, rows).double().numpy()
    probability /= probability.sum(axis=1, keepdims=True)
    loss = -np.log(probability[np.arange(len(test.labels)), test.labels]).mean()
    return (
        *selection(objective, rows, test.labels),
        float(loss),
        float(roc_auc_score(test.labels, probability[:, 1])),
        expected_calibration_error(probability, test.labels),
    )


def selection(
    objective: Objective, rows: torch.Tensor, truth: np.ndarray
) -> tuple[float, float, float]:
    """Return the share selected, the positives among them, and how many of those are right."""
    with torch.no_grad():
        logits = objective.networks(rows)
    if objective.options.refinement.selection == "confidence":
        chosen, label = select_confident(logits, objective.options.refinement.threshold)
    else:
        assert objective.target_prior is not None
        chosen, label = select_by_prior(logits, objective.target_prior, 0.5)
    positive = (chosen & (label == 1)).numpy()
    precision = float(truth[positive].mean()) if positive.any() else float("nan")
    return float(chosen.float().mean()), positive.sum() / max(int(chosen.sum()), 1), precision


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="Mean of empty slice")
    warnings.filterwarnings("ignore", message="Degrees of freedom")
    main()
