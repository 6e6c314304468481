"""From a model folder back to the model that was saved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.arrays import Tensor
from halfseen.data.preprocessors import Preprocessor, TablePreprocessor, preprocessor_from_dict
from halfseen.errors import HalfseenError, InputError
from halfseen.members import member_named
from halfseen.members.protocol import Member
from halfseen.model.model import Model
from halfseen.saving.model_folder import DESCRIPTION, Description, read_folder
from halfseen.targets import IntervalReach
from halfseen.weights import Weights

if TYPE_CHECKING:
    from torch import nn

    from halfseen.networks.encoders import EncoderFactory


def load(folder: str | Path, *, encoder: nn.Module | EncoderFactory | None = None) -> Model:
    """Return the model that ``save`` wrote into a folder; it predicts bit for bit the same.

    The folder is verified: a damaged, exchanged or linked file, another format, or tensors that
    do not fit the description are refused. Nothing in a folder is executed. `encoder` is the
    module or factory that the model was given, where it was given one.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from halfseen import HalfSeenClassifier
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(2, 60, 3))
    >>> model = HalfSeenClassifier(
    ...     missing=[2], members=["networks"], options={"training.joint_epochs": 1}, random_state=0
    ... )
    >>> model = model.fit(source, source[:, 0] > 0, X_target=target)
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> model.save(folder)
    >>> bool((load(folder).predict_proba(target) == model.predict_proba(target)).all())
    True
    """
    folder = Path(folder)
    description, tensors = read_folder(folder)
    path = folder / DESCRIPTION
    try:
        preprocessor = preprocessor_from_dict(description.preprocessor)
        members = _members(description, tensors, preprocessor, encoder)
        weights = Weights(
            tuple(float(weight) for weight in description.weights["members"]),
            tuple(float(value) for value in description.weights.get("bias", ())),
        )
        if "interval" in description.metrics:
            IntervalReach(**description.metrics["interval"])  # says what is wrong with it
    except HalfseenError as error:
        raise InputError(f"{path} cannot be understood: {error}") from None
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise InputError(f"{path} cannot be understood: {error!r}.") from None
    if len(weights.members) != len(members):
        raise InputError(
            f"{path} cannot be understood: it has {len(members)} members and "
            f"{len(weights.members)} weights."
        )
    outputs = preprocessor.target_type.outputs
    if len(weights.bias) not in (0, outputs) or not all(map(math.isfinite, weights.bias)):
        raise InputError(
            f"{path} cannot be understood: its bias {list(weights.bias)} is not one finite number "
            f"for each of {outputs} outputs."
        )
    shares = weights.members
    if not all(share >= 0.0 for share in shares) or not math.isclose(sum(shares), 1.0):
        raise InputError(
            f"{path} cannot be understood: the weights {list(shares)} of its members are no "
            "shares of a whole."
        )
    return Model(
        preprocessor,
        members,
        weights,
        description.seed,
        dict(description.metrics),
        dict(description.training_data),
        dict(description.versions),
    )


def table_model(model: Model, folder: str | Path) -> Model:
    """Return a model that takes tables; refuse one of images."""
    if not isinstance(model.preprocessor, TablePreprocessor):
        raise InputError(
            f"{folder} holds a model of images, and this takes models of tables: use `halfseen "
            "predict`, or halfseen.load in Python."
        )
    return model


def _members(
    description: Description,
    tensors: Mapping[str, Tensor],
    preprocessor: Preprocessor,
    encoder: nn.Module | EncoderFactory | None,
) -> tuple[Member, ...]:
    own: list[dict[str, Tensor]] = [{} for _ in description.members]
    for name, tensor in tensors.items():
        number, _, rest = name.partition("/")
        if not number.isdecimal() or int(number) >= len(own):
            raise InputError(f"it has an unexpected tensor {name!r}.")
        own[int(number)][rest] = tensor
    found: list[Member] = []
    for described, its_tensors in zip(description.members, own, strict=True):
        facts: dict[str, Any] = dict(described)
        kind = member_named(facts.pop("kind"))
        found.append(
            kind.restored(
                facts, its_tensors, preprocessor.blocks, preprocessor.target_type, encoder=encoder
            )
        )
    return tuple(found)
