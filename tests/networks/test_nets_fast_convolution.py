"""The fast image encoder against the plain layers: latents, gradients, running statistics."""

import copy

import pytest
import torch
from torch import nn

from halfseen import Blocks, preset
from halfseen.networks import encoders as encoders_module
from halfseen.networks.encoders import ConvEncoder
from halfseen.networks.fast_convolution import CACHED_IMAGES, channels_last, is_fast
from halfseen.networks.modules import Predictor, build_networks
from halfseen.networks.objective import build_objective
from halfseen.networks.terms import Batch
from halfseen.networks.variants import VARIANTS, variant_named
from halfseen.options import make_options

NETWORKS = {"valid-2": ("valid", 2), "same-3": ("same", 3), "valid-1": ("valid", 1)}
ROWS = {"all": None, "top": (0, 16), "bottom": (16, 32), "band": (5, 10), "last": (31, 32)}
SMALL = {
    "images.channels": (4, 5, 6),
    "generator.widths": (8,),
    "networks.classifier_widths": (8,),
    "networks.critic_widths": (8,),
    "networks.classifier_dropout": 0.0,
}


def shake(module):
    """Give batch normalisation scales of both signs and statistics of its own."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2.0)
    return module.double()


def images(count, channels, rows=None, *, grey=False, fill=0.3):
    x = torch.randn(count, 1 if grey else channels, 32, 32, dtype=torch.float64)
    # Digits have flat backgrounds, where max pooling must break ties as the plain layer does.
    x = x.clamp_min(0.0)
    if rows is not None:
        x[:, :, : rows[0]] = fill
        x[:, :, rows[1] :] = fill
    return x.repeat(1, channels, 1, 1) if grey else x


def plain(encoder, x):
    return encoder.layers(x).flatten(1)


def assert_same_tensors(first, second, tolerance=1e-8):
    for a, b in zip(first, second, strict=True):
        assert torch.allclose(a.double(), b.double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("channels", "grey"), [(1, False), (3, False), (3, True)])
@pytest.mark.parametrize("training", [True, False])
def test_latents_gradients_and_statistics_are_the_plain_ones(
    network, rows, channels, grey, training
):
    torch.manual_seed(0)
    padding, pools = NETWORKS[network]
    fast = shake(
        ConvEncoder((channels, 32, 32), channels=(4, 5, 6), padding=padding, pools=pools)
    ).train(training)
    slow = copy.deepcopy(fast)
    x = images(6, channels, ROWS[rows], grey=grey)
    latent, expected = fast(x, ROWS[rows]), plain(slow, x)
    assert_same_tensors([latent], [expected])
    towards = torch.randn_like(latent)
    (latent * towards).sum().backward()
    (expected * towards).sum().backward()
    assert_same_tensors(*([p.grad for p in e.parameters()] for e in (fast, slow)))
    assert_same_tensors(fast.buffers(), slow.buffers())


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("normalize", ["batch", "none"])
def test_prediction_in_parts_is_the_plain_one(rows, normalize):
    torch.manual_seed(0)
    encoder = shake(ConvEncoder((1, 32, 32), channels=(4, 5, 6), normalize=normalize)).eval()
    x = images(CACHED_IMAGES + 3, 1, ROWS[rows])
    with torch.no_grad():
        assert_same_tensors([encoder(x, ROWS[rows])], [plain(encoder, x)])


def test_images_of_odd_sizes():
    torch.manual_seed(0)
    for shape, kernel, padding in (((1, 33, 29), 3, "same"), ((1, 35, 37), 4, "valid")):
        fast = shake(ConvEncoder(shape, channels=(4, 5), kernel_size=kernel, padding=padding))
        slow = copy.deepcopy(fast)
        for rows in ((0, 15), (14, shape[1]), (9, 20)):
            x = torch.zeros(5, *shape, dtype=torch.float64)
            x[:, :, rows[0] : rows[1]].normal_()
            assert_same_tensors([fast(x, rows)], [plain(slow, x)])
            assert_same_tensors(fast.buffers(), slow.buffers())


def test_single_precision_is_as_close_as_rounding_allows():
    torch.manual_seed(0)
    fast = shake(ConvEncoder((1, 32, 32))).float().train()
    slow = copy.deepcopy(fast)
    x = images(16, 1, (0, 16)).float()
    assert_same_tensors([fast(x, (0, 16))], [plain(slow, x)], tolerance=1e-4)


def test_input_gradients_are_the_plain_ones():
    encoder = shake(ConvEncoder((3, 32, 32), channels=(4, 5, 6))).eval()
    # Rounding decides which of equal pixels a pooling takes, so there are none: the hidden rows
    # are the same in every image without being flat.
    grey = torch.randn(4, 1, 32, 32, dtype=torch.float64).repeat(1, 3, 1, 1)
    grey[:, :, 16:] = grey[:1, :, 16:]
    gradients = []
    for encode in (lambda x: encoder(x, (0, 16)), lambda x: plain(encoder, x)):
        x = grey.clone().requires_grad_()
        encode(x).sum().backward()
        gradients.append(x.grad)
    assert_same_tensors(*([g] for g in gradients))


def test_statistics_of_the_target_are_the_plain_ones(monkeypatch):
    """`estimate_statistics` trains batch norm alone, without momentum."""
    options = make_options(SMALL, preset("reference"))
    blocks = Blocks.rows((1, 32, 32))
    networks = shake(build_networks(blocks, variant_named("Adaptation-Imputation"), 3, options))
    slow = copy.deepcopy(networks)
    target = images(24, 1)
    networks.estimate_statistics(target.split(8))
    monkeypatch.setattr(encoders_module, "is_fast", lambda *given: False)
    slow.estimate_statistics(target.split(8))
    assert_same_tensors(networks.buffers(), slow.buffers())


MASKS = {
    "bottom": Blocks.rows((1, 32, 32), side="bottom").missing,
    "top": Blocks.rows((1, 32, 32), side="top", fraction=0.3).missing,
    "band": tuple(range(10, 20)),
    "stripes": tuple(range(0, 32, 2)),
}


@pytest.mark.parametrize("method", VARIANTS, ids=lambda method: method.name)
@pytest.mark.parametrize("mask", MASKS)
def test_losses_gradients_and_predictions_of_every_model(monkeypatch, method, mask):
    torch.manual_seed(0)
    options = make_options(SMALL, preset("reference"))
    blocks = Blocks((3, 32, 32), MASKS[mask], fill=0.2)
    fast = shake(build_objective(blocks, method, 3, options)).train()
    slow = copy.deepcopy(fast)
    source, target = images(6, 3, grey=True), images(6, 3)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    results = []
    for objective in (fast, slow):
        if objective is slow:
            monkeypatch.setattr(encoders_module, "is_fast", lambda *given: False)
        losses = objective("joint", Batch(source, labels, target), strength=0.5)
        objective.total("joint", losses).backward()
        results.append(
            [
                *losses.values(),
                *(p.grad for p in objective.parameters() if p.grad is not None),
                *objective.buffers(),
                torch.from_numpy(
                    Predictor(objective.networks, options).raw_prediction(target.numpy())
                ).exp(),
            ]
        )
    assert_same_tensors(*results, tolerance=1e-7)


def test_hidden_rows_cost_one_image():
    """Work that is not done shows in the shapes that reach the convolutions."""
    encoder = ConvEncoder((1, 32, 32), channels=(4, 5, 6))
    x = images(8, 1, (0, 16)).float()
    with torch.profiler.profile(record_shapes=True) as profile:
        encoder(x, (0, 16))
    shapes = [e.input_shapes[0] for e in profile.events() if e.name == "aten::convolution"]
    assert [8, 1, 20, 32] in shapes, "sixteen rows, and the four that their kernels reach"
    assert [1, 1, 16, 32] in shapes, "the rest once"
    assert not any(shape[0] == 8 and shape[2] == 32 for shape in shapes)


def test_the_plain_layers_run_where_the_fast_path_does_not_apply():
    x = torch.zeros(4, 1, 32, 32)
    assert is_fast(ConvEncoder((1, 32, 32)).layers, x)
    assert not is_fast(ConvEncoder((1, 32, 32)).layers, x.to("meta"))
    synchronised = nn.SyncBatchNorm.convert_sync_batchnorm(ConvEncoder((1, 32, 32)))
    assert not is_fast(synchronised.layers, x)


def test_one_image_in_training_fails_as_the_plain_layers_do():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        ConvEncoder((1, 32, 32)).train()(torch.zeros(1, 1, 32, 32))


def test_an_encoder_of_ones_own_gets_the_whole_canvas():
    class Own(ConvEncoder):
        def forward(self, x):
            assert x.shape[2:] == (32, 32)
            return super().forward(x)

    options = make_options(SMALL, preset("reference"))
    blocks = Blocks.rows((1, 32, 32))
    networks = build_networks(blocks, variant_named("Adaptation-Imputation"), 3, options, Own)
    latents = networks.latents(
        torch.zeros(4, 1, 32, 32), torch.zeros(4, 1, 32, 32), detach_generator_input=False
    )
    assert latents.source.shape == (4, 256)


def test_one_channel_says_that_it_lies_channels_last():
    x = channels_last(torch.zeros(2, 1, 8, 8))
    assert nn.functional.conv2d(x, torch.zeros(4, 1, 3, 3)).is_contiguous(
        memory_format=torch.channels_last
    )


def test_weights_keep_their_names():
    names = list(ConvEncoder((1, 32, 32)).state_dict())
    assert names[:3] == ["layers.0.weight", "layers.0.bias", "layers.1.weight"]
    assert names[-1] == "layers.9.num_batches_tracked"
