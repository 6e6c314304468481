"""What lets an estimator be saved as a model folder and restored from one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import nn

from halfseen.blocks import Blocks
from halfseen.errors import InputError
from halfseen.networks.nets import EncoderFactory, Networks
from halfseen.saving.folder import Description, write_model

__all__ = ["SavedEstimator"]

_NOT_KEPT = ("encoder", "checkpoint", "on_epoch", "missing", "random_state")
"""Parameters that a folder does not hold: code, paths, and what fitting has resolved."""


class SavedEstimator:
    """Adds ``save`` to an estimator; :func:`halfseen.load` is the way back."""

    networks_: Networks

    def save(self, folder: str | Path) -> None:
        """Write the fitted model as a folder: tensors and JSON, no pickle.

        An encoder of your own is code, which a folder does not hold: give it to
        :func:`halfseen.load` again.
        """
        check_is_fitted(self)
        write_model(folder, self._description(), self.networks_)

    def _description(self: Any) -> Description:
        given = self.get_params(deep=False)
        kept = {n: v for n, v in given.items() if n not in _NOT_KEPT and _is_plain(v)}
        names = getattr(self, "feature_names_in_", None)
        prior = getattr(self, "class_prior_", None)
        return Description(
            kind=type(self).__name__,
            method=self.method_,
            options=self.options_.model_dump(mode="json"),
            blocks=self.blocks_.to_dict(),
            seed=self.seed_,
            classes=_plain_labels(self.classes_),
            own_encoder=self.encoder is not None,
            details={
                "parameters": kept,
                "label_type": self.classes_.dtype.str,
                "named": names is not None,
                "class_prior": None if prior is None else prior.tolist(),
            },
            history=self.history_,
        )

    @classmethod
    def _restored(
        cls,
        description: Description,
        networks: Networks,
        encoder: nn.Module | EncoderFactory | None,
    ) -> Self:
        details = description.details
        make: Any = cls
        blocks = Blocks.from_dict(description.blocks)
        try:
            made = make(**details["parameters"], encoder=encoder)
            made.classes_ = np.array(description.classes, dtype=np.dtype(details["label_type"]))
            if details.get("class_prior") is not None:  # models of earlier versions have none
                made.class_prior_ = np.array(details["class_prior"], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"The model's details cannot be understood: {error}.") from None
        made.missing = list(blocks.names_of(blocks.missing) if blocks.names else blocks.missing)
        made.random_state = description.seed
        made.networks_ = networks
        made.blocks_ = blocks
        made.method_ = description.method
        made.options_ = description.checked_options()
        made.history_ = list(description.history)
        made.seed_ = description.seed
        made.n_features_in_ = blocks.shape[0]
        if blocks.names is not None and details.get("named"):
            made.feature_names_in_ = np.asarray(blocks.names, dtype=object)
        restored: Self = made
        return restored


def _plain_labels(classes: Any) -> list[Any]:
    if classes.dtype.kind not in "biufUO" or not all(_is_plain(c) for c in classes.tolist()):
        raise InputError(
            f"Classes of type {classes.dtype} cannot be saved; fit with numbers or texts as labels."
        )
    labels: list[Any] = classes.tolist()
    return labels


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold the value."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)
