"""Which epoch of a run is kept, by a score without target labels."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch

from halfseen.arrays import Integers
from halfseen.errors import InputError, OptionError
from halfseen.evidence.registry import SCORES
from halfseen.networks.objective import Objective
from halfseen.networks.training import EpochChoice, LabelledRows, Rows
from halfseen.selection.scoring import ONE_FIT_SCORES, Evidence, Observed, UnderTraining, score_of
from halfseen.splitting import held_out_share

__all__ = ["choose_epochs_by", "split_held_out"]


def choose_epochs_by(
    score: str,
    source: LabelledRows,
    target: Rows,
    *,
    held_out: float = 0.2,
    patience: int | None = None,
    seed: int = 0,
) -> tuple[LabelledRows, EpochChoice | None]:
    """Return the source rows left to train on, and the rule by which epochs are chosen.

    Parameters
    ----------
    score
        One of :data:`~halfseen.selection.ONE_FIT_SCORES`, or ``last`` for no choice. Those that
        look at target predictions alone leave all source rows to training.
    source, target
        Prepared rows of both domains.
    held_out
        Share of the source rows, of each class, that scores are computed on.
    patience
        How many epochs without a better score end a phase.
    seed
        Of the split.
    """
    if score == "last":
        if patience is not None:
            raise OptionError(
                f"patience={patience} waits for a better score: name one in epoch_choice."
            )
        return source, None
    if score not in ONE_FIT_SCORES:
        raise OptionError(
            f"epoch_choice={score!r} is unknown; choose 'last' or one of {list(ONE_FIT_SCORES)}."
        )
    if patience is not None and patience < 1:
        raise OptionError(f"patience={patience} must be at least 1, or None.")
    training = measured_on = source
    if "source_loss" in SCORES[score].needs:
        split = split_held_out(source.hard_labels.cpu().numpy(), held_out, seed)
        training, measured_on = (source[torch.from_numpy(index)] for index in split)
    parts = (measured_on.inputs, measured_on.hard_labels, target.inputs, training.inputs)
    evidence = Evidence(*(part.cpu().numpy() for part in parts)).sample()
    labels = training.labels.cpu().numpy()

    def measured(objective: Objective) -> float:
        model = UnderTraining(objective.networks, objective.options, labels, seed)
        return score_of(score, Observed(model, evidence))

    return training, EpochChoice(score, measured, SCORES[score].better == "higher", patience)


def split_held_out(
    labels: npt.NDArray[Any], share: float, seed: int = 0
) -> tuple[Integers, Integers]:
    """Return the row numbers to train on and those to hold out, a share of every class.

    As :func:`halfseen.splitting.held_out_share` does; fewer than three rows are too few to measure.
    """
    train, chosen = held_out_share(labels, share, seed)
    if len(chosen) < 3:
        raise InputError(
            f"held_out={share} of {len(labels)} source rows leaves {len(chosen)} to measure on; "
            "at least 3 are needed."
        )
    return train, chosen
