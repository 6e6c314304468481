"""A divergence of one's own in twenty lines: maximum mean discrepancy.

A divergence is a module that takes two batches of latents and returns a scalar. It needs to know
nothing of ramps, phases or weights. Registered under a name, it works wherever a divergence does.

    python examples/own_divergence.py
"""

import sys

import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

from halfseen import AdaptationImputationClassifier
from halfseen.evidence import domain_separation
from halfseen.networks.divergences import register, squared_distances


class MeanDiscrepancy(nn.Module):
    """MMD² with Gaussian kernels of several widths (Gretton et al., JMLR 2012)."""

    widths = (0.25, 0.5, 1.0, 2.0, 4.0)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        """Return E k(a, a') + E k(b, b') - 2 E k(a, b)."""
        both = torch.cat([first, second])
        distances = squared_distances(both, both)
        scale = distances.detach().mean().clamp_min(1e-12)
        kernel = torch.stack([torch.exp(-distances / (w * scale)) for w in self.widths]).mean(0)
        n = len(first)
        within = kernel[:n, :n].mean() + kernel[n:, n:].mean()
        return within - kernel[:n, n:].mean() - kernel[n:, :n].mean()


register("mmd", lambda latent_size, options: MeanDiscrepancy())


def main(epochs: int | str = "auto") -> None:
    patients = load_breast_cancer(as_frame=True).frame
    source = patients.sample(300, random_state=0)
    target = patients.drop(source.index)
    truth = target.pop("target")
    target = target.loc[:, :"fractal dimension error"] * 1.1  # ten columns less, and a shift
    label = source.pop("target")
    for name in ("adversarial", "transport", "mmd"):
        model = AdaptationImputationClassifier(
            divergence=name, options={"training.joint_epochs": epochs}, random_state=0
        ).fit(source, label, X_target=target)
        apart = domain_separation(model.transform(source), model.transform(target)).auc
        right = model.score(target, truth)
        print(f"{name}: {right:.1%} right; latents tell the domains apart with AUC {apart:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
