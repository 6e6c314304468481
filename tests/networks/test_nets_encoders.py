import pytest
import torch
from torch import nn

from halfseen import InputError, OptionError
from halfseen.networks.encoders import ConvEncoder, VectorEncoder, initialize, make_encoder, mlp
from halfseen.options import make_options


def test_reference_image_encoder_has_the_authors_sizes():
    layers = ConvEncoder((3, 32, 32)).layers
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [(3, 64), (64, 64), (64, 128)]
    assert [type(layer).__name__ for layer in layers] == [
        *("Conv2d", "BatchNorm2d", "MaxPool2d", "ReLU") * 2,
        *("Conv2d", "BatchNorm2d", "Sigmoid"),
    ]


def test_paper_image_encoder_gives_2048_values():
    encoder = ConvEncoder((1, 32, 32), padding="same", pools=3)
    assert encoder(torch.zeros(2, 1, 32, 32)).shape == (2, 2048)


@pytest.mark.parametrize("normalize", ["batch", "none"])
def test_latents_stay_between_zero_and_one(normalize):
    options = {"normalize": normalize}
    for latent in (
        VectorEncoder((5,), **options)(100 * torch.randn(16, 5)),
        ConvEncoder((1, 16, 16), padding="same", channels=(4, 8), **options)(
            100 * torch.randn(16, 1, 16, 16)
        ),
    ):
        assert latent.min() >= 0
        assert latent.max() <= 1


def test_a_linear_path_starts_as_a_linear_model():
    encoder = VectorEncoder((5,), latent_size=4, linear_path=True).eval()
    encoder.activation = nn.Identity()
    first, second = torch.randn(8, 5), torch.randn(8, 5)
    middle = encoder((first + second) / 2)
    assert torch.allclose(middle, (encoder(first) + encoder(second)) / 2, atol=1e-5)
    bent = VectorEncoder((5,), latent_size=4).eval()
    bent.activation = nn.Identity()
    middle = bent((first + second) / 2)
    assert not torch.allclose(middle, (bent(first) + bent(second)) / 2, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 31, 31), (3, 32, 27)])
def test_an_image_too_small_gets_a_sentence(shape):
    with pytest.raises(InputError, match=f"{shape[1]}x{shape[2]} image is too small"):
        ConvEncoder(shape)


def test_a_users_module_is_copied_not_shared():
    own = nn.Linear(4, 2)
    made, _ = make_encoder(own, (4,), role="observed")
    assert made is not own
    assert torch.equal(made.weight, own.weight)


def test_a_users_encoder_that_does_not_fit_gets_a_sentence():
    with pytest.raises(InputError, match=r"observed block cannot take inputs of shape \(3,\)"):
        make_encoder(nn.Linear(4, 2), (3,), role="observed")
    with pytest.raises(InputError, match=r"gave shape \(2, 8, 1, 1\) for two rows"):
        make_encoder(nn.Conv2d(1, 8, 4), (1, 4, 4), role="missing")
    with pytest.raises(OptionError, match=r"must return a torch\.nn\.Module"):
        make_encoder(lambda shape: "nothing", (4,), role="observed")


def test_dropout_follows_the_first_layer_alone():
    names = [type(layer).__name__ for layer in mlp(4, [8, 8], 2, dropout=0.5)]
    assert names == ["Linear", "ReLU", "Dropout", "Linear", "ReLU", "Linear"]


def test_reference_initialisation():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(8, 64, 5), nn.BatchNorm2d(64), nn.Linear(64, 64))
    initialize(network, "reference")
    assert network[0].weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert network[1].weight.mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.all(network[2].bias == 0.01)
    assert network[2].weight.abs().max() <= (6 / 128) ** 0.5


def test_unknown_names_get_a_sentence():
    with pytest.raises(OptionError, match="normalization='group': Input should be 'batch' or"):
        make_options({"networks.normalization": "group"})
