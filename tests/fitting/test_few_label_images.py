"""Complete images without a label teach what the missing part says."""

import numpy as np
import pytest

from halfseen import HalfSeenClassifier, InputError
from halfseen.api import ImageDomains, fit_domains
from halfseen.blocks import Blocks
from halfseen.data.preprocessors import ImagePreprocessor
from halfseen.fitting import image_teachers
from halfseen.fitting.image_teachers import CONTROL, TEACHER, image_labels
from halfseen.members import Sample, TrainingJob
from halfseen.settings import FitSettings
from halfseen.targets import ClassTarget

pytestmark = pytest.mark.filterwarnings("ignore")
OPTIONS = {
    "images.channels": (4, 8),
    "images.kernel_size": 3,
    "networks.classifier_widths": (8,),
    "networks.critic_widths": (4,),
    "generator.widths": (8,),
}
SHORT = OPTIONS | {"training.joint_epochs": 1}


def images(rows=240, seed=0):
    """Return images whose lower half shows the class and whose upper half hints at it."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, rows)
    pixels = random.normal(scale=0.3, size=(rows, 1, 16, 16))
    for label, columns in enumerate((slice(8), slice(8, 16))):
        pixels[labels == label, :, 8:, columns] += 0.5
        pixels[labels == label, :, :8, columns] += 0.06
    return pixels.clip(-1, 1).astype(np.float32), labels


def job_of(inputs, labels, blocks):
    kind = ClassTarget.of(2)
    return TrainingJob(blocks, kind, Sample(inputs, labels), blocks.hide(inputs), 0)


def test_a_teacher_of_whole_images_knows_more_than_one_of_x1():
    inputs, labels = images()
    blocks = Blocks.rows((1, 16, 16))
    job, others = job_of(inputs[:16], labels[:16], blocks), inputs[16:160]
    settings = FitSettings(options=OPTIONS | {"training.joint_steps": 80})
    held_out = Sample(inputs[160:], labels[160:])
    found = image_labels(job, others, held_out, settings)
    assert np.mean(found.soft.argmax(1) == labels[16:160]) > 0.9
    assert found.evidence["held_out"] == 80
    assert found.evidence["right"] > max(0.9, found.evidence["right_alone"] + 0.1)
    assert found.evidence["lead"] > 2.0


def test_a_teacher_without_a_lead_counts_for_little(monkeypatch):
    """Held-out labels speak: where they are noise to the one, the other labels."""
    answers = {TEACHER: np.log([[0.01, 0.99]]), CONTROL: np.log([[0.99, 0.01]])}
    monkeypatch.setattr(
        image_teachers, "image_opinion", lambda name, j, u, asked, s: answers[name].repeat(42, 0)
    )
    inputs, labels = images(42)
    job = job_of(inputs, labels, Blocks.rows((1, 16, 16)))
    for truth, share in ((0, 0.9), (1, 0.1)):
        held_out = Sample(inputs[:40], np.r_[np.full(36, truth), np.full(4, 1 - truth)])
        found = image_labels(job, inputs[40:], held_out, FitSettings())
        assert abs(found.soft[0, 0] - share) < 0.1
        assert (found.evidence["lead"] > 0) == bool(truth)
    alone = image_labels(job, inputs[:42], None, FitSettings())
    assert alone.soft[0, 1] == pytest.approx(0.99)
    assert not alone.evidence


def domains(inputs, labels, unlabelled=None):
    blocks = Blocks.rows((1, 16, 16))
    made = ImagePreprocessor(blocks, (0, 1), "unit")
    return ImageDomains(
        made, Sample(inputs, labels), blocks.hide(images(30, 1)[0]), unlabelled=unlabelled
    )


def test_students_learn_from_all_complete_images(monkeypatch):
    """True labels where they are known, those of the teacher elsewhere."""
    from halfseen.members.network_members import NetworksLearner

    inputs, labels = images(60)
    seen, fit = [], NetworksLearner.fit
    monkeypatch.setattr(
        NetworksLearner, "fit", lambda self, task: seen.append((self, task)) or fit(self, task)
    )
    model = fit_domains(domains(inputs[:20], labels[:20], inputs[20:]), FitSettings(options=SHORT))
    teachers = [(own, task) for own, task in seen if len(task.target) == 56]
    assert [own.method.name for own, _ in teachers] == [TEACHER, CONTROL]
    assert teachers[0][1].target[:, :, 8:].any(), "the teacher sees the missing half"
    assert not teachers[1][1].target[:, :, 8:].any()
    students = [task.source for _, task in seen if len(task.target) == 30]
    assert [len(rows) for rows in students] == [56, 56, 60, 60], "after measuring, all of them"
    assert (students[-1].labels[:20] == np.eye(2)[labels[:20]]).all()
    assert (students[-1].labels[20:] == students[0].labels[16:]).all(), "taught once"
    facts = model.metrics["few_images"]
    assert (facts["labelled"], facts["unlabelled"], facts["held_out"]) == (20, 40, 4)


def test_every_way_to_say_what_has_no_label_gives_the_same_model():
    inputs, labels = images(60)
    target = images(30, 1)[0]
    settings = {"missing": "bottom", "random_state": 0, "options": SHORT}

    def answer(X, y, **more):
        model = HalfSeenClassifier(**settings).fit(X, y, X_target=target, **more)
        assert model.model_.metrics["few_images"]["unlabelled"] == 40
        return model.predict_proba(target)

    apart = answer(inputs[:20], labels[:20], X_unlabelled=inputs[20:])
    some = np.r_[labels[:20].astype(float), np.full(40, np.nan)]
    for y in (some, np.where(np.isnan(some), -1, some).astype(int)):
        assert (answer(inputs, y) == apart).all()
    given = fit_domains(
        domains(inputs[:20], labels[:20], inputs[20:]),
        FitSettings(options=SHORT, report_data="none"),
    )
    assert np.allclose(given.predict_proba(target), apart)


def test_what_cannot_teach_is_refused():
    inputs, labels = images(60)
    y = labels.astype(object)
    y[20:] = None
    model = HalfSeenClassifier(missing="bottom", options=SHORT)
    ones = np.flatnonzero(y == 1)
    y[ones[1:]] = None
    with pytest.raises(InputError, match="Of class '1' one image has a label; at least 2"):
        model.fit(inputs, y, X_target=inputs)
    y[ones[0]] = None
    with pytest.raises(InputError, match="hold one class"):
        model.fit(inputs, y, X_target=inputs)
    with pytest.raises(InputError, match="No source row has a label"):
        model.fit(inputs, np.full(60, None), X_target=inputs)
    with pytest.raises(InputError, match="unlabelled rows are a table"):
        model.fit(inputs, labels, X_target=inputs, X_unlabelled=inputs[:, 0, 0])
    coloured = inputs.repeat(3, axis=1)
    with pytest.raises(InputError, match=r"the unlabelled rows have shape \(3, 16, 16\)"):
        model.fit(inputs, labels, X_target=inputs, X_unlabelled=coloured)
