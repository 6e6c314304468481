"""From a model folder back to the model that was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from halfseen.errors import InputError
from halfseen.estimators import AdaptationImputationClassifier, DomainAdaptationClassifier
from halfseen.networks.nets import EncoderFactory
from halfseen.saving.folder import read_model

if TYPE_CHECKING:
    from halfseen.model.model import TableModel

__all__ = ["load", "load_table_model"]

_ESTIMATORS: dict[str, type[AdaptationImputationClassifier | DomainAdaptationClassifier]] = {
    "AdaptationImputationClassifier": AdaptationImputationClassifier,
    "DomainAdaptationClassifier": DomainAdaptationClassifier,
}


def load(folder: str | Path, *, encoder: nn.Module | EncoderFactory | None = None) -> Any:
    """Return the model that ``save`` wrote into a folder; it predicts bit for bit the same.

    The folder is verified: a damaged, exchanged or linked file, a newer format, or tensors that
    do not fit the description are refused. Nothing in a folder is executed. Folders of older
    formats are read by every later version of halfseen.

    Parameters
    ----------
    folder
        What ``save`` or ``halfseen fit`` wrote.
    encoder
        The module or factory that the model was given, where it was given one.

    Returns
    -------
    AdaptationImputationClassifier, DomainAdaptationClassifier or TableModel
        As it was saved.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> source, target = random.normal(size=(2, 60, 3))
    >>> model = AdaptationImputationClassifier(missing=[2], joint_epochs=1, random_state=0)
    >>> model = model.fit(source, source[:, 0] > 0, X_target=target)
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> model.save(folder)
    >>> bool((load(folder).predict_proba(target) == model.predict_proba(target)).all())
    True
    """
    folder = Path(folder)
    description, networks = read_model(folder, encoder)
    if description.kind in _ESTIMATORS:
        return _ESTIMATORS[description.kind]._restored(description, networks, encoder)
    if description.kind == "table":
        from halfseen.model.model import TableModel  # Arrow is loaded only where tables are

        return TableModel.restored(folder, description, networks)
    raise InputError(
        f"The folder {folder} holds a model of kind {description.kind!r}, which this version of "
        "halfseen does not know."
    )


def load_table_model(folder: str | Path) -> TableModel:
    """Load a model that takes tables, or say what else the folder holds."""
    from halfseen.model.model import TableModel

    loaded = load(folder)
    if not isinstance(loaded, TableModel):
        raise InputError(
            f"{folder} holds a {type(loaded).__name__}, which takes arrays and data frames: use "
            "it in Python with halfseen.load. `halfseen fit` makes models that take tables."
        )
    return loaded
