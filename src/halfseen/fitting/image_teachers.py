"""Few labels on images: a network that sees whole images labels those without a label.

The teacher learns from the labelled images, and from all complete ones by agreeing with its own
average about augmented views of them (:mod:`halfseen.networks.terms.averaged_teacher`). Students,
the usual networks, then learn from its soft labels. How far it is believed beside one that sees x1
alone is decided on labelled images held out from both (:mod:`halfseen.distillation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from halfseen.arrays import Floats, Matrix
from halfseen.distillation import TRUST, Opinion, student_job
from halfseen.members import Sample, TrainingJob
from halfseen.networks.variants import variant_named
from halfseen.settings import FitSettings

if TYPE_CHECKING:
    from halfseen.members.network_members import NetworksLearner

TEACHER, CONTROL = "Adaptation-Full", "Adaptation-IgnoreComponent"
"""What sees whole images, and what sees x1 alone; complete images stand where the target does."""
STEPS = 1_200
"""By then, a hundred labels of USPS make a teacher right about 98 % of the other images."""
REPEATED = 6_400
"""Labelled images are repeated until there are as many as others, or so many."""


@dataclass(frozen=True, eq=False)
class ImageLabels:
    """Soft labels of images without a label, and what was measured of who gave them."""

    soft: Floats
    evidence: Mapping[str, float] = field(default_factory=dict)
    """What held-out images say of both teachers; nothing where none were held out."""


def image_labels(
    job: TrainingJob, unlabelled: Matrix, held_out: Sample | None, settings: FitSettings
) -> ImageLabels:
    """Return what teachers of the job's labelled images say of complete ones without a label."""
    asked = unlabelled if held_out is None else np.concatenate([held_out.inputs, unlabelled])
    rows, kind = len(asked) - len(unlabelled), job.target_type
    said = image_opinion(TEACHER, job, unlabelled, asked, settings)
    if held_out is None:
        return ImageLabels(kind.to_predictions(said))
    alone = image_opinion(CONTROL, job, unlabelled, asked, settings)
    measured = replace(job, source=held_out)
    opinion, control = (Opinion(each[:rows], each[rows:]) for each in (said, alone))
    both = control.joined_by(opinion, TRUST, measured)
    evidence = {
        "held_out": rows,
        "lead": float(opinion.lead_over(control, measured)),
        "right": float(np.mean(opinion.own.argmax(axis=1) == held_out.labels)),
        "right_alone": float(np.mean(control.own.argmax(axis=1) == held_out.labels)),
    }
    return ImageLabels(kind.to_predictions(both.beyond), evidence)


def image_opinion(
    variant: str, job: TrainingJob, unlabelled: Matrix, asked: Matrix, settings: FitSettings
) -> Floats:
    """Train a teacher, and return its answer about other complete images."""
    blocks, labelled = job.blocks, job.source
    complete = np.concatenate([labelled.inputs, unlabelled])
    rows = max(len(labelled), min(len(complete), REPEATED))
    learner = _teacher(variant, settings, blocks.shape[-1])
    checkpoint = job.checkpoint
    if checkpoint is not None:
        checkpoint = checkpoint.with_stem(f"{checkpoint.stem}-teacher-{variant}")
    if not learner.method.needs_complete_target:
        complete, asked = blocks.hide(complete), blocks.hide(asked)
    member = learner.fit(
        replace(
            job,
            source=labelled[np.resize(np.arange(len(labelled)), rows)],
            target=complete,
            checkpoint=checkpoint,
            title=", ".join(filter(None, ["teacher", job.title])),
        )
    )
    return member.raw_prediction(asked)


def _teacher(variant: str, settings: FitSettings, side: int) -> NetworksLearner:
    """Return what fits a teacher: by the default preset, whatever that of its students is."""
    from halfseen.members.network_members import NetworksLearner
    from halfseen.networks.train import JOINT_STEPS
    from halfseen.options import make_options

    method = variant_named(variant)
    own = settings.model_copy(update={"preset": "default"}).for_side(side)
    options = own.options_for(method, inputs="image")
    steps = min(options.training.joint_steps or JOINT_STEPS["image"], STEPS)
    # Both kinds of images are of one domain: there is nothing to adapt to.
    changes = {"training.joint_steps": steps, "objective.adaptation_weight": 0.0}
    return NetworksLearner(
        method,
        make_options(changes, options),
        device=own.device,
        encoder=own.encoder,
        augmentation=own.augmentation,
    )


def image_student(job: TrainingJob, unlabelled: Matrix, labels: ImageLabels) -> TrainingJob:
    """Return the job of a student: true labels where they are known, soft ones elsewhere."""
    known = job.target_type.targets(job.source.labels)
    return replace(student_job(job, unlabelled, known, labels.soft), checkpoint=job.checkpoint)
