"""Augmentations of images: their ranges, what they never show, and when they are chosen."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp

from halfseen import Blocks
from halfseen.networks.augmentation import (
    AUGMENTATIONS,
    AffineImages,
    Appearance,
    Pixels,
    is_more_uniform,
    looks_differ,
    make_augmentation,
    nearest_measured,
)
from halfseen.networks.train import LabelledRows, TrainingProblem, fit_objective, sample_of
from halfseen.networks.variants import variant_named
from halfseen.options import make_options
from halfseen.presets import preset


def test_half_as_wide_is_half_of_every_range():
    whole, half = AffineImages.wide(), AffineImages.wide(0.5)
    assert half.zoom == pytest.approx([math.sqrt(zoom) for zoom in whole.zoom])
    assert whole.zoom == pytest.approx((math.exp(-0.4), math.exp(0.4)))
    for name in ("shift", "shear", "rotation"):
        assert getattr(half, name) == pytest.approx(getattr(whole, name) / 2)
    assert whole.shift * 16 == 2.0, "two of 32 pixels"


def test_zooms_are_drawn_evenly_on_the_logarithmic_scale():
    torch.manual_seed(0)
    square = torch.zeros(4000, 1, 32, 32)
    square[:, :, 10:22, 10:22] = 1.0
    zoomed = AffineImages((0.5, 1.5), shift=0.0, shear=0.0, rotation=0.0)(square)
    logarithm = 0.5 * (zoomed.sum((1, 2, 3)) / 144).log()
    evenly = (math.log(0.5) + math.log(1.5)) / 2
    assert logarithm.mean().item() == pytest.approx(evenly, abs=0.03)


@pytest.mark.parametrize("shown", [(0, 8), (8, 16)])
def test_what_was_not_measured_never_enters(shown):
    images = torch.full((50, 2, 16, 16), 7.0)
    images[:, :, shown[0] : shown[1]] = torch.rand(50, 2, 8, 16)
    assert AffineImages.wide(1.0, shown)(images).max() <= 1.0 + 1e-5
    moved = AffineImages.wide(1.0)(images)[:, :, shown[0] : shown[1]]
    assert moved.max() > 2.0, "without it, hidden rows move into sight"


def test_an_image_under_another_light_is_an_affine_function_of_its_pixels():
    torch.manual_seed(0)
    images = torch.rand(500, 3, 4, 4) * 4 + 10
    lit = Appearance(contrast=0.3, inversion=0.5, lowest=10.0, highest=14.0)(images)
    assert lit.min() >= 10.0
    assert lit.max() <= 14.0
    slopes = []
    for before, after in zip(images.numpy(), lit.numpy(), strict=True):
        fits = [np.polyfit(b.ravel(), a.ravel(), 1, full=True) for b, a in zip(before, after)]  # noqa: B905
        assert max(float(fit[1][0]) for fit in fits) < 1e-8
        assert np.ptp([fit[0][0] for fit in fits]) < 1e-4, "one contrast for all channels"
        slopes.append(fits[0][0][0])
    assert 0.3 <= np.abs(slopes).min() < np.abs(slopes).max() <= 1.0
    assert np.mean(np.array(slopes) < 0) == pytest.approx(0.5, abs=0.07)


def test_the_target_is_never_inverted():
    target = make_augmentation("auto", of_target=True, pixels=Pixels(looks_differ=True))
    images = torch.zeros(300, 1, 16, 16)
    images[..., 8:] = 1.0
    left, right = target(images)[..., 0].mean((1, 2)), target(images)[..., -1].mean((1, 2))
    assert (left < right).all()


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_looks_are_told_apart_by_the_distance_of_kolmogorov_and_smirnov(shift):
    random = np.random.default_rng(0)
    one, other = random.uniform(size=400), random.uniform(size=300) ** (1 + 5 * shift)
    distance = ks_2samp(one, other).statistic
    pixels = torch.tensor(one).reshape(4, 1, 10, 10), torch.tensor(other).reshape(3, 1, 10, 10)
    assert not looks_differ(*pixels, threshold=distance + 1e-9)
    assert looks_differ(*pixels, threshold=distance - 1e-9)


def test_a_domain_is_more_uniform_where_the_means_of_its_images_vary_less():
    random = np.random.default_rng(0)
    noise = random.normal(size=(2, 50, 1, 4, 4))
    level = random.normal(size=(50, 1, 1, 1))
    for own, others in ((0.5, 2.0), (2.0, 0.5)):
        pair = noise[0] + own * level, noise[1] + others * level
        spreads = [np.std([image.mean() for image in images], ddof=1) for images in pair]
        assert is_more_uniform(*map(torch.tensor, pair)) is bool(spreads[0] < spreads[1])
        assert (spreads[0] < spreads[1]) == (own < others)


def test_automatic_ones_add_light_where_the_looks_differ():
    plain, other = Pixels(shown=(0, 4)), Pixels((0, 4), 0.0, 1.0, looks_differ=True)
    assert make_augmentation("auto", pixels=plain) == AUGMENTATIONS["wide"](plain)
    assert make_augmentation("auto", pixels=other) == AUGMENTATIONS["wide+light"](other)
    of_target = make_augmentation("auto", of_target=True, pixels=other)
    assert of_target == AUGMENTATIONS["mild+light"](other)
    assert of_target.first.shown == (0, 4)
    assert (of_target.second.lowest, of_target.second.highest) == (0.0, 1.0)
    varied = Pixels((0, 4), 0.0, 1.0, looks_differ=True, is_uniform=False)
    assert make_augmentation("auto", pixels=varied) == AUGMENTATIONS["wide"](varied)
    assert make_augmentation("auto", of_target=True, pixels=varied) == AUGMENTATIONS["wide"](varied)
    assert make_augmentation("auto", of_target=True, pixels=plain) == AUGMENTATIONS["wide"](plain)
    assert make_augmentation("none") is None


def test_no_gap_moves_into_what_was_measured():
    missing = np.zeros((8, 8), dtype=bool)
    missing[2:6, 3:7] = True
    pixels = Pixels(nearest=nearest_measured(missing))
    images = torch.where(torch.from_numpy(missing), 0.0, torch.ones(6, 2, 8, 8))
    moved = make_augmentation("wide", pixels=pixels)(images)
    torch.testing.assert_close(moved, torch.ones(6, 2, 8, 8))
    assert make_augmentation("wide")(images).min() < 0.5


def test_light_is_added_where_one_domain_alone_has_colours():
    grey = torch.rand(40, 1, 8, 8).expand(-1, 3, -1, -1)
    for tint, expected in ((torch.ones(3), False), (torch.tensor([1.0, 1.2, 1.0]), True)):
        problem = TrainingProblem(
            Blocks.rows((3, 8, 8)),
            LabelledRows(grey, torch.arange(40) % 2),
            Blocks.rows((3, 8, 8)).hide(grey * tint[:, None, None]),
            2,
        )
        method = variant_named("Adaptation-IgnoreComponent")
        objective, _ = fit_objective(problem, method, make_options(SMALL, preset()), seed=0)
        assert isinstance(objective.views.target, AffineImages) is not expected


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_each_keeps_shape_and_type_and_leaves_its_input_alone(name):
    rows = torch.rand(60, 4) if name == "mask" else torch.rand(6, 3, 8, 8)
    kept = rows.clone()
    changed = make_augmentation(name)(rows)
    assert (changed.shape, changed.dtype) == (rows.shape, rows.dtype)
    assert torch.equal(rows, kept)
    assert not torch.equal(changed, rows)


def images_problem(target_shift):
    random = torch.Generator().manual_seed(0)
    blocks = Blocks.rows((1, 8, 8), fraction=0.5)
    source, target = (torch.rand(40, 1, 8, 8, generator=random) for _ in range(2))
    labels = torch.arange(40) % 2
    spread = 1 + target_shift * torch.rand(40, 1, 1, 1, generator=random)
    target = blocks.hide(target * spread + target_shift)
    return TrainingProblem(blocks, LabelledRows(source, labels), target, 2)


SMALL = {
    "images.channels": (4,),
    "images.kernel_size": 3,
    "images.pools": 1,
    "networks.critic_widths": (4,),
    "generator.widths": (4,),
    "training.joint_epochs": 1,
}


@pytest.mark.parametrize(("shift", "light"), [(0.0, False), (2.0, True)])
@pytest.mark.parametrize("model", ["Adaptation-Imputation", "Adaptation-Full"])
def test_a_fit_looks_at_the_pixels_of_both_domains_and_at_no_label(shift, light, model):
    objective, history = fit_objective(
        images_problem(shift), variant_named(model), make_options(SMALL, preset()), seed=0
    )
    views = objective.views
    assert isinstance(views.source, AffineImages) is not light
    affine = views.target.first if light else views.target
    assert affine.shown == ((0, 4) if model == "Adaptation-Imputation" else None)
    assert "consistency" in history[-1]


def test_images_are_standardized_where_the_light_of_the_source_varies_more():
    alike, brighter = images_problem(0.0), images_problem(2.0)
    source = LabelledRows(brighter.target, brighter.source.labels)
    target = brighter.blocks.hide(brighter.source.inputs)
    darker = TrainingProblem(brighter.blocks, source, target, 2)
    options = make_options(SMALL, preset(imputes=False))
    for problem, expected in ((alike, False), (brighter, False), (darker, True)):
        method = variant_named("Adaptation-IgnoreComponent")
        objective, _ = fit_objective(problem, method, options, seed=0)
        assert objective.options.images.standardize is expected
        assert objective.networks.standardize is expected


def test_a_sample_is_spread_over_the_rows_and_never_too_large():
    for rows in (0, 1, 9, 10, 11, 99, 101):
        chosen = sample_of(torch.arange(rows), most=10)
        assert len(chosen) <= 10
        assert len(chosen) == rows or rows > 10
        gaps = np.diff(chosen)
        assert len(set(gaps.tolist())) <= 1
