"""From a model folder back to the model that was saved."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.arrays import Tensor
from halfseen.data.gap_filling import GapFilling
from halfseen.data.preprocessors import TablePreprocessor, preprocessor_from_dict
from halfseen.errors import HalfseenError, InputError
from halfseen.members import member_named
from halfseen.model.model import GAPS, VALUE, Model
from halfseen.model.pattern_model import PatternModel
from halfseen.saving import DESCRIPTION, read_folder, read_patterns
from halfseen.targets import IntervalReach, RegressionTarget
from halfseen.weights import Weights

if TYPE_CHECKING:
    from torch import nn

    from halfseen.networks.encoders import EncoderFactory


def load(
    folder: str | Path, *, encoder: nn.Module | EncoderFactory | None = None
) -> Model | PatternModel:
    """Return the model that ``save`` wrote into a folder; it predicts bit for bit the same.

    The folder is verified: a damaged, exchanged or linked file, another format, or tensors that
    do not fit the description are refused. Nothing in a folder is executed.

    Parameters
    ----------
    folder
        The model folder. One with several missing patterns gives a :class:`PatternModel`.
    encoder
        The encoder that the model was given, where it was given one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from halfseen import HalfSeenClassifier
    >>> source, target = np.random.default_rng(0).normal(size=(2, 60, 3))
    >>> model = HalfSeenClassifier(missing=[2], effort="quick", random_state=0)
    >>> model = model.fit(source, source[:, 0] > 0, X_target=target)
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> model.save(folder)
    >>> bool((load(folder).predict_proba(target) == model.predict_proba(target)).all())
    True
    """
    parts = read_patterns(folder)
    if parts is None:
        return load_one(folder, encoder)
    models = tuple(load_one(part, encoder) for part in parts)
    if len({(p.schema.label, p.schema.classes, p.target_type.task) for p in models}) > 1:
        raise InputError(f"The parts of {folder} predict different things: fit it again.")
    return PatternModel(models)


def load_one(folder: str | Path, encoder: nn.Module | EncoderFactory | None = None) -> Model:
    """Return the model of one missing pattern."""
    path = Path(folder, DESCRIPTION)
    description, tensors = read_folder(folder)
    try:
        preprocessor = preprocessor_from_dict(description.preprocessor)
        blocks, target_type = preprocessor.blocks, preprocessor.target_type
        gaps, value = (_taken(tensors, start) for start in (GAPS, VALUE))
        if gaps and isinstance(preprocessor, TablePreprocessor):
            filling = GapFilling.restored(gaps, len(blocks.observed))
            preprocessor = replace(preprocessor, gaps=filling)
        members = tuple(
            member_named(kind).restored(facts, own, blocks, target_type, encoder=encoder)
            for kind, facts, own in _described(description.members, tensors)
        )
        sets = description.metrics.get("value_of_measuring", {}).get("sets", [])
        each = [{"kind": "boosted_trees", "outputs": 1}] * len(sets)
        by_row = tuple(
            member_named(kind).restored(facts, own, blocks, RegressionTarget())
            for kind, facts, own in _described(each, value)
        )
        shares = tuple(float(weight) for weight in description.weights["members"])
        bias = tuple(float(value) for value in description.weights.get("bias", ()))
        if "interval" in description.metrics:
            IntervalReach(**description.metrics["interval"])  # says what is wrong with it
        wrong = None
        if len(shares) != len(members):
            wrong = f"it has {len(members)} members and {len(shares)} weights"
        elif len(bias) not in (0, target_type.outputs) or not all(map(math.isfinite, bias)):
            wrong = (
                f"its bias {list(bias)} is not one finite number for each of {target_type.outputs} "
                "outputs"
            )
        elif not all(share >= 0.0 for share in shares) or not math.isclose(sum(shares), 1.0):
            wrong = f"the weights {list(shares)} of its members are no shares of a whole"
        if wrong:
            raise InputError(f"{wrong}.")
    except HalfseenError as error:
        raise InputError(f"{path} cannot be understood: {error}") from None
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise InputError(f"{path} cannot be understood: {error!r}.") from None
    return Model(
        preprocessor,
        members,
        Weights(shares, bias),
        description.seed,
        dict(description.metrics),
        dict(description.training_data),
        dict(description.versions),
        value_by_row=by_row,
    )


def table_model(model: Model, folder: str | Path) -> Model:
    """Return a model that takes tables; refuse one of images."""
    if not isinstance(model.preprocessor, TablePreprocessor):
        raise InputError(
            f"{folder} holds a model of images, and this takes models of tables: use `halfseen "
            "predict`, or halfseen.load in Python."
        )
    return model


def _taken(tensors: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    """Take those out whose names begin so, under what is left of their names."""
    return {n.removeprefix(start): tensors.pop(n) for n in list(tensors) if n.startswith(start)}


def _described(
    members: list[dict[str, Any]], tensors: dict[str, Tensor]
) -> list[tuple[str, dict[str, Any], dict[str, Tensor]]]:
    """Return each member's kind, settings and tensors."""
    own: list[dict[str, Tensor]] = [{} for _ in members]
    for name, tensor in tensors.items():
        number, _, rest = name.partition("/")
        if not number.isdecimal() or int(number) >= len(own):
            raise InputError(f"it has an unexpected tensor {name!r}.")
        own[int(number)][rest] = tensor
    facts = [dict(described) for described in members]
    return [(each.pop("kind"), each, its) for each, its in zip(facts, own, strict=True)]
