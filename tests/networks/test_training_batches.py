from dataclasses import fields

import numpy as np
import pytest
import torch

from halfseen import InputError
from halfseen.networks.augmentation import AffineImages, MaskNoise
from halfseen.networks.terms import Batch
from halfseen.networks.train import LabelledRows, ResidentBatches, TrainingProblem, balanced_order


def batches(source_rows=50, target_rows=20, balanced=True):
    labels = torch.zeros(source_rows, dtype=torch.int64)
    labels[: source_rows // 5] = 1
    source = LabelledRows(torch.arange(source_rows, dtype=torch.float32)[:, None], labels)
    target = 1000 + torch.arange(target_rows, dtype=torch.float32)[:, None]
    return ResidentBatches(source, target, balanced=balanced)


def test_target_labels_cannot_reach_training():
    assert {f.name: f.type for f in fields(TrainingProblem)}["target"] == "Tensor"
    assert Batch._fields == ("source", "labels", "target", "weights")


def test_balanced_batches_hold_every_class_equally():
    epoch = list(batches().epoch(16, seed=0))
    labels = torch.cat([batch.labels for batch in epoch])
    assert len(epoch) == 80 // 16
    assert torch.bincount(labels).tolist() == [40, 40]


def test_unbalanced_batches_see_each_source_row_once():
    epoch = list(batches(balanced=False).epoch(10, seed=0))
    rows = torch.cat([batch.source for batch in epoch]).flatten()
    assert sorted(rows.tolist()) == list(range(50))


def test_short_targets_are_reshuffled_and_all_used():
    epoch = list(batches().epoch(20, seed=0))
    passes = [batch.target.flatten().tolist() for batch in epoch]
    assert all(sorted(one) == [1000.0 + i for i in range(20)] for one in passes)
    assert passes[0] != passes[1]


def test_same_seed_same_batches():
    first, second, other = (list(batches().epoch(16, seed=s)) for s in (3, 3, 4))
    assert all(torch.equal(a.source, b.source) for a, b in zip(first, second, strict=True))
    assert not all(torch.equal(a.source, b.source) for a, b in zip(first, other, strict=True))


def test_rows_keep_their_labels():
    for batch in batches().epoch(16, seed=1):
        assert torch.equal(batch.labels, (batch.source.flatten() < 10).long())


@pytest.mark.parametrize(("kind", "rows"), [("source", (15, 40)), ("target", (40, 15))])
def test_fewer_rows_than_a_batch_get_a_sentence(kind, rows):
    with pytest.raises(InputError, match=f"The {kind} has 15 rows, fewer than one batch of 16"):
        batches(*rows).steps(16)


def test_oversampling_uses_every_row_of_a_small_class_evenly():
    labels = np.array([0] * 10 + [1] * 4)
    order = balanced_order(labels, np.random.default_rng(0))
    counts = np.bincount(order, minlength=14)
    assert counts[:10].tolist() == [1] * 10
    assert sorted(counts[10:].tolist()) == [2, 2, 3, 3]


def test_affine_augmentation_without_range_is_the_identity():
    images = torch.rand(3, 2, 16, 16)
    still = AffineImages(zoom=(1.0, 1.0), shift=0.0, shear=0.0, rotation=0.0)
    assert torch.allclose(still(images), images, atol=1e-5)


def test_affine_augmentation_zooms_and_shifts():
    image = torch.zeros(64, 1, 33, 33)
    image[:, :, 8:25, 8:25] = 1.0
    smaller = AffineImages(zoom=(0.5, 0.5), shift=0.0, shear=0.0, rotation=0.0)(image)
    assert smaller.sum().item() == pytest.approx(image.sum().item() / 4, rel=0.2)
    moved = AffineImages(zoom=(1.0, 1.0), shift=0.3, shear=0.0, rotation=0.0)(image)
    centre = (moved.sum(2) * torch.arange(33)).sum(-1) / moved.sum((2, 3))
    assert centre.std() > 1.0


def test_table_noise_changes_the_stated_share_within_each_column():
    torch.manual_seed(0)
    rows = torch.rand(2000, 3) + torch.tensor([0.0, 10.0, 20.0])
    noisy = MaskNoise(0.3)(rows)
    changed = (noisy != rows).float().mean().item()
    assert changed == pytest.approx(0.3, abs=0.03)
    assert torch.equal(noisy.floor() // 10, rows.floor() // 10), "values stay in their column"
