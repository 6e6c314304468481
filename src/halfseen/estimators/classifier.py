"""The scikit-learn face of the one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, TransformerMixin

from halfseen.errors import OptionError
from halfseen.estimators.base import FrameEstimator
from halfseen.options import Inputs, Options, Preset, dotted, option_names

# Torch and Arrow are imported when something is fitted: an import must not wait for them.
if TYPE_CHECKING:
    from torch import nn

    from halfseen.data.column_spec import Missing
    from halfseen.networks.nets.encoders import EncoderFactory
    from halfseen.networks.nets.modules import Networks
    from halfseen.networks.training.augmentation import Augmentation
    from halfseen.networks.training.loop import EpochHook
    from halfseen.networks.variants import NetworkVariant
    from halfseen.settings import Effort, FitSettings


class AdaptationImputationClassifier(
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    FrameEstimator,
):
    """Adaptation-Imputation: classify a shifted target in which some inputs are never measured.

    An encoder g1 reads the observed inputs, an encoder g2 those that the target lacks, a
    generator r imputes the latent of the second from that of the first, and a classifier f reads
    both. Two divergences align source with target, and imputed with true latents. On tables
    the answer is that of boosted trees, a forest and logistic regression on the observed columns,
    weighed by rows that are held out; networks join them where they are asked for. `halfseen fit`
    fits the same model to two files.

    Parameters
    ----------
    missing : names, indices, boolean mask, Blocks, or a side of images, optional
        The block that the target lacks; of images a mask of (height, width), rows, or a side as
        in "bottom" (half of them) or "left:0.25". By default: the columns that `X_target` does not
        have or has entirely empty.
    keep, categorical, drop : lists of names or indices, optional
        Columns that the target has although they look otherwise, numbers that are names of
        categories, and columns not to use.
    model : str or list of str
        Which of the paper's seven models the networks are: Adaptation-Imputation, or
        Adaptation- or Source- with IgnoreComponent (the observed inputs alone), ZeroImputation
        (zeros in the missing block) or Full (a target that lacks nothing, as benchmarks have).
        Of several one is chosen on tables, and on images they answer together: by default
        ``halfseen fit-images`` has Adaptation-Imputation and Adaptation-IgnoreComponent.
    members : list of {"networks", "boosted_trees", "forest", "regression"}, optional
        What learns beside each other. By default trees and regression for tables, with networks
        at ``effort="best"`` or where a setting of theirs is given (`options`, `model`, `refine`,
        ...), and networks alone for images and for presets that repeat the paper.
    effort : {"quick", "default", "best"}
        How long a fit may take. ``quick`` leaves teachers out for tables, and gives images a
        tenth of the steps; ``best`` adds networks to tables and has those of five folds answer
        together, however many rows there are.
    align : bool
        Whether columns that have drifted are mapped onto the source's scale; only where target
        rows are far from those of the source.
    preset : {"default", "paper", "reference"}
        Where every setting starts from: our measured choice, the paper's text, or the authors'
        code.
    divergence : {"adversarial", "transport"} or a registered name
        How distributions of latents are compared.
    refine : bool
        Whether to end with self-training on the target.
    options : mapping, optional
        Any field of :class:`halfseen.Options`, as ``{"training.learning_rate": 1e-3}``. In
        ``set_params`` and a grid search the same is called ``training__learning_rate``.
    encoder : torch.nn.Module or callable, optional
        An encoder of your own: a module (copied for g1 and for g2) or a function from an input
        shape to a module. It must give one flat latent per row.
    augmentation : callable, optional
        Applied to source batches, instead of the one named in the options.
    device : str
        ``auto`` takes a GPU where there is one.
    random_state : int or RandomState, optional
        Same seed, same machine: identical weights.
    verbose : int
        Whether to show progress bars.
    checkpoint : path, optional
        Folder that keeps the state after every epoch; an interrupted fit continues from it. It
        can be deleted when the model is there.
    on_epoch : callable, optional
        Called after each epoch with the objective and its record.
    class_weight : "balanced" or mapping, optional
        How much rows of each class count, beside `sample_weight`: as rarely as the class is, or
        as a mapping says (1 where it says nothing). Probabilities then speak of those shares.
    time_limit : float, optional
        Seconds to keep to: members of tables that would take longer are left out, all but trees
        and regression (``model_.metrics["time_limit"]`` names them); images get fewer steps.
    seeds : int
        With how many seeds each member is trained that depends on one, all but regression; they
        answer together. Networks of images differ most from seed to seed.

    Attributes
    ----------
    model_ : halfseen.model.Model
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

    References
    ----------
    Kirchmeyer, Gallinari, Rakotomamonjy and Mantrach, Unsupervised domain adaptation with
    non-stochastic missing data, Data Mining and Knowledge Discovery, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> source = random.normal(size=(200, 4))
    >>> label = (source[:, 0] + source[:, 3] > 0).astype(int)
    >>> target = random.normal(size=(150, 4)) + 0.5
    >>> target[:, 3] = np.nan                               # never measured there
    >>> model = AdaptationImputationClassifier(effort="quick", random_state=0)
    >>> model = model.fit(source, label, X_target=target)
    >>> model.blocks_.missing
    (3,)
    >>> model.predict_proba(target).shape
    (150, 2)
    """

    def __init__(
        self,
        *,
        missing: Missing = None,
        keep: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        drop: Sequence[Any] | None = None,
        model: str | Sequence[str] = "Adaptation-Imputation",
        members: Sequence[str] | None = None,
        effort: Effort = "default",
        align: bool = True,
        preset: Preset = "default",
        divergence: str = "adversarial",
        refine: bool = False,
        options: Mapping[str, Any] | None = None,
        encoder: nn.Module | EncoderFactory | None = None,
        augmentation: Augmentation | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | Path | None = None,
        on_epoch: EpochHook | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        time_limit: float | None = None,
        seeds: int = 1,
    ) -> None:
        self.missing = missing
        self.keep = keep
        self.categorical = categorical
        self.drop = drop
        self.model = model
        self.members = members
        self.effort = effort
        self.align = align
        self.preset = preset
        self.divergence = divergence
        self.refine = refine
        self.options = options
        self.encoder = encoder
        self.augmentation = augmentation
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_epoch = on_epoch
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.seeds = seeds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep` also given options, as ``group__name``."""
        found: dict[str, Any] = super().get_params(deep=False)
        if deep:
            given = dotted(self.options) if isinstance(self.options, Mapping) else {}
            found |= {name.replace(".", "__"): value for name, value in given.items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and options as ``group__name``.

        Examples
        --------
        >>> model = AdaptationImputationClassifier().set_params(training__learning_rate=0.01)
        >>> model.options
        {'training.learning_rate': 0.01}
        """
        given = {n.replace("__", "."): value for n, value in params.items() if "__" in n}
        super().set_params(**{n: value for n, value in params.items() if "__" not in n})
        for name in given:
            if name not in option_names() and not name.startswith("objective.terms"):
                raise OptionError(
                    f"There is no option {name!r}; halfseen.options.option_names() lists all."
                )
        if given:
            self.options = {**dotted(self.options or {}), **given}
        return self

    def has_networks(self, *, image: bool = False) -> bool:
        """Whether ``fit`` would train networks."""
        return "networks" in self._settings(0).members_for("image" if image else "table")

    def plan(self, *, image: bool = False) -> tuple[NetworkVariant, Options]:
        """Return which of the seven models this is, the first of several, and its settings."""
        from halfseen.networks.variants import variant_named

        inputs: Inputs = "image" if image else "table"
        settings = self._settings(0)
        settings.check(inputs)
        method = variant_named(settings.models[0])
        return method, settings.options_for(method, inputs=inputs)

    def _settings(self, seed: int) -> FitSettings:
        names = (self.model,) if isinstance(self.model, str) else tuple(self.model)
        return replace(super()._settings(seed), models=names, measure=False)

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
        return self._asked(X).predict_proba(X, target_prior=target_prior)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        model = self._asked(X)
        predicted: npt.NDArray[Any] = self.classes_[model.predict_proba(X).argmax(1)]
        return predicted

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the latent (z1, ẑ2) of each row: observed part first, imputed part after it."""
        return self._asked(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return what the columns of ``transform`` are: observed0, ..., imputed0, ...

        Examples
        --------
        >>> model = AdaptationImputationClassifier(members=["networks"], missing=[1], options={
        ...     "training.joint_epochs": 1, "tables.latent_size": 2}, random_state=0)
        >>> rows = np.random.default_rng(0).normal(size=(40, 2))
        >>> model = model.fit(rows, rows[:, 0] > 0, X_target=rows + 0.1)
        >>> model.get_feature_names_out().tolist()
        ['observed0', 'observed1', 'imputed0', 'imputed1']
        """
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
