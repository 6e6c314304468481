"""Choosers: which epoch of a run, and which of several models, by a score without target labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfseen.arrays import Integers
from halfseen.errors import InputError, OptionError
from halfseen.evidence.registry import SCORES
from halfseen.networks.objective import Objective
from halfseen.networks.training import EpochChoice, LabelledRows, Rows
from halfseen.selection.evidence import (
    ONE_FIT_SCORES,
    ROWS,
    Evidence,
    FittedModel,
    Observable,
    Observed,
    UnderTraining,
    evaluate,
    score_of,
)
from halfseen.splitting import held_out_share

__all__ = [
    "Choice",
    "choose",
    "choose_epochs_by",
    "choose_networks",
    "score_model",
    "split_held_out",
]


@dataclass(frozen=True)
class Choice:
    """Which of several models is best, and by how much.

    Parameters
    ----------
    score
        The score's name in :data:`~halfseen.selection.SCORES`.
    names
        What the models are called.
    values
        The score of each, in its natural sense.
    """

    score: str
    names: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def position(self) -> int:
        """The position of the best model; the first of equals."""
        return SCORES[self.score].best(self.values)

    @property
    def name(self) -> str:
        """The name of the best model."""
        return self.names[self.position]

    def table(self) -> list[dict[str, Any]]:
        """Return one plain row per model, the best one first.

        Examples
        --------
        >>> Choice("entropy", ("a", "b"), (0.3, 0.2)).table()
        [{'model': 'b', 'entropy': 0.2}, {'model': 'a', 'entropy': 0.3}]
        """
        sign = 1.0 if SCORES[self.score].better == "lower" else -1.0
        # What is no number comes last, whichever way is up.
        order = np.argsort(sign * np.asarray(self.values), kind="stable")
        return [{"model": self.names[i], self.score: self.values[i]} for i in order]


def choose(
    models: Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any,
    X_target: Any,
    *,
    score: str = "dev",
    X_training: Any = None,
    rows: int | None = ROWS,
) -> Choice:
    """Compare fitted estimators on held-out source rows and unlabelled target rows.

    Parameters
    ----------
    models
        Fitted estimators, by name or in a list.
    X, y
        Labelled source rows that none of them was trained on.
    X_target
        Unlabelled target rows.
    score
        One of :data:`~halfseen.selection.ONE_FIT_SCORES`.
    X_training
        Source rows to fit the density ratio on; without them it is cross-fitted within `X`.
    rows
        The most rows of each kind to use; None uses every one.
    """
    named = dict(models) if isinstance(models, Mapping) else _numbered(models)
    values = [
        score_model(model, X, y, X_target, score=score, X_training=X_training, rows=rows)
        for model in named.values()
    ]
    return _choice(score, named, values)


def score_model(
    model: Any,
    X: Any,
    y: Any,
    X_target: Any,
    *,
    score: str,
    X_training: Any = None,
    rows: int | None = ROWS,
) -> float:
    """Return one score of a fitted estimator or model; see :func:`choose`."""
    fitted: FittedModel = getattr(model, "model_", model)
    evidence = Evidence.prepared(fitted, X, y, X_target, X_training)
    return evaluate(fitted, evidence, (score,), rows=rows)[score]


def choose_networks(
    candidates: Mapping[str, Observable],
    evidence: Evidence,
    *,
    score: str = "dev",
    rows: int | None = ROWS,
) -> Choice:
    """Compare trained models or networks on prepared rows."""
    values = [evaluate(c, evidence, (score,), rows=rows)[score] for c in candidates.values()]
    return _choice(score, candidates, values)


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
    if "source_loss" in SCORES[score].needs:
        split = split_held_out(source.hard_labels.cpu().numpy(), held_out, seed)
        training, held_out_rows = (source[torch.from_numpy(index)] for index in split)
    else:
        training = held_out_rows = source
    measured_on = LabelledRows(held_out_rows.inputs, held_out_rows.hard_labels)
    evidence = Evidence(measured_on, target, Rows(training.inputs)).sample(ROWS)

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


def _numbered(models: Sequence[Any]) -> dict[str, Any]:
    return {f"model {number}": model for number, model in enumerate(models)}


def _choice(score: str, names: Mapping[str, Any], values: Sequence[float]) -> Choice:
    if not names:
        raise InputError("There is no model to choose from.")
    return Choice(score, tuple(names), tuple(values))
