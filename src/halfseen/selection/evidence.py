"""What a trained model shows of itself, and every score that can be read off it.

The rows, kept once, are :class:`Evidence`; what one model makes of them is :class:`Observed`;
:func:`evaluate` turns that into the numbers of :data:`~halfseen.selection.SCORES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfseen.arrays import Floats, normalized
from halfseen.errors import InputError, OptionError
from halfseen.evidence.density_ratio import compact_domain_classifier, fit_density_ratio
from halfseen.evidence.registry import SCORES
from halfseen.evidence.risk import RiskEstimate
from halfseen.front.inputs import prepare_rows, read_inputs
from halfseen.metrics import row_losses
from halfseen.networks import nets
from halfseen.networks.training import LabelledRows, Rows
from halfseen.options import Options

__all__ = ["ONE_FIT_SCORES", "Evidence", "Observed", "evaluate", "score_of", "source_statistics"]

ROWS = 2_000
"""Rows of each kind that scores are computed from: enough to rank, and cheap beside an epoch."""
_BATCH = 128
"""Rows per batch where batch-norm statistics are estimated."""


@dataclass(frozen=True)
class Evidence:
    """The rows that models are compared on; none carries a target label.

    All are prepared as networks see them. It does not matter whether source rows hold their
    missing block: a model is asked about them as about target rows, with the block hidden.

    Parameters
    ----------
    held_out
        Labelled source rows that no model was trained on.
    target
        Unlabelled target rows.
    training
        Source rows that the density ratio is fitted on, apart from those it weighs. Without
        them, each half of `held_out` is weighed by a ratio fitted on the other half.
    prior
        Class proportions that predictions get back after balanced training, where whoever uses
        the model does the same; see :func:`halfseen.model.fitting.restore_prior`.
    """

    held_out: LabelledRows
    target: Rows
    training: Rows | None = None
    prior: tuple[float, ...] | None = None

    @classmethod
    def prepared(
        cls,
        networks: nets.Networks,
        classes: npt.ArrayLike,
        X: Any,
        y: Any,
        X_target: Any,
        X_training: Any = None,
        *,
        prior: tuple[float, ...] | None = None,
    ) -> Evidence:
        """Bring rows as a user has them to the form that some networks see.

        Parameters
        ----------
        networks
            Of a model fitted on such rows.
        classes
            Its class labels, sorted.
        X, y, X_target, X_training
            Arrays, images or data frames: held-out source rows with their labels, target rows
            and source rows that the model was trained on.
        prior
            Class proportions that predictions get back.
        """
        complete = networks.method.needs_complete_target

        def rows(X: Any, role: str) -> torch.Tensor:
            table = read_inputs(X, role)
            return torch.from_numpy(prepare_rows(table, networks.blocks, complete=complete))

        held_out = rows(X, "the held-out source")
        labels = torch.from_numpy(_positions(y, np.asarray(classes)))
        if len(held_out) != len(labels):
            raise InputError(f"There are {len(held_out)} held-out rows and {len(labels)} labels.")
        training = None if X_training is None else Rows(rows(X_training, "the training rows"))
        target = Rows(rows(X_target, "the target"))
        return cls(LabelledRows(held_out, labels), target, training, prior)

    def sample(self, rows: int | None = ROWS, *, seed: int = 0) -> Evidence:
        """Return at most `rows` rows of each kind, the same ones whenever it is asked."""
        if rows is None:
            return self

        def some(inputs: torch.Tensor) -> torch.Tensor:
            order = np.random.default_rng([seed, len(inputs)]).permutation(len(inputs))
            return torch.from_numpy(np.sort(order[:rows])).to(inputs.device)

        held = some(self.held_out.inputs)
        training = self.training
        return replace(
            self,
            held_out=LabelledRows(self.held_out.inputs[held], self.held_out.labels[held]),
            target=Rows(self.target.inputs[some(self.target.inputs)]),
            training=None if training is None else Rows(training.inputs[some(training.inputs)]),
        )


@dataclass(frozen=True)
class Observed:
    """What one model says of the evidence; each quantity is computed when first asked for.

    Its names are those that :attr:`Score.needs <halfseen.selection.Score>` lists.
    """

    networks: nets.Networks
    evidence: Evidence
    options: Options
    seed: int = 0

    @cached_property
    def target_probabilities(self) -> Floats:
        """Class probabilities of the target rows."""
        return self._probabilities(self.evidence.target.inputs)

    @cached_property
    def source_loss(self) -> Floats:
        """Cross-entropy of f(ẑ) on each held-out source row, its missing block hidden."""
        held_out = self.evidence.held_out
        with source_statistics(self.networks, self.options, self._source_rows):
            probability = self._probabilities(held_out.inputs)
        return row_losses(probability, held_out.labels.cpu().numpy())

    @cached_property
    def weight(self) -> Floats:
        """Importance weights p_T(ẑ) / p_S(ẑ) of the held-out source rows."""
        evidence = self.evidence
        target = self._latents(evidence.target.inputs)
        with source_statistics(self.networks, self.options, self._source_rows):
            held_out = self._latents(evidence.held_out.inputs)
            if evidence.training is not None:
                return _weights(self._latents(evidence.training.inputs), target, held_out)
        halves = np.random.default_rng(0).permutation(len(held_out)) % 2 == 0
        weight = np.empty(len(held_out))
        for half in (halves, ~halves):
            weight[half] = _weights(held_out[~half], target, held_out[half])
        return weight

    @property
    def _source_rows(self) -> torch.Tensor:
        evidence = self.evidence
        return evidence.held_out.inputs if evidence.training is None else evidence.training.inputs

    def _probabilities(self, rows: torch.Tensor) -> Floats:
        samples = self.options.prediction_samples
        scored = nets.probabilities(self.networks, rows, samples=samples, seed=self.seed).double()
        if self.evidence.prior is not None:
            scored = scored * torch.tensor(self.evidence.prior, dtype=torch.float64)
        return normalized(scored)

    def _latents(self, rows: torch.Tensor) -> Floats:
        latent: Floats = nets.latents(self.networks, rows, seed=self.seed).double().numpy()
        return latent


ONE_FIT_SCORES = tuple(
    name for name, score in SCORES.items() if all(hasattr(Observed, need) for need in score.needs)
)
"""The scores that one trained model is enough for."""


def evaluate(
    networks: nets.Networks,
    evidence: Evidence,
    names: Sequence[str] = ONE_FIT_SCORES,
    *,
    options: Options,
    seed: int = 0,
    rows: int | None = ROWS,
) -> dict[str, float]:
    """Return scores of a trained model, each in its natural sense.

    Risks come from held-out source rows as the target would be seen, with the missing block
    hidden; their weights compare the latents ẑ = (z1, ẑ2) of both domains, as the paper does.
    The density ratio is fitted on the latents' leading 32 principal components. Where
    ``prediction_statistics="target"`` has put the target's batch-norm statistics into the
    networks, source rows are normalised by the source's, as in training; the networks are left
    as they were.

    Parameters
    ----------
    networks
        As they predict on the target.
    evidence
        The rows to compare models on.
    names
        Scores to compute, of :data:`ONE_FIT_SCORES`; the others need more than one fit.
    options
        The settings that the networks were trained with.
    seed
        Of the noise of a stochastic generator.
    rows
        The most rows of each kind to use, drawn once and for all; None uses every one.
    """
    observed = Observed(networks, evidence.sample(rows), options, seed)
    return {name: score_of(name, observed) for name in names}


def score_of(name: str, observed: Observed) -> float:
    """Return one score of what was observed of a model."""
    if name not in ONE_FIT_SCORES:
        reason = "needs more than one fit" if name in SCORES else "is unknown"
        raise OptionError(f"The score {name!r} {reason}; choose one of {list(ONE_FIT_SCORES)}.")
    score = SCORES[name]
    value = score.function(*(getattr(observed, need) for need in score.needs))
    return value.risk if isinstance(value, RiskEstimate) else float(value)


@contextmanager
def source_statistics(
    networks: nets.Networks, options: Options, source: torch.Tensor
) -> Iterator[None]:
    """Let batch-norm layers that hold the target's statistics hold the source's for a while.

    Training normalises each domain by its own statistics. A source row under the target's is
    none that the classifier has ever seen, and its loss says nothing.
    """
    if not (options.prediction_statistics == "target" and networks.method.adapts):
        yield
        return
    kept = {name: buffer.clone() for name, buffer in networks.named_buffers()}
    device = next(networks.parameters()).device
    try:
        networks.estimate_statistics(chunk.to(device) for chunk in nets.chunks(source, _BATCH))
        yield
    finally:
        with torch.no_grad():
            for name, buffer in networks.named_buffers():
                buffer.copy_(kept[name])


def _weights(source: Floats, target: Floats, weighed: Floats) -> Floats:
    """Return the weights of some source rows from a ratio fitted on others."""
    classifier = compact_domain_classifier(source.shape[1], len(source) + len(target))
    return fit_density_ratio(source, target, classifier=classifier).weights(weighed)


def _positions(y: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return each label's position among the sorted classes."""
    labels = np.asarray(y)
    found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = np.flatnonzero(classes[found] != labels)
    if unknown.size:
        raise InputError(
            f"The label {labels[unknown[0]].item()!r} of held-out row {int(unknown[0])} is none of "
            f"the model's classes {classes.tolist()}."
        )
    return found.astype(np.int64)
