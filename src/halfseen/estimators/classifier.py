"""The scikit-learn faces of models of classes: the product, and the paper's method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, TransformerMixin

from halfseen.errors import OptionError
from halfseen.estimators.base import FrameEstimator, with_parameters
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.networks.modules import Networks
    from halfseen.options import Options

COLUMNS = ("missing", "keep", "categorical", "drop")
NETWORKS = ("preset", "divergence", "refine", "options", "encoder", "augmentation", "device")
RUN = ("on_epoch", "class_weight", "time_limit", "seeds", "effort", "memory_mib")


@with_parameters(
    *COLUMNS, "models", "members", "teachers", "align", "value_of_missing", *NETWORKS, *RUN,
    random_state=None, verbose=0, checkpoint=None,
)  # fmt: skip
class HalfSeenClassifier(ClassifierMixin, FrameEstimator):  # type: ignore[misc]
    """Classify a shifted target in which some inputs are never measured: the whole model.

    On tables boosted trees, a forest and logistic regression on the observed columns, taught by
    teachers that see the complete source, and weighed by rows that are held out; on images the
    paper's networks. ``halfseen fit`` and ``halfseen fit-images`` fit the same model to files.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : halfseen.model.model.Model
        What predicts, saves and exports: preprocessor, members and weights.
    classes_ : ndarray
        The class labels.
    blocks_ : Blocks
        Which prepared inputs are observed and which are missing.
    class_prior_ : ndarray
        Class proportions that the probabilities speak of: the source's; equal ones for images
        whose classes were shown equally often.
    notes_ : list of str
        What was noticed about the columns.
    n_features_in_, feature_names_in_
        Columns of the source, and their names where it has names.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> source = random.normal(size=(200, 4))
    >>> label = (source[:, 0] + source[:, 3] > 0).astype(int)
    >>> target = random.normal(size=(150, 4)) + 0.5
    >>> target[:, 3] = np.nan                               # never measured there
    >>> model = HalfSeenClassifier(effort="quick", random_state=0)
    >>> model = model.fit(source, label, X_target=target)
    >>> model.blocks_.missing
    (3,)
    >>> model.predict_proba(target).shape
    (150, 2)
    """

    def predict_proba(
        self, X: Any, *, target_prior: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X
            Target rows: all columns of the source in any order (what is in the missing block is
            not looked at), or the observed columns alone.
        target_prior
            Known class proportions of the target to correct for, in the order of ``classes_``.
            Exact only where p(x | y) is the same in both domains; by default nothing is corrected.
        """
        return self._model_for(X).predict_proba(X, target_prior=target_prior)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        model = self._model_for(X)
        predicted: npt.NDArray[Any] = self.classes_[model.predict_proba(X).argmax(1)]
        return predicted


@with_parameters(
    *COLUMNS, *NETWORKS, *RUN,
    model="Adaptation-Imputation", members=("networks",),
    random_state=None, verbose=0, checkpoint=None,
)  # fmt: skip
class AdaptationImputationClassifier(TransformerMixin, HalfSeenClassifier):  # type: ignore[misc]
    """Adaptation-Imputation, the paper's method: its networks, on tables and on images.

    An encoder g1 reads the observed inputs, an encoder g2 those that the target lacks, a
    generator r imputes the latent of the second from that of the first, and a classifier f reads
    both. Two divergences align source with target, and imputed with true latents. Other members
    may join the networks (`members`); :class:`HalfSeenClassifier` is what measures best.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    networks_, options_, history_
        g1, g2, r and f; every setting that was used; one record per epoch.
    model_, classes_, blocks_, class_prior_, notes_, n_features_in_, feature_names_in_
        As those of :class:`HalfSeenClassifier`.

    References
    ----------
    Kirchmeyer, Gallinari, Rakotomamonjy and Mantrach, Unsupervised domain adaptation with
    non-stochastic missing data, Data Mining and Knowledge Discovery, 2021.

    Examples
    --------
    >>> model = AdaptationImputationClassifier(missing=[1], options={
    ...     "training.joint_epochs": 1, "tables.latent_size": 2}, random_state=0)
    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = model.fit(rows, rows[:, 0] > 0, X_target=rows + 0.1)
    >>> model.transform(rows).shape, model.get_feature_names_out().tolist()
    ((40, 4), ['observed0', 'observed1', 'imputed0', 'imputed1'])
    """

    always: ClassVar[Mapping[str, Any]] = {"report_data": "none", "measure": False}

    def settings_of_fit(self, seed: int = 0) -> FitSettings:
        """Return the parameters as settings, networks among the members."""
        settings = super().settings_of_fit(seed)
        members = ("networks",) if settings.members is None else settings.members
        if "networks" not in members:
            raise OptionError(
                f"members={list(members)} lacks networks, which AdaptationImputationClassifier "
                "always trains: use HalfSeenClassifier for a model without them."
            )
        models = (self.model,) if isinstance(self.model, str) else tuple(self.model)
        return settings.model_copy(update={"models": models, "members": members})

    @property
    def networks_(self) -> Networks:
        """g1, g2, r and f."""
        return self._fitted().networks

    @property
    def options_(self) -> Options:
        """Every setting of the networks that was used."""
        return self._fitted().options

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One record per epoch: its phase and the mean of each named loss."""
        return self._fitted().history

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the latent (z1, ẑ2) of each row: observed part first, imputed part after it."""
        return self._model_for(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return what the columns of ``transform`` are: observed0, ..., imputed0, ..."""
        networks = self._fitted().networks
        sizes = {
            "observed": networks.latent_size - networks.missing_size,
            "imputed": networks.missing_size,
        }
        names = [f"{part}{k}" for part, size in sizes.items() for k in range(size)]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # latents are single precision
        return tags
