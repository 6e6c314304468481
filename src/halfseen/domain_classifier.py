"""What the two estimators of the seven models share: parameters, fitting, predicting."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from halfseen.correction import CorrectedEstimator, TargetPrior
from halfseen.errors import OptionError
from halfseen.front.inputs import (
    Missing,
    compare_names,
    encode_labels,
    prepare_domains,
    prepare_rows,
    read_inputs,
    split_stacked,
)
from halfseen.networks import nets
from halfseen.networks.methods import Method, method_named
from halfseen.networks.nets import EncoderFactory
from halfseen.networks.training import (
    Augmentation,
    EpochHook,
    LabelledRows,
    ProgressBar,
    Rows,
    chosen_epochs,
)
from halfseen.networks.training.fitting import Problem, fit_objective
from halfseen.networks.training.parallel import present_ranks
from halfseen.options import Options, Preset, dotted, make_options, preset
from halfseen.persistence import SavedEstimator
from halfseen.selection import choose_epochs_by

__all__ = ["DomainClassifier"]


class DomainClassifier(
    CorrectedEstimator,
    SavedEstimator,
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What the seven models share: reading inputs, fitting, predicting."""

    def __init__(
        self,
        *,
        missing: Missing = None,
        preset: Preset = "default",
        divergence: str = "adversarial",
        refine: bool = False,
        encoder: nn.Module | EncoderFactory | None = None,
        learning_rate: float | None = None,
        batch_size: int | Literal["auto"] | None = None,
        warmup_epochs: int | None = None,
        joint_epochs: int | Literal["auto"] | None = None,
        augmentation: str | Augmentation | None = None,
        options: Mapping[str, Any] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | Path | None = None,
        on_epoch: EpochHook | None = None,
        epoch_choice: str = "last",
        held_out: float = 0.2,
        patience: int | None = None,
    ) -> None:
        self.missing = missing
        self.preset = preset
        self.divergence = divergence
        self.refine = refine
        self.encoder = encoder
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.warmup_epochs = warmup_epochs
        self.joint_epochs = joint_epochs
        self.augmentation = augmentation
        self.options = options
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.on_epoch = on_epoch
        self.epoch_choice = epoch_choice
        self.held_out = held_out
        self.patience = patience

    def fit(
        self, X: Any, y: Any = None, X_target: Any = None, *, sample_domain: Any = None
    ) -> Self:
        """Learn from a labelled source and an unlabelled target.

        Parameters
        ----------
        X
            Complete source inputs; or, with `sample_domain`, both domains stacked.
        y
            Labels of the source rows; in the stacked form those of target rows are not read.
        X_target
            Target inputs, without the missing block or with it empty. When neither this nor
            `sample_domain` is given, the source's own rows stand in for a target without shift.
        sample_domain
            One number per row of the stacked form: positive for source, negative for target.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        if sample_domain is not None:
            if X_target is not None:
                raise OptionError("Give either X_target or sample_domain, not both.")
            X, y, X_target = split_stacked(X, y, sample_domain)
        method = self._method()
        source = read_inputs(X, "the source")
        target = None if X_target is None else read_inputs(X_target, "the target")
        classes, labels = encode_labels(y, len(source))
        blocks, source_matrix, target_matrix = prepare_domains(
            source, target, self.missing, complete_target=method.needs_complete_target
        )
        if target is None:
            warnings.warn(
                "No target was given: the source's own rows without the missing block stand in "
                "for it. Pass X_target=... to adapt to a shifted target.",
                stacklevel=2,
            )
        options = self._options(method, image=not blocks.is_table)
        seed = self._seed()
        rows = LabelledRows(torch.from_numpy(source_matrix), torch.from_numpy(labels))
        target_rows = Rows(torch.from_numpy(target_matrix))
        rows, choice = choose_epochs_by(
            self.epoch_choice,
            rows,
            target_rows,
            held_out=self.held_out,
            patience=self.patience,
            seed=seed,
        )
        problem = Problem(blocks, rows, target_rows, len(classes))
        augmentation = self.augmentation if callable(self.augmentation) else None
        objective, history = fit_objective(
            problem,
            method,
            options,
            seed=seed,
            refine=self.refine,
            encoder=self.encoder,
            augmentation=augmentation,
            device=self.device,
            progress=ProgressBar(method.name) if self.verbose else None,
            on_epoch=self.on_epoch,
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            epoch_choice=choice,
        )
        self.networks_ = objective.networks
        self.objective_ = objective
        self.blocks_ = blocks
        self.method_ = method.name
        self.options_ = options
        self.classes_ = classes
        self.class_prior_ = (
            np.full(len(classes), 1.0 / len(classes))
            if options.training.balanced
            else np.bincount(labels) / len(labels)
        )
        self.history_ = history
        self.seed_ = seed
        self.n_features_in_ = source_matrix.shape[1]
        if source.names is not None:
            self.feature_names_in_ = np.asarray(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    @property
    def chosen_epoch_(self) -> dict[str, int]:
        """The epoch whose weights each phase ended with."""
        check_is_fitted(self)
        return chosen_epochs(self.history_)

    def predict_proba(self, X: Any, *, target_prior: TargetPrior = None) -> npt.NDArray[np.float64]:
        """Return the probability of each class, in the order of ``classes_``.

        Parameters
        ----------
        X
            Target rows: all columns of the source in any order (what is in the missing block is
            not looked at), or the observed columns alone.
        target_prior
            Class proportions on the target to correct for, in the order of ``classes_``: known
            ones, or what ``estimate_target_prior`` found, which is refused when its checks
            failed. Exact only where p(x | y) is the same in both domains; by default nothing is
            corrected.
        """
        return self._corrected(self._scored(self._rows(X)), target_prior)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each row."""
        probability = self.predict_proba(X)
        predicted: npt.NDArray[Any] = self.classes_[probability.argmax(1)]
        return predicted

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the latent (z1, ẑ2) of each row: observed part first, imputed part after it."""
        rows = self._rows(X)
        latent: npt.NDArray[np.float32] = nets.latents(
            self.networks_, rows, seed=self.seed_
        ).numpy()
        return latent

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # latents are single precision
        return tags

    def _rows(self, X: Any) -> torch.Tensor:
        check_is_fitted(self)
        table = read_inputs(X, "X")
        fitted = getattr(self, "feature_names_in_", None)
        compare_names(fitted, table.names, type(self).__name__, stacklevel=3)
        complete = method_named(self.method_).needs_complete_target
        return torch.from_numpy(prepare_rows(table, self.blocks_, complete=complete))

    def plan(self, *, image: bool = False) -> tuple[Method, Options]:
        """Return which of the seven models this is, and every setting that ``fit`` would use."""
        method = self._method()
        return method, self._options(method, image=image)

    def _options(self, method: Method, *, image: bool) -> Options:
        """Combine preset, named parameters and the rest, the later ones winning."""
        base = preset(
            self.preset,
            inputs="image" if image else "table",
            divergence=self.divergence,
            imputes=method.imputes,
        )
        named = {
            "training.learning_rate": self.learning_rate,
            "training.batch_size": self.batch_size,
            "training.warmup_epochs": self.warmup_epochs,
            "training.joint_epochs": self.joint_epochs,
            "training.augmentation": self.augmentation
            if isinstance(self.augmentation, str)
            else None,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return make_options({**given, **dotted(self.options or {})}, base)

    def _seed(self) -> int:
        """Return the run's seed without touching NumPy's global generator."""
        if self.random_state is None:
            random = np.random.SeedSequence()
            return present_ranks().from_first(lambda: int(random.generate_state(1)[0]))
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        return int(self.random_state)

    def _method(self) -> Method:
        raise NotImplementedError
