"""The scikit-learn face of the seven models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import nn

from halfseen.blocks import View
from halfseen.domain_classifier import DomainClassifier
from halfseen.errors import OptionError
from halfseen.front.inputs import Missing
from halfseen.networks.methods import Method, method_named
from halfseen.networks.nets import EncoderFactory
from halfseen.networks.training import Augmentation, EpochHook
from halfseen.options import Preset

__all__ = ["AdaptationImputationClassifier", "DomainAdaptationClassifier"]


class AdaptationImputationClassifier(DomainClassifier):
    """Adaptation-Imputation: classify a shifted target in which some inputs are never measured.

    An encoder g1 reads the observed inputs, an encoder g2 those that the target lacks, a
    generator r imputes the latent of the second from that of the first, and a classifier f reads
    both. Two divergences align source with target, and imputed with true latents.

    Parameters
    ----------
    missing : names, indices, boolean mask, Blocks, or "top" / "bottom" for images, optional
        The block that the target lacks. By default: the columns that `X_target` does not have or
        has entirely empty.
    preset : {"default", "paper", "reference"}
        Where every other setting starts from: our measured choice, the paper's text, or the
        authors' code.
    divergence : {"adversarial", "transport"} or a registered name
        How distributions of latents are compared.
    refine : bool
        Whether to end with self-training on the target.
    encoder : torch.nn.Module or callable, optional
        An encoder of your own: a module (copied for g1 and for g2) or a function from an input
        shape to a module. It must give one flat latent per row.
    learning_rate, batch_size, warmup_epochs, joint_epochs : optional
        Replace the preset's values.
    augmentation : {"none", "affine", "swap", "mask"} or callable, optional
        Applied to source batches; by default mask noise on tables, nothing on images ("none").
    options : mapping, optional
        Any other field of :class:`halfseen.Options`, by dotted name or as nested mappings.
    device : str
        ``auto`` takes a GPU where there is one.
    random_state : int or RandomState, optional
        Same seed, same machine: identical weights.
    verbose : int
        Whether to show a progress bar.
    checkpoint : path, optional
        File that keeps the state after every epoch; an interrupted fit continues from it.
    on_epoch : callable, optional
        Called after each epoch with the objective and its record.
    epoch_choice : {"last"} or one of halfseen.selection.ONE_FIT_SCORES
        Which epoch of the joint phase, and of refinement, is kept: the last, or the best by a
        score that uses no target label.
    held_out : float
        Share of the source rows that such a score is computed on, where it needs any; they are
        not trained on.
    patience : int, optional
        How many epochs without a better score end a phase.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    blocks_ : Blocks
        Which inputs are observed and which are missing.
    networks_ : torch.nn.Module
        g1, g2, r and f.
    options_ : Options
        Every setting that was used.
    history_ : list of dict
        One record per epoch: its phase and the mean of each named loss.
    class_prior_ : ndarray
        Class proportions that probabilities speak of: the source's, or equal ones where training
        showed every class equally often (``balanced``).
    chosen_epoch_ : dict
        The epoch whose weights each phase ended with.
    n_features_in_ : int
        Columns of the source.
    feature_names_in_ : ndarray
        Their names, when the source has names.

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
    >>> model = AdaptationImputationClassifier(joint_epochs=3, random_state=0)
    >>> model = model.fit(source, label, X_target=target)
    >>> model.blocks_.missing
    (3,)
    >>> model.predict_proba(target).shape
    (150, 2)
    """

    def _method(self) -> Method:
        return method_named("Adaptation-Imputation")


class DomainAdaptationClassifier(DomainClassifier):
    """The six relatives of Adaptation-Imputation, which do not impute.

    Parameters
    ----------
    view : {"ignore", "zero", "full"}
        What the model is shown: the observed inputs alone; complete source inputs and a target
        whose missing block is zero; or complete inputs in both domains, which only a benchmark
        has.
    adapt : bool
        Whether to align source and target latents.
    missing, preset, divergence, refine, encoder, learning_rate, batch_size, warmup_epochs, \
joint_epochs, augmentation, options, device, random_state, verbose, checkpoint, on_epoch, \
epoch_choice, held_out, patience
        As for :class:`AdaptationImputationClassifier`.

    Examples
    --------
    >>> DomainAdaptationClassifier(view="zero", adapt=False)._method().name
    'Source-ZeroImputation'
    """

    def __init__(
        self,
        *,
        view: View = "ignore",
        adapt: bool = True,
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
        super().__init__(
            missing=missing,
            preset=preset,
            divergence=divergence,
            refine=refine,
            encoder=encoder,
            learning_rate=learning_rate,
            batch_size=batch_size,
            warmup_epochs=warmup_epochs,
            joint_epochs=joint_epochs,
            augmentation=augmentation,
            options=options,
            device=device,
            random_state=random_state,
            verbose=verbose,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            epoch_choice=epoch_choice,
            held_out=held_out,
            patience=patience,
        )
        self.view = view
        self.adapt = adapt

    def _method(self) -> Method:
        views = {"full": "Full", "zero": "ZeroImputation", "ignore": "IgnoreComponent"}
        if self.view not in views:
            raise OptionError(f"view={self.view!r} is unknown; choose one of {list(views)}.")
        return method_named(f"{'Adaptation' if self.adapt else 'Source'}-{views[self.view]}")
